"""conjoint explain: why a node is predicted as it is, as tables, a picture or JSON."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..evaluation.attention_plots import why_figure
from ..evaluation.explain import as_document, explain, row_of
from ..evaluation.plots import write_picture
from ..storage import write_atomically
from ..text import clean, shorten
from .output import PICTURES, answer, must_be_writable, table
from .run_folder import Opened, node_names, open_run

WORDS, FEW = 40, 10  # letters of a name; rows of paths and of features
UNMOVED = 0.0005  # changes below this are shown as 0


def work(options: argparse.Namespace) -> None:
    must_be_writable("--plot", options.plot, PICTURES)
    must_be_writable("--out", options.out, (".json",))
    if options.candidates is not None and options.candidates < 4:
        raise InputError(f"--candidates {options.candidates}: try 4 or more, or leave it out")
    opened = open_run(options)
    graph = opened.data
    names = node_names(opened.plan.data, graph, options.name_column)
    node = row_of(options.node, graph, names)
    shares, classes = opened.trained.probabilities, opened.class_names
    parts: dict[str, Any] = {"layer": options.layer, "most": options.candidates}
    found = explain(opened.model, graph, opened.run.config, node, shares, **parts)
    if options.plot:
        words = graph.node_ids if names is None else names
        figure = why_figure(found, lambda k: str(words[k]), lambda k: int(graph.y[k]), classes)
        write_picture(options.plot, figure)
    document = {"run": str(opened.run.path), **as_document(found, graph, classes, shares, names)}
    document |= {"listens_to": _learnt_weights(opened), "plot": options.plot}
    if options.out:
        write_atomically(Path(options.out), (json.dumps(document, indent=2, allow_nan=False) + "\n").encode())
    answer(options, document, *_told(document, max(options.rows, 0)), *_files(options))


def _files(options: argparse.Namespace) -> list[str]:
    given = {"picture": options.plot, "JSON": options.out}
    return [f"\n{kind}: {clean(path)}" for kind, path in given.items() if path]


def _told(found: Mapping[str, Any], most: int) -> list[str]:
    """The explanation as text: what is predicted, by whom, and what removing each thing changes."""
    who = clean(found["node"]) + (f" ({clean(found['name'])})" if "name" in found else "")
    label = "" if found["label"] is None else f", labelled {clean(found['label'])}"
    lines = [f"{who}: predicted {clean(found['predicted'])} ({found['probability']:.3f}){label}\n"]
    if found["members"]:
        shown = [
            {
                "member": one["name"],
                "weight": f"{one['weight']:.2f}",
                "predicted": one["predicted"],
                "probability": f"{one['probability']:.3f}",
                "if left out": _signed(one["change"]),
            }
            for one in found["members"]
        ]
        lines.append(table(shown, right=("weight", "probability", "if left out")) + "\n")
    lines += _in_words(found["listens_to"])
    looked = found["looked_at"]
    around = "its component" if looked["whole_component"] else f"the {looked['hops']} hops around it"
    cut = ", sampled" if looked["sampled"] else ""
    alone, own = f"without any edge {found['without_edges']:.3f}", found["without_own_features"]
    alone += "" if own is None else f", without its own features {own:.3f}"
    lines.append(
        f"What removing changes, measured on {around} ({looked['nodes']} nodes{cut}), where the probability "
        f"is {found['on_part']:.3f}:\n{alone}\n"
    )
    single = (*found["neighbours"], *found["paths"], *found["features"])
    if max((abs(one["change"] or 0.0) for one in single), default=0.0) < UNMOVED:
        lines.append("no single edge or feature moves it\n")
    lines += _section("neighbour", [_neighbour(one) for one in found["neighbours"]], most)
    tried, there = looked["neighbours"]
    if tried < there:
        lines.append(f"{there - tried} of {there} neighbours were not tried; --candidates tries more\n")
    lines += _section("path", [_path(one) for one in found["paths"]], min(most, FEW))
    features = [
        {"feature": shorten(one["feature"], WORDS), "value": f"{one['value']:.3g}", **_change(one)}
        for one in found["features"]
    ]
    lines += _section("feature", features, min(most, FEW))
    tried, there = looked["features"]
    if tried < there:
        lines.append(f"of {there} features, {tried} were tried one by one: those of the strongest groups\n")
    return lines


def _signed(change: float | None) -> str:
    return "" if change is None else f"{change:+.3f}"


def _change(row: Mapping[str, Any]) -> dict[str, str]:
    return {"change": _signed(row["change"])}


def _neighbour(one: Mapping[str, Any]) -> dict[str, str]:
    row = {"neighbour": shorten(one["id"], WORDS) + (" (itself)" if one["change"] is None else "")}
    row |= {"name": shorten(one["name"], WORDS)} if "name" in one else {}
    row |= {"class": one["class"] or "", "predicted": one["predicted"]}
    row |= {"confidence": f"{one['confidence']:.2f}", **_change(one)}
    return row | {part: f"{one[part]:.3f}" for part in ("feature", "structural", "conjoint") if part in one}


def _path(one: Mapping[str, Any]) -> dict[str, str]:
    ends = [shorten(step.get("name", step["id"]), WORDS // 2) for step in one["path"]]
    classes = [step["class"] or f"({step['predicted']})" for step in one["path"]]
    return {"path": " - ".join(ends), "classes": " - ".join(classes), **_change(one)}


def _section(kind: str, rows: Sequence[Mapping[str, str]], most: int) -> list[str]:
    if not rows or not most:
        return []
    words = ("neighbour", "name", "class", "predicted", "path", "classes", "feature")
    numbers = [name for name in rows[0] if name not in words or (name == "feature" and kind == "neighbour")]
    hidden = len(rows) - most
    more = f"\n... {hidden} more {kind}s; --rows or --json shows them" if hidden > 0 else ""
    return [table(rows[:most], right=numbers) + more + "\n"]


def _learnt_weights(opened: Opened) -> list[dict[str, float]]:
    """What the layers learnt to weigh: shares where strategies mix, factors of scores otherwise."""
    layers = opened.model.intervention_weights()
    if layers and len(layers[0]) == 1:  # one score, taken as it is: nothing was weighed
        return []
    return [{name: float(heads.mean()) for name, heads in layer.items()} for layer in layers]


def _in_words(weights: Sequence[Mapping[str, float]]) -> list[str]:
    layers = [", ".join(f"{name} {weight:.2f}" for name, weight in layer.items()) for layer in weights]
    lines = [f"layer {k} listens to {layer}" for k, layer in enumerate(layers, start=1)]
    return [*lines, ""] if lines else []
