"""The selection rules, on hand-made histories."""

from collections.abc import Sequence

import pytest
import torch

from conjoint.training.stopping import RULES, Seen, snapshot, watch
from small_training import small_model

# Losses, accuracies and test accuracies of six epochs. Loss is best at 4, accuracy at 3 and again at 5.
LOSS = (1.0, 0.8, 0.9, 0.6, 0.7, 0.75)
ACCURACY = (0.5, 0.6, 0.8, 0.7, 0.8, 0.6)
TEST = (0.3, 0.9, 0.95, 0.5, 0.6, 0.99)


def follow(rule: str, loss: Sequence[float] = LOSS, accuracy: Sequence[float] = ACCURACY) -> list[Seen]:
    seen, states = Seen(), []
    for epoch, values in enumerate(zip(loss, accuracy, TEST, strict=False), start=1):
        row = dict(zip(("val_loss", "val_accuracy", "test_accuracy"), values, strict=True), epoch=epoch)
        seen, _ = watch(rule, seen, row)
        states.append(seen)
    return states


@pytest.mark.parametrize(
    ("rule", "kept", "alive"),
    [
        ("val-loss", [1, 2, 2, 4, 4, 4], [1, 2, 2, 4, 4, 4]),
        ("val-accuracy", [1, 2, 3, 3, 3, 3], [1, 2, 3, 3, 3, 3]),
        ("gat", [1, 2, 2, 2, 2, 2], [1, 2, 3, 4, 5, 5]),  # both better at 1 and 2 only; either at 3, 4, 5
        # 4 improves the loss, but not test accuracy, so 0.8 stays the loss to beat, and 6 beats both.
        ("release", [1, 2, 2, 2, 2, 6], [1, 2, 2, 4, 5, 6]),
    ],
)
def test_each_rule_keeps_and_waits_as_its_name_says(rule: str, kept: list[int], alive: list[int]) -> None:
    states = follow(rule)
    assert [s.kept_epoch for s in states] == kept
    assert [s.alive_epoch for s in states] == alive


def test_equal_accuracy_is_decided_by_loss() -> None:
    assert follow("val-accuracy", loss=(0.5, 0.4, 0.6), accuracy=(0.7, 0.7, 0.7))[-1].kept_epoch == 2


def test_gat_counts_standing_still_as_progress() -> None:
    """GAT's code compares with >= and <=."""
    assert follow("gat", loss=(0.5, 0.5), accuracy=(0.7, 0.7))[-1].kept_epoch == 2


@pytest.mark.parametrize("rule", ["val-loss", "val-accuracy", "release"])
def test_standing_still_is_no_progress_elsewhere(rule: str) -> None:
    still = follow(rule, loss=(0.5, 0.5), accuracy=(0.7, 0.7))[-1]  # test accuracy rises
    assert (still.kept_epoch, still.alive_epoch) == (1, 1)


def test_the_release_keeps_nothing_at_equal_test_accuracy() -> None:
    seen, row = Seen(), {"epoch": 1, "val_loss": 0.5, "val_accuracy": 0.5, "test_accuracy": 0.7}
    seen, _ = watch("release", seen, row)
    seen, verdict = watch("release", seen, row | {"epoch": 2, "val_loss": 0.4})
    assert not verdict.keep and (seen.kept_epoch, seen.val_loss) == (1, 0.5)


def test_only_the_release_sees_test_nodes() -> None:
    assert [name for name, rule in RULES.items() if rule.sees_test] == ["release"]


def test_patience_counts_epochs_and_zero_never_ends() -> None:
    seen = Seen(alive_epoch=10)
    assert not seen.out_of_patience(19, 10)
    assert seen.out_of_patience(20, 10)
    assert not seen.out_of_patience(10**6, 0)


@pytest.mark.parametrize("reuse", [False, True])
def test_a_snapshot_does_not_move_with_the_live_weights(reuse: bool) -> None:
    model = small_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    taken = snapshot(model, into=snapshot(small_model(seed=5)) if reuse else None)
    with torch.no_grad():
        for value in model.state_dict().values():
            value.add_(1)
    assert taken.keys() == before.keys()
    assert all(torch.equal(taken[name], before[name]) for name in before)
    assert not any(torch.equal(taken[name], value) for name, value in model.state_dict().items())
