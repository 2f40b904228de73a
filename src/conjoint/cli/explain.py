"""conjoint explain: whom a node listens to, and why."""

import argparse
from typing import TYPE_CHECKING, Any

from .parser import add_output_options, add_run_argument, whole_number

if TYPE_CHECKING:
    from ..evaluation.explain import Explanation
    from .reopen import Opened

SUMMARY = "whom a node listens to, and why"
DESCRIPTION = """\
Show the attention of one node, named by its own id: for every neighbour and layer the
weight by features alone, by structure alone, and the conjoint weight that the network
uses (means over heads). Each column of a layer sums to 1. Needs a model with attention:
gat or one of cat-*."""

EXAMPLES = """\
examples:
  conjoint explain runs/cora-gated-trust-1 31336
  conjoint explain runs/cora-gated-trust-1 31336 --plot ego.png --layer 2
  conjoint explain runs/teams "Ada Lovelace" --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_argument(parser)
    parser.add_argument("node", metavar="NODE", help="the node's id, as in your node table")
    parser.add_argument("--plot", metavar="FILE", help="draw its ego network: .png, .svg or .pdf")
    parser.add_argument("--layer", type=whole_number, metavar="K", help="only this layer; default: all")
    parser.add_argument("--rows", type=whole_number, default=20, metavar="N", help="neighbours; default 20")
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    from ..errors import InputError
    from ..evaluation.explain import attention_of, explain
    from ..printable import clean
    from .files import PICTURES, must_be_writable
    from .reopen import open_run
    from .terminal import print_json, table

    if options.plot:
        must_be_writable("--plot", options.plot, PICTURES)
    opened = open_run(options)
    node = _row_of(options.node, opened)
    attention = attention_of(opened.model, opened.data, opened.run.config)
    if options.layer is not None and not 1 <= options.layer <= len(attention):
        raise InputError(f"--layer {options.layer}: the network has layers 1 to {len(attention)}")
    layers = [options.layer] if options.layer else list(range(1, len(attention) + 1))
    found = explain(attention, node, options.layer - 1 if options.layer else None)
    ids, classes = _about(opened, found)
    probabilities = _certainty(opened)[node]
    guess = int(probabilities.argmax())
    if options.plot:
        _draw(options.plot, opened, found, (options.layer or len(found.layers)) - 1, ids, classes)
    rows = _rows(found, layers, ids, [opened.class_names[k] if k >= 0 else "" for k in classes])
    verdict = {"predicted": opened.class_names[guess], "probability": float(probabilities[guess])}
    if options.json:
        label = int(opened.data.y[node])
        known = opened.class_names[label] if label >= 0 else None
        document = {"node": opened.data.node_ids[node], "label": known, **verdict, "neighbours": rows}
        document["listens_to"] = _listens_to(opened)
        print_json({"run": str(opened.run.path), **document, "plot": options.plot})
        return
    print(
        f"{clean(options.node)}: predicted {clean(verdict['predicted'])} ({verdict['probability']:.2f}), "
        f"{len(ids)} neighbours, itself included\n"
    )
    for layer, shares in enumerate(_listens_to(opened), start=1):
        told = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
        print(f"layer {layer} listens to {told}" + ("\n" if layer == len(attention) else ""))
    numbers = [name for name in rows[0] if name not in ("id", "class")]
    shown = [row | {name: f"{row[name]:.3f}" for name in numbers} for row in rows[: max(options.rows, 0)]]
    print(table(shown, right=numbers))
    if len(rows) > len(shown):
        print(f"... {len(rows) - len(shown)} more; --rows shows them")
    if options.plot:
        print(f"\npicture: {clean(options.plot)}")


def _listens_to(opened: "Opened") -> list[dict[str, float]]:
    """What the layers learnt to weigh: shares where strategies mix, factors of scores otherwise."""
    layers = opened.model.intervention_weights()
    if layers and len(layers[0]) == 1:  # one score, taken as it is: nothing was weighed
        return []
    return [{name: float(heads.mean()) for name, heads in layer.items()} for layer in layers]


def _row_of(name: str, opened: "Opened") -> int:
    """The node with this id."""
    import numpy as np

    from ..errors import InputError

    ids = np.asarray(opened.data.node_ids)
    found = np.flatnonzero(ids.astype(str) == name)
    if len(found) == 0:
        some = ", ".join(map(str, ids[:3]))
        raise InputError(f"node {name!r} is not in {opened.data.name}; its ids look like {some}")
    return int(found[0])


def _about(opened: "Opened", found: "Explanation") -> tuple[list[Any], list[int]]:
    """Ids and classes of the neighbours."""
    import numpy as np

    return np.asarray(opened.data.node_ids)[found.neighbours].tolist(), opened.data.y[
        found.neighbours
    ].tolist()


def _certainty(opened: "Opened") -> Any:
    from ..training import predict_proba

    return predict_proba(opened.model, opened.data, opened.run.config).cpu().numpy()


def _rows(
    found: "Explanation", layers: list[int], ids: list[Any], classes: list[str]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"id": id, "class": name} for id, name in zip(ids, classes, strict=True)]
    for layer in layers:
        for part, weights in found.layers[layer - 1].means().items():
            for row, weight in zip(rows, weights.tolist(), strict=True):
                row[f"{part} {layer}"] = weight
    return rows


def _draw(
    path: str, opened: "Opened", found: "Explanation", layer: int, ids: list[Any], classes: list[int]
) -> None:
    from pathlib import Path

    from ..evaluation.plots import ego_network, picture
    from ..training.runs.storage import write_atomically

    figure = ego_network(found, layer, [str(id) for id in ids], classes, opened.class_names)
    write_atomically(Path(path), picture(figure, Path(path).suffix[1:].lower()))
