"""A finished run, opened again with its graph: what every verb after `train` works on."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from ..data import fingerprint
from ..data.splits import Split
from ..errors import InputError
from ..nn.model import NodeModel
from ..training import Run, load_run, resume_run
from .graph import device_named, load_graph, split_of
from .kinds import check_kinds
from .plan import Plan
from .terminal import clean, say


@dataclass(frozen=True, eq=False)
class Opened:
    model: NodeModel
    run: Run
    data: Data
    split: Split

    @property
    def class_names(self) -> list[str]:
        return list(self.run.sidecar.class_names)


def open_run(options: argparse.Namespace) -> Opened:
    """The model of the folder RUN, on the graph that it was trained on. Of several seeds, the best."""
    folder = best_of(Path(options.run))
    if folder != Path(options.run) and not options.quiet and not options.json:
        say(f"using {clean(folder)}, the seed with the lowest validation loss")
    device = device_named(options.device)
    model, run = load_run(folder)
    plan = plan_of_run(run, options)
    data = load_graph(plan)
    check_graph(run, data)
    return Opened(model.to(device), run, data, split_of(data, plan.split, run.config.seed))


def seed_folders(folder: Path) -> list[Path]:
    """The run folders in `folder`: itself, or one per seed."""
    several = [path for path in folder.glob("seed-*") if path.name[5:].isdigit() and path.is_dir()]
    return sorted(several, key=lambda path: int(path.name[5:])) or [folder]


def best_of(folder: Path) -> Path:
    """Chosen by validation loss alone, so the test nodes stay out of it."""
    folders = seed_folders(folder)
    if len(folders) == 1:
        return folders[0]
    losses = {path: _validation_loss(resume_run(path)) for path in folders}
    finished = {path: loss for path, loss in losses.items() if loss is not None}
    if not finished:
        raise InputError(f"{folder}: no seed has finished; go on first: conjoint train --resume {folder}")
    return min(finished, key=lambda path: finished[path])


def _validation_loss(run: Run) -> float | None:
    metrics = (run.sidecar.result or {}).get("metrics")
    loss = metrics.get("val_loss") if isinstance(metrics, dict) else None
    return float(loss) if isinstance(loss, int | float) else None


def plan_of_run(run: Run, options: argparse.Namespace) -> Plan:
    """The plan that the run was made from, with the files where the options say that they are now."""
    source = f"{run.path / 'config.toml'}: [origin]"
    data = _section(run.origin, "data", source)
    moved = {"folder" if "folder" in data else "root": options.data}
    moved |= {"edges": options.edges, "nodes": options.nodes}
    data |= {key: str(Path(path).absolute()) for key, path in moved.items() if path is not None}
    if not isinstance(data.get("edges", data.get("folder", data.get("name"))), str):
        raise InputError(f"{source} names no graph; the run was not made by `conjoint train`")
    seeds = run.origin.get("seeds", [run.config.seed])
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise InputError(f"{source} seeds={seeds!r}: expected a list of whole numbers; restore the file")
    model = {"name": run.spec.name, **run.spec.settings}
    train = {key: value for key, value in vars(run.config).items() if value is not None}
    batch = _section(run.origin, "batch", source)
    return Plan(data, _section(run.origin, "split", source), model, train, tuple(seeds), batch)


def _section(origin: Mapping[str, Any], name: str, source: str) -> dict[str, Any]:
    """A table of plain values: the file may have been edited, or come from elsewhere."""
    section = origin.get(name, {})
    plain = isinstance(section, dict) and all(
        isinstance(value, str | int | float | bool)
        or (isinstance(value, list) and all(isinstance(item, str | int) for item in value))
        for value in section.values()
    )
    if not plain:
        raise InputError(f"{source} {name} is not a table of plain values; restore the file from a copy")
    check_kinds(name, section)
    return dict(section)


def check_graph(run: Run, data: Data) -> None:
    """Weights belong to one graph: its nodes, in its order."""
    if fingerprint(data) != run.sidecar.data_fingerprint:
        raise InputError(
            f"{run.path}: trained on another graph ({run.sidecar.data_name}) than the one found now; "
            "name the original files with --data, or --edges and --nodes"
        )
