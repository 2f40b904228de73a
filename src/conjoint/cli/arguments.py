"""The options that verbs share, and the kinds of values that a TOML file may give in their place.

Nothing heavy is imported here: help and mistakes in options must be answered at once.
"""

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

from .. import defaults
from ..errors import InputError

Add = Callable[..., argparse.Action]


class Parser(argparse.ArgumentParser):
    """Errors are raised, not printed: `main` turns every complaint into one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see `{self.prog} --help`")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Paragraphs and examples stay as they were written; options have room."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)


def whole_number(text: str) -> int:
    """A whole number, as people write it: 169343, 169_343 or 1e6."""
    try:
        value = float(text) if "e" in text.lower() else int(text)
    except ValueError:
        value = 0.5
    if value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(value)


def add_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--json", action="store_true", help="print one JSON document instead of text")
    add("--quiet", "-q", action="store_true", help="no progress and no hints on stderr")


def add_run(parser: argparse.ArgumentParser) -> None:
    """The run folder to work on, and where its graph is now, should it have moved since."""
    add = parser.add_argument
    add("run", metavar="RUN", help="a folder that `conjoint train` wrote")
    add("--data", metavar="FOLDER", help="where the benchmark's raw files are now")
    add("--edges", metavar="FILE", help="where the edge table is now")
    add("--nodes", metavar="FILE", help="where the node table is now")
    add("--device", default="cpu", help="cpu (default), cuda, cuda:1, ...")


def add_graph(parser: argparse.ArgumentParser) -> None:
    add, *_ = _group(parser, "the graph")
    add("--data", metavar="FOLDER", help="folder with a benchmark's raw files")
    add("--edition", help="which copy of a benchmark: embedded, planetoid, release")
    add("--edges", metavar="FILE", help="your edges: .csv, .tsv, .parquet, .npz, .graphml")
    add("--nodes", metavar="FILE", help="your nodes, one row each: .csv, .tsv, .parquet")
    add_columns(add)


def add_columns(add: Add) -> None:
    """What the columns of the user's tables are."""
    column = partial(add, metavar="COLUMN")
    column("--label", help="the column with the class; empty cells are to be predicted")
    column("--id", help="the column with the node's id")
    column("--source-column", help="the column with the edge's first end")
    column("--target-column", help="the column with the edge's second end")
    column("--weight", help="the column with the edge's weight")
    column("--time", help="the column with the node's time, for --split time")
    column("--split-column", help="the column with train, val or test")
    column("--text", nargs="+", help="columns to read as words")
    column("--categorical", nargs="+", help="columns to read as categories")
    column("--ignore", nargs="+", help="columns to leave out")
    add("--drop-unknown", action="store_true", default=None, help="skip edges to unknown nodes")
    add("--features", metavar="KIND:SIZE", help="features made from the edges: spectral:128, degree:32")


def add_split(parser: argparse.ArgumentParser) -> None:
    add, whole, real = _group(parser, "the split")
    add("--split", metavar="RULE", help="per-class, public, released, fraction, time or given")
    whole("--split-seed", metavar="S", help="which random split; default 0")
    add("--resplit", action="store_true", default=None, help="a new split for each seed")
    whole("--train-per-class", help="per-class: training nodes of each class; default 20")
    whole("--num-val", help="per-class: validation nodes; default 500")
    whole("--num-test", help="per-class: test nodes; default 1000")
    real("--train-share", help="fraction: share of training nodes; default 0.6")
    real("--val-share", help="fraction: share of validation nodes; default 0.2")
    real("--train-until", help="time: the last time to train on")
    real("--val-until", help="time: the last time to validate on")


def add_network(parser: argparse.ArgumentParser, named: bool = True) -> None:
    add, whole, real = _group(parser, "the network")
    if named:
        about = "cat-i-mf, cat-e-sc, gat, gcn, ...; default: the recommended setting"
        add("--model", metavar="NAME", help=about)
        about = "in place of --model: mf, sc, smooth, spectral, ..., or auto to have validation choose"
        add("--intervention", metavar="NAME", help=about)
        strategies = ("implicit", "explicit")
        add("--strategy", choices=strategies, help="with --intervention; default implicit")
    whole("--hidden", help="units of each head")
    whole("--heads", help="attention heads of the hidden layers")
    whole("--out-heads", help="attention heads of the output layer")
    whole("--layers", help="number of layers")
    whole("--rank", help="columns of V; default: number of classes")
    real("--dropout", metavar="P", help="share of units dropped in training")
    add("--variant", choices=sorted(defaults.VARIANTS), help="the paper's network for that graph")
    about = "any other setting of the network or of training"
    add("--set", action="append", metavar="KEY=VALUE", help=about)


