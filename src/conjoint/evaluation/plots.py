"""Pictures of a training and of a graph, and how all pictures look.

Colours that colour-blind readers tell apart, few lines, no global settings. Each function takes numbers and
returns a matplotlib Figure.
"""

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..selection.diagnosis import Diagnosis
from ..storage import write_atomically
from ..text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, the pale yellow left out; shapes tell further classes apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#5D5D5D")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FEATURE, STRUCTURAL, CONJOINT = COLOURS[:3]
PARTS = {"feature": FEATURE, "structural": STRUCTURAL, "conjoint": CONJOINT}
GREY = "#777777"
DOTS_PER_INCH = 130
Points = npt.NDArray[np.floating]
MOST_POINTS = {"pca": 20_000, "tsne": 5_000}  # way of flattening -> nodes that a map shows
NUMBERS_FIT_BELOW = 21  # with more classes the cells of a confusion matrix are too small to write in


def new_figure(width: float, height: float) -> "Figure":
    """A figure of its own: pyplot, which keeps figures in a global list, is not used."""
    # A training without pictures does without matplotlib.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=DOTS_PER_INCH)


def tidy(axes: "Axes", title: str = "", x: str = "", y: str = "") -> "Axes":
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    return axes


def look(k: int) -> tuple[str, str]:
    """Colour and marker of class k: 49 pairs before one comes again. -1 (unlabelled) is a pale dot."""
    if k < 0:
        return "#CCCCCC", "o"
    return COLOURS[k % len(COLOURS)], MARKERS[k // len(COLOURS) % len(MARKERS)]


def label(text: object, limit: int = 24) -> str:
    """A user's word as a label: no formulas from dollar signs, and a leading underscore does not hide it."""
    plain = shorten(text, limit).replace("$", r"\$")
    return " " + plain if plain.startswith("_") else plain


def write_picture(path: str, figure: "Figure") -> None:
    """Into a file whose ending says its kind."""
    write_atomically(Path(path), picture(figure, Path(path).suffix[1:].lower()))


def picture(figure: "Figure", kind: str = "png") -> bytes:
    """The figure as a file's content, the same bytes for the same numbers."""
    from matplotlib import rc_context

    out = io.BytesIO()
    stamps = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with warnings.catch_warnings(), rc_context({"svg.hashsalt": "conjoint"}):
        # A class name may use letters that the font lacks; they become boxes, which is no reason to stop.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing", category=UserWarning)
        figure.savefig(out, format=kind, metadata=stamps.get(kind))
    return out.getvalue()


def learning_curves(history: Sequence[Mapping[str, Any]], kept_epoch: int) -> "Figure":
    """Losses, validation accuracy and, where the model has one, the structural penalty."""
    penalised = any(row.get("penalty") for row in history)
    figure = new_figure(10.5 if penalised else 7.2, 3.2)
    panels = figure.subplots(1, 3 if penalised else 2)

    def line(axes: "Axes", name: str, colour: str, scale: float = 1, words: str | None = None) -> None:
        points = [(row["epoch"], scale * row[name]) for row in history if name in row]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, lw=1.3, label=words)

    line(panels[0], "prediction_loss", COLOURS[0], words="training, with dropout")
    line(panels[0], "val_loss", COLOURS[3], words="validation")
    tidy(panels[0], "Prediction loss", "epoch").legend(fontsize=8, frameon=False)
    line(panels[1], "val_accuracy", COLOURS[3], scale=100)
    tidy(panels[1], "Validation accuracy, %", "epoch")
    if penalised:
        line(panels[2], "penalty", COLOURS[2])
        tidy(panels[2], "Structural penalty", "epoch")
    for axes in panels:
        axes.axvline(kept_epoch, color=GREY, lw=0.9, ls=":")
    place = {"xycoords": ("data", "axes fraction"), "xytext": (-4, 0), "textcoords": "offset points"}
    kept = f"kept: epoch {kept_epoch}"
    panels[1].annotate(kept, (kept_epoch, 0.03), **place, ha="right", fontsize=8, color=GREY)
    return figure


def confusion_matrix(counts: npt.NDArray[np.int64], class_names: Sequence[str], title: str) -> "Figure":
    """`counts[i, j]`: nodes of class i predicted as j. Colours are shares of the row, numbers are counts."""
    size = len(class_names)
    side = 2.6 + 0.42 * min(size, 30)
    figure = new_figure(side + 0.9, side)
    axes = tidy(figure.subplots(), title, "predicted", "true")
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = [label(name, 22) for name in class_names]
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


