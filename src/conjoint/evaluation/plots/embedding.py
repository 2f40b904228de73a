"""A map of the embeddings: nodes that the network sees alike stand close together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from .style import GREY, label, look, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Points = npt.NDArray[np.floating]
WAYS = ("pca", "tsne")
MOST_POINTS = {"pca": 20_000, "tsne": 5_000}


def project(vectors: Points, way: str, seed: int = 0) -> tuple[Points, npt.NDArray[np.int64]]:
    """Two coordinates for each node shown, and which nodes those are: a sample where there are too many."""
    if way not in WAYS:
        raise InputError(f"map={way!r} is not known; choose one of {', '.join(WAYS)}")
    rng = np.random.default_rng(seed)
    nodes = np.arange(len(vectors))
    if len(nodes) > MOST_POINTS[way]:
        nodes = np.sort(rng.choice(nodes, MOST_POINTS[way], replace=False))
    chosen = vectors[nodes].astype(np.float64)
    if way == "pca" or len(nodes) < 5:
        return _principal(chosen), nodes
    from sklearn.manifold import TSNE

    around = min(30.0, (len(nodes) - 1) / 3)
    start = _principal(chosen)
    start = 1e-4 * start / max(float(start[:, 0].std()), 1e-12)
    made = TSNE(2, perplexity=around, init=start, random_state=int(rng.integers(2**31)))
    return made.fit_transform(chosen), nodes


def _principal(vectors: Points) -> Points:
    """The two leading principal components, signs fixed so that no machine flips the picture."""
    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2].sum(axis=1, keepdims=True) + 1e-30)
    points = centred @ axes.T
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))


def embedding_map(
    points: Points, classes: npt.NDArray[np.int64], class_names: Sequence[str], title: str
) -> "Figure":
    """Points coloured by class; -1 (unlabelled) in grey underneath."""
    figure = new_figure(7.6, 5.2)
    axes = tidy(figure.subplots(), title)
    size = 14 if len(points) < 4000 else 5
    if (classes < 0).any():
        axes.scatter(
            points[classes < 0, 0],
            points[classes < 0, 1],
            s=size / 2,
            color=GREY,
            alpha=0.3,
            lw=0,
            label="unlabelled",
        )
    for k, name in enumerate(class_names):
        mine = points[classes == k]
        if len(mine):
            colour, marker = look(k)
            axes.scatter(
                mine[:, 0],
                mine[:, 1],
                s=size,
                color=colour,
                marker=marker,
                alpha=0.7,
                lw=0,
                label=label(name),
            )
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    columns = 1 if len(class_names) <= 24 else 2
    figure.legend(
        loc="outside right upper",
        fontsize=8 if columns == 1 else 6,
        frameon=False,
        ncols=columns,
        markerscale=1.6,
    )
    return figure
