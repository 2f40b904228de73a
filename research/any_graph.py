"""Graphs that nobody tuned for: what is learnt by default, each of its members, and what others would pick.

    python -m research.any_graph                      whatever is missing, into results/any-graph/rows.jsonl
    python -m research.any_graph --graphs wisconsin,cora --splits 3
    python -m research.classic                        GCN, GraphSAGE and GAT with what makes them strong
    python -m research.any_graph --table > docs/any-graph.md

One row is one split of one graph in one setting: 60/20/20, the one such split that others' printed numbers
are of, 20 labels a class, Planetoid's public split, or one of the last two with as many random edges as real
ones. That one split is not ours to hand on: put medium_graph/data/GRAPH_split.npz of the repository
LUOyk1999/tunedGNN into $CONJOINT_DATA/splits, else its rows are left out. Members learn from the training
nodes and are judged by the validation nodes; time plays no part (`trials`), so that rows do not depend on how
busy the machine was. `seconds` is that of all trainings. Test nodes come in at the very end. What an ensemble
is without interventions, or without attention, follows from the same trainings: weights are chosen anew among
the others.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.stats import ttest_rel

from conjoint.data import load_graph, read_graph
from conjoint.errors import ConjointError, InputError
from conjoint.graph.graph import Graph, build_graph
from conjoint.graph.splits import Split
from conjoint.nn import zoo
from conjoint.selection.members import MEMBERS, Budget
from conjoint.selection.search import Search
from conjoint.selection.weighing import weigh
from conjoint.training import TrainConfig, fit
from conjoint.training.metrics import all_metrics
from conjoint.training.predictions import predict_proba
from research.classic import read_peers
from research.damage import changed

Array = npt.NDArray[Any]
ROWS = Path(__file__).resolve().parents[1] / "results" / "any-graph" / "rows.jsonl"
PAPER = ("cora", "citeseer", "pubmed", "coauthor-cs")
# By what was on the screen, test accuracies included, while members and the way of choosing were made.
OTHER = {
    "looked at while members and the way of choosing were made": (
        *("wisconsin", "chameleon-filtered", "airports-europe", "amazon-photo", "minesweeper"),
        *("actor", "twitch-ENGB", "fb100-reed"),
    ),
    "not looked at before": ("facebook",),
}
SHARES, FEW, NOISY = "60/20/20", "20 a class", "20 a class, +100 % edges"
PUBLIC, PUBLIC_NOISY = "public split", "public split, +100 % edges"  # of Planetoid's graphs; k is the seed
GIVEN = "60/20/20, published split"  # of "Classic GNNs are strong baselines"; k is the seed
GIVEN_GRAPHS, GIVEN_SEEDS = ("amazon-photo", "coauthor-cs"), 3
SPLITS = {SHARES: "fraction", FEW: "per-class", NOISY: "per-class", PUBLIC: "public", PUBLIC_NOISY: "public"}
PEERS: dict[str, list[dict[str, Any]]] = {
    name: [
        {"hidden": 64, "dropout": 0.5, "weight_decay": 5e-4},
        {"hidden": 256 if name != "gat" else 32, "dropout": 0.5, "weight_decay": 0.0},
        {"hidden": 64 if name != "gat" else 16, "dropout": 0.2, "weight_decay": 0.0},
    ]
    for name in ("gcn", "sage", "gat")
}
WITHOUT = {
    "without interventions": lambda member: (
        not member.conjoint and not member.model.startswith(("spread", "gated"))
    ),
    "without CAT members": lambda member: not member.model.startswith(("rescat", "resgat", "cat")),
}

# What others print for 60/20/20 or near it, with settings of their own for each graph: "Classic GNNs are
# strong baselines" (Luo et al., 2024), Polynormer (Deng et al., 2024), "A critical look at the evaluation of
# GNNs under heterophily" (Platonov et al., 2023). Of minesweeper it is ROC AUC.
PUBLISHED: dict[str, dict[str, float]] = {
    "published: tuned GCN": {
        "amazon-photo": 96.1, "chameleon-filtered": 46.3, "minesweeper": 97.9, "coauthor-cs": 96.2
    },
    "published: tuned SAGE": {"amazon-photo": 96.8, "coauthor-cs": 96.4},
    "published: tuned GAT": {"amazon-photo": 96.6, "chameleon-filtered": 44.1, "coauthor-cs": 96.2},
    "published: Polynormer": {"amazon-photo": 96.7, "minesweeper": 97.2, "coauthor-cs": 95.3},
    "published: GAT with ego weights apart": {"minesweeper": 93.9},
}  # fmt: skip


@lru_cache(maxsize=1)
def graph_named(name: str, root: str) -> Graph:
    if name in PAPER:
        return load_graph(name, root=root)
    folder = Path(root) / "other"
    if name == "facebook":
        edges, nodes = folder / "facebook-csv/facebook_edges.csv", folder / "facebook-csv/facebook_target.csv"
        return read_graph(edges, nodes, label="page_type", text="page_name", ignore=["facebook_id"])
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        parts = {key: file[key] for key in file.files}
    x = None
    if "xd" in parts:
        x = sp.csr_matrix((parts["xd"], parts["xi"], parts["xp"]), shape=tuple(parts["xs"]))
    source, target = parts["edges"].astype(np.int64)
    graph = build_graph(source, target, labels=parts["y"].astype(np.int64), name=name, x=x)
    return graph if graph.has_features else graph.with_features("spectral:64")


def specs(splits: int) -> Iterator[tuple[str, str, int]]:
    for k in range(splits):
        for name in (*(name for names in OTHER.values() for name in names), *PAPER):
            yield name, SHARES, k
        for name in PAPER:
            yield name, FEW, k
            yield name, NOISY, k
            if name != "coauthor-cs":  # it has none
                yield name, PUBLIC, k
                yield name, PUBLIC_NOISY, k
        for name in GIVEN_GRAPHS if k < GIVEN_SEEDS else ():
            yield name, GIVEN, k


def graph_and_split(name: str, setting: str, k: int, root: str) -> tuple[Graph, Split]:
    graph = graph_named(name, root)
    if setting in (NOISY, PUBLIC_NOISY):
        graph = changed(graph, {"add-edges": {"share": 1.0}}, k)
    if setting == GIVEN:
        return graph, published_split(Path(root) / "splits" / f"{name}_split.npz", graph.num_nodes)
    return graph, graph.split(SPLITS[setting], seed=k)


def published_split(path: Path, nodes: int) -> Split:
    if not path.exists():
        raise InputError(f"{path} is not there; it comes from the repository LUOyk1999/tunedGNN")
    with np.load(path, allow_pickle=False) as file:
        parts = [torch.from_numpy(np.sort(file[key].astype(np.int64))) for key in ("train", "valid", "test")]
    if not torch.equal(torch.cat(parts).sort().values, torch.arange(nodes)):
        raise InputError(f"{path}: its parts are not the {nodes} nodes of the graph, each once")
    return Split(parts[0], parts[1], "published", _test=parts[2])


def row_of(name: str, setting: str, k: int, root: str, peers: bool) -> dict[str, Any]:
    graph, split = graph_and_split(name, setting, k, root)
    test = split.reveal_test().numpy()
    began = time.perf_counter()
    search = Search(graph, split, k, "accuracy", Budget(trials=10_000), None, MEMBERS, None, None)
    search.run()
    ensemble, _, portfolio = search.result(False, False)
    seconds = time.perf_counter() - began
    truth = graph.y.numpy()[test]
    found = predict_proba(ensemble, graph, TrainConfig(row_normalise="never")).numpy()[test]
    judged = search.complete()
    nodes, unseen = search.unseen(judged)
    shares = [mean_shares(one)[test] for one in judged]
    lines = {"ensemble": all_metrics(truth, found)}
    for one in search.judged.values():  # those that were dropped after their first training too
        if one.merits:
            lines[one.member.name] = all_metrics(truth, mean_shares(one)[test])
    for title, stays in WITHOUT.items():
        kept = [i for i, one in enumerate(judged) if stays(one.member)]
        weights = weigh([unseen[i] for i in kept], graph.y.numpy()[nodes], "accuracy", k)
        lines[title] = all_metrics(truth, np.tensordot(weights, np.stack([shares[i] for i in kept]), axes=1))
    best = int(np.argmax([(p.argmax(axis=1) == graph.y.numpy()[nodes]).mean() for p in unseen]))
    lines["best member by validation"] = all_metrics(truth, shares[best])
    of_peers = {}
    for peer in PEERS if peers else ():
        began = time.perf_counter()
        lines[f"tuned {peer}"] = tuned(peer, graph, split, k)
        of_peers[f"tuned {peer}"] = round(time.perf_counter() - began, 2)
    return {
        "graph": name,
        "setting": setting,
        "split": k,
        "seconds": round(seconds, 1),
        "validation": portfolio.estimate,
        "weights": {one["name"]: one["weight"] for one in portfolio.members if one["weight"] > 0},
        "peer_seconds": of_peers,
        "member_seconds": {name: round(one.seconds, 2) for name, one in search.judged.items() if one.merits},
        "test": lines,
    }


def mean_shares(one: Any) -> Array:
    """What a member says of every node: the mean of its trainings."""
    mean: Array = np.mean([found.shares for found in one.fitted.values()], axis=0)
    return mean


def tuned(name: str, graph: Graph, split: Split, seed: int) -> dict[str, float]:
    """The best of a few settings, by validation accuracy."""
    best: tuple[float, Array] | None = None
    for setting in PEERS[name]:
        chosen = {key: value for key, value in setting.items() if key in zoo.settings_of(name)}
        sizes = {"features": graph.num_features, "classes": graph.num_classes, "num_nodes": graph.num_nodes}
        model = zoo.build(name, **sizes, seed=seed, **chosen)
        config = TrainConfig(
            epochs=300, lr=0.01, patience=60, rule="val-accuracy", seed=seed, evaluate_every=2,
            weight_decay=setting["weight_decay"],
        )  # fmt: skip
        fitted = fit(model, graph, split, config)
        if best is None or fitted.metrics["val_accuracy"] > best[0]:
            best = fitted.metrics["val_accuracy"], predict_proba(fitted.model, graph, config).numpy()
    assert best is not None
    test = split.reveal_test().numpy()
    return all_metrics(graph.y.numpy()[test], best[1][test])


def key_of(row: Mapping[str, Any]) -> tuple[str, str, int]:
    return row["graph"], row["setting"], row["split"]


def read_rows() -> list[dict[str, Any]]:
    """Rows of the ensemble, with what `research.classic` has for the same splits."""
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    peers = {key_of(row): row for row in read_peers()}
    for row in rows:
        found = peers.get(key_of(row))
        if found is not None:
            row["test"] |= found["test"]
            row["peer_seconds"] = {**row.get("peer_seconds", {}), **found["seconds"]}
    return rows


def make_rows(graphs: list[str] | None, settings: list[str] | None, splits: int, peers: bool) -> None:
    root = os.environ["CONJOINT_DATA"]
    done = {key_of(row) for row in read_rows()}
    for name, setting, k in specs(splits):
        wanted = (graphs is None or name in graphs) and (settings is None or setting in settings)
        if not wanted or (name, setting, k) in done:
            continue
        try:
            row = row_of(name, setting, k, root, peers)
        except ConjointError as error:
            print(f"{name}, {setting}, split {k}: {error}", flush=True)
            continue
        with open(ROWS, "a") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
        told = {title: round(100 * found["accuracy"], 1) for title, found in row["test"].items()}
        print(name, setting, k, f"{row['seconds']} s", told, flush=True)


# ---- the page


TITLE = """# Graphs that nobody tuned for

