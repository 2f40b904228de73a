"""What `conjoint train` does: one run folder per seed, each evaluated, then a summary of all."""

import argparse
import itertools
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torch_geometric.data import Data

from ..data.splits import Split
from ..errors import InputError, Interrupted
from ..nn.model import NodeModel
from ..scale.ranks import launched
from ..store import StoredGraph
from ..training import Fitted, Run, config_from, evaluate, fit, resume_run, start_run
from . import batched
from .auto import check_split, chosen_plan, keep_choice, name_model
from .graph import device_named, load_graph, spec_of, split_of
from .plan import Plan, check_settings, plan_from
from .progress import progress
from .reopen import check_graph, plan_of_run, seed_folders
from .results import Trained, keep_results, report
from .terminal import clean, say

if TYPE_CHECKING:
    from ..evaluation.trials import Choice


@dataclass(frozen=True)
class Session:
    """A plan, its graph, and the folder that all of its runs share."""

    plan: Plan
    data: Data
    out: Path
    options: argparse.Namespace
    choice: "Choice | None" = None  # how its model was chosen, if that was left to us

    def folder(self, seed: int) -> Path:
        return self.out if len(self.plan.seeds) == 1 else self.out / f"seed-{seed}"


def start(options: argparse.Namespace) -> None:
    name_model(options)
    plan = plan_from(options)
    check_split(plan, options)
    config_from({**plan.train, "seed": plan.seeds[0]}, "settings")
    check_settings(plan.model["name"], {key: value for key, value in plan.model.items() if key != "name"})
    device_named(options.device)
    out = Path(options.out) if options.out else None
    if out is not None and not launched():  # of several ranks, the first makes the folder
        _must_be_free(out)
    if launched():
        batched.start(plan, options, out)
        return
    graph = batched.graph_of(plan)
    plan = batched.settle(plan, graph, options)
    if plan.batch:
        batched.start(plan, options, out or _next_free(graph, plan), graph)
        return
    data = load_graph(plan) if isinstance(graph, StoredGraph) else graph
    plan, choice = chosen_plan(plan, data, options)
    _train_all(Session(plan, data, out or _next_free(data, plan), options, choice))


def resume(options: argparse.Namespace) -> None:
    """Every seed that the run was started with: finished ones are read, the rest is trained."""
    changed = [name for name in NOT_WITH_RESUME if getattr(options, name, None) is not None]
    if changed:
        option = "--" + changed[0].replace("_", "-") if changed[0] != "dataset" else options.dataset
        raise InputError(f"--resume goes on with the run's own settings; leave out {option}")
    device_named(options.device)
    out = Path(options.resume)
    folders = seed_folders(out)
    plan = plan_of_run(resume_run(folders[0]), options)
    if folders == [out]:  # one run, or one seed of several
        plan = replace(plan, seeds=(resume_run(out).config.seed,))
    if plan.batch:
        batched.resume(plan, out, options)
        return
    data = load_graph(plan)
    _train_all(Session(plan, data, out, options))


NOT_WITH_RESUME = (
    "dataset",
    "out",
    "config",
    "model",
    "intervention",
    "strategy",
    "set",
    "epochs",
    "lr",
    "seed",
    "seeds",
    "split",
    "variant",
)


def _train_all(session: Session) -> None:
    trained = [_train_one(session, seed) for seed in session.plan.seeds]
    report(trained, session.data, session.out, session.options, session.choice)


def _train_one(session: Session, seed: int) -> Trained:
    options, folder = session.options, session.folder(seed)
    split = split_of(session.data, session.plan.split, seed)
    run, model = _open(session, folder, seed, split)
    if seed == session.plan.seeds[0]:
        _tell(session.data, run, options)
        if session.choice is not None:
            keep_choice(session.choice, session.out)
    model = model.to(options.device)
    title = clean(f"{session.data.name} {run.spec.name} seed {seed}")
    started = time.perf_counter()
    try:
        with progress(title, run.config.epochs, options.quiet) as show:
            fitted = fit(model, session.data, split, run.config, progress=show, run=run)
    except Interrupted as stop:
        reached = str(stop).partition(";")[0]
        raise Interrupted(f"{reached}; go on with: conjoint train --resume {session.out}") from None
    seconds = time.perf_counter() - started
    return _finish(session, run, fitted, split, seconds)


def _finish(session: Session, run: Run, fitted: Fitted, split: Split, seconds: float) -> Trained:
    row = {
        "dataset": session.data.name,
        "model": run.spec.name,
        **evaluate(fitted, session.data, split),
        "parameters": sum(p.numel() for p in fitted.model.parameters()),
        "seconds": round(seconds, 3),
    }
    trained = Trained(run, fitted, split, row)
    keep_results(trained, session.data, plots=not session.options.no_plots)
    return trained


def _open(session: Session, folder: Path, seed: int, split: Split) -> tuple[Run, NodeModel]:
    """The run folder and the model with its initial weights. No folder is made for an impossible model."""
    if session.options.resume and folder.exists():
        run = resume_run(folder)
        check_graph(run, session.data)
        return run, run.build_model()
    config = config_from({**session.plan.train, "seed": seed}, "settings")
    spec = spec_of(session.plan, session.data)
    model = spec.build(seed)
    origin = session.plan.origin()
    return start_run(folder, config, model=spec, data=session.data, split=split, origin=origin), model


def _must_be_free(out: Path) -> None:
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(f"--out {out}: already there and never overwritten; resume it or choose another")


def _next_free(data: Data | StoredGraph, plan: Plan) -> Path:
    """runs/cora-gated-trust-1, or the first number after it that is free."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in str(data.name)).strip(".-") or "graph"
    stem = f"{safe[:60]}-{plan.model['name']}"
    return next(
        path for number in itertools.count(1) if not (path := Path("runs") / f"{stem}-{number}").exists()
    )


def _tell(data: Data, run: Run, options: argparse.Namespace) -> None:
    """What was assumed about the graph and what changed since the run was started, once."""
    if options.quiet or options.json:
        return
    for note in [*(getattr(data, "notes", None) or []), *run.notes]:
        say(f"{clean(data.name)}: {clean(note)}")
