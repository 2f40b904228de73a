"""One trained network in numbers small enough for a web page: a map of its nodes and all of its attention."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from conjoint.data import load_graph, make_split
from conjoint.evaluation.plots import project
from conjoint.experiments.grid import experiment
from conjoint.experiments.rows import RunSpec
from conjoint.graph.graph import Graph
from conjoint.nn import zoo
from conjoint.nn.attention import ConjointAttention
from conjoint.nn.cat import CAT
from conjoint.training import config_from, embed, evaluate, fit
from conjoint.training.steps import whole_graph

THOUSAND = 1000  # weights are kept in thousandths: three digits are more than a reader can use


def portrait_spec() -> RunSpec:
    """CAT-I-MF on the embedded Cora, the first of its random splits: no files are needed."""
    specs = experiment("random-splits").specs
    return next(spec for spec in specs if (spec.model, spec.dataset) == ("cat-i-mf", "cora"))


def make_portrait(spec: RunSpec) -> dict[str, Any]:
    """Train `spec` and describe the network that came out."""
    data = load_graph(spec.dataset, source=spec.source)
    split = make_split(data, spec.split, spec.split_seed)
    config = config_from({**spec.train_settings, "seed": spec.seed, "rule": spec.rule})
    sizes = {
        "features": data.num_features,
        "classes": len(data.class_names),
        "num_nodes": data.num_nodes,
    }
    model = zoo.build(spec.model, **sizes, seed=spec.seed, **spec.model_settings)
    assert isinstance(model, CAT)
    fitted = fit(model, data, split, config)
    inputs = whole_graph(model, data, config)
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


def _nodes(data: Graph) -> dict[str, Any]:
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
    """The edges, target by target, with the mean over heads of each weight."""
    sources, targets = layers[0].edge_index
    order = torch.argsort(targets * (int(targets.max()) + 1) + sources)
    structural = layers[0].structural
    assert structural is not None
    return {
        "heard": torch.bincount(targets).tolist(),  # edges into each node, its loop included
        "speakers": sources[order].tolist(),  # sources of these edges; both names are those of the kept files
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
