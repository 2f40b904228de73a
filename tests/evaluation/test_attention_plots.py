"""Pictures of attention: each function draws what it was given, and no word of a user's can break it."""

from typing import Any

import pytest
import torch

from conjoint import CAT, ConjointAttention, MatrixFactorization
from conjoint.evaluation.attention_plots import attention_histograms, learnt_mix, why_figure
from conjoint.evaluation.explain import Effect, Why
from conjoint.evaluation.plots import picture
from graphs import random_features, random_graph

EDGES, N = random_graph(30, 80)
HARD_NAMES = ["$x_{$", "_hidden", "\x1b[31m", "数学", "a" * 200, "plain"]


def attention(**options: object) -> list[ConjointAttention]:
    torch.manual_seed(0)
    settings = {"intervention": MatrixFactorization(N, 3), "heads": 2, **options}
    model = CAT(7, 4, 3, **settings)  # type: ignore[arg-type]
    return model.attention(random_features(N, 7, dtype=torch.float32), EDGES)


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_same_numbers_give_the_same_bytes(kind: str) -> None:
    one, other = (picture(attention_histograms(attention()), kind) for _ in range(2))
    assert len(one) > 1000 and one == other


def test_the_mix_has_a_bar_per_head_and_none_without_one() -> None:
    found = attention()
    figure = learnt_mix(found)
    assert figure is not None
    widths = [bar.get_width() for bar in figure.axes[0].patches[:3]]  # type: ignore[attr-defined]
    expected = torch.cat([layer.mix for layer in found if layer.mix is not None])[:, 0].tolist()
    assert widths == pytest.approx(expected)
    assert learnt_mix(attention(strategy="explicit")) is None


def test_histograms_count_every_edge_with_a_choice() -> None:
    figure = attention_histograms(attention())
    assert len(figure.axes) == 2
    for axes in figure.axes:
        for line in axes.patches:
            assert line.get_data().values.sum() == pytest.approx(1)  # type: ignore[attr-defined]


def test_an_explanation_with_hard_names() -> None:
    near = tuple(Effect(change, (k,)) for k, change in enumerate((-0.2, 0.1, -1e-9), start=1))
    paths = (Effect(0.05, (1, 4)), Effect(-0.02, (1, 4, 5)), Effect(0.01, (2, 3)))
    words = tuple(Effect(0.1, (), name, 1.0) for name in HARD_NAMES)
    weights = dict.fromkeys(("feature", "structural", "conjoint"), (0.4, 0.3, 0.2, 0.1))
    for attention in (weights, {}):
        parts: Any = (near, paths, words, (), (0, 1, 2, 3), attention, (), {})
        found = Why(0, 1, 0.9, 0.9, 0.5, None, *parts)
        assert picture(why_figure(found, lambda k: HARD_NAMES[k], lambda k: k % 7 - 1, HARD_NAMES))
