"""One HTML file about one run: data, models, metrics, mistakes, a map, explanations, and what it is not for.

It needs nothing else, fetches nothing, and shows names without obeying them. Samples bound its size, whatever
the size of the graph: `gather` makes what the page holds, `run_page` the page.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from ..graph.graph import Graph
from ..graph.proximity import matrix_of
from ..nn.ensemble import Ensemble
from ..selection.trained import Trained
from ..text import shorten
from ..training import Run, embed
from ..training.metrics import BINS, METRICS
from .explain import WORK, as_document, explain
from .html import bars, chart, json_in_script, page, table_html
from .metrics import confusion
from .plots import project

Array = npt.NDArray[Any]
PAGE = Path(__file__).with_name("page")
# The page's bounds: points of the map, explained nodes, mistakes, classes and features by name, letters.
POINTS, EXPLAINED, MISTAKES, CLASSES, FEATURES, LETTERS = 2000, 24, 30, 20, 40, 60
COLUMNS = 60  # of the user's tables
ROWS = 12  # of each table of an explanation
AROUND = 400  # nodes that an explanation looks at
RESAMPLES, MOST_RESAMPLED = 100, 2000  # of the bootstrap
NOBODY = "<p>There are no nodes that could judge it.</p>"
KINDS = {"unseen": "nodes that the judged trainings had not seen", "test": "test nodes"}


@dataclass(frozen=True, eq=False)
class Judged:
    """Nodes that an estimate is of: rows, labels, probabilities."""

    kind: str
    nodes: Array
    y: Array
    p: Array


def write_report(
    run: Run, trained: Trained, path: Path | None = None, names: Sequence[str] | None = None
) -> str:
    """The page of a finished run as text."""
    graph = trained.graph
    judged = [
        Judged(kind, nodes, graph.y.numpy()[nodes], shares)
        for kind, (nodes, shares) in trained.judged.items()
        if nodes.max() < graph.num_nodes
    ]
    shown = label_of(graph, names)
    nodes: dict[str, Any] = {"points": [], "names": [], "labels": [], "predicted": [], "sure": []}
    nodes |= {"classes": [], "explained": [], "whys": []}
    if trained.batch is None:
        hidden = embed(trained.fitted.model, graph, trained.fitted.config).cpu().numpy()
        nodes |= gather(graph, trained.probabilities, judged, hidden, run.sidecar.class_names, shown)
        chosen = nodes.pop("chosen")
        nodes["whys"] = _explanations(trained, chosen, judged, run.sidecar.class_names, names)
        place = {node: k for k, node in enumerate(chosen[: len(nodes["whys"])])}
        nodes["explained"] = [place.get(node, -1) for node in nodes.pop("rows")]
    return run_page(run, trained, judged, nodes, shown, path or run.path)


def label_of(graph: Graph, names: Sequence[str] | None) -> Any:
    """What a node is called on the page."""

    def shown(node: int) -> str:
        id = shorten(graph.node_ids[node], LETTERS)
        return id if names is None else f"{shorten(names[node], LETTERS)} ({id})"

    return shown


def mistakes_of(judged: Judged) -> Array:
    """Places of wrong predictions among the judged nodes, the most confident first."""
    wrong = np.flatnonzero(judged.p.argmax(axis=1) != judged.y)
    return wrong[np.argsort(-judged.p[wrong].max(axis=1), kind="stable")]


def gather(
    graph: Graph, shares: Array, judged: Sequence[Judged], hidden: Array, classes: Sequence[str], shown: Any
) -> dict[str, Any]:
    """The map's nodes, a sample where there are many, and which nodes are to be explained."""
    rng = np.random.default_rng(0)
    wrong = [] if not judged else judged[-1].nodes[mistakes_of(judged[-1])][: EXPLAINED // 2].tolist()
    rows = rng.permutation(graph.num_nodes)[:POINTS]
    chosen = list(dict.fromkeys([*wrong, *rows[: EXPLAINED - len(wrong)].tolist()]))
    rows = np.array(list(dict.fromkeys([*chosen, *rows.tolist()]))[:POINTS])
    points, _ = project(hidden[rows], "pca")
    low, high = points.min(axis=0), points.max(axis=0)
    points = (1000 * (points - low) / np.maximum(high - low, 1e-12)).round().astype(int)
    return {
        "points": points.tolist(),
        "names": [shown(int(node)) for node in rows],
        "labels": graph.y.numpy()[rows].tolist(),
        "predicted": shares[rows].argmax(axis=1).tolist(),
        "sure": (1000 * shares[rows].max(axis=1)).round().astype(int).tolist(),
        "classes": [shorten(name, LETTERS) for name in classes[:CLASSES]],
        "rows": rows.tolist(),
        "chosen": chosen,
    }


def _explanations(
    trained: Trained,
    chosen: Sequence[int],
    judged: Sequence[Judged],
    classes: Sequence[str],
    names: Sequence[str] | None,
) -> list[dict[str, Any]]:
    """At about one explanation's work in all: a training of each member is asked, on `AROUND` nodes."""
    model, graph, config = trained.fitted.model, trained.graph, trained.fitted.config
    model = model.in_short() if isinstance(model, Ensemble) else model
    each = AROUND * len(getattr(model, "members", [model]))
    most = int(np.clip(WORK // (max(1, len(chosen)) * each), 8, 40))
    said = {int(n): (one, k) for one in judged for k, n in enumerate(one.nodes)} if judged else {}
    made = []
    for node in chosen[: max(4, WORK // (most * each))]:
        found = explain(model, graph, config, node, trained.probabilities, most=most, around=AROUND)
        told = as_document(found, graph, classes, trained.probabilities, names)
        document = {key: _short(told[key]) for key in told if key not in ("attention", "looked_at")}
        if node in said:
            one, k = said[node]
            best = int(one.p[k].argmax())
            document["wrong"] = best != int(one.y[k])
            if one.kind == "unseen":
                sure = f"{shorten(classes[best], LETTERS)} ({one.p[k, best]:.3f})"
                document["judged"] = f"Trainings without its label said {sure}."
        made.append(document)
    return made


def _short(part: Any) -> Any:
    """Text cut to the page's letters, lists to its rows, numbers to six digits."""
    if isinstance(part, str):
        return shorten(part, LETTERS)
    if isinstance(part, float):
        return round(part, 6)
    if isinstance(part, dict):
        return {key: _short(value) for key, value in part.items()}
    return [_short(one) for one in part[:ROWS]] if isinstance(part, list) else part


def intervals(y: Array, p: Array) -> dict[str, tuple[float, float, float]]:
    """Each metric with a 95% interval by the bootstrap over nodes; of many, samples of some, rescaled."""
    rng = np.random.default_rng(0)
    size = min(len(y), MOST_RESAMPLED)
    drawn = [rng.integers(0, len(y), size) for _ in range(RESAMPLES)]
    out = {}
    for name, metric in METRICS.items():
        value = metric(y, p)
        moved = [metric(y[one], p[one]) - value for one in drawn]
        low, high = np.quantile(moved, (0.025, 0.975)) * np.sqrt(size / len(y))
        out[name] = (value, float(value + low), float(value + high))
    return out


def degrees(degree: Array) -> dict[str, int]:
    """How many nodes have 0, 1, 2, 3 or 4 (3+), 5 to 8 (5+), ... neighbours."""
    bins = np.where(degree > 0, np.ceil(np.log2(np.maximum(degree, 1))).astype(int) + 1, 0)
    counts = np.bincount(bins).tolist()
    names = ["0", "1", "2", *(f"{2 ** (k - 2) + 1}+" for k in range(3, len(counts)))]
    return {name: times for name, times in zip(names, counts, strict=False) if times or name != "0"}


def data_section(graph: Graph, split_words: str) -> str:
    nodes = graph.num_nodes
    matrix = matrix_of(graph.edge_index, nodes, loops=False)
    degree = np.asarray((matrix != 0).sum(axis=1)).ravel()
    parts, _ = connected_components(matrix, directed=False)
    y, (source, target) = graph.y.numpy(), graph.edge_index.numpy()
    known = (y[source] >= 0) & (y[target] >= 0)
    counts = np.bincount(y[y >= 0], minlength=graph.num_classes)
    facts = {
        "nodes": f"{nodes:,}",
        "edges": f"{matrix.nnz // 2:,}",
        "labelled": f"{int((y >= 0).sum()):,}",
        "labels": split_words,
        "features": f"{graph.num_features:,}",
        "components": f"{parts:,}",
        "neighbours": f"median {np.median(degree):.0f}, at most {degree.max():,}; "
        f"{int((degree == 0).sum()):,} have none",
    }
    if known.any():
        same = float((y[source] == y[target])[known].mean())
        chance = float(((counts / max(1, counts.sum())) ** 2).sum())
        facts["edges within a class"] = f"{100 * same:.0f}% ({100 * chance:.0f}% by chance)"
    told = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts.items())
    order = np.argsort(-counts, kind="stable")
    names = graph.class_names or [str(k) for k in range(graph.num_classes)]
    rows = [(shorten(names[k], LETTERS), f"{counts[k]:,}") for k in order[:CLASSES]]
    more = f"<p>{len(names) - CLASSES} rarer classes are not shown.</p>" if len(names) > CLASSES else ""
    classes = f"<div>{table_html('Classes', ('class', 'labelled nodes'), rows)}{more}</div>"
    drawn = bars("Nodes by number of neighbours", "neighbours", degrees(degree))
    return f'<dl class="facts">{told}</dl>{_columns(graph)}<div class="charts">{classes}{drawn}</div>'


def _columns(graph: Graph) -> str:
    """What was assumed of the tables, what their columns were taken for, and what features came of it."""
    notes = "".join(f"<li>{escape(shorten(note, 200))}</li>" for note in graph.notes[:10])
    made = f"<ul>{notes}</ul>" if notes else ""
    taken = [(shorten(a, LETTERS), shorten(b, 2 * LETTERS)) for a, b in list(graph.columns.items())[:COLUMNS]]
    made += table_html("Columns", ("column", "taken for"), taken) if taken else ""
    hidden = len(graph.columns) - len(taken)
    made += f"<p>{hidden:,} more columns are not shown.</p>" if hidden else ""
    features = graph.feature_names or []
    words = ", ".join(shorten(name, LETTERS) for name in features[:FEATURES])
    words = escape(words) + (f" and {len(features) - FEATURES} more" if len(features) > FEATURES else "")
    return made + (f"<details><summary>Features</summary><p>{words}.</p></details>" if features else "")


def tried_section(trained: Trained) -> str:
    found = trained.portfolio
    if found is None:
        history = trained.fitted.history
        points = [r for r in history if {"prediction_loss", "val_loss"} <= r.keys()]
        curve = [(r["epoch"], r["prediction_loss"], r["val_loss"]) for r in points]
        again = "" if trained.held_out is None else "Trained again on all labels for as many epochs."
        told = f"<p>One network, {len(history)} epochs, kept: epoch {trained.fitted.best_epoch}. {again}</p>"
        return told + _curves({"the network": curve})
    weights = {one["name"]: one for one in found.members}
    rows = []
    for name in dict.fromkeys(one.member for one in found.trials):
        mine, chosen = [one for one in found.trials if one.member == name], weights.get(name)
        accuracy = f"{np.mean([one.val_accuracy for one in mine]):.3f}" if mine[0].epochs else "diverged"
        judged = (f"{chosen[found.metric]:.4f}", f"{100 * chosen['weight']:.1f}%") if chosen else ()
        seconds = f"{sum(one.seconds for one in mine):.1f}"
        rows.append((name, len(mine), accuracy, seconds, *(judged or ("-", "not chosen"))))
    headers = ("member", "trainings", "validation accuracy", "seconds", found.metric, "weight")
    left = f"<p>Not begun or given up, for want of time: {escape(', '.join(found.left_out))}.</p>"
    left = left if found.left_out else ""
    early = "<p>The search was stopped early.</p>" if found.interrupted else ""
    curves = {one.member: [row[:3] for row in one.curve] for one in found.trials if one.curve}
    return table_html(f"Chosen by {found.metric}", headers, rows) + left + early + _curves(curves)


def _curves(curves: Mapping[str, Sequence[Sequence[float]]]) -> str:
    made = []
    for name, rows in list(curves.items())[:12]:
        thin = rows[:: max(1, len(rows) // 60)]
        if len(thin) > 1:
            lines = {"training": [(r[0], r[1]) for r in thin], "validation": [(r[0], r[2]) for r in thin]}
            made.append(chart(f"Loss of {shorten(name, LETTERS)}", "epoch", lines))
    return f'<h3>Learning curves</h3><div class="charts">{"".join(made)}</div>' if made else ""


def metrics_section(judged: Sequence[Judged], row: Mapping[str, Any], classes: Sequence[str]) -> str:
    if not judged:
        return NOBODY
    parts = []
    for one in judged:
        usual = row["majority"][one.kind]
        rows = [
            (name, f"{value:.3f}", f"{low:.3f} to {high:.3f}", f"{usual[name]:.3f}")
            for name, (value, low, high) in intervals(one.y, one.p).items()
        ]
        title = f"On {len(one.nodes):,} {KINDS[one.kind]}"
        parts.append(table_html(title, ("metric", "value", "95% interval", "most common class"), rows))
    last = judged[-1]
    table = sorted(row["classes"][last.kind], key=lambda one: -one["nodes"])[:CLASSES]
    cells = [
        (shorten(o["class"], LETTERS), o["nodes"], *(f"{o[k]:.3f}" for k in ("precision", "recall", "f1")))
        for o in table
    ]
    parts.append(table_html("Class by class", ("class", "nodes", "precision", "recall", "F1"), cells))
    counts = confusion(last.y, last.p.argmax(axis=1), len(classes))
    shown = np.argsort(-counts.sum(axis=1), kind="stable")[:CLASSES].tolist()
    names = [shorten(classes[k], 20) for k in shown]
    lines = [(names[i], *(int(counts[a, b]) for b in shown)) for i, a in enumerate(shown)]
    title = "Confusion: rows are true, columns predicted"
    parts.append(table_html(title, ("true class", *names), lines, shades=True))
    sure, right = last.p.max(axis=1), last.p.argmax(axis=1) == last.y
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    filled = [bins == k for k in range(BINS) if (bins == k).any()]
    points = {"share right": [(float(sure[one].mean()), float(right[one].mean())) for one in filled]}
    return "".join(parts) + chart("Calibration: share right by confidence", "confidence", points, ideal=True)


def mistakes_section(judged: Sequence[Judged], classes: Sequence[str], shown: Any) -> str:
    if not judged:
        return NOBODY
    one = judged[-1]
    wrong = mistakes_of(one)
    rows = [
        (
            shown(int(one.nodes[k])),
            shorten(classes[one.y[k]], LETTERS),
            shorten(classes[one.p[k].argmax()], LETTERS),
            f"{one.p[k].max():.3f}",
            f"{one.p[k, one.y[k]]:.3f}",
        )
        for k in wrong[:MISTAKES]
    ]
    headers = ("node", "true class", "predicted", "probability", "of the true class")
    told = f"<p>{len(wrong):,} of {len(one.nodes):,} {KINDS[one.kind]} are wrong; {len(rows)} are shown.</p>"
    return told + (table_html("Mistakes", headers, rows) if rows else "")


def use_section(path: Path, node: str) -> str:
    run = shlex.quote(str(path))
    commands = [
        f"conjoint predict {run} --out predictions.csv",
        f"conjoint explain {run} {shlex.quote(node)} --plot why.png",
        f"conjoint report {run} --name-column COLUMN  # this page, with names beside ids",
        f"conjoint predict {run} --new-nodes new.csv --new-edges edges.csv --out new-predictions.csv",
    ]
    python = (
        "from conjoint import load_learned\n\n"
        f"learned = load_learned({str(path)!r})\n"
        "learned.predictions  # a table\n"
        f"learned.explain({node!r})"
    )
    return f"<pre>{escape(chr(10).join(commands))}</pre><pre>{escape(python)}</pre>"


def card_section(run: Run, trained: Trained, row: Mapping[str, Any]) -> str:
    side, kinds = run.sidecar, row.get("classes", {})
    kind = "test" if "test" in kinds else "unseen"
    found = row.get("test_metrics") or row.get("estimate")
    limits = [
        "It predicts nodes of the graph that it was trained on, and nodes that join it; no other graph.",
        "The estimates hold for nodes like the labelled ones; if those are special, they mislead.",
        "What removing an edge changes tells of the model, not of what causes a class in the world.",
        "Do not decide about people by it alone: nobody has looked for unfairness between groups.",
    ]
    weak = [shorten(one["class"], 30) for one in kinds.get(kind, []) if one["recall"] < 0.5 and one["nodes"]]
    if weak:
        limits.append(
            f"Less than half is found of: {', '.join(weak[:10])}{' and others' if len(weak) > 10 else ''}."
        )
    if found is not None and kind in kinds and found["accuracy"] <= row["majority"][kind]["accuracy"]:
        limits.append("It is no better than always saying the most common class.")
    if found is None:
        limits.append("Nothing could judge it: how good it is, is not known.")
    if trained.fitted.config.saw_test:
        limits.append("Test nodes took part in choosing the epoch: their numbers estimate nothing.")
    facts = [
        f"Model: {side.model.name}. Seed {run.config.seed}.",
        f"Trained on {side.data_name} (fingerprint {side.data_fingerprint[:16]}), split {side.split_name}: "
        "{} training, {} validation, {} test nodes.".format(*side.split_sizes),
        "Meant for: guesses at missing labels of this graph, to be checked where they matter.",
    ]
    made = "".join(f"<li>{escape(shorten(line, 400))}</li>" for line in facts)
    warned = "".join(f"<li>{escape(line)}</li>" for line in limits)
    return f"<ul>{made}</ul><h3>Limits</h3><ul>{warned}</ul>"


def run_page(
    run: Run, trained: Trained, judged: Sequence[Judged], nodes: Mapping[str, Any], shown: Any, path: Path
) -> str:
    graph, side, row = trained.graph, run.sidecar, trained.judged_row()
    count = len(nodes["points"])
    words = (
        f"{count:,} of {graph.num_nodes:,} nodes, placed by two principal components of what the model makes "
        f"of them, coloured by class. Large dots are explained: {len(nodes['whys'])} nodes, mistakes first. "
        "Point at a dot, choose a node from the list, or use the arrow keys while the map has the focus. "
        f"Here one training of each member is asked, on {AROUND} nodes around the node at most; `conjoint "
        "explain` asks all, of any node."
        if count
        else "Trained in batches: the map and the explanations are left out. `conjoint explain` makes one."
    )
    best = judged[-1] if judged else None
    lead = f"{side.model.name} on {shorten(graph.name, LETTERS)}."
    if best is not None:
        right = float((best.p.argmax(axis=1) == best.y).mean())
        lead += f" {100 * right:.1f}% right on {len(best.nodes):,} {KINDS[best.kind]}."
    return page(
        PAGE / "run.html",
        [PAGE / "run.js"],
        title=escape(f"Run {shorten(path.name, LETTERS)}"),
        lead=escape(lead),
        data_section=data_section(graph, trained.use_of_labels),
        tried=tried_section(trained),
        metrics=metrics_section(judged, row, side.class_names),
        mistakes=mistakes_section(judged, side.class_names, shown),
        map_words=escape(words),
        use=use_section(path, shorten(graph.node_ids[0], LETTERS)),
        card=card_section(run, trained, row),
        made=escape(", ".join(f"{name} {version}" for name, version in side.versions.items())),
        data=json_in_script(nodes),
    )
