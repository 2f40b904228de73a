"""A user's own graph in two small CSV files, with ids and names that try to get at the terminal."""

import csv
from pathlib import Path

from small_training import NODES, small_data

ESCAPE = "\x1b[31mred\x1b[0m"  # would colour whatever a terminal prints after it
FORMULA = "=HYPERLINK(1)"  # would run in a spreadsheet
CLASSES = ["plain", "[bold]markup", "$x$ \x1b]0;title\x07"]


def node_name(k: int) -> str:
    return {0: ESCAPE, 1: FORMULA, 2: "Ada Lovelace"}.get(k, f"n{k}")


def write_own_files(folder: Path, unlabelled: int = 6) -> tuple[Path, Path]:
    """edges.csv and nodes.csv of the small graph; the last nodes have no label."""
    data = small_data()
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    with open(edges, "w", newline="") as file:
        pairs = [(i, j) for i, j in data.edge_index.t().tolist() if i < j]
        csv.writer(file).writerows([("source", "target"), *((node_name(i), node_name(j)) for i, j in pairs)])
    with open(nodes, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "topic", *(f"f{k}" for k in range(data.x.size(1)))])
        for k, (label, row) in enumerate(zip(data.y.tolist(), data.x.tolist(), strict=True)):
            topic = "" if k >= NODES - unlabelled else CLASSES[label]
            writer.writerow([node_name(k), topic, *(f"{value:.4f}" for value in row)])
    return edges, nodes


def train_arguments(folder: Path, *more: object) -> list[str]:
    return [
        *("train", "--edges", str(folder / "edges.csv"), "--nodes", str(folder / "nodes.csv")),
        *("--label", "topic", "--hidden", "4", "--heads", "2", "--no-report", *map(str, more)),
    ]
