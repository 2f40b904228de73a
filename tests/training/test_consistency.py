"""The consistency term against its definition on small dense arrays."""

import numpy as np
import pytest
import torch

from conjoint import InputError
from conjoint.training.consistency import Consistency, disagreement, sample_nodes, sharpen

LOGITS = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.double)


def softmax(logits: np.ndarray) -> np.ndarray:
    weight = np.exp(logits)
    return weight / weight.sum(axis=-1, keepdims=True)


def dense(logits: np.ndarray, settings: Consistency) -> float:
    p = softmax(logits)
    mean = p.mean(axis=0)
    target = mean ** (1 / settings.temperature)
    target /= target.sum(axis=1, keepdims=True)
    sure = target.max(axis=1) >= settings.threshold
    total = 0.0
    for one in p:
        for node in np.nonzero(sure)[0]:
            if settings.distance == "squared":
                total += ((one[node] - target[node]) ** 2).sum()
            else:
                total += (target[node] * np.log(target[node] / one[node])).sum()
    return total / len(p) / max(1, sure.sum())


@pytest.mark.parametrize("distance", ["squared", "kl"])
@pytest.mark.parametrize("temperature", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("threshold", [0.0, 0.6])
def test_disagreement_equals_its_definition(distance: str, temperature: float, threshold: float) -> None:
    settings = Consistency(distance=distance, temperature=temperature, threshold=threshold)
    assert disagreement(LOGITS, settings).item() == pytest.approx(dense(LOGITS.numpy(), settings), rel=1e-10)


def test_passes_that_agree_on_a_sure_answer_cost_nothing() -> None:
    same = torch.tensor([[40.0, 0.0], [0.0, 40.0]]).expand(3, 2, 2)
    assert disagreement(same, Consistency()).item() == pytest.approx(0.0, abs=1e-12)


def test_the_target_takes_no_gradient() -> None:
    logits = LOGITS.clone().requires_grad_()
    settings = Consistency(temperature=0.5)
    (gradient,) = torch.autograd.grad(disagreement(logits, settings), logits)
    target = sharpen(LOGITS.softmax(-1).mean(0), 0.5)

    def with_fixed_target(logits: torch.Tensor) -> torch.Tensor:
        return (logits.softmax(-1) - target).square().sum(-1).mean()

    expected = torch.autograd.functional.jacobian(with_fixed_target, LOGITS)
    torch.testing.assert_close(gradient, expected)


def test_sharpening_is_identity_at_one_and_one_hot_towards_zero() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    torch.testing.assert_close(sharpen(p, 1.0), p)
    torch.testing.assert_close(sharpen(p, 0.01), torch.eye(3)[[0, 2]])


def test_nodes_below_the_threshold_do_not_count() -> None:
    unsure = torch.zeros(2, 3, 4)
    assert disagreement(unsure, Consistency(threshold=0.9)).item() == 0.0


def test_the_weight_climbs_over_the_ramp() -> None:
    settings = Consistency(weight=2.0, ramp=10)
    assert [settings.weight_at(epoch) for epoch in (0, 5, 10, 50)] == [0.0, 1.0, 2.0, 2.0]
    assert Consistency(weight=2.0).weight_at(0) == 2.0


def test_sampled_nodes_are_different_and_follow_the_seed() -> None:
    def draw(seed: int) -> list[int]:
        torch.manual_seed(seed)
        return sample_nodes(50, 20, torch.device("cpu")).tolist()

    assert draw(1) == draw(1) != draw(2)
    assert len(set(draw(1))) == 20


@pytest.mark.parametrize(
    "bad",
    [
        {"passes": 0},
        {"weight": -1.0},
        {"weight": float("nan")},
        {"temperature": 0.0},
        {"temperature": 1.5},
        {"distance": "cosine"},
        {"ramp": -1},
        {"threshold": 1.0},
        {"sample": -5},
    ],
)
def test_bad_settings_are_named(bad: dict[str, object]) -> None:
    (name,) = bad
    with pytest.raises(InputError, match=f"consistency.{name}="):
        Consistency(**bad)  # type: ignore[arg-type]
