"""Does each baseline reach the number of its own paper on Cora? Rows go to results/baselines/rows.jsonl.

A run that has its row is not repeated, so the script can be stopped and started again at any time.
`--docs` writes the table made from the rows into docs/baselines.md.

    CONJOINT_DATA=FOLDER python -m research.baselines
"""

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from sklearn.linear_model import LogisticRegression
from torch.nn.functional import normalize

from conjoint.data import load_graph, make_split
from conjoint.graph.embeddings import deepwalk
from conjoint.graph.graph import Graph
from conjoint.nn import zoo
from conjoint.training import config_from, evaluate, fit

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "results" / "baselines" / "rows.jsonl"
PAGE = ROOT / "docs" / "baselines.md"
START, END = "<!-- table: start -->", "<!-- table: end -->"


@dataclass(frozen=True)
class Check:
    """One published accuracy (percent) on Cora, and how to measure it again."""

    published: float
    deviation: float | None
    source: str
    tolerance: float = 1.5
    split: str = "public"
    model: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)


EMBEDDING = "deepwalk"  # checked by itself: logistic regression on the embedding alone
HERE = "CAT paper, Table 1"  # where the method's own paper does not use this graph
GAT_MODEL = {"hidden": 8, "heads": 8, "dropout": 0.6}
GAT_TRAIN = {"lr": 0.005}

CHECKS = {
    "gcn": Check(
        81.5, None, "Kipf and Welling 2017", model={"hidden": 16, "dropout": 0.5}, train={"epochs": 200}
    ),
    "sgc": Check(81.0, 0.0, "Wu et al. 2019", train={"lr": 0.2, "weight_decay": 1.3e-5, "epochs": 100}),
    "appnp": Check(83.3, 0.5, "Fey and Lenssen 2019", model={"dropout": 0.5, "edge_dropout": 0.5}),
    "arma": Check(
        83.4, 0.6, "Bianchi et al. 2021", model={"hidden": 16, "dropout": 0.75, "skip_dropout": 0.75}
    ),
    "monet": Check(81.7, 0.5, "Monti et al. 2017", model={"hidden": 16, "dropout": 0.5}),
    "jknet": Check(
        89.6,
        0.5,
        "Xu et al. 2018, 60/20/20",
        split="fraction",
        model={"hidden": 32, "num_layers": 6, "mode": "max", "dropout": 0.5},
        train={"lr": 0.005},
    ),
    "gat": Check(83.0, 0.7, "Velickovic et al. 2018", model=GAT_MODEL, train=GAT_TRAIN),
    "sage": Check(81.12, 0.41, HERE, model={"hidden": 16, "dropout": 0.5}),
    "gin": Check(81.58, 0.62, HERE, model={"hidden": 64, "dropout": 0.6, "mlp_layers": 1}),
    EMBEDDING: Check(67.2, None, "Yang et al. 2016", model={"dim": 128}),
    "gat-klap": Check(84.10, 0.24, HERE, model={**GAT_MODEL, "dim": 64, "scale": 0.1}, train=GAT_TRAIN),
    "gat-netmf": Check(84.44, 0.19, HERE, model={**GAT_MODEL, "dim": 128, "scale": 0.1}, train=GAT_TRAIN),
    "gat-deepwalk": Check(83.68, 0.67, HERE, model={**GAT_MODEL, "dim": 128, "scale": 0.1}, train=GAT_TRAIN),
}


def measure(name: str, check: Check, data: Graph, seed: int) -> dict[str, Any]:
    """One run -> one row. `data.x` is what the model reads."""
    config = config_from({**check.train, "seed": seed})
    split = make_split(data, check.split, seed)
    model = zoo.build(
        name,
        features=data.num_features,
        classes=len(data.class_names),
        num_nodes=data.num_nodes,
        seed=seed,
        **check.model,
    )
    began = time.perf_counter()
    result = evaluate(fit(model, data, split, config), data, split)
    spent = {"seconds": round(time.perf_counter() - began, 2)}
    return {"model": name, "dataset": "cora", **_identity(check), **result, **spent}


