"""conjoint plot: pictures of a trained network, into its run folder."""

import argparse
from typing import TYPE_CHECKING

import numpy as np

from ..evaluation import plots
from ..evaluation.attention_plots import attention_histograms, learnt_mix
from ..evaluation.explain import attention_of, has_attention
from ..evaluation.metrics import confusion
from ..evaluation.run_report import KINDS
from ..selection.trained import Trained
from ..storage import storage_errors
from ..text import clean
from ..training import Run, embed
from .output import answer
from .run_folder import open_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def work(options: argparse.Namespace) -> None:
    opened = open_run(options)
    paths = draw(opened.run, opened.trained, options.map, options.format)
    answer(options, {"run": str(opened.run.path), "plots": paths}, *map(clean, paths))


def draw(run: Run, trained: Trained, way: str = "pca", kind: str = "png") -> list[str]:
    """Write every picture that this model allows into the run folder; the paths."""
    folder = run.path / "plots"
    with storage_errors(folder):
        folder.mkdir(exist_ok=True)
    paths = []
    for name, figure in _figures(run, trained, way).items():
        run.write(f"plots/{name}.{kind}", plots.picture(figure, kind))
        paths.append(str(folder / f"{name}.{kind}"))
    return paths


def _figures(run: Run, trained: Trained, way: str) -> dict[str, "Figure"]:
    model, graph, config = trained.fitted.model, trained.graph, trained.fitted.config
    result, names = run.sidecar.result or {}, run.sidecar.class_names
    history, figures = run.history(), {}
    if len(history) > 1:  # an ensemble has no curve of its own
        figures["learning"] = plots.learning_curves(history, int(result.get("best_epoch", 0)))
    if has_attention(model):
        attention = attention_of(model, graph, config)
        figures["attention"] = attention_histograms(attention)
        if (mix := learnt_mix(attention)) is not None:
            figures["mix"] = mix
    y, guess = graph.y.cpu().numpy(), trained.probabilities.argmax(axis=1)
    if judged := trained.judged:
        kind, (nodes, shares) = list(judged.items())[-1]
        said, about = shares.argmax(axis=1), KINDS[kind]
    else:
        nodes = np.flatnonzero(y >= 0)
        said, about = guess[nodes], "labelled nodes, which it was trained on"
    points, shown = plots.project(embed(model, graph, config).cpu().numpy(), way)
    title = f"Embeddings by class, {'t-SNE' if way == 'tsne' else 'two principal components'}"
    figures["map"] = plots.embedding_map(points, y[shown], names, title)
    counts = confusion(y[nodes], said, len(names))
    right = float(counts.trace() / counts.sum())
    figures["confusion"] = plots.confusion_matrix(
        counts, names, f"{about.capitalize()}, {100 * right:.1f}% right"
    )
    return figures
