"""The network behind an estimator: built from its parameters, trained, and asked about old and new nodes."""

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from ..data.splits import Split
from ..data.tidy import SPARSE_BELOW, pack_features
from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.field import Field, receptive_field
from ..graph.sparse import rows
from ..nn.cat import CAT
from ..nn.interventions import (
    EmbeddingSimilarity,
    FeatureSimilarity,
    Intervention,
    LowRank,
    MatrixFactorization,
    SelfExpression,
)
from ..training import Fitted, TrainConfig, build_seeded, fit
from ..training.inputs import prepare
from .graphs import Edges, Graph, Links


class Answers(NamedTuple):
    """What the network says of some nodes, row by row."""

    probabilities: npt.NDArray[np.float64]  # [nodes, classes]
    embedding: npt.NDArray[np.float32]  # [nodes, hidden]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Features in the form they are kept in: SciPy CSR where most are zero, else a dense array."""

    x: Any
    is_sparse: bool

    @classmethod
    def of(cls, x: Any) -> "Nodes":
        stored = x.data if sp.issparse(x) else x
        is_sparse = np.count_nonzero(stored) < SPARSE_BELOW * x.shape[0] * x.shape[1]
        return cls(_as(x, is_sparse), bool(is_sparse))

    @property
    def any_negative(self) -> bool:
        return bool(((self.x.data if self.is_sparse else self.x) < 0).any())

    def followed_by(self, x: Any) -> "Nodes":
        more = _as(x, self.is_sparse)
        stack = sp.vstack([self.x, more], format="csr") if self.is_sparse else np.concatenate([self.x, more])
        return Nodes(stack, self.is_sparse)

    def replaced_by(self, x: Any) -> "Nodes":
        """Other nodes in the same form."""
        return Nodes(_as(x, self.is_sparse), self.is_sparse)


def _as(x: Any, is_sparse: bool) -> Any:
    if is_sparse:
        return sp.csr_array(x)
    return x.toarray() if sp.issparse(x) else x


def make_network(
    features: int,
    classes: int,
    num_nodes: int,
    seed: int,
    intervention: "str | Intervention | None",
    **settings: Any,
) -> CAT:
    """The network of the paper around the intervention called so, or around a copy of the one given."""

    def build() -> CAT:
        chosen = _intervention(intervention, num_nodes, classes)
        return CAT(features, out_channels=classes, intervention=chosen, **settings)

    return build_seeded(build, seed)


def _intervention(given: "str | Intervention | None", num_nodes: int, classes: int) -> Intervention | None:
    if isinstance(given, Intervention):
        if not given.serves_parts:
            raise InputError(
                f"intervention: {type(given).__name__} holds a score per edge of one list, but the estimator "
                "sorts and mirrors the edges; write an Intervention with a score(adj, x, n_id) method"
            )
        return copy.deepcopy(given)
    if given == "mf":
        return MatrixFactorization(num_nodes, classes)
    if given == "sc":
        return SelfExpression(num_nodes, classes)
    if given == "fs":
        return FeatureSimilarity()
    if given is None:
        return None
    raise InputError(f"intervention={given!r}: choose 'mf', 'sc', 'fs', None, or pass an Intervention")


def train(
    network: CAT, nodes: Nodes, graph: Graph, codes: npt.NDArray[np.int64], split: Split, config: TrainConfig
) -> Fitted:
    return fit(network, as_data(nodes, graph.edge_index, graph.edge_weight, codes), split, config)


def as_data(
    nodes: Nodes,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    codes: npt.NDArray[np.int64] | None = None,
) -> Data:
    count = nodes.x.shape[0]
    y = np.full(count, -1, dtype=np.int64) if codes is None else codes
    data = Data(x=pack_features(nodes.x, nodes.is_sparse), edge_index=edge_index, y=torch.from_numpy(y))
    data.num_nodes = count
    if edge_weight is not None:
        data.edge_weight = edge_weight
    return data


def ask(network: CAT, nodes: Nodes, graph: Graph, config: TrainConfig) -> Answers:
    """Every node of a graph."""
    inputs = prepare(network, as_data(nodes, graph.edge_index, graph.edge_weight), config)
    return _answers(network, inputs.x, inputs.graph, nodes.x.shape[0])


def ask_new(
    network: CAT, nodes: Nodes, graph: Graph, new_x: Any, links: Links, config: TrainConfig
) -> Answers:
    """Nodes that join a graph: they listen to its nodes, which do not listen to them.

    So what the network says of a training node never changes, and a new node's answer depends on its own
    links alone.
    """
    known, new = nodes.x.shape[0], new_x.shape[0]
    edges, weight = _joint(graph, links, known)
    network = with_new_rows(network, links.known, new)
    inputs = prepare(network, as_data(nodes.followed_by(new_x), edges, weight), config)
    assert network.reach is not None
    field = receptive_field(inputs.graph, torch.arange(known, known + new), network.reach)
    return _answers(network, rows(inputs.x, field.n_id), field, new)


def _joint(graph: Graph, links: Links, known: int) -> tuple[Tensor, Tensor | None]:
    """The training graph, the links into the new nodes and those among them. Row 0 speaks, row 1 listens."""
    source, target, strength = links.known
    crossing = torch.from_numpy(np.stack([source, target + known]))
    edges = [graph.edge_index, crossing, links.among.edge_index + known]
    weights = [
        graph.edge_weight,
        None if strength is None else torch.from_numpy(strength.astype(np.float32)),
        links.among.edge_weight,
    ]
    joint = torch.cat(edges, dim=1)
    if all(weight is None for weight in weights):
        return joint, None
    pairs = zip(edges, weights, strict=True)
    return joint, torch.cat([torch.ones(e.size(1)) if w is None else w for e, w in pairs])


def holds_a_row_per_node(network: CAT) -> bool:
    return isinstance(network.intervention, LowRank | EmbeddingSimilarity)


@torch.no_grad()
def with_new_rows(network: CAT, links: Edges, num_new: int) -> CAT:
    """The network with rows of its intervention for the new nodes too: the mean over those they listen to.

    A node without links to training nodes gets zeros, which prefer nobody.
    """
    network = copy.deepcopy(network)
    held = network.intervention
    if isinstance(held, LowRank):
        new = _mean(held.factors, links, num_new)
        held.factors = nn.Parameter(torch.cat([held.factors, new]))
    elif isinstance(held, EmbeddingSimilarity):
        new = F.normalize(_mean(held.vectors, links, num_new), dim=1)
        held.vectors = torch.cat([held.vectors, new])
    return network


def _mean(rows_of_known: Tensor, links: Edges, num_new: int) -> Tensor:
    ones = np.ones(len(links.source))
    strength = torch.from_numpy(ones if links.weight is None else links.weight).to(rows_of_known.dtype)
    target = torch.from_numpy(links.target)
    parts = strength.unsqueeze(1) * rows_of_known[links.source]
    total = rows_of_known.new_zeros(num_new, rows_of_known.size(1)).index_add(0, target, parts)
    mass = strength.new_zeros(num_new).index_add(0, target, strength)
    return total / torch.where(mass > 0, mass, 1.0).unsqueeze(1)


@torch.no_grad()
def _answers(network: CAT, x: Tensor, graph: Adjacency | Field, targets: int) -> Answers:
    network.eval()
    # In double precision the rows of probabilities sum to 1 as closely as scikit-learn expects.
    probabilities = network(x, graph).double().softmax(dim=-1)
    embedding = network.embed(x, graph)[:targets]
    return Answers(probabilities.numpy(), embedding.numpy())
