"""A diagnosis as a picture: what each score knows, and what the edges are like."""

from typing import TYPE_CHECKING

from ...selection.diagnosis import Diagnosis
from .style import COLOURS, GREY, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def diagnosis_figure(found: Diagnosis) -> "Figure":
    """AUC of each score with its interval; homophily beside chance, and the share of random-looking edges."""
    figure = new_figure(9.0, 1.2 + 0.28 * max(len(found.evidence), 4))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    tidy(left, "Does the score rank same-class edges first?", "AUC, 95% interval")
    left.axvline(0.5, color=GREY, lw=0.9, ls=":")
    names = []
    for place, evidence in enumerate(found.evidence):
        names.append(evidence.name)
        if evidence.auc is not None:
            value, low, high = evidence.auc.value, evidence.auc.low, evidence.auc.high
            colour = COLOURS[0] if evidence.knows else GREY
            left.errorbar(
                value, place, xerr=[[value - low], [high - value]], fmt="o", color=colour, ms=4, lw=1.4
            )
    left.set_yticks(range(len(names)), names)
    left.set_xlim(0, 1)
    left.invert_yaxis()  # the best on top
    tidy(right, "The edges", "%")
    bars = {"one class, by chance": (found.by_chance, GREY)}
    if found.homophily is not None:
        bars = {"one class": (found.homophily.value, COLOURS[2]), **bars}
    if found.random_edges is not None:
        bars["like random pairs"] = (found.random_edges, COLOURS[3])
    for place, (value, colour) in enumerate(bars.values()):
        right.barh(place, 100 * value, color=colour, height=0.6)
    if found.homophily is not None:
        low, high = 100 * found.homophily.low, 100 * found.homophily.high
        right.plot([low, high], [0, 0], color="black", lw=1.2)
    right.set_yticks(range(len(bars)), list(bars))
    right.set_xlim(0, 100)
    right.invert_yaxis()
    return figure
