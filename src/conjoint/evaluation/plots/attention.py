"""What the network learnt to listen to: the mix of its two attentions, and how even its weights are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .style import FEATURE, GREY, PARTS, STRUCTURAL, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...nn.attention import ConjointAttention


def learnt_mix(attention: Sequence["ConjointAttention"]) -> "Figure | None":
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
    axes.legend(
        fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08 - 0.8 / len(bars)), ncols=2
    )
    return figure


def attention_histograms(attention: Sequence["ConjointAttention"]) -> "Figure":
    """Each layer's weights, relative to an even share: 1 means that a neighbour is heard like any other."""
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


NUMBER_OF_BINS = 51  # odd
TICKS = (0.001, 0.01, 0.1, 0.25, 0.5, 0.8, 1, 1.25, 2, 4, 10, 100, 1000)


def _relative(layer: "ConjointAttention") -> dict[str, npt.NDArray[np.float64]]:
    """Weights times |N_i|, for listeners with a choice: those with two neighbours or more."""
    targets = layer.edge_index[1].cpu().numpy()
    degree = np.bincount(targets)[targets].astype(float)
    choice = degree > 1
    parts = {"feature": layer.feature, "structural": layer.structural, "conjoint": layer.conjoint}
    out = {}
    for name, weights in parts.items():
        if weights is not None:
            table = weights.detach().cpu().double().numpy().reshape(len(targets), -1)
            out[name] = (table * degree[:, None])[choice].ravel()
    return out
