"""From a spec to its row: load, split, build, train, evaluate."""

import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from .. import kernels
from ..data import load, make_split
from ..data.splits import Split
from ..errors import ConjointError
from ..evaluation.choice import choose
from ..evaluation.rivals import compare
from ..nn import zoo
from ..training import TrainConfig, config_from, evaluate, fit
from ..training.runs.sidecar import versions
from . import memory
from .controls import CONTROLS
from .spec import RunSpec
from .variants import changed
from .watching import ReleaseWatcher

# Models of the grid that are a choice by validation, then a full training of what was chosen: what
# `conjoint train --intervention auto` does, and `conjoint train`.
AUTO, RECOMMENDED = "cat-auto", "recommended"


def execute(spec: RunSpec, root: str | None = None) -> dict[str, Any]:
    """Do the run and return its row. A run that fails in a way we know (it diverged) also gives a row.

    Args:
        root: folder with the benchmarks' raw files, see `conjoint.data.load`.
    """
    began = time.perf_counter()
    row: dict[str, Any] = {"key": spec.key, **asdict(spec)}
    data = _inputs(spec, root)
    held = memory.start_counting()  # reading the graph is not what the memory of a model means
    try:
        row |= _measure(spec, data)
    except ConjointError as error:
        row["failed"] = str(error)
    top = memory.peak()
    row["seconds"] = round(time.perf_counter() - began, 3)
    row |= {"peak_mib": round(top, 1), "grown_mib": round(top - held, 1)}
    row["made_with"] = _made_with()
    return row


def _measure(spec: RunSpec, data: Data) -> dict[str, Any]:
    split = make_split(data, spec.split, spec.split_seed, **spec.split_settings)
    if spec.model in CONTROLS:
        return CONTROLS[spec.model](data, split, spec.model_settings)
    config = config_from({**spec.train_settings, "seed": spec.seed, "rule": spec.rule}, spec.label)
    began = time.perf_counter()
    name = _network(spec, data, split, config)
    model = zoo.build(
        name,
        features=int(data.x.size(1)),
        classes=len(data.class_names),
        num_nodes=int(data.num_nodes or 0),
        seed=spec.seed,
        **spec.model_settings,
    )
    watcher = ReleaseWatcher(model, data, split, config) if _as_in_the_paper(spec) else None
    chose = spec.model in (AUTO, RECOMMENDED)
    began = began if chose else time.perf_counter()  # to choose is part of its time
    fitted = fit(model, data, split, config, progress=watcher)
    seconds = time.perf_counter() - began
    row = evaluate(fitted, data, split)
    row["split_seed"] = spec.split_seed  # evaluate() says None where the split is a published one
    row["fit_seconds"] = round(seconds, 3)
    row["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    if watcher is not None:
        row["release"] = watcher.report()
    return row | ({"chosen": name} if chose else {})


def _network(spec: RunSpec, data: Data, split: Split, config: TrainConfig) -> str:
    """The network to train: the spec's, or what validation chooses."""
    if spec.model == AUTO:
        return choose(data, split, config, spec.model_settings).model
    if spec.model == RECOMMENDED:
        return compare(data, split, config, spec.model_settings).model
    return spec.model


def _as_in_the_paper(spec: RunSpec) -> bool:
    """Whether the authors' rule has anything to say of it. Watching takes a while."""
    return not spec.variant and "consistency" not in spec.train_settings


Named = tuple[str, str | None, str | None]  # dataset, source, features


def _inputs(spec: RunSpec, root: str | None) -> Data:
    """The graph that the model reads: changed first, so that whatever is made from it sees the change."""
    name: Named = (spec.dataset, spec.source, spec.features)
    if spec.variant:
        return _read_by(spec.model, spec.model_settings, changed(_graph(name, root), spec.variant, spec.seed))
    return _unchanged(name, root, spec.model, tuple(sorted(spec.model_settings.items())))


@lru_cache(maxsize=2)
def _graph(name: Named, root: str | None) -> Data:
    dataset, source, features = name
    return load(dataset, root=root, source=source, features=features)


@lru_cache(maxsize=4)
def _unchanged(name: Named, root: str | None, model: str, settings: tuple[tuple[str, Any], ...]) -> Data:
    """The same for every seed: embeddings are made once per process."""
    return _read_by(model, dict(settings), _graph(name, root))


def _read_by(model: str, settings: Mapping[str, Any], data: Data) -> Data:
    as_it_is = model in CONTROLS or model in (AUTO, RECOMMENDED)
    return data if as_it_is else zoo.input_graph(model, data, **settings)


@cache
def _made_with() -> dict[str, Any]:
    status = kernels.status()
    return {
        **versions(),
        "commit": _commit(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "kernels": status["variant"] if status["active"] else None,
    }


def _commit() -> str | None:
    """The commit of the source tree, with a plus where it was changed since; None outside of one."""
    here = Path(__file__).resolve().parents[1]

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(here), *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + (
            "+" if git("status", "--porcelain", "--", ".") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return None
