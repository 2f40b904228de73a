"""From a run folder to its network and its graph: what every verb after `train` begins with."""

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch

from ..data.read_table import read_table
from ..errors import InputError
from ..graph.graph import Graph
from ..nn.model import NodeModel
from ..selection.learner import PORTFOLIO, Trained, split_of
from ..selection.portfolio import read_portfolio
from ..training import Fitted, Run, load_run, resume_run
from ..training.config import batch_config_from
from .output import clean, remark
from .plan import Plan, graph_of, plan_of_run


@dataclass(frozen=True, eq=False)
class Opened:
    """A finished run with its graph: what every verb after `train` works on."""

    run: Run
    plan: Plan
    trained: Trained

    @property
    def model(self) -> NodeModel:
        return self.trained.fitted.model

    @property
    def data(self) -> Graph:
        return self.trained.graph

    @property
    def class_names(self) -> list[str]:
        return list(self.run.sidecar.class_names)


def open_run(options: argparse.Namespace) -> Opened:
    """The model of the folder RUN, on the graph that it was trained on. Of several seeds, the best."""
    if not Path(options.run).is_dir():
        raise InputError(
            f"{options.run}: no such run folder; `conjoint train` makes one, below runs/ by default"
        )
    folder = best_of(Path(options.run))
    if folder != Path(options.run):
        remark(options, f"using {clean(folder)}, the seed with the lowest validation loss")
    device = device_named(options.device)
    model, run = load_run(folder)
    plan = plan_of_run(run, options)
    graph = graph_of(plan)
    check_graph(run, graph)
    result = run.sidecar.result or {}
    history = run.history(result["epochs"])
    fitted = Fitted(model.to(device), run.config, history, result["best_epoch"], str(result.get("stopped")))
    batch = batch_config_from(plan.setting.batch) if plan.setting.batch else None
    split = split_of(graph, plan.split, run.config.seed, plan.setting.is_ensemble)
    portfolio = read_portfolio(run.path / PORTFOLIO) if plan.setting.is_ensemble else None
    return Opened(run, plan, Trained(fitted, graph, split, 0.0, batch, portfolio, run.spec))


def node_names(opened: Opened, column: str | None) -> list[str] | None:
    """A column of the run's node table, in the order of the graph; None where none is asked for."""
    if column is None:
        return None
    given = opened.plan.data
    if not isinstance(given.get("nodes"), str):
        raise InputError(
            f"--name-column {column}: {opened.data.name} has no node table; leave it out, ids are shown"
        )
    nodes = read_table(given["nodes"], delimiter=given.get("delimiter"))
    if column not in nodes.columns:
        some = ", ".join(nodes.columns[:8])
        raise InputError(f"--name-column {column}: {given['nodes']} has no such column; it has {some}")
    return [name or "" for name in nodes[column].to_list()]


def seed_folders(folder: Path) -> list[Path]:
    """The run folders in `folder`: itself, or one per seed."""
    several = [path for path in folder.glob("seed-*") if path.name[5:].isdigit() and path.is_dir()]
    return sorted(several, key=lambda path: int(path.name[5:])) or [folder]


def best_of(folder: Path) -> Path:
    """Chosen by validation loss alone, so the test nodes stay out of it."""
    folders = seed_folders(folder)
    if len(folders) == 1:
        return folders[0]
    finished = {}
    for path in folders:
        metrics = (resume_run(path).sidecar.result or {}).get("metrics")
        loss = metrics.get("val_loss") if isinstance(metrics, dict) else None
        if isinstance(loss, int | float):
            finished[path] = loss
    if not finished:
        raise InputError(f"{folder}: no seed has finished; go on first: conjoint train --resume {folder}")
    return min(finished, key=lambda path: finished[path])


def check_graph(run: Run, graph: Graph) -> None:
    """Weights belong to one graph: its nodes, in its order."""
    if graph.fingerprint != run.sidecar.data_fingerprint:
        raise InputError(
            f"{run.path}: trained on another graph ({run.sidecar.data_name}) than the one found now; "
            "name the original files with --data, or --edges and --nodes"
        )


def device_named(name: str) -> str:
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"--device {name}: not usable here ({reason}); use --device cpu") from None
    return name
