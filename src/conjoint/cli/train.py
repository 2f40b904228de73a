"""conjoint train: one run folder per seed, each evaluated, then a summary of all."""

import argparse
import hashlib
import itertools
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any

from ..data.preview import check, preview_of
from ..errors import InputError, Interrupted
from ..graph.graph import Graph
from ..graph.splits import Split
from ..selection.choose import Choice, Trial, Watch
from ..selection.folds import judging_split
from ..selection.learner import IN_BATCHES, decide, members_of, settle, spec_of, split_of, train_one
from ..selection.setting import Setting
from ..selection.trained import Trained
from ..storage import read_text, storage_errors, write_atomically
from ..text import clean, count, file_name
from ..training import Ranks, Run, config_to, connected, resume_run, start_run
from ..training.batch_steps import check_batches
from ..training.batches import metis_bytes
from ..training.config import batch_config_from
from ..training.loggers import check_log, logger
from ..training.memory import USABLE, available_memory
from ..training.ranks import DEFAULT_TIMEOUT, launched, own_device, restarted
from ..training.runs import as_started, split_fingerprint
from .check import remark_preview, tell_preview
from .output import OnEpoch, progress, remark, share
from .plan import Plan, graph_of, plan_from, plan_of_run
from .results import CHOICE, keep_results, report
from .run_folder import device_named, graph_as_started, node_names, seed_folders


@dataclass(frozen=True, eq=False)
class Session:
    """A plan, its graph, the folder that all of its runs share, and the processes that take part."""

    plan: Plan
    graph: Graph
    out: Path
    options: argparse.Namespace
    ranks: Ranks
    choice: Choice | None = None  # how its model was chosen, if that was left to us

    def folder(self, seed: int) -> Path:
        return self.out if len(self.plan.seeds) == 1 else self.out / f"seed-{seed}"


TWICE = (
    "trains twice: first without some labels, which choose the epochs and judge, then with all; "
    "--split hold-out trains once, without these labels"
)


def work(options: argparse.Namespace) -> None:
    if options.log is not None:
        check_log(options.log)
    (resume if options.resume else start)(options)


def start(options: argparse.Namespace) -> None:
    """Train a new run; or go on with it, if the launcher has started the ranks again."""
    plan = plan_from(options)
    device_named(options.device)
    out = Path(options.out) if options.out else None
    if launched() and out is None:
        raise InputError(
            "--out is missing: ranks that are started again must find the run that they go on with"
        )
    # Of several ranks the first makes the folder, so it may be there.
    if out is not None and out.exists() and not launched() and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(f"--out {out}: already there and never overwritten; resume it or choose another")
    if options.dry_run:
        tell_preview(check(**plan.data) if "edges" in plan.data else preview_of(graph_of(plan)), options)
        return
    with _ranks(options) as ranks:
        graph = _same_graph(plan, ranks)
        setting, choice = _in_batches(plan, graph, ranks) if launched() else _chosen(plan, graph, options)
        plan = replace(plan, setting=setting)
        session = Session(plan, graph, out or _next_free(graph, plan), options, ranks, choice)
        _train_all(session, restarted() and session.out.exists())


def _chosen(plan: Plan, graph: Graph, options: argparse.Namespace) -> tuple[Setting, Choice | None]:
    """What a step computes, by memory; and the model, by validation nodes, where that was left to them."""
    split = split_of(graph, plan.split, plan.seeds[0])
    setting, told = settle(plan.setting, graph, split)
    if told is not None:
        remark(options, f"{clean(graph.name)}: {told}")

    if setting.undecided is None:
        return setting, None
    asked = [graph.fingerprint, split_fingerprint(split), setting.undecided, dict(setting.settings)]
    file = _trials_file([*asked, config_to(setting.config(plan.seeds[0]))], options)
    done = read_trials(file)
    if done:
        remark(options, f"{count(len(done), 'finished training')} found in {clean(file)}, not repeated")

    def tell(trial: Trial) -> None:
        said = f"validation {share(trial.val_accuracy)}" if trial.epochs else "diverged"
        remark(options, f"trying {trial.model}, seed {trial.seed}: {said}")
        done.append(trial)
        with storage_errors(file):
            file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps([asdict(one) for one in done], allow_nan=False).encode())

    try:
        parts: dict[str, Any] = {"on_trial": tell, "watch": _watch(graph, options), "known": tuple(done)}
        setting, choice = decide(setting, graph, split, plan.seeds[0], **parts)
    except (KeyboardInterrupt, Interrupted):
        kept = f"{count(len(done), 'finished training')} kept; the same command goes on"
        raise Interrupted(f"stopped while candidates were compared, {kept}") from None
    file.unlink(missing_ok=True)
    return setting, choice


