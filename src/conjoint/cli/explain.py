"""conjoint explain: which neighbours a node attends to, and why."""

import argparse
from typing import Any

import numpy as np

from ..errors import InputError
from ..evaluation.attention_plots import ego_network
from ..evaluation.explain import Explanation, attention_of, attentive_member, explain
from ..evaluation.plots import write_picture
from ..nn.ensemble import Ensemble
from ..text import clean
from ..training.steps import whole_graph
from .output import PICTURES, answer, must_be_writable, table
from .run_folder import Opened, open_run


def work(options: argparse.Namespace) -> None:
    must_be_writable("--plot", options.plot, PICTURES)
    opened = open_run(options)
    data, names = opened.data, [*opened.class_names, ""]  # class -1 takes the last: unlabelled
    node = _row_of(options.node, opened)
    attention = attention_of(opened.model, data, opened.run.config)
    if options.layer is not None and not 1 <= options.layer <= len(attention):
        raise InputError(f"--layer {options.layer}: the network has layers 1 to {len(attention)}")
    found = explain(attention, node, options.layer - 1 if options.layer else None)
    layers = [options.layer] if options.layer else list(range(1, len(attention) + 1))
    ids, classes = data.node_ids[found.neighbours].tolist(), data.y[found.neighbours].tolist()
    if options.plot:
        figure = ego_network(found, layers[-1] - 1, [str(id) for id in ids], classes, opened.class_names)
        write_picture(options.plot, figure)
    probabilities = opened.trained.probabilities[node]
    predicted, probability = names[int(probabilities.argmax())], float(probabilities.max())
    rows = _rows(found, layers, ids, [names[k] for k in classes])
    weights, members = _learnt_weights(opened), _members(opened, node, names)
    document = {
        "run": str(opened.run.path),
        "node": data.node_ids[node],
        "label": names[int(data.y[node])] or None,
        "predicted": predicted,
        "probability": probability,
        "neighbours": rows,
        "listens_to": weights,
        **({"members": members} if members else {}),
        "plot": options.plot,
    }
    told = f"{clean(options.node)}: predicted {clean(predicted)} ({probability:.2f})"
    answer(
        options,
        document,
        *_members_text(opened, members),
        f"{told}, {len(ids)} neighbours, itself included\n",
        *_in_words(weights),
        _table(rows, max(options.rows, 0)),
        f"\npicture: {clean(options.plot)}" if options.plot else None,
    )


def _members(opened: Opened, node: int, names: list[str]) -> list[dict[str, Any]]:
    """What each member of an ensemble says of the node, the one that counts most first."""
    if not isinstance(opened.model, Ensemble):
        return []
    whole = whole_graph(opened.model, opened.data, opened.run.config)
    rows = [
        {
            "member": name,
            "weight": weight,
            "predicted": names[int(p[node].argmax())],
            "probability": float(p[node].max()),
        }
        for name, (weight, p) in opened.model.member_probabilities(whole.x, whole.graph).items()
    ]
    return sorted(rows, key=lambda row: -row["weight"])


def _members_text(opened: Opened, members: list[dict[str, Any]]) -> list[str]:
    if not isinstance(opened.model, Ensemble):
        return []
    shown = [
        {name: f"{value:.2f}" if isinstance(value, float) else clean(value) for name, value in row.items()}
        for row in members
    ]
    speaks = attentive_member(opened.model)[0].name
    return [table(shown, right=("weight", "probability")), f"\nbelow: the attention of {speaks}\n"]


def _row_of(name: str, opened: Opened) -> int:
    """The node with this id."""
    ids = opened.data.node_ids
    found = np.flatnonzero(ids.astype(str) == name)
    if len(found) == 0:
        some = ", ".join(map(str, ids[:3]))
        raise InputError(f"node {name!r} is not in {opened.data.name}; its ids look like {some}")
    return int(found[0])


def _learnt_weights(opened: Opened) -> list[dict[str, float]]:
    """What the layers learnt to weigh: shares where strategies mix, factors of scores otherwise."""
    layers = opened.model.intervention_weights()
    if layers and len(layers[0]) == 1:  # one score, taken as it is: nothing was weighed
        return []
    return [{name: float(heads.mean()) for name, heads in layer.items()} for layer in layers]


def _in_words(weights: list[dict[str, float]]) -> list[str]:
    layers = [", ".join(f"{name} {weight:.2f}" for name, weight in layer.items()) for layer in weights]
    lines = [f"layer {k} listens to {layer}" for k, layer in enumerate(layers, start=1)]
    return [*lines, ""] if lines else []


def _rows(found: Explanation, layers: list[int], ids: list[Any], classes: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"id": id, "class": name} for id, name in zip(ids, classes, strict=True)]
    for layer in layers:
        for part, weights in found.layers[layer - 1].means().items():
            for row, weight in zip(rows, weights.tolist(), strict=True):
                row[f"{part} {layer}"] = weight
    return rows


def _table(rows: list[dict[str, Any]], most: int) -> str:
    numbers = [name for name in rows[0] if name not in ("id", "class")]
    shown = [row | {name: f"{row[name]:.3f}" for name in numbers} for row in rows[:most]]
    hidden = len(rows) - len(shown)
    return table(shown, right=numbers) + (f"\n... {hidden} more; --rows shows them" if hidden else "")
