"""How well decoys find the share of wrong edges, and the temperature that follows from it.

python -m benchmarks.decoys --data FOLDER
"""

import argparse

from conjoint.data import load_graph
from conjoint.graph import decoys
from conjoint.graph.proximity import reduced_features
from conjoint.graph.sparse import row_normalise
from research.damage import changed

GRAPHS = ("cora", "citeseer", "pubmed", "coauthor-cs")
ADDED = (0.0, 0.25, 0.5, 1.0, 2.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder with raw files")
    parser.add_argument("--leak", type=float, default=0.1)
    options = parser.parse_args()
    for name in GRAPHS:
        clean = load_graph(name, root=options.data)
        vectors = reduced_features(row_normalise(clean.x), rank=64, centre=True)
        for added in ADDED:
            data = changed(clean, {"add-edges": {"share": added}}, 0) if added else clean
            seen = decoys.compare(vectors, data.edge_index, int(data.num_nodes or 0), hops=2, seed=0)
            found = decoys.noise_share(*seen)
            sharp = decoys.sharpness(*seen, options.leak)
            print(
                f"{name:12} +{added:4.0%}: wrong {added / (1 + added):.2f}, found {found:.2f}, T {sharp:.2f}"
            )


if __name__ == "__main__":
    main()
