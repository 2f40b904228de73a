"""What `fit` refuses, and what every process starts from."""

from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from conjoint.errors import InputError
from conjoint.training import Ranks, TrainConfig, fit
from conjoint.training.checkpoint import Progress
from conjoint.training.loop import _state_of_first
from conjoint.training.stopping import Seen
from small_training import MeanModel, same_weights, small_data, small_model, small_split


class Recorded(Ranks):
    """Rank 0 writes down what it sends, the others read it in the same order."""

    sent: ClassVar[list[Any]] = []

    def broadcast(self, value: Any) -> Any:
        if self.is_first:
            self.sent.append(value)
        return value if self.is_first else self.sent.pop(0)

    def broadcast_tensors(self, *tensors: Tensor) -> None:
        with torch.no_grad():
            for tensor in tensors:
                if self.is_first:
                    self.sent.append(tensor.clone())
                else:
                    tensor.copy_(self.sent.pop(0))


def stepped(model: MeanModel, steps: int) -> torch.optim.Adam:
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        sum(p.square().sum() for p in model.parameters()).backward()  # type: ignore[union-attr]
        optimizer.step()
    return optimizer


def test_every_process_starts_from_what_the_first_has() -> None:
    models = small_model(1), small_model(2)
    optimizers = stepped(models[0], 3), stepped(models[1], 0)
    there = Progress(7, Seen(kept_epoch=5), None), [{"epoch": 1}]
    here: tuple[Progress, list[dict[str, Any]]] = Progress(0, Seen(), None), []
    Recorded.sent.clear()
    first = _state_of_first(*there, models[0], optimizers[0], Recorded(0, 2))
    second = _state_of_first(*here, models[1], optimizers[1], Recorded(1, 2))
    assert not Recorded.sent
    for now, history in (first, second):
        assert (now.epoch, now.seen, history) == (7, Seen(kept_epoch=5), [{"epoch": 1}])
    assert same_weights(*models)
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        kept, sent = optimizers[1].state[other], optimizers[0].state[one]
        assert kept.keys() == sent.keys() and len(sent) == 3
        assert all(torch.equal(kept[slot], sent[slot]) for slot in sent)


def test_alone_a_process_starts_from_what_it_has() -> None:
    now, history = Progress(2, Seen(), None), [{"epoch": 1}, {"epoch": 2}]
    model = small_model()
    assert _state_of_first(now, history, model, stepped(model, 0), Ranks()) == (now, history)


def test_a_split_must_have_validation_nodes() -> None:
    split = small_split()
    empty = replace(split, val=split.val[:0])
    with pytest.raises(InputError, match="split 'small' has no validation nodes"):
        fit(small_model(), small_data(), empty, TrainConfig(epochs=1))


def test_several_processes_need_batches() -> None:
    with pytest.raises(InputError, match="2 ranks share batches: give a BatchConfig"):
        fit(small_model(), small_data(), small_split(), TrainConfig(epochs=1), ranks=Ranks(0, 2))
