"""What training, evaluation and the estimators ask of a model: a few methods."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from ..graph.adjacency import Adjacency, adjacency
from ..recording import readable
from .interventions import Intervention

V = TypeVar("V")
Perturb = Callable[[Tensor, Any], tuple[Tensor, Any]]  # features and graph -> the same, a little different


class Recent(Generic[V]):
    """The last results, each found again by the tensors that it was made of: a layer sorts its edges once.

    Tensors are compared by identity and version, never by values, so that looking costs nothing and a tensor
    that was changed in place is noticed. A copy is empty: that of a layer carries no graph along.
    """

    def __init__(self, size: int = 2) -> None:  # two: training and validation take turns
        self.size = size
        self._entries: list[tuple[tuple[Tensor | None, ...], object, V]] = []

    def get(self, tensors: tuple[Tensor | None, ...], rest: Hashable, make: Callable[[], V]) -> V:
        """What `make()` gave for these, or gives now."""
        if not readable(*tensors):
            return make()
        versioned = all(one is None or not one.is_inference() for one in tensors)
        key = (rest, [None if one is None else one._version for one in tensors] if versioned else None)
        same = (
            entry
            for entry in self._entries
            if versioned and entry[1] == key and all(a is b for a, b in zip(entry[0], tensors, strict=True))
        )
        now = next(same, None) or (tensors, key, make())
        self._entries = [*(entry for entry in self._entries if entry is not now), now][-self.size :]
        return now[2]

    @property
    def last(self) -> V | None:
        return self._entries[-1][2] if self._entries else None

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return type(self), (self.size,)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block, no dropout; then the mode that there was."""
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)


class NodeModel(nn.Module):
    """A network that gives every node of one graph a row of class logits.

    `graph` is whatever `prepare` returned: made once, handed to every later call.
    `reach` is the number of hops from which a node's logits draw; a model that sets it also accepts a
    `Field` (see `conjoint.graph.field`) in place of the whole graph. None: only the whole graph will do.
    Models of equal `form` share one prepared graph, which training makes once; None: each makes its own.
    """

    reach: int | None = None
    form: Hashable = None

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Any:
        """The graph in the form that this model works on."""
        return edge_index

    def observe(self, x: Tensor, graph: Any) -> None:
        """Look at the whole graph once, before parts of it come in."""

    def forward(self, x: Tensor, graph: Any) -> Tensor:
        """Logits. [nodes, features] -> [targets, classes]"""
        raise NotImplementedError

    def logits_of(self, x: Tensor, graph: Any, nodes: slice) -> Tensor:
        """The logits of some nodes, for models that save work where few are asked for."""
        return self(x, graph)[nodes]

    def embed(self, x: Tensor, graph: Any) -> Tensor:
        """The last hidden representation of each node. -> [targets, hidden]"""
        raise NotImplementedError

    def penalty(self, graph: Any) -> Tensor:
        """The intervention's loss over the whole graph, zero where there is none."""
        return next(self.parameters()).new_zeros(())

    def predict_often(
        self, x: Tensor, graph: Any, whole: Any = None, passes: int = 1, perturb: Perturb | None = None
    ) -> tuple[Tensor, Tensor]:
        """Several passes, each with its own dropout and, if given, its own perturbation of x and graph.

        -> logits [passes, targets, classes], and the penalty, which all passes share. `whole` is the whole
        graph where `graph` is only a field of it: the penalty always covers all of it.
        """
        inputs = [(x, graph) if perturb is None else perturb(x, graph) for _ in range(passes)]
        logits = torch.stack([self(*one) for one in inputs])
        return logits, self.penalty(graph if whole is None else whole)

    def structural_parameters(self) -> list[nn.Parameter]:
        """Parameters of the interventions (the factors V), which get a weight decay of their own."""
        return []

    def intervention_weights(self) -> list[dict[str, Tensor]]:
        """Layer by layer, how much each head attends to what, [heads] by name; empty without a choice."""
        return []

    @torch.no_grad()
    def probabilities(self, x: Tensor, graph: Any, nodes: slice = slice(None)) -> Tensor:
        """Class probabilities without dropout. -> [targets, classes]"""
        with evaluating(self):
            return self.logits_of(x, graph, nodes).softmax(dim=-1)


class ScoredModel(NodeModel):
    """A model around an intervention, if any, on a graph with one self-loop per node, sorted by target."""

    form = Adjacency

    def __init__(self, intervention: Intervention | None) -> None:
        super().__init__()
        self.intervention = intervention
        self._graphs: Recent[Adjacency] = Recent()

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Adjacency:
        """The last ones are kept."""

        def make() -> Adjacency:
            made = adjacency(edge_index, num_nodes)
            return made if edge_weight is None else made.with_weights(edge_weight)

        return self._graphs.get((edge_index, edge_weight), num_nodes, make)

    def observe(self, x: Tensor, graph: Tensor | Adjacency) -> None:
        """Let the intervention score this whole graph by these input features."""
        if self.intervention is not None:
            whole = graph if isinstance(graph, Adjacency) else self.prepare(graph, x.size(0))
            self.intervention.observe(whole, x)

    def penalty(self, graph: Any, score: Tensor | None = None) -> Tensor:
        if self.intervention is None:
            return super().penalty(graph)
        return self.intervention.penalty(graph, None, score)

    def structural_parameters(self) -> list[nn.Parameter]:
        return [] if self.intervention is None else list(self.intervention.parameters())
