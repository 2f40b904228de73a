"""Which epoch's weights to keep, and when to give up: rules named after what they watch or who used them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Seen:
    """What a rule remembers. Plain numbers, so that a checkpoint can hold it."""

    val_loss: float = math.inf  # lowest so far
    val_accuracy: float = -math.inf  # highest so far
    test_accuracy: float = -math.inf  # of the kept epoch; only the release's rule fills it
    kept_epoch: int = 0
    alive_epoch: int = 0  # the last epoch that counts as progress

    def out_of_patience(self, epoch: int, patience: int) -> bool:
        return 0 < patience <= epoch - self.alive_epoch


class Verdict(NamedTuple):
    keep: bool  # take these weights
    alive: bool  # progress: patience starts anew
    lowers: bool = True  # a lower loss is the one to beat from now on


Row = Mapping[str, Any]


class Rule(NamedTuple):
    judge: Callable[[Seen, Row], Verdict]
    sees_test: bool
    says: str


def _val_loss(seen: Seen, row: Row) -> Verdict:
    better = row["val_loss"] < seen.val_loss
    return Verdict(better, better)


def _val_accuracy(seen: Seen, row: Row) -> Verdict:
    """Accuracy on few nodes ties often; the lower loss decides then, but only for the kept weights' sake."""
    higher = row["val_accuracy"] > seen.val_accuracy
    tie = row["val_accuracy"] == seen.val_accuracy and row["val_loss"] < seen.val_loss
    return Verdict(higher or tie, higher or tie)


def _gat(seen: Seen, row: Row) -> Verdict:
    accurate = row["val_accuracy"] >= seen.val_accuracy
    lossless = row["val_loss"] <= seen.val_loss
    return Verdict(accurate and lossless, accurate or lossless)


def _release(seen: Seen, row: Row) -> Verdict:
    """Test accuracy steers twice: an epoch that does not raise it leaves the loss to beat as it was too."""
    improved = row["val_loss"] < seen.val_loss
    keep = improved and row["test_accuracy"] > seen.test_accuracy
    return Verdict(keep, improved, lowers=keep)


RULES: dict[str, Rule] = {
    "val-loss": Rule(_val_loss, False, "lowest validation loss"),
    "val-accuracy": Rule(_val_accuracy, False, "highest validation accuracy, ties by lower loss"),
    "gat": Rule(_gat, False, "GAT's code: keep when both improve, go on while either does"),
    "release": Rule(
        _release, True, "the authors' release: best TEST accuracy where validation loss improved"
    ),
}


def watch(rule: str, seen: Seen, row: Row) -> tuple[Seen, Verdict]:
    """Judge one evaluated epoch and remember it."""
    verdict = RULES[rule].judge(seen, row)
    now = replace(
        seen,
        val_loss=min(seen.val_loss, row["val_loss"]) if verdict.lowers else seen.val_loss,
        val_accuracy=max(seen.val_accuracy, row["val_accuracy"]),
        alive_epoch=row["epoch"] if verdict.alive else seen.alive_epoch,
    )
    if verdict.keep:
        now = replace(
            now, kept_epoch=row["epoch"], test_accuracy=row.get("test_accuracy", seen.test_accuracy)
        )
    return now, verdict


Snapshot = dict[str, Tensor]


@torch.no_grad()
def snapshot(model: nn.Module, into: Snapshot | None = None) -> Snapshot:
    """A copy of all weights that later steps cannot move. `into` is reused: no fresh memory each time."""
    live = model.state_dict()
    if into is None:
        return {name: value.detach().clone() for name, value in live.items()}
    for name, value in live.items():
        into[name].copy_(value)
    return into