def measure_embedding(name: str, check: Check, data: Graph, seed: int) -> dict[str, Any]:
    """How well a linear classifier reads the classes from where a node stands, without any features."""
    began = time.perf_counter()
    rows = normalize(deepwalk(data.edge_index, data.num_nodes, check.model["dim"], seed=seed)).numpy()
    split, y = make_split(data, check.split, seed), data.y.numpy()
    train, val, test = split.train.numpy(), split.val.numpy(), split.reveal_test().numpy()
    fits = [
        LogisticRegression(C=c, max_iter=2000).fit(rows[train], y[train]) for c in (0.1, 1.0, 10.0, 100.0)
    ]
    best = max(fits, key=lambda fit: float(fit.score(rows[val], y[val])))
    scores = {"val_accuracy": best.score(rows[val], y[val]), "test_accuracy": best.score(rows[test], y[test])}
    spent = {"seconds": round(time.perf_counter() - began, 2)}
    how = {"seed": seed, "rule": "val-accuracy", "saw_test": False, "C": best.C}
    return {"model": name, "dataset": "cora", **_identity(check), **how, **scores, **spent}


def read_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def belongs(row: dict[str, Any], name: str) -> bool:
    """Whether a row was made with the settings that stand in this file now."""
    return row["model"] == name and all(row[key] == value for key, value in _identity(CHECKS[name]).items())


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, a pure function of them."""
    lines = [
        "| model | published | source | measured | seeds | difference | tolerance | within |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, check in CHECKS.items():
        found = [100 * row["test_accuracy"] for row in rows if belongs(row, name)]
        if len(found) < 2:
            continue
        published = f"{check.published:g}" + (
            f" ± {check.deviation:g}" if check.deviation is not None else ""
        )
        gap = mean(found) - check.published
        within = "yes" if abs(gap) <= check.tolerance else ("above" if gap > 0 else "no")
        lines.append(
            f"| `{name}` | {published} | {check.source} | {mean(found):.1f} ± {stdev(found):.1f} "
            f"| {len(found)} | {gap:+.1f} | {check.tolerance:g} | {within} |"
        )
    return "\n".join(lines)


def write_docs(rows: list[dict[str, Any]]) -> None:
    page = PAGE.read_text()
    head, rest = page.split(START)
    tail = rest.split(END)[1]
    draft = PAGE.with_suffix(".tmp")
    draft.write_text(f"{head}{START}\n{table(rows)}\n{END}{tail}")
    os.replace(draft, PAGE)


def _identity(check: Check) -> dict[str, Any]:
    own = asdict(check)
    return {"split_rule": own["split"], "model_settings": own["model"], "train_settings": own["train"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=[], help=f"some of {', '.join(CHECKS)}; default all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--docs", action="store_true", help="only write the table into docs/baselines.md")
    options = parser.parse_args()
    if options.docs:
        write_docs(read_rows())
        return
    unknown = set(options.models) - set(CHECKS)
    if unknown:
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    source = load_graph("cora", source="planetoid")
    for name in options.models or CHECKS:
        check = CHECKS[name]
        done = {row["seed"] for row in read_rows() if belongs(row, name)}
        waiting = [seed for seed in range(options.seeds) if seed not in done]
        if not waiting:
            continue
        data = source
        if name != EMBEDDING:
            data = source.changed(given_x=zoo.input_features(name, source, **check.model))
        for seed in waiting:
            row = (measure_embedding if name == EMBEDDING else measure)(name, check, data, seed)
            with ROWS.open("a") as rows:
                rows.write(json.dumps(row) + "\n")
            print(
                f"{name:13} seed {seed}: {100 * row['test_accuracy']:.1f}  ({row['seconds']} s)", flush=True
            )
    print(table(read_rows()))


if __name__ == "__main__":
    main()
