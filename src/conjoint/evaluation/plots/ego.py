"""The ego network: one node, those it listens to, and the three weights it gives them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..explain import Explanation, LayerView
from .style import GREY, PARTS, label, look, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NEIGHBOURS = 18


def ego_network(
    found: Explanation, layer: int, names: Sequence[str], classes: Sequence[int], class_names: Sequence[str]
) -> "Figure":
    """Left: the neighbours around the node, lines as wide as their conjoint weight. Right: the weights.

    `names` and `classes` belong to `found.neighbours`; class -1 is drawn in grey.
    """
    view = found.layers[layer]
    shown = min(len(found.neighbours), MOST_NEIGHBOURS)
    figure = new_figure(10, 4.8 + 0.12 * max(0, shown - 8))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
    _circle(left, found, view, shown, names, classes)
    _bars(right, view, shown, _own(found, names))
    hidden = len(found.neighbours) - shown
    more = f" ({hidden} weaker neighbours not shown)" if hidden else ""
    node = names[list(found.neighbours).index(found.node)] if found.node in found.neighbours else found.node
    tidy(left, f"Whom {label(node)} listens to, layer {layer + 1}{more}")
    _legend(figure, sorted({classes[k] for k in range(shown)}), class_names)
    figure.legend(
        *right.get_legend_handles_labels(), loc="outside lower right", ncols=4, fontsize=8, frameon=False
    )
    return figure


def _own(found: Explanation, names: Sequence[str]) -> list[str]:
    return [
        f"{label(name, 18)} (itself)" if int(row) == found.node else label(name)
        for row, name in zip(found.neighbours, names, strict=True)
    ]


def _circle(
    axes: "Axes",
    found: Explanation,
    view: LayerView,
    shown: int,
    names: Sequence[str],
    classes: Sequence[int],
) -> None:
    others = [k for k in range(shown) if int(found.neighbours[k]) != found.node]
    weights = view.means()["conjoint"]
    strongest = max((float(weights[k]) for k in others), default=0.0) or 1.0
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(others)) / max(len(others), 1)
    for k, angle in zip(others, angles, strict=True):
        x, y = np.cos(angle), np.sin(angle)
        axes.plot([0, x], [0, y], color=GREY, lw=0.4 + 7 * weights[k] / strongest, alpha=0.6, zorder=1)
        _dot(axes, x, y, classes[k], 150)
        axes.text(1.14 * x, 1.14 * y, label(names[k], 14), fontsize=7, ha=_side(x), va="center")
    own = [k for k in range(len(classes)) if int(found.neighbours[k]) == found.node]
    _dot(axes, 0, 0, classes[own[0]] if own else -1, 420)
    axes.set(xlim=(-1.75, 1.75), ylim=(-1.3, 1.3), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _dot(axes: "Axes", x: float, y: float, kind: int, size: int) -> None:
    colour, marker = look(kind) if kind >= 0 else ("#CCCCCC", "o")
    axes.scatter([x], [y], s=size, color=colour, marker=marker, edgecolor="white", lw=1, zorder=3)


def _side(x: float) -> str:
    return "center" if abs(x) < 0.25 else "left" if x > 0 else "right"


def _bars(axes: "Axes", view: LayerView, shown: int, names: list[str]) -> None:
    parts = view.means()
    height = 0.8 / len(parts)
    for offset, (part, weights) in enumerate(parts.items()):
        places = np.arange(shown) + (offset - (len(parts) - 1) / 2) * height
        axes.barh(places, weights[:shown], height=height, color=PARTS[part], label=part)
    axes.set_yticks(range(shown), names[:shown])
    axes.invert_yaxis()
    axes.axvline(1 / len(names), color=GREY, lw=0.9, ls=":", label="even share")
    tidy(axes, "Attention weights, mean over heads", "weight")


def _legend(figure: "Figure", kinds: list[int], class_names: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for kind in kinds:
        colour, marker = look(kind) if kind >= 0 else ("#CCCCCC", "o")
        name = label(class_names[kind]) if kind >= 0 else "unlabelled"
        handles.append(Line2D([], [], color=colour, marker=marker, ls="", ms=6, label=name))
    figure.legend(
        handles=handles, loc="outside lower left", ncols=min(len(handles), 4), fontsize=8, frameon=False
    )
