"""What is kept of the last tensors, and what is not."""

import copy
import pickle

import torch

from conjoint.nn.model import Recent


def test_a_result_is_found_by_identity_version_and_the_rest() -> None:
    one, other, made = torch.zeros(2), torch.zeros(2), []
    recent: Recent[int] = Recent()

    def get(*tensors: torch.Tensor | None, rest: int = 0) -> int:
        return recent.get(tensors, rest, lambda: made.append(1) or len(made))  # type: ignore[func-returns-value]

    assert [get(one), get(other), get(one), get(other)] == [1, 2, 1, 2]
    assert recent.last == 2 and get(one) == 1 and recent.last == 1
    assert get(one, rest=1) == 3 and get(one, None) == 4
    one.add_(1.0)
    assert get(one) == 5 and get(one) == 5
    with torch.inference_mode():
        no_version = torch.zeros(2)
        assert [get(no_version), get(no_version)] == [6, 7]


def test_copies_are_empty() -> None:
    recent: Recent[int] = Recent(1)
    recent.get((torch.zeros(2),), None, lambda: 5)
    for twin in (copy.deepcopy(recent), pickle.loads(pickle.dumps(recent))):  # noqa: S301
        assert twin.last is None and twin.size == 1
    assert recent.last == 5
