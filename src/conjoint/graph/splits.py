"""Which nodes train, which choose, which judge. Every rule is a pure function of its arguments.

Test nodes stay inside a :class:`Split` until :meth:`Split.reveal_test` is called, so that no training or
selection code meets them by accident, and a reader can search for the calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import InputError
from ..text import count

Labels = npt.NDArray[np.int64]
Index = npt.NDArray[np.int64]

# Where the authors' release cuts Cora's .content file (the order of the embedded Cora). Half-open ranges.
CORA_RELEASED = {"train": (0, 140), "val": (140, 540), "test": (500, 1500)}


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Node indices (int64) to train on and to select by; test nodes stay behind the evaluation gate."""

    train: Tensor
    val: Tensor
    name: str
    seed: int | None = None
    notes: tuple[str, ...] = ()
    _test: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))

    def __repr__(self) -> str:
        train, val, test = self.sizes
        return f"Split({self.name!r}, seed={self.seed}, train={train}, val={val}, test={test})"

    def reveal_test(self) -> Tensor:
        """The evaluation gate: the test nodes. Call it once training and selection are over, only there."""
        return self._test.clone()

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many nodes train, validate and test."""
        return len(self.train), len(self.val), len(self._test)


def build_split(
    train: npt.ArrayLike,
    val: npt.ArrayLike,
    test: npt.ArrayLike,
    *,
    labels: Labels,
    name: str,
    seed: int | None = None,
    overlap_is_known: bool = False,
) -> Split:
    """Check and seal a split: indices in range and labelled, no part empty, no overlap, two classes or more.

    ``overlap_is_known`` turns shared validation and test nodes into a note: a published split may have them.
    Nodes shared with the training part are always an error.
    """
    given = {"train": train, "validation": val, "test": test}
    parts = {part: np.sort(np.asarray(index).astype(np.int64)).reshape(-1) for part, index in given.items()}
    notes, where = [], f"split {name!r}"
    for part, index in parts.items():
        if len(index) == 0:
            raise InputError(f"{where} has no {part} nodes; give it more labelled nodes or smaller sizes")
        if index.min() < 0 or index.max() >= len(labels):
            raise InputError(f"{where}: a {part} index lies outside 0..{len(labels) - 1}; wrong graph?")
        if len(np.unique(index)) != len(index):
            raise InputError(f"{where} lists a {part} node twice; remove the repetition")
        unlabelled = int((labels[index] < 0).sum())
        if unlabelled:
            raise InputError(f"{where}: {count(unlabelled, part + ' node')} without a label; drop them")
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        shared = len(np.intersect1d(parts[one], parts[other]))
        if shared and overlap_is_known and one != "train":
            notes.append(f"{count(shared, 'node')} in both {one} and {other}, as published")
        elif shared:
            raise InputError(f"{where}: {count(shared, 'node')} in both {one} and {other}; parts must differ")
    trained = np.unique(labels[parts["train"]])
    if len(trained) < 2:
        raise InputError(f"{where} trains on one class only; a classifier needs two or more")
    for part in ("validation", "test"):
        unseen = np.setdiff1d(labels[parts[part]], trained)
        if len(unseen):
            some = ", ".join(map(str, unseen[:5])) + (", ..." if len(unseen) > 5 else "")
            notes.append(f"{count(len(unseen), part + ' class')} never seen in training: {some}")
    chosen = [torch.from_numpy(index) for index in parts.values()]
    return Split(chosen[0], chosen[1], name, seed, tuple(notes), chosen[2])


def per_class(
    labels: Labels,
    seed: int,
    *,
    train_per_class: int = 20,
    num_val: int = 500,
    num_test: int = 1000,
    class_names: Sequence[str] | None = None,
) -> Split:
    """The paper's recipe: some nodes of each class, then validation and test from the rest."""
    for name, value in (("train_per_class", train_per_class), ("num_val", num_val), ("num_test", num_test)):
        if value < 1:
            raise InputError(f"{name}={value} must be 1 or more")
    rng = _generator(seed)
    labelled = np.flatnonzero(labels >= 0)
    train = []
    for c in _classes(labels):
        members = np.flatnonzero(labels == c)
        if len(members) < train_per_class:
            name = class_names[c] if class_names else c
            raise InputError(
                f"split 'per-class': class {name} has {count(len(members), 'node')}, fewer than "
                f"train_per_class={train_per_class}; lower it or use split 'fraction'"
            )
        train.append(rng.permutation(members)[:train_per_class])
    chosen = np.concatenate(train)
    rest = rng.permutation(np.setdiff1d(labelled, chosen))
    if len(rest) < num_val + num_test:
        raise InputError(
            f"split 'per-class': {count(len(rest), 'labelled node')} left after training, fewer than "
            f"num_val={num_val} + num_test={num_test}; lower them or use split 'fraction'"
        )
    val, test = rest[:num_val], rest[num_val : num_val + num_test]
    return build_split(chosen, val, test, labels=labels, name="per-class", seed=seed)


