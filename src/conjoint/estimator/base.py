"""What the classifier and the clusterer share: parameters, the learner, answers about any rows."""

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..errors import InputError
from ..evaluation.explain import attention_of
from ..graph.adjacency import adjacency
from ..graph.graph import Graph
from ..graph.sparse import is_sparse, pack_features, rows
from ..graph.splits import Split, every_label
from ..nn import zoo
from ..nn.attention import ConjointAttention
from ..nn.cat import CAT
from ..nn.interventions import EmbeddingSimilarity, Intervention, LowRank, Several
from ..nn.new_nodes import with_new_nodes
from ..selection.all_labels import learn_from_all
from ..selection.learner import train_graph, watching
from ..selection.setting import make_setting
from ..selection.trained import Trained, Trainings
from ..training import embed, fit, predict_proba
from ..training.loop import OnEpoch
from ..training.metrics import all_metrics
from ..training.predictions import as_trained
from ..training.seeding import own_randomness
from ..training.steps import part_of, whole_graph
from .graphs import (
    NodeGraph,
    as_array,
    joined_by_matrix,
    joined_by_nearest,
    means_over_equals,
    nearest_graph,
    read_graph,
    row_keys,
)
from .labels import Codes, hold_out, label_weight, set_aside

OF_NETWORK = ("hidden", "heads", "num_layers", "dropout")
OF_TRAINING = ("epochs", "patience", "lr", "weight_decay", "penalty_weight", "row_normalise")
AROUND_OWN = "gat-self"  # the paper's network before an intervention is put into it


class AttentionTable(NamedTuple):
    """One row per (edge, layer, head): node `dst` receives from node `src`.

    `conjoint` is the weight that the layer sums with; `feature` and `structural` are what it was made from,
    NaN where the network has no such part. In conjoint attention the weights of one target in one layer and
    head sum to 1. Nodes carry the user's names. `pandas.DataFrame(table._asdict())` makes a data frame of it.
    """

    src: npt.NDArray[Any]
    dst: npt.NDArray[Any]
    layer: npt.NDArray[np.int64]
    head: npt.NDArray[np.int64]
    feature: npt.NDArray[np.float32]
    structural: npt.NDArray[np.float32]
    conjoint: npt.NDArray[np.float32]


