"""New nodes for a run: their tables read as those of training, folded in, and predicted."""

import argparse
from typing import Any

import numpy as np

from ..data.grown import read_grown
from ..errors import InputError
from ..nn.zoo import input_features, input_graph
from ..training.unseen import predict_grown
from .reopen import Opened, plan_of_run


def new_nodes(opened: Opened, options: argparse.Namespace) -> tuple[np.ndarray, dict[str, Any]]:
    """Probabilities of the new nodes alone, and the columns that describe them."""
    plan = plan_of_run(opened.run, options)
    if "edges" not in plan.data:
        raise InputError(
            f"--new-nodes: {opened.run.sidecar.data_name} is a benchmark; new nodes can join your own graph, "
            "or use conjoint.training.unseen.predict_grown in Python"
        )
    name, settings = opened.run.spec.name, dict(opened.run.spec.settings)
    after = read_grown(opened.data, plan.data, nodes=options.new_nodes, edges=options.new_edges)
    if input_features(name, opened.data, **settings) is not opened.data.x:
        raise InputError(f"--new-nodes: {name} reads embeddings of its training graph alone; train it again")
    after = input_graph(name, after, **settings)
    probabilities = predict_grown(opened.model, opened.data, after, opened.run.config).cpu().numpy()
    known = int(opened.data.num_nodes)
    fresh = probabilities[known:]
    names = np.array([*opened.class_names, ""])
    return fresh, {
        "id": np.asarray(after.node_ids)[known:],
        "part": np.full(len(fresh), "new"),
        "label": names[after.y.numpy()[known:]],
        "predicted": names[fresh.argmax(axis=1)],
        "probability": fresh.max(axis=1),
    }
