"""Pictures of attention and of one prediction: the learnt mix, how even weights are, what moved a node."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..nn.attention import ConjointAttention
from .explain import Effect, Why
from .plots import COLOURS, FEATURE, GREY, PARTS, STRUCTURAL, label, look, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NEIGHBOURS, MOST_BARS = 18, 8
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


def why_figure(
    found: Why, name_of: Callable[[int], str], class_of: Callable[[int], int], class_names: Sequence[str]
) -> "Figure":
    """The node among those that move its prediction; what removing each thing changes; the attention.

    Lines are as wide as the change, blue where the edge speaks for the prediction. Class -1 is grey.
    """
    near, paths = found.neighbours[:MOST_NEIGHBOURS], found.paths[: MOST_NEIGHBOURS // 2]
    bars = [
        *((f"{label(name_of(one.nodes[0]))}", one.change) for one in near[:MOST_BARS]),
        *((" – ".join(label(name_of(k), 12) for k in one.nodes), one.change) for one in paths[:MOST_BARS]),
        *((label(f"{one.feature} = {one.value:.3g}"), one.change) for one in found.features[:MOST_BARS]),
    ]
    figure = new_figure(14 if found.attention else 10, 4.6 + 0.14 * max(0, len(bars) - 14))
    panels = figure.subplots(1, 3 if found.attention else 2)
    _circle(panels[0], found, near, paths, name_of, class_of)
    predicted = label(class_names[found.predicted])
    tidy(panels[0], f"{label(name_of(found.node))}: {predicted}, {found.probability:.2f}")
    shown = sorted({class_of(k) for one in (*near, *paths) for k in one.nodes} | {class_of(found.node)})
    for kind in shown:  # points that are only there for the legend
        name = label(class_names[kind]) if kind >= 0 else "unlabelled"
        colour, marker = look(kind)
        panels[0].plot([], [], color=colour, marker=marker, ls="", ms=6, label=name)
    heights = np.arange(len(bars))
    panels[1].barh(heights, [change for _, change in bars], color=[_side(change) for _, change in bars])
    panels[1].set_yticks(heights, [name for name, _ in bars])
    panels[1].invert_yaxis()
    panels[1].axvline(0, color=GREY, lw=0.9)
    tidy(panels[1], "Without this neighbour, edge or feature", f"change in the probability of {predicted}")
    if found.attention:
        _attention_bars(panels[2], found, name_of)
    for axes, corner in ((panels[0], "left"), (panels[-1], "right")):
        handles, words = axes.get_legend_handles_labels()
        place: dict[str, Any] = {"loc": f"outside lower {corner}", "ncols": max(1, min(len(handles), 4))}
        if handles:
            figure.legend(handles, words, **place, fontsize=8, frameon=False)
    return figure


def _side(change: float) -> str:
    """Blue: it speaks for the prediction, which is less likely without it."""
    return FEATURE if change < 0 else COLOURS[3]


def _circle(
    axes: "Axes",
    found: Why,
    near: Sequence[Effect],
    paths: Sequence[Effect],
    name_of: Callable[[int], str],
    class_of: Callable[[int], int],
) -> None:
    """Neighbours on a circle around the node, what lies behind them further out."""
    strongest = max((abs(one.change) for one in (*near, *paths)), default=0.0) or 1.0
    angle = {one.nodes[0]: np.pi / 2 - 2 * np.pi * k / max(len(near), 1) for k, one in enumerate(near)}
    places = {found.node: (0.0, 0.0)}
    places |= {node: (np.cos(turn), np.sin(turn)) for node, turn in angle.items()}
    fan = dict.fromkeys(angle, 0)
    for one in sorted(paths, key=lambda path: len(path.nodes)):
        first, end = one.nodes[0], one.nodes[-1]
        if first in angle and end not in places:
            fan[first] += 1
            turn = angle[first] + 0.22 * (fan[first] // 2) * (-1) ** fan[first]
            far = 1.0 + 0.55 * (len(one.nodes) - 1)
            places[end] = (far * np.cos(turn), far * np.sin(turn))
    for one in (*near, *paths):
        ends = (found.node, *one.nodes)[-2:]
        if all(end in places for end in ends):
            (x0, y0), (x1, y1) = (places[end] for end in ends)
            width = 0.4 + 6 * abs(one.change) / strongest
            axes.plot([x0, x1], [y0, y1], color=_side(one.change), lw=width, alpha=0.6, zorder=1)
    for node, (x, y) in places.items():
        colour, marker = look(class_of(node))
        size = 420 if node == found.node else 150 if node in angle else 70
        axes.scatter([x], [y], s=size, color=colour, marker=marker, edgecolor="white", lw=1, zorder=3)
        if node in angle:
            turn = np.degrees(angle[node]) % 360
            left = 90 < turn < 270  # there, text is turned round to be read from the left
            way: dict[str, Any] = {"rotation": turn - 180 * left, "rotation_mode": "anchor", "va": "center"}
            words = label(name_of(node), 14)
            axes.text(1.18 * x, 1.18 * y, words, fontsize=7, ha="right" if left else "left", **way)
    axes.set(xlim=(-2.4, 2.4), ylim=(-2.4, 2.6), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _attention_bars(axes: "Axes", found: Why, name_of: Callable[[int], str]) -> None:
    shown = min(len(found.listens_to), MOST_NEIGHBOURS)
    height = 0.8 / len(found.attention)
    for offset, (part, weights) in enumerate(found.attention.items()):
        places = np.arange(shown) + (offset - (len(found.attention) - 1) / 2) * height
        axes.barh(places, weights[:shown], height=height, color=PARTS[part], label=part)
    nodes = found.listens_to[:shown]
    names = [f"{label(name_of(k), 18)} (itself)" if k == found.node else label(name_of(k)) for k in nodes]
    axes.set_yticks(range(shown), names)
    axes.invert_yaxis()
    axes.axvline(1 / len(found.listens_to), color=GREY, lw=0.9, ls=":", label="even share")
    hidden = len(found.listens_to) - shown
    more = f" ({hidden} weaker ones not shown)" if hidden else ""
    tidy(axes, "Attention, mean over heads and layers", f"weight{more}")
