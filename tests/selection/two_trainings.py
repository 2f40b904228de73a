"""Learn from all labels in child processes that are killed at a write, until the run is done. Prints JSON.

Run by test_all_labels.py: `two_trainings.py FOLDER FEW`.
"""

import hashlib
import itertools
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch

from conjoint.graph.splits import Split, every_label
from conjoint.selection.all_labels import learn_from_all
from conjoint.training import ModelSpec, TrainConfig
from conjoint.training.runs import take_up
from topics import topic_graph
from training.kill_trials import dies_at, in_child

GRAPH = topic_graph(90, words=20)
CONFIG = TrainConfig(epochs=8, patience=0, lr=0.05)
SPEC = ModelSpec("gcn", GRAPH.num_features, GRAPH.num_classes, GRAPH.num_nodes)
CALLS = ("replace", "fsync", "rename")


def train(path: Path, split: Split) -> None:
    run = take_up(path, CONFIG, model=SPEC, data=GRAPH, split=split)
    run.every_epochs = 3
    learn_from_all(lambda: SPEC.build(0), GRAPH, split, CONFIG, spec=SPEC, run=run)


def train_until(call: int, path: Path, split: Split) -> None:
    dies_at(call, CALLS)
    train(path, split)


def outcome(path: Path) -> dict[str, Any]:
    kept = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in path.iterdir() if one.is_file()}
    return kept | {"left": sorted(one.name for one in path.iterdir() if one.name not in kept)}


def main(folder: Path, few: bool) -> None:
    split = every_label(GRAPH.y.numpy(), 0)
    if few:
        split = Split(torch.arange(9), split.val, "all", 0)
    train(folder / "whole", split)  # in this process: what torch loads on first use, the children then have
    whole, kills, unlike = outcome(folder / "whole"), 0, list[int]()
    for call in itertools.count(1, 3):  # odd: before the call; even: right after it
        path = folder / f"placed-{call}"
        if in_child(partial(train_until, call, path, split)):
            break  # the whole has fewer such calls
        kills += 1
        in_child(partial(train, path, split))
        unlike += [call] if outcome(path) != whole else []
    print(json.dumps({"kills": kills, "unlike": unlike}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), bool(int(sys.argv[2])))
