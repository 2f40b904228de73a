"""What the classifier and the clusterer share: parameters, training on one graph, answers about any rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..errors import InputError
from ..nn.interventions import Intervention
from ..training import TrainConfig
from ..training.inputs import prepare
from .attention import AttentionTable, attention_table
from .graphs import Graph, Links, NodeGraph, nearest_graph, nearest_links, read_graph, read_links
from .known import KnownRows, row_keys
from .network import Answers, Nodes, as_data, ask, ask_new, holds_a_row_per_node, make_network, train
from .validation import hold_out

Codes = npt.NDArray[np.int64]


class GraphEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Stores the parameters; see `CATClassifier` for what they mean."""

    def __init__(
        self,
        *,
        intervention: str | Intervention | None = "mf",
        strategy: str = "implicit",
        hidden: int = 8,
        heads: int = 8,
        num_layers: int = 2,
        dropout: float = 0.6,
        epochs: int = 200,
        patience: int = 50,
        lr: float = 0.01,
        weight_decay: float = 5e-4,
        penalty_weight: float = 0.01,
        validation_fraction: float = 0.2,
        row_normalise: str = "auto",
        n_neighbors: int = 10,
        metric: str = "euclidean",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.intervention = intervention
        self.strategy = strategy
        self.hidden = hidden
        self.heads = heads
        self.num_layers = num_layers
        self.dropout = dropout
        self.epochs = epochs
        self.patience = patience
        self.lr = lr
        self.weight_decay = weight_decay
        self.penalty_weight = penalty_weight
        self.validation_fraction = validation_fraction
        self.row_normalise = row_normalise
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.random_state = random_state

    def transform(self, X: Any, *, graph: Any = None) -> npt.NDArray[np.float32]:
        """The embedding of each row: the last hidden layer. `graph` as in `predict`."""
        return self._answers(X, graph).embedding

    @property
    def attention_(self) -> AttentionTable:
        """Attention weights on the training graph, computed when asked for. See `AttentionTable`."""
        check_is_fitted(self)
        graph = self._graph
        data = as_data(self._nodes, graph.edge_index, graph.edge_weight)
        inputs = prepare(self.network_, data, self._config)
        return attention_table(self.network_.attention(inputs.x, inputs.graph), graph.names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # the network computes in float32
        return tags

    def _read(self, X: Any, graph: Any) -> tuple[Nodes, Graph]:
        """X and the graph of `fit`, checked, and copied: later changes to X are the caller's own."""
        index = X.index if hasattr(X, "iloc") else None
        nodes = Nodes.of(validate_data(self, X, accept_sparse="csr", dtype=np.float32, copy=True))
        if graph is None:
            return nodes, nearest_graph(nodes.x, self.n_neighbors, self.metric, index)
        return nodes, read_graph(graph, nodes.x.shape[0], index)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _train(self, nodes: Nodes, graph: Graph, codes: Codes, seed: int) -> Answers:
        """Train on the nodes with a code of 0 or more; answer for all of them."""
        self._config = self._make_config(nodes, seed)
        split = hold_out(codes, _number("validation_fraction", self.validation_fraction), seed)
        self.network_ = make_network(
            nodes.x.shape[1],
            int(codes.max()) + 1,
            nodes.x.shape[0],
            seed,
            self.intervention,
            strategy=self.strategy,
            hidden_channels=_whole("hidden", self.hidden),
            heads=_whole("heads", self.heads),
            num_layers=_whole("num_layers", self.num_layers, least=2),  # the last but one embeds
            dropout=_number("dropout", self.dropout),
        )
        fitted = train(self.network_, nodes, graph, codes, split, self._config)
        self.history_ = fitted.history
        self.n_iter_ = len(fitted.history)
        self._nodes, self._graph = nodes, graph
        self._known = KnownRows(nodes.x)
        answers = ask(self.network_, nodes, graph, self._config)
        self._of_training_nodes = answers
        self.embedding_ = answers.embedding
        self._n_features_out = answers.embedding.shape[1]
        return answers

    def _make_config(self, nodes: Nodes, seed: int) -> TrainConfig:
        rows = self.row_normalise
        if rows == "auto":  # decided once, so that later rows are treated as those of training were
            rows = "always" if nodes.is_sparse and not nodes.any_negative else "never"
        return TrainConfig(
            epochs=_plain(self.epochs),
            patience=_plain(self.patience),
            lr=_plain(self.lr),
            weight_decay=_plain(self.weight_decay),
            penalty_weight=_plain(self.penalty_weight),
            row_normalise=rows,
            seed=seed,
        )

    def _answers(self, X: Any, graph: Any) -> Answers:
        check_is_fitted(self)
        x = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False)
        x = self._nodes.replaced_by(x).x
        keys = row_keys(x)
        if self._known.is_all(keys):
            return self._of_same_nodes(X, graph)
        if graph is not None:
            return self._on_given_graph(x, graph)
        probabilities, known = self._known.answer(keys, self._of_training_nodes.probabilities)
        embedding, _ = self._known.answer(keys, self._of_training_nodes.embedding)
        if not known.all():
            new_x = x[~known]
            found = self._ask_new(new_x, nearest_links(self._nodes.x, new_x, self.n_neighbors, self.metric))
            probabilities[~known], embedding[~known] = found
        return Answers(probabilities, embedding)

    def _of_same_nodes(self, X: Any, graph: Any) -> Answers:
        if graph is None:
            return self._of_training_nodes
        index = X.index if hasattr(X, "iloc") else None
        other = read_graph(graph, self._nodes.x.shape[0], index)
        return ask(self.network_, self._nodes, other, self._config)

    def _on_given_graph(self, x: Any, graph: Any) -> Answers:
        new, known = x.shape[0], self._nodes.x.shape[0]
        if not isinstance(graph, NodeGraph) and getattr(graph, "shape", None) == (new, known + new):
            return self._ask_new(x, read_links(graph, new, known))
        among = read_graph(graph, new)
        if holds_a_row_per_node(self.network_):
            raise InputError(
                f"graph: intervention={self.intervention!r} holds a row per training node and none for "
                f"these {new} new nodes; leave graph out (they are linked to their nearest training nodes), "
                f"give a matrix of shape ({new}, {known} + {new}) that links them to training nodes, or fit "
                "with intervention='fs'"
            )
        return ask(self.network_, Nodes(x, self._nodes.is_sparse), among, self._config)

    def _ask_new(self, new_x: Any, links: Links) -> Answers:
        return ask_new(self.network_, self._nodes, self._graph, new_x, links, self._config)


def _plain(value: Any) -> Any:
    """Searches over parameters draw NumPy scalars; the training settings want Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _whole(name: str, value: Any, least: int = 1) -> int:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}={value!r}: give a whole number, {least} or more")
    return value


def _number(name: str, value: Any) -> float:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name}={value!r}: give a number")
    return value