def _trials_file(asked: list[Any], options: argparse.Namespace) -> Path:
    """Where trainings of candidates are kept until one is chosen: there is no run folder before."""
    name = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
    folder = Path(options.out).parent if options.out else Path("runs")
    return folder / f".trials-{name[:16]}.json"


def read_trials(file: Path) -> list[Trial]:
    """What is kept of an earlier comparison; a file that is damaged holds nothing."""
    if not file.is_file():
        return []
    try:
        rows = [Trial(**row) for row in json.loads(read_text(file, 2**20, "the trials"))]
    except (InputError, TypeError, ValueError):
        return []
    kinds = (str, int, float, float, int, bool)
    parts = (pair for one in rows for pair in zip(astuple(one), kinds, strict=True))
    return rows if all(isinstance(part, kind) for part, kind in parts) else []


def _watch(graph: Graph, options: argparse.Namespace) -> Watch:
    return lambda title, epochs: _shown(clean(f"{graph.name} {title}"), epochs, options.quiet, options.log)


@contextmanager
def _shown(title: str, epochs: int, quiet: bool, log: str | None) -> Iterator[OnEpoch | None]:
    """What is called with each epoch's row: the progress bar, and the log of --log if there is one."""
    logged = nullcontext() if log is None else logger(log, title)
    with progress(title, epochs, quiet) as show, logged as write:

        def both(row: dict[str, Any]) -> None:
            for call in (show, write):
                if call is not None:
                    call(row)

        yield None if show is None and write is None else both


def resume(options: argparse.Namespace) -> None:
    """Every seed that the run was started with: finished ones are read, the rest is trained."""
    changed = [name for name in NOT_WITH_RESUME if getattr(options, name, None) is not None]
    if changed:
        option = "--" + changed[0].replace("_", "-") if changed[0] != "dataset" else options.dataset
        raise InputError(f"--resume goes on with the run's own settings; leave out {option}")
    device_named(options.device)
    out = Path(options.resume)
    folders = seed_folders(out)
    run = resume_run(folders[0])
    plan = plan_of_run(run, options)
    if folders == [out]:  # one run, or one seed of several
        plan = replace(plan, seeds=(resume_run(out).config.seed,))
    if options.minutes is not None:  # more time for what is left, or less
        plan = replace(plan, setting=plan.setting.within(options.minutes))
    with _ranks(options) as ranks:
        graph = graph_as_started(run, _same_graph(plan, ranks), options)
        _train_all(Session(plan, graph, out, options, ranks), True)


NOT_WITH_RESUME = (
    *("dataset", "out", "config", "model", "intervention", "strategy", "set", "epochs", "lr"),
    *("seed", "seeds", "split", "variant", "trials", "metric", "single", "class_weight"),
)


def _ranks(options: argparse.Namespace) -> AbstractContextManager[Ranks]:
    options.device = own_device(options.device)
    return connected(options.device, options.timeout or DEFAULT_TIMEOUT)


def _same_graph(plan: Plan, ranks: Ranks) -> Graph:
    with ranks.shared_errors():
        graph = graph_of(plan)
    if ranks.world > 1:
        first = ranks.broadcast(graph.fingerprint)
        with ranks.shared_errors():
            if graph.fingerprint != first:
                where = graph.folder or graph.name
                raise InputError(f"{where}: another graph than that of rank 0; copy it anew")
    return graph


def _in_batches(plan: Plan, graph: Graph, ranks: Ranks) -> tuple[Setting, None]:
    """Several ranks share batches: of the kind that was asked for, or that memory allows."""
    kind = plan.setting.batch.get("kind", "auto")
    if kind == "auto":
        fits = metis_bytes(graph.num_nodes, graph.num_edges) < USABLE * available_memory()
        kind = ranks.broadcast("clusters" if fits else "neighbours")
    if kind not in IN_BATCHES:
        raise InputError(f"--batch {kind}: several ranks share batches; use clusters or neighbours")
    batch = batch_config_from({"per_step": ranks.world, **plan.setting.batch, "kind": kind})
    return replace(plan.setting, batch=config_to(batch)), None


