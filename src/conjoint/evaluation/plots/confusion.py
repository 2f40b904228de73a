"""The confusion matrix: which classes are taken for which."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .style import labels, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS_FIT_BELOW = 21  # with more classes the cells are too small to write in


def confusion_matrix(counts: npt.NDArray[np.int64], class_names: Sequence[str], title: str) -> "Figure":
    """`counts[i, j]`: nodes of class i predicted as j. Colours are shares of the row, numbers are counts."""
    size = len(class_names)
    side = 2.6 + 0.42 * min(size, 30)
    figure = new_figure(side + 0.9, side)
    axes = tidy(figure.subplots(), title, "predicted", "true")
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = labels(class_names, 22)
    small = 8 if size < NUMBERS_FIT_BELOW else 5
    axes.set_xticks(range(size), names, rotation=45, ha="right", rotation_mode="anchor", fontsize=small)
    axes.set_yticks(range(size), names, fontsize=small)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if size < NUMBERS_FIT_BELOW:
        for i, j in zip(*np.nonzero(counts), strict=True):
            colour = "white" if shares[i, j] > 0.55 else "black"
            axes.text(j, i, str(counts[i, j]), ha="center", va="center", fontsize=7, color=colour)
    bar = figure.colorbar(image, ax=axes, shrink=0.6)
    bar.set_label("share of the true class", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure
