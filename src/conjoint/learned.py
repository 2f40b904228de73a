"""conjoint.learn: one call from tables or files to predictions, metrics and reasons, kept as a run folder."""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from .benchmark_files import BENCHMARKS
from .cli.plan import Plan, absolute
from .cli.results import keep_results
from .cli.run_folder import open_run
from .data.from_tables import READING
from .errors import InputError
from .evaluation.explain import as_document, explain, row_of
from .graph.folder import is_graph_folder, open_folder, write_folder
from .graph.graph import Graph
from .graph.splits import Split
from .nn import zoo
from .selection.learner import graph_from, keep_training, split_options, train_graph
from .selection.trained import Trainings
from .text import shorten
from .training import start_run
from .training.loop import OnEpoch
from .training.metrics import all_metrics
from .training.runs import split_fingerprint

GRAPH = "graph"  # folder of a saved run, with a graph that came from Python
SHOWN = 10  # rows in a notebook


@dataclass(frozen=True, eq=False)
class Learned(Trainings):
    """What `learn` gives: predictions, metrics, reasons; `trained` has the network of each seed.

    Everything is of `best`, the seed with the lowest validation loss.
    """

    # What the graph is read from again: files and columns by name, or the graph itself.
    source: Mapping[str, Any] | Graph = field(default_factory=dict, repr=False)
    split: Mapping[str, Any] = field(default_factory=dict, repr=False)  # its name and options
    pandas: bool = field(default=False, repr=False)

    @cached_property
    def predictions(self) -> Any:
        """A row for each node, in the order of the node table: a pandas table if pandas came in, else polars.

        Columns: `id`; `part` (train, val, test or nothing); `label`, empty where it is not known;
        `predicted`; its `probability`; `confidence`, how far that is ahead of the next class's, from 0 (a
        tie) to 1.
        """
        shares = self.best.probabilities
        columns = self.best.columns(np.arange(self.graph.num_nodes), shares)
        second, first = np.partition(shares, -2, axis=1)[:, -2:].T
        columns["confidence"] = first - second
        if not self.pandas:
            return pl.DataFrame(columns)
        from pandas import DataFrame  # the caller has it

        return DataFrame(columns)

    @cached_property
    def probabilities(self) -> Any:
        """A row for each node and a column for each class, beside the id; a table like `predictions`."""
        shares = self.best.probabilities
        columns = self.best.columns(np.arange(self.graph.num_nodes), shares, with_probabilities=True)
        kept = {name: values for name, values in columns.items() if name == "id" or name.startswith("p(")}
        return type(self.predictions)(kept)

    @cached_property
    def metrics(self) -> dict[str, dict[str, float]]:
        """Every metric, by the nodes that it was measured on.

        `unseen`: labels judged by trainings without them, an honest estimate; of an ensemble, whose members
        and weights the same nodes chose, a little flattering. `validation`: of a named network on a split
        with such nodes, which chose its epoch. `test`: where the split has test nodes. Nothing where no label
        could be spared. `majority` is the accuracy of always saying the most common class.
        """
        best, y = self.best, self.graph.y.numpy()
        found = {kind: all_metrics(y[nodes], shares) for kind, (nodes, shares) in best.judged.items()}
        val = best.split.val.numpy()
        if best.portfolio is None and best.batch is None and len(val):
            found = {"validation": all_metrics(y[val], best.probabilities[val]), **found}
        return found

    def explain(self, node: Any, *, layer: int | None = None, most: int | None = None) -> dict[str, Any]:
        """Why this node, named by its id, is predicted as it is: what `conjoint explain --json` tells.

        `members`, `neighbours`, `paths` and `features`, each with the `change` of the predicted class's
        probability when it is removed. `layer` and `most` as in `conjoint.evaluation.explain.explain`.
        """
        best, shares = self.best, self.best.probabilities
        row = row_of(str(node), self.graph)
        parts: dict[str, Any] = {"layer": layer, "most": most}
        found = explain(best.fitted.model, self.graph, best.fitted.config, row, shares, **parts)
        names = self.graph.class_names or [str(k) for k in range(shares.shape[1])]
        return as_document(found, self.graph, names, shares)

    def save(self, folder: str | Path) -> Path:
        """Keep it in a new run folder, as `conjoint train` does: its other commands work on it.

        A graph that came from Python is kept inside; of files, where they are. `load_learned` reads it.
        """
        path, best = Path(folder), self.best
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise InputError(f"folder={str(path)!r}: already there and never overwritten; choose another")
        if best.spec is None:
            raise InputError("save: the network has no name to build it by again; train one by its name")
        data, split, graph, own = self.source, self.split, self.graph, None
        if isinstance(data, Graph):
            own, split = _to_keep(data, best.split)
            data, graph = {"folder": GRAPH}, zoo.input_graph(self.setting.model, own, **self.setting.settings)
        plan = Plan(self.setting, data, split, (best.fitted.config.seed,))
        about: dict[str, Any] = {"model": best.spec, "data": graph, "split": best.split}
        run = start_run(path, best.fitted.config, **about, origin=plan.origin())
        with run.training():
            if own is not None:
                (path / GRAPH).mkdir()
                write_folder(path / GRAPH, own, {})
            keep_training(run, best)
        keep_results(run, best, plots=False)
        return path

    def _repr_html_(self) -> str:
        from .evaluation.run_report import table_html  # scikit-learn and matplotlib

        parts = [f"{self.graph.num_nodes} nodes, {self.graph.num_classes} classes"]
        found = self.metrics
        if found:
            names = list(next(iter(found.values())))
            rows = [[name, *(f"{of[name]:.4f}" for of in found.values())] for name in names]
            parts.append(table_html("Metrics", ["metric", *(f"{kind} nodes" for kind in found)], rows))
        if self.best.portfolio is not None:
            members = [[one["name"], f"{one['weight']:.2f}"] for one in self.best.portfolio.members]
            parts.append(
                table_html("Members", ["member", "weight"], [one for one in members if one[1] != "0.00"])
            )
        first = self.predictions.head(SHOWN)
        cells = [[shorten(value, 40) for value in first[name]] for name in first.columns]
        rows = [list(row) for row in zip(*cells, strict=True)]
        parts.append(table_html("Predictions", list(first.columns), rows))
        return "".join(f"<div>{part}</div>" for part in parts)


def learn(
    data: Any,
    nodes: Any = None,
    *,
    label: str | None = None,
    split: Split | str | Mapping[str, Any] | None = None,
    split_column: str | None = None,
    seed: int = 0,
    seeds: int = 1,
    model: str | None = None,
    intervention: str | None = None,
    strategy: str | None = None,
    settings: Mapping[str, Any] | None = None,
    train: Mapping[str, Any] | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    batch: Mapping[str, Any] | None = None,
    metric: str | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    single: bool = False,
    progress: OnEpoch | None = None,
    verbose: int = 0,
    **columns: Any,
) -> Learned:
    """Train on a graph with some labelled nodes, as `conjoint train` does, and predict all of them.

    Args:
        data: a table of edges (pandas, polars); a file of edges; a `Graph`; PyG's `Data`; a benchmark's name;
            a graph folder; a SciPy adjacency matrix; a NetworkX graph.
        nodes: a table or a file of nodes beside edges.
        label, split_column, columns: which column is what, as in `conjoint.data.read_graph`; x= and y= go
            with SciPy.
        split: a `Split`, a rule by name, or its options; by default what came with the data, or all labels.
            Without validation nodes, an ensemble is judged in folds, and one network is trained twice: first
            without some labels, which choose its epochs and judge it, then with all.
        seed, seeds: the first seed, and how many trainings.
        model: a name of `conjoint describe`. None: an ensemble, as nodes say that its members were not
            trained on, or the paper's network around `intervention`.
        intervention: in place of a model: a name, several joined by a plus, or "auto" (validation chooses).
        strategy: "implicit" (default) or "explicit", with an intervention.
        settings: of the network, such as `{"hidden": 16}`.
        train: of training, such as `{"epochs": 100}`; what is left out is as recommended for the model.
        batch: of batches, such as `{"kind": "neighbours"}`, for a graph that does not fit into memory.
        class_weight: "balanced" or numbers by class, see `TrainConfig`.
        metric: that the ensemble is chosen by, see `conjoint.training.metrics`; by default accuracy, and
            balanced accuracy with balanced weights.
        minutes, trials: most time, or most trainings, that it may take; by default, as the graph asks for.
        single: the best member alone.
        progress: called with each epoch's row, as in `fit`: a training ends when it returns True. Rows of an
            ensemble, or of a network that is trained twice, say under `training` which one they belong to.
        verbose: 1 prints a line for each training of an ensemble, or for each tenth epoch; 2 every epoch.

    >>> from conjoint import learn
    >>> learned = learn("cora", model="gcn", train={"epochs": 20})
    >>> learned.predictions.columns
    ['id', 'part', 'label', 'predicted', 'probability', 'confidence']
    """
    named = {"label": label, "split": split_column}
    columns |= {name: value for name, value in named.items() if value is not None}
    graph = graph_from(data, nodes, **columns)
    train = dict(train or {})
    if class_weight is not None:
        train["class_weight"] = by_class_name(class_weight)
    made = train_graph(
        graph,
        split=split,
        seed=seed,
        seeds=seeds,
        model=model,
        intervention=intervention,
        strategy=strategy,
        settings=settings,
        train=train,
        batch=batch,
        metric=metric,
        minutes=minutes,
        trials=trials,
        single=single,
        progress=progress,
        verbose=verbose,
    )
    options = {} if isinstance(split, Split) else split_options(split)
    in_files = isinstance(data, str | Path) and not isinstance(split, Split)
    source = _named_source(data, nodes, columns) if in_files else graph
    pandas = any(type(table).__module__.partition(".")[0] == "pandas" for table in (data, nodes))
    return Learned(made.graph, made.setting, made.trained, made.choice, source, options, pandas)