def _train_all(session: Session, again: bool) -> None:
    kept = []
    names = node_names(session.plan.data, session.graph, session.options.name_column)
    for seed in session.plan.seeds:
        one = _train_one(session, seed, again)
        kept += [one] if one is not None else []
        if one is not None and one[1].portfolio is not None and one[1].portfolio.interrupted:
            break  # Ctrl-C kept what this seed had; the others are left to --resume
    if session.ranks.is_first:
        run, trained = min(kept, key=lambda one: one[1].fitted.metrics["val_loss"])
        if not session.options.no_report and trained.batch is None:
            from ..evaluation.run_report import write_report  # scikit-learn and matplotlib: after training

            page = write_report(run, trained, session.out, names)
            write_atomically(session.out / "report.html", page.encode())
        report(kept, session.graph, session.out, session.options, session.choice)


def _train_one(session: Session, seed: int, again: bool) -> tuple[Run, Trained] | None:
    """The run folder and what came out; None for the ranks that write nothing."""
    options, graph, setting, ranks = session.options, session.graph, session.plan.setting, session.ranks
    split = split_of(graph, session.plan.split, seed)
    several = setting.is_ensemble or not split.val.numel()  # trainings, each of which is shown by itself
    run: Run | None = None
    with ranks.shared_errors():
        if ranks.is_first:
            run = _open(session, seed, split, again)
    if run is not None and seed == session.plan.seeds[0]:
        remark_preview(graph, options)  # what the tables were taken for
        for note in run.notes:  # what changed since
            remark(options, f"{clean(graph.name)}: {clean(note)}")
        if several and not setting.is_ensemble and judging_split(graph, split).sizes[2]:
            remark(options, TWICE)
        if session.choice is not None:
            document = json.dumps(session.choice.to_dict(), indent=1, allow_nan=False) + "\n"
            write_atomically(session.out / CHOICE, document.encode())
    title = clean(f"{graph.name} {setting.model} seed {seed}")
    parts: dict[str, Any] = {"device": options.device, "ranks": ranks, "workers": options.workers, "run": run}
    parts |= {"tell": lambda line: remark(options, clean(line))}
    parts |= {"watch": _watch(graph, options) if ranks.is_first else None}
    alone = several or options.quiet or not ranks.is_first
    try:
        log = options.log if ranks.is_first and not several else None
        with _shown(title, setting.config(seed).epochs, alone, log) as show:
            trained = train_one(setting, graph, split, seed, choice=session.choice, progress=show, **parts)
    except Interrupted as stop:
        reached = f"stopped after epoch {stop.epoch}"
        raise Interrupted(f"{reached}; go on with: conjoint train --resume {session.out}") from None
    if run is None:
        return None
    keep_results(run, trained, plots=not options.no_plots and not setting.batch, ranks=ranks.world)
    return run, trained


def _open(session: Session, seed: int, split: Split, again: bool) -> Run:
    """The run folder. None is made for a model that cannot be built or trained."""
    graph, setting, folder = session.graph, session.plan.setting, session.folder(seed)
    if again and folder.exists():
        run = resume_run(folder)
        as_started(run, graph)
    else:
        spec, config = spec_of(setting, graph), setting.config(seed)
        if setting.is_ensemble:
            members_of(setting, graph)
        else:
            model = spec.build(seed)
            if setting.batch:
                check_batches(model, config, batch_config_from(setting.batch), session.ranks)
        origin = session.plan.origin()
        run = start_run(folder, config, model=spec, data=graph, split=split, origin=origin)
    if session.options.save_every is not None:
        run.every_seconds = session.options.save_every
    return run


def _next_free(graph: Graph, plan: Plan) -> Path:
    """runs/cora-gated-trust-1, or the first number after it that is free."""
    stem = f"{file_name(graph.name)}-{plan.setting.model}"
    paths = (Path("runs") / f"{stem}-{number}" for number in itertools.count(1))
    return next(path for path in paths if not path.exists())