def attention_table(layers: list[ConjointAttention], names: npt.NDArray[Any]) -> AttentionTable:
    parts: list[list[npt.NDArray[Any]]] = []
    for number, weights in enumerate(layers):
        edges, heads = weights.conjoint.shape
        source, target = weights.edge_index.cpu().numpy()
        nothing = np.full(edges * heads, np.nan, dtype=np.float32)
        structural = weights.structural
        if structural is not None and structural.dim() == 1:  # one intervention: the same for all heads
            structural = structural.unsqueeze(1).expand(edges, heads)
        ends = (names[np.repeat(end, heads)] for end in (source, target))
        shares = (weights.feature, structural, weights.conjoint)
        shown = (nothing if one is None else one.cpu().numpy().ravel() for one in shares)
        parts.append([*ends, np.full(edges * heads, number), np.tile(np.arange(heads), edges), *shown])
    return AttentionTable(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Answers(NamedTuple):
    """What the network gives for some nodes, row by row."""

    probabilities: npt.NDArray[np.float32]  # [nodes, classes]
    embedding: npt.NDArray[np.float32]  # [nodes, hidden]


@dataclass(kw_only=True, eq=False, repr=False)
class GraphEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Stores the parameters; see `CATClassifier` for what they mean."""

    model: str | None = None
    intervention: str | Intervention | None = None
    strategy: str | None = None
    hidden: int | None = None
    heads: int | None = None
    num_layers: int | None = None
    dropout: float | None = None
    epochs: int | None = None
    patience: int | None = None
    lr: float | None = None
    weight_decay: float | None = None
    penalty_weight: float | None = None
    row_normalise: str | None = None
    settings: Mapping[str, Any] | None = None
    train: Mapping[str, Any] | None = None
    class_weight: str | Mapping[Any, float] | None = None
    scoring: str | None = None
    minutes: float | None = None
    trials: int | None = None
    single: bool = False
    validation_fraction: float | None = None
    n_neighbors: int = 10
    metric: str = "euclidean"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def transform(self, X: Any, *, graph: Any = None) -> npt.NDArray[np.float32]:
        """The embedding of each row: the last hidden layer. `graph` as in `predict`."""
        return self._answers(X, graph).embedding

    @property
    def attention_(self) -> AttentionTable:
        """Attention weights on the training graph, computed when asked for. See `AttentionTable`."""
        check_is_fitted(self)
        layers = attention_of(self.network_, self._as_read(self._graph), self._config)
        return attention_table(layers, self._graph.node_ids)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # the network computes in float32
        return tags

    def _read(self, X: Any, graph: Any) -> Graph:
        """X and the graph of `fit`, checked, and copied: later changes to X are the caller's own."""
        index = X.index if hasattr(X, "iloc") else None
        x = validate_data(self, X, accept_sparse="csr", dtype=np.float32, copy=True)
        x = pack_features(x, "auto")
        if graph is None:
            return nearest_graph(x, self.n_neighbors, self.metric, index)
        return read_graph(graph, x, index)

    def _seed(self) -> int:
        drawn = check_random_state(self.random_state)
        if isinstance(self.random_state, int | np.integer):  # the same as of the other ways to train
            return int(self.random_state)
        return int(drawn.randint(2**31 - 1))

    def _given(self, names: tuple[str, ...], more: Mapping[str, Any] | None) -> dict[str, Any]:
        """What was given, singly or in a dict; NumPy scalars, which searches draw, as Python's own."""
        single = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        every = {**(more or {}), **single}
        return {name: one.item() if isinstance(one, np.generic) else one for name, one in every.items()}

    def _training(self) -> dict[str, Any]:
        """Settings of training. Classes are named as in the graph, whatever kind of number they are."""
        given = self._given(OF_TRAINING, self.train)
        if isinstance(self.class_weight, Mapping):
            classes = getattr(self, "classes_", ())
            named = {next((c for c in classes if c == key), key): w for key, w in self.class_weight.items()}
            given["class_weight"] = {str(name): float(weight) for name, weight in named.items()}
        elif self.class_weight is not None:
            given["class_weight"] = self.class_weight
        return given

    def _train(
        self,
        graph: Graph,
        classes: npt.NDArray[Any],
        codes: Codes,
        seed: int,
        validation: Any,
        sample_weight: Any = None,
        progress: OnEpoch | None = None,
    ) -> Answers:
        """Train on the nodes with a code of 0 or more; answer for all of them."""
        weight = None if sample_weight is None else label_weight(sample_weight, codes)
        if validation is not None:
            split = set_aside(codes, validation)
        elif self.validation_fraction is None:
            split = every_label(codes, 0)  # as the other ways to train
        else:
            split = hold_out(codes, self.validation_fraction, seed)
        names = [str(name) for name in classes]
        graph = graph.changed(y=torch.from_numpy(codes), class_names=names, label_weight=weight)
        learned = self._learn(graph, split, seed, progress)
        fitted = learned.best.fitted
        self.network_, self.history_, self.n_iter_ = fitted.model, fitted.history, len(fitted.history)
        self.model_ = None if isinstance(self.intervention, Intervention) else learned.setting.model
        self.choice_ = None if learned.choice is None else replace(learned.choice, fitted={})
        self.portfolio_ = learned.best.portfolio
        unseen = learned.best.judged.get("unseen")
        self.estimate_ = None if unseen is None else all_metrics(codes[unseen[0]], unseen[1])
        self.embedding_ = learned.embedding
        self._n_features_out = self.embedding_.shape[1]
        self._config, self._setting = as_trained(fitted.config, learned.graph), learned.setting
        self._graph = graph.changed()  # without what training derived from it
        self._keys = row_keys(as_array(graph.x))
        self._of_training_nodes = Answers(learned.best.probabilities, self.embedding_)
        return self._of_training_nodes

    def _learn(self, graph: Graph, split: Split, seed: int, progress: OnEpoch | None) -> Trainings:
        settings = self._given(OF_NETWORK, self.settings)
        parts: dict[str, Any] = {"settings": settings, "train": self._training()}
        if settings.get("num_layers") == 1:
            raise InputError("num_layers=1: there is no hidden layer to embed nodes by; give 2 or more")
        if not isinstance(self.intervention, Intervention):
            parts |= {"model": self.model, "intervention": self.intervention, "strategy": self.strategy}
            parts |= {"minutes": self.minutes, "trials": self.trials, "single": self.single}
            parts |= {"progress": progress, "verbose": self.verbose}
            return train_graph(graph, split=split, seed=seed, metric=self.scoring, **parts)
        if not self.intervention.serves_parts:
            raise InputError(
                f"intervention: {type(self.intervention).__name__} holds a score per edge of one list, but "
                "the edges are sorted and mirrored here; write an Intervention with a score(adj, x, n_id)"
            )
        if self.model is not None:
            raise InputError(
                f"intervention and model {self.model}: the model names its own; give one of them"
            )
        setting, started = make_setting(AROUND_OWN, **parts), time.perf_counter()
        options = {**zoo.settings_of(AROUND_OWN), **setting.settings, "strategy": self.strategy or "implicit"}
        hidden = options.pop("hidden")

        def build() -> CAT:
            with own_randomness():
                torch.default_generator.manual_seed(seed)  # as models with a name are drawn
                one = copy.deepcopy(self.intervention)
                return CAT(graph.num_features, hidden, graph.num_classes, intervention=one, **options)

        config, held_out = setting.config(seed), None
        if split.val.numel():
            fitted = fit(build(), graph, split, config, progress=progress)
        else:
            fitted, _, held_out = learn_from_all(build, graph, split, config, watch=watching(progress))
        seconds = time.perf_counter() - started
        return Trainings(graph, setting, (Trained(fitted, graph, split, seconds, held_out=held_out),))

    def _answers(self, X: Any, graph: Any) -> Answers:
        check_is_fitted(self)
        given = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False)
        x = pack_features(given, is_sparse(self._graph.x))
        keys = row_keys(as_array(x))
        if keys == self._keys:
            if graph is None:
                return self._of_training_nodes
            index = X.index if hasattr(X, "iloc") else None
            return self._on_other_graph(read_graph(graph, self._graph.x, index))
        if graph is not None:
            shape = (x.size(0), self._graph.num_nodes + x.size(0))
            if not isinstance(graph, NodeGraph) and getattr(graph, "shape", None) == shape:
                return self._of_new_nodes(joined_by_matrix(self._graph, x, graph))
            return self._on_other_graph(read_graph(graph, x), new=True)
        means = means_over_equals(keys, self._keys)
        answers = Answers(*(means @ of_nodes for of_nodes in self._of_training_nodes))
        new = np.flatnonzero(np.diff(means.indptr) == 0)
        if len(new):
            new_x = rows(x, torch.from_numpy(new))
            joint = joined_by_nearest(self._graph, new_x, self.n_neighbors, self.metric)
            answers.probabilities[new], answers.embedding[new] = self._of_new_nodes(joint)
        return answers

    def _on_other_graph(self, graph: Graph, new: bool = False) -> Answers:
        own = getattr(self.network_, "intervention", None)
        members = own.each if isinstance(own, Several) else [own]
        if new and any(isinstance(one, LowRank | EmbeddingSimilarity) for one in members):
            count, known = graph.num_nodes, self._graph.num_nodes
            raise InputError(
                f"graph: {type(own).__name__} holds a row per training node and none for these {count} new "
                "nodes; leave graph out (they are linked to their nearest training nodes), give a matrix of "
                f"shape ({count}, {known} + {count}) that links them to those, or fit with intervention='fs'"
            )
        read = self._as_read(graph)
        probabilities = predict_proba(self.network_, read, self._config)
        return Answers(probabilities.numpy(), embed(self.network_, read, self._config).numpy())

    @torch.no_grad()
    def _of_new_nodes(self, joint: Graph) -> Answers:
        """Nodes that follow those of training: they receive from these, which do not receive from them.

        Only what they depend on is computed, where the model can do that.
        """
        joint, known = self._as_read(joint), self._graph.num_nodes
        before = adjacency(self._graph.edge_index, known)
        network = with_new_nodes(self.network_, before, joint.adjacency, rows="mean").eval()
        inputs = whole_graph(network, joint, self._config)
        batch = part_of(inputs, torch.arange(known, joint.num_nodes), network, "auto")
        probabilities = batch.targets(network.probabilities(batch.x, batch.graph))
        embedding = batch.targets(network.embed(batch.x, batch.graph))[: len(probabilities)]  # targets first
        return Answers(probabilities.numpy(), embedding.numpy())

    def _as_read(self, graph: Graph) -> Graph:
        """The graph as the model reads it. Embeddings of the training graph fit no other one."""
        model, settings = self._setting.model, self._setting.settings
        if zoo.reads_embedding(model) and graph is not self._graph:
            raise InputError(
                f"graph: {model} reads embeddings of its training graph alone; fit again with all rows"
            )
        return zoo.input_graph(model, graph, **settings)
