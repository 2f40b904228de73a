"""Every verb's options. Its description and examples are in help.toml, its work in the module of its name."""

from argparse import ArgumentParser

from .arguments import (
    add_batches,
    add_columns,
    add_graph,
    add_network,
    add_output,
    add_run,
    add_split,
    add_training,
    whole_number,
)


def _train(parser: ArgumentParser) -> None:
    about = "a benchmark (cora, citeseer, pubmed, coauthor-cs, ogbn-arxiv) or a folder of `conjoint ingest`"
    parser.add_argument("dataset", nargs="?", metavar="NAME|FOLDER", help=about)
    for add_group in (add_graph, add_split, add_network, add_training, add_batches):
        add_group(parser)
    add = parser.add_argument_group("the run").add_argument
    add("--out", metavar="FOLDER", help="where to keep the run; default runs/<data>-<model>-<n>")
    add("--resume", metavar="FOLDER", help="go on with a run that was interrupted")
    add("--config", metavar="FILE", help="settings in TOML, or config.toml of an earlier run")
    add("--no-plots", action="store_true", help="leave the pictures out of the run folder")
    add("--device", default="cpu", help="cpu (default), cuda, cuda:1, ...")
    add_output(parser)


def _add_dataset(parser: ArgumentParser) -> None:
    """A graph and its split, for verbs that train no network of the user's own choice."""
    parser.add_argument("dataset", nargs="?", metavar="NAME", help="a benchmark, as in `conjoint train`")
    add_graph(parser)
    add_split(parser)
    parser.set_defaults(config=None)


def _tune(parser: ArgumentParser) -> None:
    _add_dataset(parser)
    add = parser.add_argument_group("the search").add_argument
    add("--minutes", type=float, default=10.0, help="time to spend (default 10)")
    add("--trials", type=whole_number, default=1000, help="at most this many, earlier ones included")
    add("--models", nargs="+", metavar="NAME", help="networks to choose among")
    add("--trial-seeds", type=whole_number, default=2, help="trainings per trial (default 2)")
    add("--trial-epochs", type=whole_number, default=300, help="of each (default 300)")
    add("--seed", type=whole_number, help="decides what is tried; default 0")
    add("--out", metavar="FOLDER", help="default tuning/<data>; a search there is continued")
    add_output(parser)


def _predict(parser: ArgumentParser) -> None:
    add_run(parser)
    add = parser.add_argument
    add("--out", metavar="FILE", help="write all rows to .csv, .tsv or .parquet")
    add("--new-nodes", metavar="FILE", help="nodes that came later, in a table like --nodes")
    add("--new-edges", metavar="FILE", help="their edges, in a table like --edges")
    add("--unlabelled", action="store_true", help="only nodes whose label is not known")
    add("--rows", type=whole_number, default=10, metavar="N", help="rows to show; default 10")
    add_output(parser)


def _embed(parser: ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--out", metavar="FILE", required=True, help="where to: .csv, .tsv, .parquet, .npz")
    add_output(parser)


def _cluster(parser: ArgumentParser) -> None:
    add_run(parser)
    add = parser.add_argument
    add("--clusters", type=whole_number, metavar="K", help="for k-means; default: classes")
    add("--seed", type=whole_number, default=0, metavar="S", help="for k-means; default 0")
    add("--out", metavar="FILE", help="write each node's cluster to .csv, .tsv or .parquet")
    add_output(parser)


def _explain(parser: ArgumentParser) -> None:
    add_run(parser)
    add = parser.add_argument
    add("node", metavar="NODE", help="the node's id, as in your node table")
    add("--plot", metavar="FILE", help="draw its ego network: .png, .svg or .pdf")
    add("--layer", type=whole_number, metavar="K", help="only this layer; default: all")
    add("--rows", type=whole_number, default=20, metavar="N", help="neighbours to show; default 20")
    add_output(parser)


def _plot(parser: ArgumentParser) -> None:
    add_run(parser)
    add = parser.add_argument
    add("--map", choices=("pca", "tsne"), default="pca", help="how to flatten the embeddings")
    add("--format", choices=("png", "svg", "pdf"), default="png", help="kind of file")
    add_output(parser)


def _ingest(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--edges", required=True, metavar="FILE", help="one edge per row; the files that `train` takes")
    add("--nodes", metavar="FILE", help="one node per row: .csv, .tsv, .parquet")
    add("--out", required=True, metavar="FOLDER", help="the folder to make")
    add_columns(add)
    add("--as-they-are", action="store_true", help="do not standardise the features")
    add("--name", help="what to call the graph; default: the name of the edge table")
    add_output(parser)


def _describe(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("model", nargs="?", metavar="MODEL", help="a name from `conjoint describe`")
    add("--nodes", type=whole_number, metavar="N", help="nodes of the graph")
    add("--features", type=whole_number, metavar="D", help="input features of a node")
    add("--classes", type=whole_number, metavar="C", help="number of classes")
    add("--edges", type=whole_number, metavar="E", help="undirected edges; for the memory")
    add("--nonzeros", type=whole_number, metavar="Z", help="stored features, if sparse; default: all (dense)")
    add_network(parser, named=False)
    add_output(parser)


def _diagnose(parser: ArgumentParser) -> None:
    _add_dataset(parser)
    add = parser.add_argument
    add("--labels", choices=("train", "known"), default="train", help="train (default), or also validation")
    add("--plot", metavar="FILE", help="draw it into a .png, .svg or .pdf")
    add_output(parser)


def _datasets(parser: ArgumentParser) -> None:
    parser.add_argument("--data", metavar="FOLDER", help="folder with raw files")
    add_output(parser)


def _reproduce(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("table", nargs="?", metavar="TABLE", help="leave it out for a list")
    add("--quick", action="store_true", help="fewer models, graphs and seeds: minutes")
    add("--only", metavar="DATASET", help="only the runs on this graph")
    add("--jobs", type=int, default=1, metavar="N", help="runs at a time (default 1)")
    add("--data", metavar="FOLDER", help="folder with the benchmarks' raw files")
    add("--results", default="results", metavar="FOLDER", help="rows (default: results)")
    add_output(parser)


def _report(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", default="report.html", metavar="FILE", help="page (default: report.html)")
    add("--results", default="results", metavar="FOLDER", help="rows (default: results)")
    add("--markdown", metavar="FILE", help="write the tables as Markdown instead")


VERBS = {
    "train": _train,
    "tune": _tune,
    "predict": _predict,
    "embed": _embed,
    "cluster": _cluster,
    "explain": _explain,
    "plot": _plot,
    "ingest": _ingest,
    "describe": _describe,
    "diagnose": _diagnose,
    "datasets": _datasets,
    "doctor": add_output,
    "reproduce": _reproduce,
    "report": _report,
}
