"""Several seeds: rows, estimates, and what varies between them."""

from dataclasses import replace

import numpy as np
import pytest

from conjoint.errors import InputError
from conjoint.graph.splits import Split
from conjoint.training import TrainConfig, evaluate, fit, fit_seeds
from conjoint.training.seeds import estimate, summarise
from small_training import small_data, small_model, small_split

CONFIG = TrainConfig(epochs=10, patience=0)


def test_spread_of_a_textbook_sample() -> None:
    """Mean 3, variance 2.5, and t = 2.776 with four degrees of freedom."""
    found = estimate([1, 2, 3, 4, 5])
    assert (found.mean, found.count) == (3.0, 5)
    assert found.std == pytest.approx(np.sqrt(2.5))
    assert found.ci95 == pytest.approx(2.776445 * np.sqrt(2.5 / 5), rel=1e-6)


def test_one_value_has_no_spread_and_none_is_an_error() -> None:
    assert estimate([0.5]).std is None and estimate([0.5]).ci95 is None and str(estimate([0.5])) == "0.5000"
    with pytest.raises(InputError, match="at least one seed"):
        estimate([])


def test_each_seed_gives_the_row_of_its_own_run() -> None:
    summary = fit_seeds(small_model, small_data(), small_split(), CONFIG, [3, 1])
    assert [row["seed"] for row in summary.rows] == [3, 1]
    alone = fit(small_model(1), small_data(), small_split(), replace(CONFIG, seed=1))
    assert summary.rows[1] == evaluate(alone, small_data(), small_split())
    values = [row["val_loss"] for row in summary.rows]
    assert summary["val_loss"].mean == pytest.approx(np.mean(values)) and values[0] != values[1]


def test_a_split_may_depend_on_the_seed() -> None:
    asked: list[int] = []

    def split(seed: int) -> Split:
        asked.append(seed)
        return replace(small_split(), seed=seed)

    summary = fit_seeds(small_model, small_data(), split, CONFIG, range(2))
    assert asked == [0, 1] == [row["split_seed"] for row in summary.rows]


def test_no_seeds_is_an_error() -> None:
    with pytest.raises(InputError, match="at least one seed"):
        fit_seeds(small_model, small_data(), small_split(), CONFIG, [])


def test_what_the_first_row_lacks_is_not_summarised() -> None:
    rows = [{"val_loss": 1.0}, {"val_loss": 3.0, "test_accuracy": 0.5}]
    found = summarise(rows)
    assert found["val_loss"].mean == 2.0 and "test_accuracy" not in found.estimates
    assert summarise(rows[::-1], ("val_loss",))["val_loss"].count == 2
