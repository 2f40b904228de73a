"""Pictures of attention: the mix that was learnt, how even the weights are, and one node's neighbours."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..nn.attention import ConjointAttention
from .explain import Explanation, LayerView
from .plots import FEATURE, GREY, PARTS, STRUCTURAL, label, look, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NEIGHBOURS = 18
NUMBER_OF_BINS = 51  # odd
TICKS = (0.001, 0.01, 0.1, 0.25, 0.5, 0.8, 1, 1.25, 2, 4, 10, 100, 1000)


def learnt_mix(attention: Sequence[ConjointAttention]) -> "Figure | None":
    """r_f and r_s of every layer and head (Eq. 6); None where nothing is mixed."""
    bars = [
        (f"layer {k}, head {head}" if len(layer.mix) > 1 else f"layer {k}", *map(float, pair))
        for k, layer in enumerate(attention, start=1)
        if layer.mix is not None
        for head, pair in enumerate(layer.mix, start=1)
    ]
    if not bars:
        return None
    names, to_features, to_structure = zip(*bars, strict=True)
    figure = new_figure(6.5, 1.3 + 0.24 * len(bars))
    axes = tidy(figure.subplots(), "How much each head listens to features and to structure", "share")
    axes.barh(names, to_features, color=FEATURE, height=0.72, label="features, $r_f$")
    axes.barh(names, to_structure, left=to_features, color=STRUCTURAL, height=0.72, label="structure, $r_s$")
    for place, value in enumerate(to_features):
        axes.text(0.01, place, f"{value:.2f}", va="center", fontsize=7, color="white")
        axes.text(0.99, place, f"{1 - value:.2f}", va="center", ha="right", fontsize=7)
    axes.axvline(0.5, color="white", lw=0.8, ls=":")
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    below = (0.5, -0.08 - 0.8 / len(bars))
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=below, ncols=2)
    return figure


def attention_histograms(attention: Sequence[ConjointAttention]) -> "Figure":
    """Each layer's weights, relative to an even share: 1 means that a neighbour counts like any other."""
    figure = new_figure(4.6 * len(attention), 3.4)
    panels = np.atleast_1d(figure.subplots(1, len(attention), sharey=True))
    weights = [_relative(layer) for layer in attention]
    bins = _bins([part for parts in weights for part in parts.values()])
    for k, (axes, parts) in enumerate(zip(panels, weights, strict=True), start=1):
        for name, values in parts.items():
            counts, _ = np.histogram(np.clip(values, bins[0], bins[-1]), bins)
            axes.stairs(counts / max(counts.sum(), 1), bins, color=PARTS[name], lw=1.4, label=name)
        axes.axvline(1, color=GREY, lw=0.9, ls=":")
        axes.set_xscale("log")
        ticks = [tick for tick in TICKS if bins[0] < tick < bins[-1]]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        tidy(axes, f"Layer {k}", "weight / even share", "share of edges" if k == 1 else "")
    panels[0].legend(fontsize=8, frameon=False)
    return figure


def _bins(values: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Bins on a logarithmic scale, one of them centred on 1, wide enough for all but the rarest weights."""
    everything = np.concatenate([np.zeros(0), *values])
    far = np.abs(np.log2(np.maximum(everything, 1e-9)))
    reach = max(float(np.quantile(far, 0.998)) if far.size else 0.0, 0.25)
    return np.exp2(np.linspace(-reach, reach, NUMBER_OF_BINS + 1))


def _relative(layer: ConjointAttention) -> dict[str, npt.NDArray[np.float64]]:
    """Weights times |N_i|, for targets with a choice: those with two neighbours or more."""
    targets = layer.edge_index[1].cpu().numpy()
    degree = np.bincount(targets)[targets].astype(float)
    parts = {"feature": layer.feature, "structural": layer.structural, "conjoint": layer.conjoint}
    tables = {
        name: weights.detach().cpu().double().numpy().reshape(len(targets), -1)
        for name, weights in parts.items()
        if weights is not None
    }
    return {name: (table * degree[:, None])[degree > 1].ravel() for name, table in tables.items()}


def ego_network(
    found: Explanation, layer: int, names: Sequence[str], classes: Sequence[int], class_names: Sequence[str]
) -> "Figure":
    """Left: the neighbours around the node, lines as wide as their conjoint weight. Right: the weights.

    `names` and `classes` belong to `found.neighbours`; class -1 is drawn in grey.
    """
    view, shown = found.layers[layer], min(len(found.neighbours), MOST_NEIGHBOURS)
    own = next((k for k, row in enumerate(found.neighbours) if row == found.node), None)
    figure = new_figure(10, 4.8 + 0.12 * max(0, shown - 8))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
    _circle(left, view, [k for k in range(shown) if k != own], names, classes)
    _dot(left, 0, 0, -1 if own is None else classes[own], 420)
    labels = [f"{label(name, 18)} (itself)" if k == own else label(name) for k, name in enumerate(names)]
    _bars(right, view, shown, labels)
    hidden = len(found.neighbours) - shown
    more = f" ({hidden} weaker neighbours not shown)" if hidden else ""
    node = found.node if own is None else names[own]
    tidy(left, f"Whom {label(node)} listens to, layer {layer + 1}{more}")
    for kind in sorted(set(classes[:shown])):  # points that are only there for the legend
        name = label(class_names[kind]) if kind >= 0 else "unlabelled"
        colour, marker = look(kind)
        left.plot([], [], color=colour, marker=marker, ls="", ms=6, label=name)
    for axes, corner in ((left, "left"), (right, "right")):
        handles, words = axes.get_legend_handles_labels()
        place: dict[str, Any] = {"loc": f"outside lower {corner}", "ncols": min(len(handles), 4)}
        figure.legend(handles, words, **place, fontsize=8, frameon=False)
    return figure


def _circle(
    axes: "Axes", view: LayerView, others: list[int], names: Sequence[str], classes: Sequence[int]
) -> None:
    weights = view.means()["conjoint"]
    strongest = max((float(weights[k]) for k in others), default=0.0) or 1.0
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(others)) / max(len(others), 1)
    for k, angle in zip(others, angles, strict=True):
        x, y = np.cos(angle), np.sin(angle)
        axes.plot([0, x], [0, y], color=GREY, lw=0.4 + 7 * weights[k] / strongest, alpha=0.6, zorder=1)
        _dot(axes, x, y, classes[k], 150)
        side = "center" if abs(x) < 0.25 else "left" if x > 0 else "right"
        axes.text(1.14 * x, 1.14 * y, label(names[k], 14), fontsize=7, ha=side, va="center")
    axes.set(xlim=(-1.75, 1.75), ylim=(-1.3, 1.3), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _dot(axes: "Axes", x: float, y: float, kind: int, size: int) -> None:
    colour, marker = look(kind)
    axes.scatter([x], [y], s=size, color=colour, marker=marker, edgecolor="white", lw=1, zorder=3)


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
