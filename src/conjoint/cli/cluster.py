"""conjoint cluster: how well the network's classes, or its embeddings, recover the true ones."""

import argparse
from typing import TYPE_CHECKING

from .parser import add_output_options, add_run_argument, whole_number

if TYPE_CHECKING:
    import numpy as np

SUMMARY = "how well all nodes fall into their classes"
DESCRIPTION = """\
Judge a run as a clustering of the whole graph.

`predicted classes` is the paper's semi-supervised clustering: every labelled node counts,
training nodes included. `k-means` forgets the classes and groups the embeddings into as
many clusters as there are classes. NMI, ARI and Hungarian accuracy do not ask which
cluster is which class; 1 is perfect, and for NMI and ARI chance is 0."""

EXAMPLES = """\
examples:
  conjoint cluster runs/cora-gated-trust-1
  conjoint cluster runs/cora-gated-trust-1 --clusters 10 --json
  conjoint cluster runs/cora-gated-trust-1 --out clusters.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_argument(parser)
    parser.add_argument("--clusters", type=whole_number, metavar="K", help="for k-means; default: classes")
    parser.add_argument("--seed", type=whole_number, default=0, metavar="S", help="for k-means; default 0")
    parser.add_argument("--out", metavar="FILE", help="write each node's cluster to .csv, .tsv or .parquet")
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    import numpy as np

    from ..data import write_table
    from ..errors import InputError
    from ..evaluation.metrics import accuracy, clustering
    from ..training import embed, predict_proba
    from .files import must_be_writable
    from .reopen import open_run
    from .terminal import clean, print_json, table

    if options.out:
        must_be_writable("--out", options.out)
    if not 0 <= options.seed < 2**32:
        raise InputError(f"--seed {options.seed}: k-means takes seeds from 0 to {2**32 - 1}")
    opened = open_run(options)
    data, config = opened.data, opened.run.config
    y = data.y.cpu().numpy()
    known = y >= 0
    count = len(opened.class_names) if options.clusters is None else options.clusters
    if not 1 <= count <= len(y):
        raise InputError(f"--clusters {count}: choose 1 to {len(y)}, the number of nodes")
    guess = predict_proba(opened.model, data, config).argmax(dim=1).cpu().numpy()
    grouped = _k_means(embed(opened.model, data, config).cpu().numpy(), count, options.seed)
    rows: dict[str, dict[str, float | None]] = {
        "predicted classes": {
            "accuracy": accuracy(y[known], guess[known]),
            **clustering(y[known], guess[known]),
        },
        f"k-means into {count}": {"accuracy": None, **clustering(y[known], grouped[known])},
    }
    if options.out:
        names = np.array([*opened.class_names, ""])
        write_table(
            options.out,
            {
                "id": np.asarray(data.node_ids),
                "label": names[y],
                "predicted": names[guess],
                "cluster": grouped,
            },
        )
    if options.json:
        shown = dict(zip(("predicted", "k_means"), rows.values(), strict=True))
        print_json({"run": str(opened.run.path), "nodes": int(known.sum()), "clusters": count, **shown})
        return
    print(f"{int(known.sum())} labelled nodes of {clean(data.name)}\n")
    titles = {"accuracy": "accuracy", "nmi": "NMI", "ari": "ARI", "hungarian_accuracy": "Hungarian accuracy"}
    print(table([_shown(name, row, titles) for name, row in rows.items()], right=list(titles.values())))
    if options.out:
        print(f"\nclusters written to {clean(options.out)}")


def _shown(name: str, row: dict[str, float | None], titles: dict[str, str]) -> dict[str, str]:
    cells = {title: "" if row[key] is None else f"{row[key]:.3f}" for key, title in titles.items()}
    return {"clusters": name, **cells}


def _k_means(vectors: "np.ndarray", count: int, seed: int) -> "np.ndarray":
    from sklearn.cluster import KMeans

    return KMeans(count, n_init=10, random_state=seed).fit_predict(vectors).astype("int64")
