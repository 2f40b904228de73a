"""conjoint train: from a graph to a trained network in a run folder."""

import argparse

from ..recommended import TRAIN as BEST
from .parser import add_output_options, whole_number
from .plan import DEFAULT_SEEDS, VARIANTS

SUMMARY = "train a network on a benchmark or on your own graph"
DESCRIPTION = f"""\
Train a network on a graph and keep it in a run folder.

Without arguments: the recommended setting on Cora, which comes with the package, with
{DEFAULT_SEEDS} seeds so that the result has an error bar. It lets features walk over edges that can
be trusted (spread-trust) and trains unlabelled nodes to agree with themselves. First,
validation nodes are asked whether a weight for each feature helps (gated-trust) or, where
many edges look random, whether to take all edges for equal (spread-zero). That takes two
more trainings; --resplit leaves it out.
--model names another network, trained as in the paper: --model cat-i-mf is the paper's own.
Your own graph needs an edge table and a node table with a label column; nodes without
a label are what the network will predict. Ctrl-C stops after the epoch; the run goes
on with --resume and ends with the same bits as if it had never stopped."""

EXAMPLES = """\
examples:
  conjoint train
  conjoint train pubmed --model cat-e-sc --split public --data ~/graphs
  conjoint train --edges links.csv --nodes people.csv --label team --out runs/teams
  conjoint train --edges links.tsv.gz --nodes people.parquet --label team --features spectral:64
  conjoint train citeseer --data FOLDER --consistency passes=4,sample=512
  conjoint train --intervention auto          validation chooses one among several
  conjoint train --intervention smooth --strategy explicit
  conjoint train cora --set clip=1.0 --set schedule=cosine --json
  conjoint train --resume runs/teams
  conjoint train papers/ --batch neighbours --fanout 10,5 --out runs/papers
  torchrun --nproc-per-node 4 -m conjoint train papers/ --batch clusters --out runs/papers

`conjoint describe` lists the models, `conjoint datasets` the benchmarks.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "dataset",
        nargs="?",
        metavar="NAME|FOLDER",
        help="a benchmark (cora, citeseer, pubmed, coauthor-cs, ogbn-arxiv) or a folder of `conjoint ingest`",
    )
    add_data_options(parser)
    add_split_options(parser)
    add_model_options(parser)
    _add_training_options(parser)
    _add_batch_options(parser)
    run = parser.add_argument_group("the run")
    run.add_argument("--out", metavar="FOLDER", help="where to keep the run; default runs/<data>-<model>-<n>")
    run.add_argument("--resume", metavar="FOLDER", help="go on with a run that was interrupted")
    run.add_argument("--config", metavar="FILE", help="settings in TOML, or config.toml of an earlier run")
    run.add_argument("--no-plots", action="store_true", help="leave the pictures out of the run folder")
    run.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1, ...")
    add_output_options(parser)


def add_data_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the graph")
    group.add_argument("--data", metavar="FOLDER", help="folder with a benchmark's raw files")
    group.add_argument("--edition", help="which copy of a benchmark: embedded, planetoid, release")
    group.add_argument("--edges", metavar="FILE", help="your edges: .csv, .tsv, .parquet, .npz, .graphml")
    group.add_argument("--nodes", metavar="FILE", help="your nodes, one row each: .csv, .tsv, .parquet")
    for option, says in COLUMNS.items():
        group.add_argument(option, metavar="COLUMN", help=says)
    for option, says in COLUMN_LISTS.items():
        group.add_argument(option, metavar="COLUMN", nargs="+", help=says)
    group.add_argument(
        "--drop-unknown", action="store_true", default=None, help="skip edges to unknown nodes"
    )
    group.add_argument(
        "--features", metavar="KIND:SIZE", help="features made from the edges: spectral:128, degree:32"
    )


COLUMNS = {
    "--label": "the column with the class; empty cells are to be predicted",
    "--id": "the column with the node's id",
    "--source-column": "the column with the edge's first end",
    "--target-column": "the column with the edge's second end",
    "--weight": "the column with the edge's weight",
    "--time": "the column with the node's time, for --split time",
    "--split-column": "the column that says train, val or test",
}
COLUMN_LISTS = {
    "--text": "columns to read as words",
    "--categorical": "columns to read as categories",
    "--ignore": "columns to leave out",
}


def add_split_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the split")
    group.add_argument("--split", metavar="RULE", help="per-class, public, released, fraction, time or given")
    group.add_argument("--split-seed", type=whole_number, metavar="S", help="which random split; default 0")
    group.add_argument("--resplit", action="store_true", default=None, help="a new split for each seed")
    for option, says in SPLIT_SIZES.items():
        group.add_argument(option, type=whole_number, metavar="N", help=says)
    for option, says in SPLIT_SHARES.items():
        group.add_argument(option, type=float, metavar="X", help=says)


SPLIT_SIZES = {
    "--train-per-class": "per-class: training nodes of each class; default 20",
    "--num-val": "per-class: validation nodes; default 500",
    "--num-test": "per-class: test nodes; default 1000",
}
SPLIT_SHARES = {
    "--train-share": "fraction: share of training nodes; default 0.6",
    "--val-share": "fraction: share of validation nodes; default 0.2",
    "--train-until": "time: the last time to train on",
    "--val-until": "time: the last time to validate on",
}


def add_model_options(parser: argparse.ArgumentParser, named: bool = True) -> None:
    group = parser.add_argument_group("the network")
    if named:
        group.add_argument(
            "--model",
            metavar="NAME",
            help="cat-i-mf, cat-e-sc, gat, gcn, ...; default: the recommended setting",
        )
        group.add_argument(
            "--intervention",
            metavar="NAME",
            help="in place of --model: mf, sc, smooth, spectral, ..., or auto to have validation choose",
        )
        group.add_argument(
            "--strategy", choices=("implicit", "explicit"), help="with --intervention; default implicit"
        )
    group.add_argument("--hidden", type=whole_number, metavar="N", help="units of each head")
    group.add_argument("--heads", type=whole_number, metavar="N", help="attention heads of the hidden layers")
    group.add_argument(
        "--out-heads", type=whole_number, metavar="N", help="attention heads of the output layer"
    )
    group.add_argument("--layers", type=whole_number, metavar="N", help="number of layers")
    group.add_argument(
        "--rank", type=whole_number, metavar="N", help="columns of V; default: number of classes"
    )
    group.add_argument("--dropout", type=float, metavar="P", help="share of units dropped in training")
    group.add_argument("--variant", choices=sorted(VARIANTS), help="the paper's network for that graph")
    group.add_argument(
        "--set", action="append", metavar="KEY=VALUE", help="any other setting of the network or of training"
    )


def _add_training_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training")
    group.add_argument(
        "--seed", type=whole_number, metavar="S", help="decides every random choice; default 0"
    )
    group.add_argument(
        "--seeds",
        type=whole_number,
        metavar="N",
        help=f"train N times, from --seed on; default {DEFAULT_SEEDS}",
    )
    group.add_argument(
        "--epochs",
        type=whole_number,
        metavar="N",
        help=f"at most so many; default 1500, recommended {BEST['epochs']}",
    )
    group.add_argument("--patience", type=whole_number, metavar="N", help="epochs without progress; 0 = all")
    group.add_argument(
        "--lr", type=float, metavar="X", help=f"Adam's learning rate; default 0.01, recommended {BEST['lr']}"
    )
    group.add_argument("--weight-decay", type=float, metavar="X", help="default 0.0005")
    group.add_argument(
        "--lambda",
        type=float,
        metavar="X",
        dest="penalty_weight",
        help="weight of the structural loss; default 0.01",
    )
    group.add_argument(
        "--consistency",
        nargs="?",
        const="",
        metavar="KEY=VALUE,...",
        help="train unlabelled nodes to agree with themselves; for example passes=4,weight=1,temperature=0.5 "
        "(passes=1,weight=0: not at all)",
    )
    group.add_argument(
        "--rule",
        metavar="NAME",
        help=f"epoch to keep: val-loss (default), val-accuracy, gat, release; recommended {BEST['rule']}",
    )
    group.add_argument(
        "--see-test",
        action="store_true",
        default=None,
        help="allow --rule release, which looks at test nodes",
    )


def _add_batch_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("graphs larger than memory, and many processes (docs/scale.md)")
    group.add_argument(
        "--batch",
        choices=("auto", "full", "field", "clusters", "neighbours"),
        help="what a step computes; default auto: by the memory that it takes and that there is",
    )
    group.add_argument(
        "--batch-size", type=whole_number, metavar="N", help="nodes of a cluster batch, or training nodes"
    )
    group.add_argument(
        "--joined", type=whole_number, metavar="N", help="clusters joined in a batch; default 10"
    )
    group.add_argument(
        "--fanout", metavar="N,N", help="neighbours heard per hop, nearest first; default 10,10"
    )
    group.add_argument(
        "--batches-per-step",
        type=whole_number,
        metavar="N",
        help="batches averaged for one step; the number of processes must divide it; default: that number",
    )
    group.add_argument(
        "--workers",
        type=whole_number,
        default=0,
        metavar="N",
        help="processes that prepare batches; default 0",
    )
    group.add_argument(
        "--save-every", type=float, metavar="S", help="seconds between checkpoints; default 10"
    )
    group.add_argument(
        "--timeout", type=float, metavar="S", help="give up on a process that is silent so long; default 600"
    )


def work(options: argparse.Namespace) -> None:
    from .session import resume, start

    (resume if options.resume else start)(options)
