"""From a run folder to its network and its graph: what every verb after `train` begins with."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from ..data.columns import Place
from ..data.from_tables import name_columns
from ..data.read_table import read_table
from ..errors import InputError
from ..graph.graph import Graph
from ..nn.model import NodeModel
from ..selection.learner import PORTFOLIO, split_of
from ..selection.portfolio import JUDGED, read_judged, read_portfolio
from ..selection.trained import Trained
from ..text import count
from ..training import Fitted, Run, load_run, resume_run
from ..training.config import batch_config_from
from ..training.runs import as_started
from .output import clean, remark
from .plan import Plan, graph_of, plan_of_run


@dataclass(frozen=True, eq=False)
class Opened:
    """A finished run with its graph: what every verb after `train` works on."""

    run: Run
    plan: Plan
    trained: Trained
    labels: npt.NDArray[np.str_] | None = None  # as the files say now, where that is not what was trained on

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
    found = graph_of(plan)
    graph = graph_as_started(run, found, options)
    result = run.sidecar.result or {}
    history = run.history(result["epochs"])
    fitted = Fitted(model.to(device), run.config, history, result["best_epoch"], str(result.get("stopped")))
    batch = batch_config_from(plan.setting.batch) if plan.setting.batch else None
    split = split_of(graph, plan.split, run.config.seed)
    portfolio = read_portfolio(run.path / PORTFOLIO) if plan.setting.is_ensemble else None
    held_out = None if plan.setting.is_ensemble else read_judged(run.path / JUDGED)
    judged = held_out if portfolio is None else portfolio.judged
    if judged is not None and (judged[0].max() >= graph.num_nodes or judged[1].shape[1] != graph.num_classes):
        raise InputError(f"{run.path / JUDGED}: of another graph or damaged; restore it from a copy")
    labels = None if graph is found else labels_of(found)
    return Opened(run, plan, Trained(fitted, graph, split, 0.0, batch, portfolio, run.spec, held_out), labels)


def node_names(given: Mapping[str, Any], graph: Graph, column: str | None) -> list[str] | None:
    """A column of the node table of a plan, in the order of its graph; None where none is asked for."""
    if column is None:
        return None
    if not isinstance(given.get("nodes"), str):
        raise InputError(
            f"--name-column {column}: {graph.name} has no node table; leave it out, ids are shown"
        )
    form: dict[str, Any] = {key: given.get(key) for key in ("delimiter", "encoding")}
    nodes = read_table(given["nodes"], **form)
    if column not in nodes.columns:
        some = ", ".join(nodes.columns[:8])
        raise InputError(f"--name-column {column}: {given['nodes']} has no such column; it has {some}")
    columns = name_columns(**{key: given[key] for key in ("id", "label", "reading") if key in given})
    _, id, _ = columns.in_node_table(nodes.columns, Place(given["nodes"]), [])
    ids = columns.ids(nodes[id]).cast(pl.String).to_list()
    names = dict(zip(ids, nodes[column].to_list(), strict=True))  # a table may repeat its rows
    return [names.get(str(id)) or "" for id in graph.node_ids.tolist()]


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


def graph_as_started(run: Run, found: Graph, options: argparse.Namespace) -> Graph:
    """The graph of the run in the files that are there now; if labels have changed since, with its own."""
    graph = as_started(run, found)
    if graph is not found:
        changed = int((labels_of(graph) != labels_of(found)).sum())
        nodes = count(changed, "node")
        remark(options, f"labels of {nodes} changed since training; the model knows those of that time")
    return graph


def labels_of(graph: Graph) -> npt.NDArray[np.str_]:
    """The name of each node's class, empty where it has none."""
    names = graph.class_names or [str(k) for k in range(graph.num_classes)]
    return np.array([*names, ""])[graph.y.numpy()]


def device_named(name: str) -> str:
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"--device {name}: not usable here ({reason}); use --device cpu") from None
    return name
