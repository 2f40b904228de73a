"""conjoint tune: search for settings that suit one graph, within minutes that the user sets."""

import argparse
from typing import TYPE_CHECKING, Any

from .parser import add_output_options, whole_number
from .train import add_data_options, add_split_options

if TYPE_CHECKING:
    from pathlib import Path

    from torch_geometric.data import Data

    from ..data.splits import Split
    from ..tuning import Trial
    from .plan import Plan

SUMMARY = "search for settings that suit your graph, in the minutes you give it"
DESCRIPTION = """\
Try networks and training settings on a graph for a number of minutes, and keep the best.

Short trainings are judged by validation nodes alone; test nodes are not looked at. Every
finished trial is one line in OUT/trials.jsonl: stop whenever you like, the same command
goes on from there. OUT/best.toml is what `conjoint train --config` reads."""

EXAMPLES = """\
examples:
  conjoint tune --minutes 10                   the Cora that comes with the package
  conjoint tune --edges links.csv --nodes people.csv --label team --out tuning/teams
  conjoint tune --out tuning/teams ...         again: goes on with the same search
  conjoint train --config tuning/teams/best.toml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", nargs="?", metavar="NAME", help="a benchmark, as in `conjoint train`")
    add_data_options(parser)
    add_split_options(parser)
    group = parser.add_argument_group("the search")
    group.add_argument("--minutes", type=float, default=10.0, help="time to spend (default 10)")
    group.add_argument("--trials", type=whole_number, default=1000, help="at most so many, earlier ones too")
    group.add_argument("--models", nargs="+", metavar="NAME", help="networks to choose among")
    group.add_argument("--trial-seeds", type=whole_number, default=2, help="trainings per trial (default 2)")
    group.add_argument("--trial-epochs", type=whole_number, default=300, help="of each (default 300)")
    group.add_argument("--seed", type=whole_number, help="decides what is tried; default 0")
    group.add_argument("--out", metavar="FOLDER", help="default tuning/<data>; a search there is continued")
    parser.set_defaults(config=None)
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    from pathlib import Path

    from ..errors import InputError
    from ..training import config_from
    from ..tuning import Budget, best_of, tune
    from .graph import load_graph, split_of
    from .plan import plan_from
    from .terminal import print_json, say, share

    _check(options)
    models = _models(options.models)
    plan = plan_from(options)
    data = load_graph(plan)
    split = split_of(data, plan.split, plan.seeds[0])
    config = config_from({**plan.train, "seed": plan.seeds[0]}, "settings")
    folder = Path(options.out or Path("tuning") / _safe(str(data.name)))
    _open(folder, data, split)
    best: list[Trial] = []

    def tell(trial: "Trial") -> None:
        if best and trial.merit <= best[0].merit:
            return
        best[:] = [trial]
        if not (options.quiet or options.json):
            say(f"{share(trial.val_accuracy)} on validation: {_words(trial.point)}")

    budget = Budget(
        minutes=options.minutes,
        trials=options.trials,
        seeds=options.trial_seeds,
        epochs=options.trial_epochs,
    )
    trials = tune(data, split, folder, budget=budget, base=config, models=models, on_trial=tell)
    if not trials:
        raise InputError(f"--minutes {options.minutes}: not enough for one trial; give it more")
    chosen = best_of(trials)
    path = keep_best(folder, plan, chosen)
    if options.json:
        print_json({"folder": str(folder), "trials": len(trials), "best": _row(chosen)})
        return
    print(_table(trials))
    print(f"\n{len(trials)} trials. Train with the best: conjoint train --config {path}")


def keep_best(folder: "Path", plan: "Plan", chosen: "Trial") -> "Path":
    """best.toml: the graph and split of the search with the settings of its best trial."""
    from ..training.config import write_toml
    from ..training.runs.storage import write_atomically
    from ..tuning.space import settings_at

    network, training = settings_at(chosen.point)
    document = {"data": dict(plan.data), "split": dict(plan.split), "model": network, "train": training}
    path = folder / "best.toml"
    write_atomically(path, write_toml(document).encode())
    return path


def _open(folder: "Path", data: "Data", split: "Split") -> None:
    """Make the folder, or make sure that the search in it is about the same graph and split."""
    import json

    from ..data.fingerprint import fingerprint
    from ..errors import InputError
    from ..training.runs.folder import split_fingerprint
    from ..training.runs.storage import read_text, storage_errors, write_atomically

    about = {"graph": fingerprint(data), "split": split_fingerprint(split)}
    path = folder / "search.json"
    if path.exists():
        try:
            known = json.loads(read_text(path, 1 << 16, "the search"))
        except ValueError:
            known = None
        if known != about:
            raise InputError(
                f"--out {folder}: it holds a search on another graph or split; choose another folder"
            )
        return
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"--out {folder}: already there and not a search; choose another folder")
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(about) + "\n").encode())


def _check(options: argparse.Namespace) -> None:
    from ..errors import InputError

    if not 0.0 < options.minutes < 1e6:
        raise InputError(f"--minutes {options.minutes}: give a number above 0")
    for option, value in (("--trial-seeds", options.trial_seeds), ("--trial-epochs", options.trial_epochs)):
        if value < 1:
            raise InputError(f"{option} {value}: give 1 or more")
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise InputError("tune: it needs optuna; install it with: pip install 'conjoint[tune]'") from None


def _models(names: list[str] | None) -> tuple[str, ...]:
    from ..errors import InputError
    from ..tuning.space import MODELS

    for name in names or ():
        if name not in MODELS:
            raise InputError(f"--models {name}: choose among {', '.join(MODELS)}")
    return tuple(names) if names else MODELS


def _table(trials: "list[Trial]") -> str:
    from .terminal import share, table

    ranked = sorted(trials, key=lambda trial: trial.merit, reverse=True)[:10]
    rows = [
        {"validation": share(t.val_accuracy), "seconds": f"{t.seconds:.0f}", "settings": _words(t.point)}
        for t in ranked
    ]
    return table(rows, right=("validation", "seconds"))


def _words(point: dict[str, Any]) -> str:
    said = f"{point['model']}, hidden {point['hidden']}, dropout {point['dropout']:.1f}, lr {point['lr']:.4f}"
    said += f", weight decay {point['weight_decay']:.1e}"
    if point["consistent"]:
        said += f", consistency {point['passes']} x {point['weight']:.1f} at {point['temperature']:.2f}"
    return said


def _row(trial: "Trial") -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(trial)


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip(".-")[:60] or "graph"
