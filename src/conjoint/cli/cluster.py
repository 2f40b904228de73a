"""conjoint cluster: how well the network's classes, or its embeddings, recover the true ones."""

import argparse

import numpy as np
from sklearn.cluster import KMeans

from ..data import write_table
from ..errors import InputError
from ..evaluation.metrics import accuracy, clustering
from ..text import clean
from ..training import embed
from .output import answer, must_be_writable, table
from .run_folder import open_run

TITLES = {"accuracy": "accuracy", "nmi": "NMI", "ari": "ARI", "hungarian_accuracy": "Hungarian accuracy"}


def work(options: argparse.Namespace) -> None:
    must_be_writable("--out", options.out)
    if not 0 <= options.seed < 2**32:
        raise InputError(f"--seed {options.seed}: k-means takes seeds from 0 to {2**32 - 1}")
    opened = open_run(options)
    data, config, y = opened.data, opened.run.config, opened.data.y.cpu().numpy()
    count = len(opened.class_names) if options.clusters is None else options.clusters
    if not 1 <= count <= len(y):
        raise InputError(f"--clusters {count}: choose 1 to {len(y)}, the number of nodes")
    guess = opened.trained.probabilities.argmax(axis=1)
    vectors = embed(opened.model, data, config).cpu().numpy()
    grouped = KMeans(count, n_init=10, random_state=options.seed).fit_predict(vectors).astype("int64")
    if options.out:
        names = np.array([*opened.class_names, ""])  # label -1 takes the last: unlabelled
        columns = {"id": data.node_ids, "label": names[y], "predicted": names[guess], "cluster": grouped}
        write_table(options.out, columns)
    known = y >= 0
    predicted: dict[str, float | None] = {
        "accuracy": accuracy(y[known], guess[known]),
        **clustering(y[known], guess[known]),
    }
    k_means = {"accuracy": None, **clustering(y[known], grouped[known])}
    rows = [_row("predicted classes", predicted), _row(f"k-means into {count}", k_means)]
    about = {"run": str(opened.run.path), "nodes": int(known.sum()), "clusters": count}
    answer(
        options,
        {**about, "predicted": predicted, "k_means": k_means},
        f"{about['nodes']} labelled nodes of {clean(data.name)}\n",
        table(rows, right=TITLES.values()),
        f"\nclusters written to {clean(options.out)}" if options.out else None,
    )


def _row(name: str, found: dict[str, float | None]) -> dict[str, str]:
    cells = {title: "" if found[key] is None else f"{found[key]:.3f}" for key, title in TITLES.items()}
    return {"clusters": name, **cells}
