"""The commands that made the run folders kept in `runs/`, so that they can be given again."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNS = HERE / "runs"
EXPECTED = HERE / "expected"

# What was usual for these tables then, and is named by each of the runs.
SPLIT = ("--split", "fraction")
THEN = ("--reading", "1")
COLUMNS = ("--label", "team", "--text", "bio", "--ignore", "born", "use", "year", *THEN, *SPLIT)
# The default of that time: random propagation, with this training.
DEFAULT = (
    *("--model", "spread-trust", "--lr", "0.05", "--rule", "val-accuracy"),
    *("--consistency", "passes=4,weight=1.5,temperature=0.5,ramp=50"),
)
INGEST = ("--label", "team", "--split-column", "use", "--ignore", "unit", "bio", "born", "year")
SMALL = ("--hidden", "4", "--heads", "2")


@dataclass(frozen=True)
class Kept:
    """A run folder: on which graph, with which options, and where it was stopped if it was.

    `stop` is (signal, seed, epoch): INT waits for the end of the epoch and saves; KILL leaves the checkpoint
    of three epochs before and rows that came after it.
    """

    options: tuple[str, ...]
    graph: str = "tables"  # tables, folder or cora
    stop: tuple[str, int, int] | None = None
    also: tuple[str, ...] = ()  # verbs besides predict whose answers are kept

    def train(self, at: Path = RUNS) -> list[str]:
        named = [str(at / "graph")] if self.graph == "folder" else self.place(at)
        return ["train", *named, *self.options, "--no-plots", "--no-report", "--quiet"]

    def place(self, at: Path = RUNS) -> list[str]:
        """Where the graph is now, for a run that was made elsewhere."""
        if self.graph == "folder":
            return ["--data", str(at / "graph")]
        return tables(at) if self.graph == "tables" else []

    def use(self, verb: str, run: Path, answer: Path, at: Path = RUNS) -> list[str]:
        """The command that asks a finished run, and writes its answer or prints it as JSON."""
        start = [verb, str(run), *self.place(at)]
        if verb == "explain":
            return [*start, "12" if self.graph == "cora" else "n05", "--json"]
        if verb == "new-nodes":
            new = ["--new-nodes", str(at / "new-nodes.csv"), "--new-edges", str(at / "new-edges.csv")]
            return ["predict", *start[1:], *new, "--out", str(answer), "--quiet"]
        if verb == "cluster":
            return [*start, "--json"]
        if self.graph == "cora":
            return [*start, "--rows", "20", "--json"]
        return [*start, "--out", str(answer), "--quiet"]


def tables(at: Path) -> list[str]:
    return ["--edges", str(at / "edges.csv"), "--nodes", str(at / "nodes.csv")]


def answer_name(name: str, verb: str) -> str:
    ending = "json" if verb in ("explain", "cluster") or name == "cora" else "csv"
    return f"{name}.{verb}.{ending}"


KEPT = {
    "default": Kept(
        (*COLUMNS, *DEFAULT, "--hidden", "4", "--epochs", "12", "--seeds", "2"),
        also=("embed", "cluster", "new-nodes"),
    ),
    "default-paused": Kept(
        (*COLUMNS, *DEFAULT, "--hidden", "4", "--epochs", "14", "--seeds", "2"), stop=("INT", 1, 6)
    ),
    "cat-i-mf": Kept(
        (*COLUMNS, *SMALL, "--model", "cat-i-mf", "--epochs", "12", "--seed", "3"),
        also=("embed", "cluster", "explain", "new-nodes"),
    ),
    "cat-i-mf-killed": Kept(
        (
            *(*COLUMNS, *SMALL, "--model", "cat-i-mf", "--epochs", "16", "--seed", "1", "--set", "clip=1.0"),
            *("--set", "schedule=cosine", "--consistency", "passes=2,sample=10,drop_edge=0.1"),
        ),
        stop=("KILL", 1, 9),
    ),
    "cat-e-trust": Kept(
        (
            *("--label", "team", "--text", "bio", "--categorical", "unit", "--ignore", "born", "use"),
            *("--weight", "strength", "--time", "year", "--split", "time", *THEN),
            *("--train-until", "2012", "--val-until", "2016"),
            *(*SMALL, "--model", "cat-e-trust", "--epochs", "8", "--seed", "0"),
        ),
        also=("explain",),
    ),
    "several": Kept(
        (*COLUMNS, *SMALL, "--intervention", "smooth+spectral", "--epochs", "8", "--seed", "0"),
        also=("explain",),
    ),
    "auto": Kept(
        (*COLUMNS, *SMALL, "--intervention", "auto", "--epochs", "4", "--seed", "0"), also=("explain",)
    ),
    "gcn": Kept((*COLUMNS, "--model", "gcn", "--hidden", "4", "--epochs", "8", "--seeds", "2", "--resplit")),
    "gat-klap": Kept(
        (*COLUMNS, *SMALL, "--model", "gat-klap", "--set", "dim=8", "--epochs", "8", "--seed", "0"),
        also=("explain",),
    ),
    "gcn-jaccard": Kept(
        (
            *(*COLUMNS, "--model", "gcn-jaccard", "--set", "threshold=0.25"),
            *("--hidden", "4", "--epochs", "8", "--seed", "0"),
        )
    ),
    "gated-trust": Kept(
        (
            *(*COLUMNS, "--model", "gated-trust", "--consistency", "passes=2,drop_node=0.1"),
            *("--hidden", "4", "--epochs", "8", "--seed", "0"),
        ),
        also=("new-nodes",),
    ),
    "cat-e-sc": Kept(
        (
            *(*COLUMNS, "--model", "cat-e-sc", "--variant", "ogbn-arxiv", "--hidden", "4"),
            *("--rank", "5", "--epochs", "8", "--seed", "0", "--rule", "gat"),
        ),
        also=("explain",),
    ),
    "spectral": Kept(
        (
            "--label",
            "team",
            *SPLIT,
            "--features",
            "spectral:8",
            *SMALL,
            "--model",
            "gat",
            "--epochs",
            "8",
            "--seed",
            "0",
        )
    ),
    "cora": Kept(("--model", "gcn", "--hidden", "2", "--epochs", "3", "--seed", "0"), "cora"),
    "folder": Kept((*SMALL, "--epochs", "6"), "folder", also=("explain",)),
    "neighbours": Kept(
        (*SMALL, "--batch", "neighbours", "--batch-size", "8", "--fanout", "3,2", "--epochs", "5"), "folder"
    ),
    "clusters-paused": Kept(
        (*SMALL, "--batch", "clusters", "--batch-size", "20", "--joined", "2", "--epochs", "8"),
        "folder",
        stop=("INT", 0, 4),
    ),
}
TUNING = (
    *(*COLUMNS, "--models", "cat-i-mf", "gat", "spread-trust"),
    *("--trial-epochs", "3", "--trial-seeds", "1", "--minutes", "5"),
)
