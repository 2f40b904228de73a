"""What the rows say: means with their error bars, and whether a difference is more than noise.

Everything here is a pure function of rows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from ..training.seeds import Estimate, estimate
from .rows import Row

BASELINE = "gat"
LEVEL = 0.05
Place = tuple[str, str]  # a model and a column of a table: a data set, or a level of what is varied


@dataclass(frozen=True)
class Paired:
    """A model against the baseline on the same splits and seeds."""

    difference: float  # mean of model - baseline
    ci95: float  # half-width
    pairs: int
    p: float  # two-sided, paired t
    wilcoxon: float  # two-sided, signed ranks: asks nothing of the shape
    adjusted: float  # p after Holm's correction over the family of comparisons

    @property
    def verdict(self) -> str:
        """ "better", "worse", or "same" where the corrected p is not below 5%."""
        if not self.adjusted < LEVEL:
            return "same"
        return "better" if self.difference > 0 else "worse"


@dataclass(frozen=True)
class Result:
    """One model in one column."""

    estimate: Estimate | None = None  # None: no run finished
    failed: int = 0
    release: Estimate | None = None  # what the authors' rule would have reported
    gap: Estimate | None = None  # release - validation-only, run by run
    paired: Paired | None = None  # against the baseline; None for itself, or with fewer than two pairs


Results = dict[Place, Result]


def results_of(
    rows: Iterable[Row],
    metric: str,
    *,
    column: Callable[[Row], str] = lambda row: row["dataset"],
    against: Sequence[str] = (),
    baseline: str = BASELINE,
) -> Results:
    """The result of every model in every column.

    Args:
        column: which column a row belongs to.
        against: the models to compare with the baseline; all of them, over all columns, are the family whose
            p-values are corrected together.
    """
    groups: dict[Place, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["model"], column(row)].append(row)
    compared: dict[Place, Paired] = {}
    for (model, where), group in groups.items():
        if model in against and model != baseline:
            found = paired(group, groups.get((baseline, where), []), metric)
            if found is not None:
                compared[model, where] = found
    adjusted = holm([found.p for found in compared.values()])
    for place, p in zip(compared, adjusted, strict=True):
        compared[place] = replace(compared[place], adjusted=p)
    return {place: _result(group, metric, compared.get(place)) for place, group in groups.items()}


def _result(group: Sequence[Row], metric: str, against: Paired | None) -> Result:
    good = [row for row in group if "failed" not in row]
    # Rows without "reading" are from before the authors' rule was read rightly: nothing of theirs is shown.
    watched = [row for row in good if metric in row.get("release", {}) and "reading" in row["release"]]
    return Result(
        estimate=estimate([row[metric] for row in good]) if good else None,
        failed=len(group) - len(good),
        release=estimate([row["release"][metric] for row in watched]) if watched else None,
        gap=estimate([row["release"][metric] - row[metric] for row in watched]) if watched else None,
        paired=against,
    )


def paired(model: Sequence[Row], baseline: Sequence[Row], metric: str) -> Paired | None:
    """Compare on the (split seed, seed) pairs that both have; None where there are fewer than two."""
    ours, theirs = (
        {(r["split_seed"], r["seed"]): r for r in rows if "failed" not in r} for rows in (model, baseline)
    )
    both = sorted(ours.keys() & theirs.keys())
    if len(both) < 2:
        return None
    differences = np.array([ours[pair][metric] - theirs[pair][metric] for pair in both])
    if np.ptp(differences) < 1e-12:
        # The t-test divides by the deviation; signs are all that is left to count.
        p = 1.0 if abs(differences[0]) < 1e-12 else 0.5 ** (len(both) - 1)
        return Paired(float(differences[0]), 0.0, len(both), p, p, p)
    p = float(stats.ttest_1samp(differences, 0.0).pvalue)
    ranks = float(stats.wilcoxon(differences, zero_method="zsplit", method="asymptotic").pvalue)
    half = estimate(differences.tolist()).ci95
    assert half is not None
    return Paired(float(differences.mean()), half, len(both), p, ranks, p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the chance of even one false alarm in the family stays below the level."""
    order = np.argsort(p_values, kind="stable")
    times = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.maximum.accumulate(np.minimum(times * np.asarray(p_values)[order], 1.0))
    return adjusted.tolist()