def load_learned(folder: str | Path) -> Learned:
    """What `Learned.save` or `conjoint train` kept in a run folder; of several seeds, the best."""
    missing = dict.fromkeys(("data", "edges", "nodes"))
    opened = open_run(Namespace(run=str(folder), device="cpu", quiet=True, **missing))
    plan, inside = opened.plan, opened.run.path / GRAPH
    kept = plan.data.get("folder") == str(inside.absolute())
    source = open_folder(inside) if kept else plan.data
    return Learned(opened.data, plan.setting, (opened.trained,), None, source, plan.split)


def by_class_name(class_weight: str | Mapping[Any, float]) -> str | dict[str, float]:
    """Class weights as `TrainConfig` takes them; classes may be numbers, in Python's or NumPy's form."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    return {str(name): float(weight) for name, weight in class_weight.items()}


def _named_source(data: str | Path, nodes: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
    """What the [data] of a run says about this graph."""
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in columns.items()}
    if str(data).removesuffix("-release") in BENCHMARKS:
        return absolute({"name": str(data), **plain})
    if is_graph_folder(data):
        return absolute({"folder": str(data)})
    beside = {} if nodes is None else {"nodes": str(nodes)}
    return absolute({"edges": str(data), **beside, "reading": READING, **plain})


def _to_keep(graph: Graph, split: Split) -> tuple[Graph, dict[str, Any]]:
    """The graph as a graph folder can hold it, and how its split is called there."""
    ids = np.asarray(graph.node_ids)
    parts: dict[str, Any] = {"ids": ids if ids.dtype.kind in "iU" else ids.astype(np.str_)}
    parts["class_names"] = graph.class_names or [str(k) for k in range(graph.num_classes)]
    if isinstance(graph.given_x, Tensor) and graph.given_x.dtype != torch.float32:
        parts["given_x"] = graph.given_x.float()
    _ = graph.changed(edge_weight=None).csr  # tells of edges that a folder cannot hold
    edges = graph.edge_index
    order = (edges[0] * graph.num_nodes + edges[1]).argsort()
    parts["edges"] = edges[:, order]
    parts["edge_weight"] = None if graph.edge_weight is None else graph.edge_weight[order]
    nodes = (split.train.numpy(), split.val.numpy(), split.reveal_test().numpy())
    if all(map(len, nodes)):
        return graph.changed(**parts, published={"given": nodes}), {"name": "given"}
    kept, seed = graph.changed(**parts, published={}), 0 if split.seed is None else split.seed
    again = {"name": split.name, "seed": seed}
    try:
        same = split_fingerprint(kept.split(split.name, seed)) == split_fingerprint(split)
    except InputError:
        same = False
    if not same:
        raise InputError(
            f"save: the split {split.name!r} has no test nodes to keep it by; name a rule instead"
        )
    return kept, again