def add_training(parser: argparse.ArgumentParser) -> None:
    add, whole, real = _group(parser, "training")
    whole("--seed", metavar="S", help="decides every random choice; default 0")
    whole("--seeds", help=f"train N times, from --seed on; default {defaults.SEEDS}")
    best = defaults.TRAIN
    whole("--epochs", help=f"at most this many; default 1500, recommended {best['epochs']}")
    whole("--patience", help="stop after this many epochs without progress; 0 = never")
    real("--lr", help=f"Adam's learning rate; default 0.01, recommended {best['lr']}")
    real("--weight-decay", help="default 0.0005")
    real("--lambda", dest="penalty_weight", help="weight of the structural loss; default 0.01")
    about = "train unlabelled nodes to agree with themselves; for example passes=4,weight=1,temperature=0.5"
    about += " (passes=1,weight=0: not at all)"
    add("--consistency", nargs="?", const="", metavar="KEY=VALUE,...", help=about)
    about = f"epoch to keep: val-loss (default), val-accuracy, gat, release; recommended {best['rule']}"
    add("--rule", metavar="NAME", help=about)
    about = "allow --rule release, which looks at test nodes"
    add("--see-test", action="store_true", default=None, help=about)


def add_batches(parser: argparse.ArgumentParser) -> None:
    add, whole, real = _group(parser, "graphs larger than memory, and many processes (docs/scale.md)")
    kinds = ("auto", "full", "field", "clusters", "neighbours")
    about = "what a step computes; default auto: by the memory that it takes and that there is"
    add("--batch", choices=kinds, help=about)
    whole("--batch-size", help="nodes of a cluster batch, or training nodes")
    whole("--joined", help="clusters joined in a batch; default 10")
    add("--fanout", metavar="N,N", help="neighbours sampled per hop, nearest first; default 10,10")
    about = "batches averaged for one step; the number of processes must divide it; default: that number"
    whole("--batches-per-step", help=about)
    whole("--workers", default=0, help="processes that prepare batches; default 0")
    real("--save-every", metavar="S", help="seconds between checkpoints; default 10")
    real("--timeout", metavar="S", help="seconds to wait for a silent process; default 600")


def _group(parser: argparse.ArgumentParser, title: str) -> tuple[Add, Add, Add]:
    """Functions that add an option to a new group: any, one with a whole number, one with a real number."""
    add = parser.add_argument_group(title).add_argument
    return add, partial(add, type=whole_number, metavar="N"), partial(add, type=float, metavar="X")


TEXT, TEXTS, YES_NO = "text", "text or a list of texts", "true or false"
WHOLE, NUMBER = "a whole number", "a number"
KINDS: dict[str, dict[str, str]] = {
    "data": {
        **dict.fromkeys(("name", "root", "edges", "nodes", "folder", "features", "delimiter"), TEXT),
        **dict.fromkeys(("id", "source", "target", "weight", "label", "time", "split"), TEXT),
        **dict.fromkeys(("text", "categorical", "ignore"), TEXTS),
        **dict.fromkeys(("drop_unknown", "standardise", "header"), YES_NO),
        **dict.fromkeys(("seed", "max_bytes"), WHOLE),
    },
    "split": {
        "name": TEXT,
        "resplit": YES_NO,
        **dict.fromkeys(("seed", "train_per_class", "num_val", "num_test"), WHOLE),
        **dict.fromkeys(("train", "val", "train_until", "val_until"), NUMBER),
    },
    "model": {"name": TEXT},  # its settings are checked against the model's own
}


def check_kinds(section: str, values: Mapping[str, Any]) -> None:
    """Settings that are not listed are left to whoever takes them: unknown ones are refused there."""
    for name, value in values.items():
        kind = KINDS.get(section, {}).get(name)
        if kind is not None and not _is(value, kind):
            raise InputError(f"[{section}] {name} = {value!r}: expected {kind}")


def _is(value: object, kind: str) -> bool:
    if kind == YES_NO:
        return isinstance(value, bool)
    if kind in (WHOLE, NUMBER):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
            return False
        return kind == NUMBER or isinstance(value, int)
    if kind == TEXTS and isinstance(value, list):
        return all(_is(item, TEXT) for item in value)
    return isinstance(value, str) and "\0" not in value
