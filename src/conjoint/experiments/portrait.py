"""One trained network in numbers small enough for a web page: a map of its nodes and all of its attention."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from ..data import load, make_split
from ..errors import InputError
from ..evaluation.plots.embedding import project
from ..nn import zoo
from ..nn.attention import ConjointAttention
from ..nn.cat import CAT
from ..training import config_from, embed, evaluate, fit
from ..training.inputs import prepare
from ..training.runs.storage import read_text, storage_errors, write_atomically
from .grid import experiment
from .spec import RunSpec

THOUSAND = 1000  # weights are kept in thousandths: three digits are more than a reader can use
LIMIT = 64 * 1024**2
LISTS = (
    "classes",
    "ids",
    "labels",
    "predicted",
    "part",
    "points",
    "heard",
    "speakers",
    "structural",
    "layers",
)


def portrait_spec() -> RunSpec:
    """CAT-I-MF on the embedded Cora, the first of its random splits: no files are needed."""
    specs = experiment("random-splits").specs
    return next(spec for spec in specs if (spec.model, spec.dataset) == ("cat-i-mf", "cora"))


def make_portrait(spec: RunSpec) -> dict[str, Any]:
    """Train `spec` and describe the network that came out."""
    data = load(spec.dataset, source=spec.source)
    split = make_split(data, spec.split, spec.split_seed)
    config = config_from({**spec.train_settings, "seed": spec.seed, "rule": spec.rule})
    sizes = {
        "features": int(data.x.size(1)),
        "classes": len(data.class_names),
        "num_nodes": int(data.num_nodes),
    }
    model = zoo.build(spec.model, **sizes, seed=spec.seed, **spec.model_settings)
    assert isinstance(model, CAT)
    fitted = fit(model, data, split, config)
    inputs = prepare(model, data, config)
    points, _ = project(embed(model, data, config).numpy(), "tsne", seed=spec.seed)
    part = np.zeros(sizes["num_nodes"], dtype=np.int64)
    for code, nodes in enumerate((split.train, split.val, split.reveal_test()), start=1):
        part[nodes.numpy()] = code
    return {
        "key": spec.key,
        "model": spec.model,
        "dataset": spec.dataset,
        "test_accuracy": evaluate(fitted, data, split)["test_accuracy"],
        **_nodes(data),
        "predicted": model.probabilities(inputs.x, inputs.graph).argmax(dim=1).tolist(),
        "part": part.tolist(),
        "points": _on_a_grid(points).tolist(),
        **_attention(model.attention(inputs.x, inputs.graph)),
    }


def _nodes(data: Data) -> dict[str, Any]:
    return {
        "classes": [str(name) for name in data.class_names],
        "ids": [str(name) for name in data.node_ids],
        "labels": data.y.tolist(),
    }


def _on_a_grid(points: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Coordinates from 0 to 1000, the longer side filling it."""
    low, high = points.min(axis=0), points.max(axis=0)
    return np.rint(THOUSAND * (points - low) / max(float((high - low).max()), 1e-12)).astype(np.int64)


def _attention(layers: list[ConjointAttention]) -> dict[str, Any]:
    """Who listens to whom, listener by listener, with the mean over heads of each weight."""
    speakers, listeners = layers[0].edge_index
    order = torch.argsort(listeners * (int(listeners.max()) + 1) + speakers)
    structural = layers[0].structural
    assert structural is not None
    return {
        "heard": torch.bincount(listeners).tolist(),  # how many each listener hears, itself included
        "speakers": speakers[order].tolist(),
        "structural": _thousandths(structural[order]),
        "layers": [
            {
                "feature": _thousandths(_mean_of_heads(layer.feature)[order]),
                "conjoint": _thousandths(_mean_of_heads(layer.conjoint)[order]),
                "mix": []
                if layer.mix is None
                else [[round(float(r), 3) for r in pair] for pair in layer.mix],
            }
            for layer in layers
        ],
    }


def _mean_of_heads(weights: Tensor | None) -> Tensor:
    assert weights is not None
    return weights.mean(dim=1)


def _thousandths(weights: Tensor) -> list[int]:
    return (THOUSAND * weights).round().int().tolist()


def kept_portrait(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """The portrait that is kept with the rows, made first where there is none."""
    path = folder / "report" / "cora.json"
    if not path.exists():
        say(f"training {portrait_spec().label} for the attention explorer")
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps(make_portrait(portrait_spec()), separators=(",", ":"), allow_nan=False)
        write_atomically(path, content.encode() + b"\n")
    try:
        found = json.loads(read_text(path, LIMIT, "the explorer's network"))
        if not isinstance(found, dict) or not _is_portrait(found):
            raise ValueError
        json.dumps(found, allow_nan=False)  # the page is JSON, which has no NaN
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not a portrait of a network; delete it to have it made again") from None
    return found


def _is_portrait(found: dict[str, Any]) -> bool:
    """Whether every part is there and of its kind; what the page's script does with them is its own care."""
    return (
        all(isinstance(found.get(name), list) for name in LISTS)
        and all(isinstance(name, str) for part in ("classes", "ids") for name in found[part])
        and isinstance(found.get("model"), str)
        and isinstance(found.get("test_accuracy"), float)
    )