def project(vectors: Points, way: str, seed: int = 0) -> tuple[Points, npt.NDArray[np.int64]]:
    """Two coordinates for each node shown, and which nodes those are: a sample where there are too many."""
    if way not in MOST_POINTS:
        raise InputError(f"map={way!r} is not known; choose one of {', '.join(MOST_POINTS)}")
    rng = np.random.default_rng(seed)
    nodes = np.arange(len(vectors))
    if len(nodes) > MOST_POINTS[way]:
        nodes = np.sort(rng.choice(nodes, MOST_POINTS[way], replace=False))
    chosen = vectors[nodes].astype(np.float64)
    points = _principal(chosen)
    if way == "pca" or len(nodes) < 5:
        return points, nodes
    # Every training draws a map, by PCA: it need not wait for scikit-learn.
    from sklearn.manifold import TSNE

    around = min(30.0, (len(nodes) - 1) / 3)
    start = 1e-4 * points / max(float(points[:, 0].std()), 1e-12)
    made = TSNE(2, perplexity=around, init=start, random_state=int(rng.integers(2**31)))
    return made.fit_transform(chosen), nodes


def _principal(vectors: Points) -> Points:
    """The two leading principal components, signs fixed so that no machine flips the picture."""
    centred = vectors - vectors.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1].T[::-1]  # few columns, many rows: far less work than an SVD
    axes = axes[:2] * np.sign(axes[:2].sum(axis=1, keepdims=True) + 1e-30)
    points = centred @ axes.T
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))


def embedding_map(
    points: Points, classes: npt.NDArray[np.int64], class_names: Sequence[str], title: str
) -> "Figure":
    """Points coloured by class, nodes that the network sees alike close together; -1 (unlabelled) in grey."""
    figure = new_figure(7.6, 5.2)
    axes = tidy(figure.subplots(), title)
    size = 14 if len(points) < 4000 else 5
    for k, name in enumerate(["unlabelled", *map(label, class_names)], start=-1):
        mine = points[classes == k]
        if len(mine):
            colour, marker = look(k) if k >= 0 else (GREY, "o")
            way: dict[str, Any] = {"s": size, "alpha": 0.7} if k >= 0 else {"s": size / 2, "alpha": 0.3}
            axes.scatter(*mine.T, color=colour, marker=marker, lw=0, label=name, **way)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    columns, small = (1, 8) if len(class_names) <= 24 else (2, 6)
    place: dict[str, Any] = {"loc": "outside right upper", "ncols": columns, "markerscale": 1.6}
    figure.legend(**place, fontsize=small, frameon=False)
    return figure


def diagnosis_figure(found: Diagnosis) -> "Figure":
    """AUC of each score with its interval; homophily beside chance, and the share of random-looking edges."""
    figure = new_figure(9.0, 1.2 + 0.28 * max(len(found.evidence), 4))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    tidy(left, "Does the score rank same-class edges first?", "AUC, 95% interval")
    left.axvline(0.5, color=GREY, lw=0.9, ls=":")
    for place, evidence in enumerate(found.evidence):
        if (auc := evidence.auc) is not None:
            bar = [[auc.value - auc.low], [auc.high - auc.value]]
            colour = COLOURS[0] if evidence.knows else GREY
            left.errorbar(auc.value, place, xerr=bar, fmt="o", color=colour, ms=4, lw=1.4)
    left.set_yticks(range(len(found.evidence)), [evidence.name for evidence in found.evidence])
    left.set_xlim(0, 1)
    tidy(right, "The edges", "%")
    bars = {"one class, by chance": (found.by_chance, GREY)}
    if found.homophily is not None:
        bars = {"one class": (found.homophily.value, COLOURS[2]), **bars}
        right.plot([100 * found.homophily.low, 100 * found.homophily.high], [0, 0], color="black", lw=1.2)
    if found.random_edges is not None:
        bars["like random pairs"] = (found.random_edges, COLOURS[3])
    for place, (value, colour) in enumerate(bars.values()):
        right.barh(place, 100 * value, color=colour, height=0.6)
    right.set_yticks(range(len(bars)), list(bars))
    right.set_xlim(0, 100)
    for axes in (left, right):
        axes.invert_yaxis()  # the best on top
    return figure