Made by `python -m research.any_graph --table` from `results/any-graph/rows.jsonl`, whose rows are made by
`python -m research.any_graph`. Test accuracy in %, mean over the splits (their number in brackets); every
choice (epochs, weights, settings) by validation nodes. *ensemble* is what `conjoint train` learns, *best
member by validation* what it keeps with `--single`. Seconds were taken on one thread of a busy machine.
Headings say which graphs' results, test accuracies included, were looked at while members and settings were
made; of the paper's graphs Cora and Cite were, Pubmed and CoauthorCS were not. *published* lines are others'
own numbers, with settings chosen for each graph, on graphics cards; minesweeper's are ROC AUC. Those of
amazon-photo and CoauthorCS are all of one split, which has a table of its own.
*tuned* GCN, GraphSAGE and GAT are the plain networks, the best of three settings each; *classic* ones have a
linear branch beside each convolution, a norm and up to ten layers, after "Classic GNNs are strong baselines",
the best of four settings each (`python -m research.classic`). A cell with fewer splits than its column says
how many.
Of rows with 20 labels a class the first were made when ten blocks (*deep residual CAT*) were still tried
there; the line says what they had, and `weights` in the rows how much they counted.

![Seconds against test accuracy on every graph: the ensemble, its members, peers](img/time-to-accuracy.svg)

