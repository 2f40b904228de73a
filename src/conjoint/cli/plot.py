"""conjoint plot: pictures of a trained network."""

import argparse
from typing import TYPE_CHECKING

from .parser import add_output_options, add_run_argument

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch_geometric.data import Data

    from ..data.splits import Split
    from ..nn.model import NodeModel
    from ..training import Run

SUMMARY = "pictures of a run: learning curves, attention, map, confusion"
DESCRIPTION = """\
Draw a run into its folder plots/: learning curves, the mix of feature and structural
attention that each head learnt, how even the attention weights are, a two-dimensional map
of the embeddings, and the confusion matrix of the test nodes. `conjoint train` draws the
same ones; here the map can be made with t-SNE, which takes longer and separates better."""

EXAMPLES = """\
examples:
  conjoint plot runs/cora-gated-trust-1
  conjoint plot runs/cora-gated-trust-1 --map tsne
  conjoint plot runs/cora-gated-trust-1 --format svg
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_argument(parser)
    parser.add_argument("--map", choices=("pca", "tsne"), default="pca", help="how to flatten the embeddings")
    parser.add_argument("--format", choices=("png", "svg", "pdf"), default="png", help="kind of file")
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    from ..printable import clean
    from .reopen import open_run
    from .terminal import print_json

    opened = open_run(options)
    paths = draw(opened.run, opened.model, opened.data, opened.split, options.map, options.format)
    if options.json:
        print_json({"run": str(opened.run.path), "plots": paths})
    else:
        print("\n".join(map(clean, paths)))


def draw(
    run: "Run", model: "NodeModel", data: "Data", split: "Split", way: str = "pca", kind: str = "png"
) -> list[str]:
    """Write every picture that this model allows into the run folder; the paths."""
    from ..evaluation.plots import picture
    from ..training.runs.storage import storage_errors

    folder = run.path / "plots"
    with storage_errors(folder):
        folder.mkdir(exist_ok=True)
    paths = []
    for name, figure in _figures(run, model, data, split, way).items():
        run.write(f"plots/{name}.{kind}", picture(figure, kind))
        paths.append(str(folder / f"{name}.{kind}"))
    return paths


def _figures(run: "Run", model: "NodeModel", data: "Data", split: "Split", way: str) -> dict[str, "Figure"]:
    from ..evaluation import plots
    from ..evaluation.explain import attention_of
    from ..evaluation.metrics import confusion
    from ..nn.cat import CAT
    from ..nn.spread import Spread
    from ..training import embed, predict_proba

    result, names = run.sidecar.result or {}, run.sidecar.class_names
    figures = {"learning": plots.learning_curves(run.history(), int(result.get("best_epoch", 0)))}
    if isinstance(model, CAT | Spread):
        attention = attention_of(model, data, run.config)
        figures["attention"] = plots.attention_histograms(attention)
        mix = plots.learnt_mix(attention)
        if mix is not None:
            figures["mix"] = mix
    y, test = data.y.cpu().numpy(), split.reveal_test().cpu().numpy()
    points, shown = plots.project(embed(model, data, run.config).cpu().numpy(), way)
    title = f"Embeddings by class, {'t-SNE' if way == 'tsne' else 'two principal components'}"
    figures["map"] = plots.embedding_map(points, y[shown], names, title)
    guess = predict_proba(model, data, run.config).argmax(dim=1).cpu().numpy()
    counts = confusion(y[test], guess[test], len(names))
    right = float(counts.trace() / counts.sum())
    figures["confusion"] = plots.confusion_matrix(counts, names, f"Test nodes, {100 * right:.1f}% right")
    return figures
