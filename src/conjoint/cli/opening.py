"""From a plan to its graph, and from a run folder to its network and graph."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data import load_graph, read_graph
from ..data.grown import read_grown
from ..errors import InputError
from ..graph.folder import open_folder
from ..graph.graph import Graph
from ..nn.model import NodeModel
from ..nn.zoo import input_features, input_graph
from ..selection.learner import Trained, split_of
from ..selection.setting import Setting
from ..training import Fitted, Run, load_run, resume_run
from ..training.config import batch_config_from, config_to
from ..training.predictions import predict_new_nodes
from .arguments import check_kinds
from .output import clean, say
from .plan import Plan


def graph_of(plan: Plan) -> Graph:
    """The graph of the plan, with the features and edges that its model reads."""
    options = dict(plan.data)
    if "folder" in options:
        graph = open_folder(options["folder"])
    else:
        read: Any = read_graph if "edges" in options else load_graph
        known = signature(read).parameters
        for key in options:
            if key not in known:
                own = "describes your own files" if "edges" not in options else "is not known"
                raise InputError(f"[data] {key}={options[key]!r}: it {own}; see `conjoint train --help`")
        graph = read(options.pop("edges" if "edges" in options else "name"), **options)
    return input_graph(plan.setting.model, graph, **plan.setting.settings)


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
    folder = best_of(Path(options.run))
    if folder != Path(options.run) and not options.quiet and not options.json:
        say(f"using {clean(folder)}, the seed with the lowest validation loss")
    device = device_named(options.device)
    model, run = load_run(folder)
    plan = plan_of_run(run, options)
    graph = graph_of(plan)
    check_graph(run, graph)
    result = run.sidecar.result or {}
    history = run.history(result["epochs"])
    fitted = Fitted(model.to(device), run.config, history, result["best_epoch"], str(result.get("stopped")))
    batch = batch_config_from(plan.setting.batch) if plan.setting.batch else None
    split = split_of(graph, plan.split, run.config.seed)
    return Opened(run, plan, Trained(fitted, graph, split, 0.0, batch))


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
    batch = _section(run.origin, "batch", source)
    setting = Setting(run.spec.name, run.spec.settings, config_to(run.config), batch)
    return Plan(setting, data, _section(run.origin, "split", source), tuple(seeds))


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


def new_nodes(opened: Opened, options: argparse.Namespace) -> tuple[np.ndarray, dict[str, Any]]:
    """Probabilities of the nodes that came after training, and the columns that describe them."""
    given = opened.plan.data
    if "edges" not in given:
        raise InputError(
            f"--new-nodes: {opened.run.sidecar.data_name} is a benchmark; new nodes can join your own graph, "
            "or use conjoint.training.predict_new_nodes in Python"
        )
    name, settings = opened.run.spec.name, dict(opened.run.spec.settings)
    after = read_grown(opened.data, given, nodes=options.new_nodes, edges=options.new_edges)
    if input_features(name, opened.data, **settings) is not opened.data.x:
        raise InputError(f"--new-nodes: {name} reads embeddings of its training graph alone; train it again")
    after = input_graph(name, after, **settings)
    probabilities = predict_new_nodes(opened.model, opened.data, after, opened.run.config).cpu().numpy()
    known = opened.data.num_nodes
    fresh = probabilities[known:]
    names = np.array([*opened.class_names, ""])
    return fresh, {
        "id": np.asarray(after.node_ids)[known:],
        "part": np.full(len(fresh), "new"),
        "label": names[after.y.numpy()[known:]],
        "predicted": names[fresh.argmax(axis=1)],
        "probability": fresh.max(axis=1),
    }
