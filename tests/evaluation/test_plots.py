"""Pictures: each function draws what it was given, and no word of a user's can break it."""

import numpy as np
import pytest

from conjoint import InputError
from conjoint.evaluation import plots
from conjoint.evaluation.plots import MARKERS, label, look, picture
from graphs import random_features

HARD_NAMES = ["$x_{$", "_hidden", "\x1b[31m", "数学", "a" * 200, "plain"]
HISTORY = [
    {
        "epoch": k,
        "loss": 1.0,
        "prediction_loss": 1 / k,
        "penalty": 5.0,
        "val_loss": 2 / k,
        "val_accuracy": k / 9,
    }
    for k in range(1, 9)
]


def test_learning_curves_show_the_penalty_where_there_is_one() -> None:
    assert len(plots.learning_curves(HISTORY, 8).axes) == 3
    free = [{**row, "penalty": 0.0} for row in HISTORY]
    figure = plots.learning_curves(free, 8)
    assert len(figure.axes) == 2
    drawn = figure.axes[1].lines[0].get_ydata()
    assert np.allclose(np.asarray(drawn, dtype=float), [100 * row["val_accuracy"] for row in HISTORY])


def test_confusion_writes_its_counts() -> None:
    counts = np.array([[5, 0], [2, 3]])
    figure = plots.confusion_matrix(counts, ["a", "b"], "title")
    assert sorted(text.get_text() for text in figure.axes[0].texts) == ["2", "3", "5"]


@pytest.mark.parametrize("way", ["pca", "tsne"])
def test_the_map_shows_every_class_and_the_unlabelled(way: str) -> None:
    vectors = random_features(40, 5).numpy()
    points, shown = plots.project(vectors, way)
    assert points.shape == (40, 2) and shown.tolist() == list(range(40))
    again, _ = plots.project(vectors, way)
    assert np.array_equal(points, again)
    classes = np.arange(40) % 7 - 1
    figure = plots.embedding_map(points, classes, HARD_NAMES, "title")
    dots = [np.asarray(drawn.get_offsets()) for drawn in figure.axes[0].collections]
    assert sum(map(len, dots)) == 40
    assert picture(figure)


def test_one_dimensional_embeddings_have_a_map_too() -> None:
    assert plots.project(np.arange(6.0)[:, None], "pca")[0].shape == (6, 2)
    with pytest.raises(InputError, match="umap"):
        plots.project(np.zeros((6, 2)), "umap")


def test_labels_and_looks() -> None:
    assert label("$5$") == r"\$5\$" and label("_x") == " _x" and len(label("a" * 99)) == 24
    pairs = [look(k) for k in range(49)]
    assert len(set(pairs)) == 49 and {marker for _, marker in pairs} == set(MARKERS)