*60/20/20: the ensemble takes the time of everything that it tries; one member alone is often nearly as good
in a tenth of it, but which one differs from graph to graph (`python -m research.time_to_accuracy`).*
"""
LINES = ("ensemble", "best member by validation", "without interventions", "without CAT members")


def page(rows: list[dict[str, Any]]) -> str:
    groups = {
        **{f"60/20/20, {title}": [(name, SHARES) for name in names] for title, names in OTHER.items()},
        "The paper's graphs, 60/20/20": [(name, SHARES) for name in PAPER],
        "60/20/20, the split of the published numbers (in brackets: seeds)": [
            (name, GIVEN) for name in GIVEN_GRAPHS
        ],
        "The paper's graphs, 20 labels a class (random splits)": [(name, FEW) for name in PAPER],
        "The same, with as many random edges as real ones": [(name, NOISY) for name in PAPER],
        "Planetoid's public splits (the number in brackets: seeds)": [(name, PUBLIC) for name in PAPER],
        "Public splits, with as many random edges as real ones": [(name, PUBLIC_NOISY) for name in PAPER],
    }
    parts = [TITLE]
    for title, cells in groups.items():
        found = {cell: [row for row in rows if (row["graph"], row["setting"]) == cell] for cell in cells}
        found = {cell: some for cell, some in found.items() if some}
        if found:
            parts += [f"## {title}\n", table(found), ""]
    return "\n".join(parts)


def table(found: Mapping[tuple[str, str], list[dict[str, Any]]]) -> str:
    own = [name for some in found.values() for row in some for name in row["test"]]
    names = list(dict.fromkeys([*LINES, *own]))
    heads = [f"{graph} ({len(some)})" for (graph, _), some in found.items()]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    best = {}
    for cell, some in found.items():
        single = [name for name in names if name not in LINES]
        best[cell] = max(single, key=lambda name: mean_of(some, name))
    for name in names:
        cells = [shown(some, name, name == best[cell]) for cell, some in found.items()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    against = [against_best(some, best[cell]) for cell, some in found.items()]
    lines.append("| *ensemble against the best single line (paired t)* | " + " | ".join(against) + " |")
    for name, printed in PUBLISHED.items():
        cells = [
            f"{printed[g]}" if g in printed and setting in (SHARES, GIVEN) else "" for g, setting in found
        ]
        if any(cells):
            lines.append(f"| *{name}* | " + " | ".join(cells) + " |")
    lines.append("| *ROC AUC of the ensemble* | " + " | ".join(auc(some) for some in found.values()) + " |")
    lines.append(
        "| *seconds, all trainings* | " + " | ".join(seconds(some) for some in found.values()) + " |"
    )
    return "\n".join(lines)


def values(some: list[dict[str, Any]], name: str, metric: str = "accuracy") -> list[float]:
    return [100 * row["test"][name][metric] for row in some if name in row["test"]]


def mean_of(some: list[dict[str, Any]], name: str) -> float:
    found = values(some, name)
    return fmean(found) if len(found) == len(some) else -1.0


def shown(some: list[dict[str, Any]], name: str, best: bool) -> str:
    found = values(some, name)
    if not found:
        return ""
    text = f"{fmean(found):.1f}" + (f" ± {stdev(found):.1f}" if len(found) > 1 else "")
    text += f" ({len(found)})" if len(found) < len(some) else ""
    return f"**{text}**" if best else text


def against_best(some: list[dict[str, Any]], best: str) -> str:
    ours, theirs = values(some, "ensemble"), values(some, best)
    gap = fmean(ours) - fmean(theirs)
    if len(ours) < 3 or ours == theirs:
        return f"{gap:+.2f}"
    return f"{gap:+.2f} (p = {ttest_rel(ours, theirs).pvalue:.2f})"


def auc(some: list[dict[str, Any]]) -> str:
    return f"{fmean(values(some, 'ensemble', 'roc-auc')):.1f}"


def seconds(some: list[dict[str, Any]]) -> str:
    return f"{fmean(row['seconds'] for row in some):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", help="only these, joined by commas")
    parser.add_argument("--settings", help="only these, joined by a semicolon")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true", help="leave tuned GCN, SAGE and GAT out")
    parser.add_argument("--threads", type=int, help="of torch; default: as many as there are cores")
    parser.add_argument("--table", action="store_true", help="print the page made from the rows")
    options = parser.parse_args()
    if options.table:
        print(page(read_rows()), end="")
        return
    if options.threads:
        torch.set_num_threads(options.threads)
    graphs = options.graphs.split(",") if options.graphs else None
    make_rows(
        graphs,
        options.settings.split(";") if options.settings else None,
        options.splits,
        not options.no_peers,
    )


if __name__ == "__main__":
    main()
