"""Statistics against numbers worked out elsewhere, and against their own promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from conjoint.experiments.stats import Paired, holm, paired, results_of
from fake_runs import made_up, specs

GAT = [0.80, 0.81, 0.79, 0.82, 0.80]
CAT = [0.82, 0.82, 0.80, 0.85, 0.81]


def rows(model: str, values: list[float]) -> list[dict[str, object]]:
    return [made_up(spec, value) for spec, value in zip(specs(len(values), model), values, strict=True)]


def test_mean_deviation_and_interval() -> None:
    cell = results_of(rows("gat", GAT), "test_accuracy")["gat", "cora"]
    assert cell.estimate is not None and cell.estimate.ci95 is not None
    assert cell.estimate.mean == pytest.approx(np.mean(GAT))
    assert cell.estimate.std == pytest.approx(np.std(GAT, ddof=1))
    low, high = stats.t.interval(0.95, 4, np.mean(GAT), stats.sem(GAT))
    assert (
        cell.estimate.mean - cell.estimate.ci95,
        cell.estimate.mean + cell.estimate.ci95,
    ) == pytest.approx((low, high))
    assert cell.paired is None


def test_the_gap_of_the_release_rule_is_taken_run_by_run() -> None:
    cell = results_of(rows("gat", GAT), "test_accuracy")["gat", "cora"]
    assert cell.gap is not None and cell.release is not None
    assert cell.gap.mean == pytest.approx(0.01)
    assert cell.gap.std == pytest.approx(0.0, abs=1e-12)
    assert cell.release.mean == pytest.approx(np.mean(GAT) + 0.01)


def test_the_paired_test_is_scipys() -> None:
    found = paired(rows("cat-i-mf", CAT), rows("gat", GAT), "test_accuracy")
    assert found is not None
    assert found.difference == pytest.approx(np.mean(CAT) - np.mean(GAT))
    assert found.p == pytest.approx(stats.ttest_rel(CAT, GAT).pvalue)
    assert found.pairs == 5


def test_only_runs_with_the_same_split_and_seed_are_paired() -> None:
    ours, theirs = rows("cat-i-mf", CAT), rows("gat", GAT)
    whole = paired(ours, theirs, "test_accuracy")
    assert paired(list(reversed(ours)), theirs, "test_accuracy") == whole
    part = paired(ours[1:], theirs[:-1], "test_accuracy")
    assert part is not None and part.pairs == 3
    assert part.p == pytest.approx(stats.ttest_rel(CAT[1:4], GAT[1:4]).pvalue)
    assert paired(ours[:1], theirs, "test_accuracy") is None


def test_equal_results_are_no_difference_and_constant_ones_are_judged_by_their_signs() -> None:
    same = paired(rows("cat-i-mf", GAT), rows("gat", GAT), "test_accuracy")
    assert same is not None and same.p == 1.0 and same.verdict == "same"
    for count, verdict in ((2, "same"), (8, "better")):
        shifted = paired(rows("cat-i-mf", [0.7] * count), rows("gat", [0.4] * count), "test_accuracy")
        assert shifted is not None and shifted.verdict == verdict
        assert shifted.p == pytest.approx(stats.binomtest(count, count, 0.5).pvalue)


def test_failed_runs_are_counted_not_averaged() -> None:
    some = rows("gat", GAT)
    some[0] = {**some[0], "failed": "the training loss is nan"}
    cell = results_of(some, "test_accuracy")["gat", "cora"]
    assert cell.failed == 1 and cell.estimate is not None and cell.estimate.count == 4


def test_all_comparisons_of_a_table_are_corrected_together() -> None:
    noise = [0.80, 0.80, 0.80, 0.82, 0.81]
    table = rows("gat", GAT) + rows("cat-i-mf", CAT) + rows("cat-e-mf", noise)
    cells = results_of(table, "test_accuracy", against=["cat-i-mf", "cat-e-mf"])
    one, other = cells["cat-i-mf", "cora"].paired, cells["cat-e-mf", "cora"].paired
    assert one is not None and other is not None
    assert one.adjusted == pytest.approx(2 * one.p)  # the smaller of two counts twice
    assert other.adjusted == pytest.approx(max(other.p, 2 * one.p))
    assert one.verdict == "better" if one.adjusted < 0.05 else one.verdict == "same"


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_never_lowers_a_p_value(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=lambda k: p_values[k])
    assert [adjusted[k] for k in order] == sorted(adjusted)
    assert min(adjusted) == pytest.approx(min(1.0, len(p_values) * min(p_values)))


def test_an_earlier_reading_of_the_release_rule_is_left_out() -> None:
    rows = [made_up(spec, 0.8) for spec in specs(3)]
    for row in rows:
        row["release"].pop("reading", None)
    old = results_of(rows, "test_accuracy")["gat", "cora"]
    assert old.release is None and old.gap is None
    rows[1]["release"] |= {"reading": 2, "test_accuracy": 0.9}
    found = results_of(rows, "test_accuracy")["gat", "cora"]
    assert found.release is not None and (found.release.mean, found.release.count) == (0.9, 1)
    assert found.gap is not None and found.gap.mean == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("adjusted", "difference", "verdict"),
    [(0.05, 0.1, "same"), (0.0499, 0.1, "better"), (0.0499, -0.1, "worse"), (float("nan"), 0.1, "same")],
)
def test_a_verdict_needs_a_corrected_p_below_the_level(
    adjusted: float, difference: float, verdict: str
) -> None:
    assert Paired(difference, 0.1, 5, 0.01, 0.01, adjusted).verdict == verdict


def test_a_comparison_has_all_of_its_numbers() -> None:
    found = paired(rows("cat-i-mf", CAT), rows("gat", GAT), "test_accuracy")
    differences = np.array(CAT) - np.array(GAT)
    ranks = stats.wilcoxon(differences, zero_method="zsplit", method="asymptotic").pvalue
    low, high = stats.t.interval(0.95, 4, differences.mean(), stats.sem(differences))
    assert found is not None and found.adjusted == found.p
    assert (found.wilcoxon, found.ci95) == pytest.approx((ranks, (high - low) / 2))
    two = paired(rows("cat-i-mf", [0.5, 0.6]), rows("gat", [0.4, 0.7]), "test_accuracy")
    assert two is not None and two.pairs == 2 and two.difference == pytest.approx(0.0)
    down = paired(rows("cat-i-mf", [0.4] * 6), rows("gat", [0.5] * 6), "test_accuracy")
    assert down is not None and down.difference == pytest.approx(-0.1)
    assert (down.ci95, down.pairs, down.p, down.wilcoxon, down.adjusted) == (0.0, 6, *[0.5**5] * 3)
    assert results_of([], "test_accuracy") == {}