def fraction(labels: Labels, seed: int, *, train: float = 0.6, val: float = 0.2) -> Split:
    """Random shares of each class, at least one node of it to train on; the rest is the test part."""
    if not (0 < train < 1 and 0 < val < 1 and train + val < 1):
        raise InputError(
            f"split 'fraction': train={train} and val={val} must be above 0 and sum to less than 1"
        )
    rng = _generator(seed)
    parts: tuple[list[Index], ...] = ([], [], [])
    for c in _classes(labels):
        members = rng.permutation(np.flatnonzero(labels == c))
        first = max(1, round(train * len(members)))
        second = first + round(val * len(members))
        for part, piece in zip(parts, np.split(members, [first, second]), strict=True):
            part.append(piece)
    train_nodes, val_nodes, test_nodes = (np.concatenate(part) for part in parts)
    return build_split(train_nodes, val_nodes, test_nodes, labels=labels, name="fraction", seed=seed)


def every_label(labels: Labels, seed: int) -> Split:
    """All labelled nodes train. Who learns with it holds some out first, or each once, to judge by."""
    _generator(seed)
    nodes = torch.from_numpy(np.flatnonzero(labels >= 0))
    return Split(nodes, torch.empty(0, dtype=torch.int64), "all", seed)


def by_time(labels: Labels, time: npt.ArrayLike, *, train_until: float, val_until: float) -> Split:
    """Train on what is known up to ``train_until``, validate up to ``val_until``, test on what came later."""
    when = np.asarray(time)
    if when.shape != labels.shape:
        raise InputError(f"time has {when.size} values for {len(labels)} nodes; give one per node")
    if not train_until < val_until:
        raise InputError(f"split 'time': train_until={train_until} must come before val_until={val_until}")
    known = labels >= 0
    train, val = when <= train_until, (when > train_until) & (when <= val_until)
    parts = (np.flatnonzero(part & known) for part in (train, val, when > val_until))
    return build_split(*parts, labels=labels, name="time")


SPLITS: dict[str, tuple[str, ...]] = {  # each with its options
    "public": (),
    "per-class": ("train_per_class", "num_val", "num_test"),
    "released": (),
    "fraction": ("train", "val"),
    "time": ("train_until", "val_until"),
    "given": (),
    "hold-out": (),
    "all": (),
}
PUBLISHED = {  # what came with the data, and what to do where it did not
    "public": "load Planetoid's files (root= or CONJOINT_DATA), or use split 'per-class'",
    "released": "load the authors' release (source='release'), or use split 'per-class'",
    "given": "name the column that holds it with split=, or use split 'per-class'",
}


def named_split(graph: Any, name: str, seed: int = 0, **options: Any) -> Split:
    """The split `name` of a `Graph`. `options` are those of the rule (see `SPLITS`)."""
    if name not in SPLITS:
        raise InputError(f"split={name!r} is not known; choose one of {', '.join(SPLITS)}")
    for option in options:
        if option not in SPLITS[name]:
            has = f"it has {', '.join(SPLITS[name])}" if SPLITS[name] else "it has no options"
            raise InputError(f"split {name!r}: {option}= is not one of its options; {has}")
    labels = graph.y.cpu().numpy()
    _classes(labels)
    if name == "per-class":
        return per_class(labels, seed, class_names=graph.class_names, **options)
    if name == "fraction":
        return fraction(labels, seed, **options)
    if name == "hold-out":
        return replace(fraction(labels, seed, train=0.8, val=0.1), name="hold-out")
    if name == "all":
        return every_label(labels, seed)
    if not options and name in graph.known_splits:
        return graph.known_splits[name]
    if name in PUBLISHED:
        raise InputError(f"{graph.name} comes without a {name!r} split; {PUBLISHED[name]}")
    if graph.node_time is None:
        raise InputError(
            "split 'time' needs a time for each node; name the column with time=, or use another split"
        )
    if len(options) < 2:
        raise InputError("split 'time' needs train_until= and val_until=, for example 2017 and 2018")
    return by_time(labels, graph.node_time, **options)


def usual_split(graph: Any) -> str:
    """What came with the data; for a benchmark the paper's recipe, if it has labels enough for it, or shares.

    For any other graph all labels.
    """
    for published in ("given", "time"):
        if published in graph.published:
            return published
    if not graph.benchmark:
        return "all"
    labelled = graph.y[graph.y >= 0]
    counts = labelled.bincount()
    counts = counts[counts > 0]
    enough = len(labelled) >= 20 * len(counts) + 1500 and bool((counts >= 20).all())
    return "per-class" if enough else "fraction"


def _classes(labels: Labels) -> Index:
    found = np.unique(labels[labels >= 0])
    if len(found) < 2:
        what = "no node has a label" if len(found) == 0 else f"all labelled nodes have class {found[0]}"
        raise InputError(f"{what}; a classifier needs two classes or more: check the label column")
    return found


def _generator(seed: int) -> np.random.Generator:
    if seed < 0:
        raise InputError(f"seed={seed} must be 0 or more")
    return np.random.default_rng(seed)
