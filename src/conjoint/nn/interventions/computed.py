"""Interventions that are computed, not learnt: by the graph and its input features alone, once per graph."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import InputError
from ...graph import decoys, overlap, proximity
from ...graph.adjacency import Adjacency
from ...graph.sparse import is_sparse, to_scipy
from ...recording import readable
from .. import ops
from .base import Intervention, Temperature

T = TypeVar("T")
STEP = 1 << 18  # sparse rows that are compared at a time


@dataclass(eq=False)
class _Seen:
    """A whole graph, its input features, and its scores as soon as they are asked for."""

    adj: Adjacency
    x: Tensor | None
    version: int  # of x, which may be changed in place
    scores: Tensor | None = None  # [entries]

    def has_edges(self, adj: Adjacency) -> bool:
        """Compared by value: each layer sorts its edges for itself."""
        if self.adj is not adj and not readable(adj.col):
            return False
        return self.adj is adj or (_equal(self.adj.rowptr, adj.rowptr) and _equal(self.adj.col, adj.col))

    def has_features(self, x: Tensor | None) -> bool:
        """Compared by value too: loading and normalising make new tensors."""
        if self.x is None or x is None:
            return self.x is x
        return _version(self.x) == self.version and _equal(self.x, x)


class Computed(Intervention):
    """C_ij = temperature * similarity(i, j). Subclasses write `similarity`, which sees the whole graph.

    A graph is scored once, by the features that come with it first, and the scores then belong to the graph:
    a later layer that has the same object gets them too, although it reads hidden units, and so does a part
    of the graph, which finds the pairs of its `n_id` among those of the whole. `observe(adj, x)` scores it
    anew by other features. Nothing of this is saved with the weights: the graph gives the same scores again.

    Args:
        temperature: how sharply attention follows the similarity.
        learn_temperature: let training move it (it stays positive).
    """

    reads_features = False
    whole_first = True
    # Attributes that decide the similarity, with the graph and x. Where a class names them, all its objects
    # share the scores of one `Adjacency` and one tensor of features.
    decided_by: tuple[str, ...] | None = None

    def __init__(self, temperature: float = 8.0, learn_temperature: bool = False) -> None:
        super().__init__()
        self.temperature = Temperature(temperature, learn_temperature)
        self._seen: _Seen | None = None

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        """One number per entry of the whole graph. -> [entries]"""
        raise NotImplementedError

    def observe(self, adj: Adjacency, x: Tensor | None = None) -> None:
        """Score a whole graph by these input features, unless that is done."""
        x = x if self.reads_features else None
        if self.reads_features and x is None:
            raise InputError(f"x: {type(self).__name__} needs the input features; pass x")
        if self._seen is not None and self._seen.has_edges(adj) and self._seen.has_features(x):
            return
        if adj.num_src != adj.num_dst:
            raise self.of_one_kind(adj)
        if x is not None and (x.grad_fn is not None or isinstance(x, nn.Parameter)):
            raise InputError(
                f"x: {type(self).__name__} scores input features, but these are hidden units, which change "
                "with every step; give this layer the intervention object of the first layer, or call its "
                "observe(x, edge_index) with the input features"
            )
        x = x.detach() if x is not None and x.requires_grad else x
        self._seen = _Seen(adj, x, _version(x))
        if self.whole_first:
            self._whole(self._seen)

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        if n_id is None and (self._seen is None or not self._seen.has_edges(adj)):
            if not readable(adj.col, x):
                raise InputError(
                    f"intervention: {type(self).__name__} is computed from numbers that torch does not show "
                    "while it records or transforms a call; call observe(x, adj) of the network before, and "
                    "pass the same adj (conjoint.adjacency(edge_index, num_nodes)) in place of the edge_index"
                )
            self.observe(adj, x)
        seen = self._seen
        if seen is None:
            raise InputError(
                f"intervention: {type(self).__name__} must see the whole graph before it scores a part of "
                "it; call observe(x, edge_index) of the network first"
            )
        kept = whole = self._whole(seen)
        if n_id is not None:  # `seen` in the entry keeps its id its own
            kept = adj.once((_Seen, id(seen)), lambda: (seen, whole[_places(seen.adj, adj, n_id)]))[1]
        return self.temperature(kept if x is None else kept.to(device=x.device, dtype=x.dtype))

    def _whole(self, seen: _Seen) -> Tensor:
        if seen.scores is None:
            seen.scores = self.shared("scores", seen.adj, seen.x, self.similarity)
        return seen.scores

    @torch.no_grad()
    def shared(
        self, what: str, adj: Adjacency, x: Tensor | None, make: Callable[[Adjacency, Tensor | None], T]
    ) -> T:
        """`make(adj, x)`, once for all objects of this class that are `decided_by` the same."""
        names = vars(type(self)).get("decided_by")  # a subclass without it may be decided by more
        if names is None or (x is not None and x.is_inference()):
            return make(adj, x)
        key = (type(self), what, *(getattr(self, name) for name in names), id(x), _version(x))
        return adj.once(key, lambda: (x, make(adj, x)))[1]  # x in the entry keeps its id its own

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_seen": None}  # copies carry no graph along


class SpectralSimilarity(Computed):
    """Cosine of the `rank` leading eigenvectors of D^-1/2 (A + I) D^-1/2: high inside a well-knit part."""

    decided_by = ("rank", "seed")

    def __init__(
        self, rank: int = 64, temperature: float = 8.0, learn_temperature: bool = False, seed: int = 0
    ) -> None:
        super().__init__(temperature, learn_temperature)
        if rank < 2:
            raise InputError(f"rank: {rank}; choose 2 eigenvectors or more, for example 64")
        self.rank, self.seed = rank, seed

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        return _dots(adj, proximity.spectral_vectors(adj.edge_index, adj.num_src, self.rank, self.seed))


class SmoothedSimilarity(Computed):
    """Cosine of the input features after smoothing over `hops` hops, see `proximity.smoothed_features`.

    High where not only two nodes but also their surroundings look alike; one wrong edge hardly moves it.

    Args:
        features: compare these instead of what comes in.
    """

    reads_features = True
    decided_by: tuple[str, ...] | None = ("rank", "hops", "seed")

    def __init__(
        self,
        rank: int = 64,
        hops: int = 2,
        temperature: float = 8.0,
        learn_temperature: bool = False,
        seed: int = 0,
        features: Tensor | None = None,
    ) -> None:
        super().__init__(temperature, learn_temperature)
        self.features = features
        if rank < 1 or hops < 0:
            raise InputError(f"rank={rank}, hops={hops}: choose a rank of 1 or more and hops of 0 or more")
        self.rank, self.hops, self.seed = rank, hops, seed

    def observe(self, adj: Adjacency, x: Tensor | None = None) -> None:
        super().observe(adj, x if self.features is None else self.features)

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        return self._cosine(adj, self._vectors(x))

    def _vectors(self, x: Tensor | None) -> proximity.Floats:
        assert x is not None
        return proximity.reduced_features(x, rank=self.rank, seed=self.seed, centre=True)

    def _cosine(self, adj: Adjacency, vectors: proximity.Floats) -> Tensor:
        smoothed = proximity.smooth(vectors, adj.edge_index, adj.num_src, self.hops)
        return _dots(adj, torch.from_numpy(smoothed))


class TrustedEdges(SmoothedSimilarity):
    """The cosine of `SmoothedSimilarity`, as sharp as the graph needs: see `conjoint.graph.decoys`.

    C_ij = T cosine(i, j), with the smallest T at which edges that look like random pairs have at most the
    share `leak` of all weight exp(C). On a clean graph T is about 0, and every edge counts alike; the more
    edges look random, the sharper it becomes.

    Args:
        leak: the share that is let through.
        temperature, learn_temperature: a factor of T.
    """

    decided_by = ("rank", "hops", "seed", "leak")

    def __init__(
        self,
        rank: int = 64,
        hops: int = 2,
        leak: float = 0.1,
        temperature: float = 1.0,
        learn_temperature: bool = False,
        seed: int = 0,
        features: Tensor | None = None,
    ) -> None:
        super().__init__(rank, hops, temperature, learn_temperature, seed, features)
        if not 0.0 < leak < 1.0:
            raise InputError(f"leak: {leak}; choose a share between 0 and 1, for example 0.1")
        self.leak = leak

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        sharpness, cosine = self.shared("fit", adj, x, self._fit)
        return sharpness * cosine

    def sharpness(self, adj: Adjacency, x: Tensor) -> float:
        """T of this graph. 0 where all edges count alike."""
        return self.shared("fit", adj, x, self._fit)[0]

    def _fit(self, adj: Adjacency, x: Tensor | None) -> tuple[float, Tensor]:
        """T, and the cosine of every entry."""
        vectors = self._vectors(x)
        seen = decoys.compare(vectors, adj.edge_index, adj.num_src, self.hops, self.seed)
        return decoys.sharpness(*seen, self.leak), self._cosine(adj, vectors)


class DiffusionSimilarity(Computed):
    """Cosine of two nodes' personalised PageRank (Page et al. 1999): high where their walks end alike."""

    decided_by = ("rank", "restart", "seed")

    def __init__(
        self,
        rank: int = 128,
        restart: float = 0.15,
        temperature: float = 8.0,
        learn_temperature: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(temperature, learn_temperature)
        self.rank, self.restart, self.seed = rank, restart, seed

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        options: dict[str, Any] = {"restart": self.restart, "rank": self.rank, "seed": self.seed}
        return _dots(adj, proximity.diffusion_vectors(adj.edge_index, adj.num_src, **options))


class JaccardSimilarity(Computed):
    """Shared over all neighbours (Jaccard 1912; as a sign of wrong edges: Wu et al., IJCAI 2019)."""

    decided_by = ("cap",)
    compare = staticmethod(overlap.jaccard)

    def __init__(self, temperature: float = 8.0, learn_temperature: bool = True, cap: int = 128) -> None:
        super().__init__(temperature, learn_temperature)
        self.cap = cap

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        pairs = torch.stack([adj.row, adj.col])
        return self.compare(adj.edge_index, adj.num_src, pairs, cap=self.cap).to(adj.col.device)


class AdamicAdarSimilarity(JaccardSimilarity):
    """Shared neighbours, rare ones first (Adamic and Adar 2003), see `overlap.adamic_adar`."""

    decided_by = ("cap",)
    compare = staticmethod(overlap.adamic_adar)


class RandomSimilarity(Computed):
    """Numbers between -1 and 1 that mean nothing: a control. Attention to it should be unlearnt."""

    decided_by = ("seed",)

    def __init__(self, temperature: float = 8.0, learn_temperature: bool = False, seed: int = 0) -> None:
        super().__init__(temperature, learn_temperature)
        self.seed = seed

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        return (2.0 * torch.rand(adj.num_entries, generator=generator) - 1.0).to(adj.col.device)


class FeatureSimilarity(Computed):
    """C_ij = cosine of the input features of i and j; nothing to learn. Features may be sparse CSR.

    (The paper's supplementary FS.) A part of the graph is scored by the rows that come with it.
    """

    reads_features = True
    whole_first = False
    decided_by = ()

    def __init__(self) -> None:
        super().__init__(temperature=1.0)

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        assert x is not None
        return edge_cosine(adj, x)

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        if x is not None and x.grad_fn is None:
            if x.requires_grad:
                return edge_cosine(adj, x)
            if n_id is not None:
                return self.shared("scores", adj, x, self.similarity)
        return super().score(adj, x, n_id)

    def score_between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        """Features of two kinds can be compared where they mean the same, as words of one vocabulary do."""
        if x_dst is None or x_src.size(1) != x_dst.size(1):
            found = "none" if x_dst is None else str(x_dst.size(1))
            raise InputError(
                f"intervention: FeatureSimilarity compares features column by column, but sources have "
                f"{x_src.size(1)} and targets {found}; give this relation one number per edge instead"
            )
        return edge_cosine(adj, x_src, x_dst)


def edge_cosine(adj: Adjacency, x: Tensor, x_dst: Tensor | None = None) -> Tensor:
    """Cosine of the features of i (of `x_dst`, if given) and j; 0 where a row is all zeros. -> [entries]"""
    x_dst = x if x_dst is None else x_dst
    if is_sparse(x) or is_sparse(x_dst):
        return _sparse_cosine(adj, x, x_dst)
    unit = F.normalize(x, dim=-1)
    unit_dst = unit if x_dst is x else F.normalize(x_dst, dim=-1)
    step = max(1, (1 << 22) // max(1, x.size(1)))  # bounds the gathered floats
    spans = range(0, adj.num_entries, step)
    parts = [(unit_dst[adj.row[k : k + step]] * unit[adj.col[k : k + step]]).sum(-1) for k in spans]
    return torch.cat(parts) if parts else x.new_zeros(0)


def _sparse_cosine(adj: Adjacency, x: Tensor, x_dst: Tensor) -> Tensor:
    source, source_norm = _rows_and_norms(x)
    target, target_norm = (source, source_norm) if x_dst is x else _rows_and_norms(x_dst)
    row, col, score = adj.row.cpu().numpy(), adj.col.cpu().numpy(), np.zeros(adj.num_entries)
    for k in range(0, adj.num_entries, STEP):
        i, j = row[k : k + STEP], col[k : k + STEP]
        score[k : k + STEP] = (target[i] * source[j]).sum(axis=1) / (target_norm[i] * source_norm[j])
    return torch.from_numpy(score).to(dtype=x.dtype, device=x.device)


def _rows_and_norms(x: Tensor) -> tuple[sp.csr_array, np.ndarray]:
    matrix = sp.csr_array(to_scipy(x), dtype=np.float64)
    norm = np.sqrt((matrix * matrix).sum(axis=1))
    norm[norm == 0.0] = 1.0
    return matrix, norm


class EmbeddingSimilarity(Intervention):
    """C_ij = temperature * cosine(z_i, z_j) of node vectors z that are computed beforehand and stay fixed.

    Args:
        vectors: one row per node of the whole graph. [num_nodes, dimensions]
        temperature: how sharply attention follows the cosine; 0 would ignore it.
        learn_temperature: let training move it (it stays positive).
    """

    vectors: Tensor

    def __init__(self, vectors: Tensor, temperature: float = 8.0, learn_temperature: bool = False) -> None:
        super().__init__()
        if vectors.dim() != 2 or not bool(torch.isfinite(vectors).all()):
            raise InputError(
                f"vectors: expected finite numbers of shape [nodes, dimensions], got {tuple(vectors.shape)}"
            )
        self.register_buffer("vectors", F.normalize(vectors.detach(), dim=1))
        self.temperature = Temperature(temperature, learn_temperature)

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        """Vectors never change, so a graph's cosines are computed when it first comes in."""
        if n_id is None and adj.num_src != self.vectors.size(0):
            raise InputError(
                f"intervention: its vectors are for {self.vectors.size(0)} nodes, but this graph has "
                f"{adj.num_src}; make them for this graph, or pass n_id for a part of it"
            )
        key = (EmbeddingSimilarity, id(self.vectors), self.vectors._version)
        return self.temperature(adj.once(key, lambda: (self.vectors, self._cosine(adj, n_id)))[1])

    @torch.no_grad()
    def _cosine(self, adj: Adjacency, n_id: Tensor | None) -> Tensor:
        rows = self.vectors if n_id is None else self.vectors[n_id[: adj.num_src]]
        return ops.edge_dot(adj, rows[: adj.num_dst].contiguous(), rows)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Runs of before kept the temperature under another name, learnt or not."""
        log = state_dict.pop(prefix + "log_temperature", None)
        if log is not None and self.temperature.log is not None:
            state_dict[prefix + "temperature.log"] = log
        elif log is not None:
            self.temperature.start = float(log.exp())
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return f"num_nodes={self.vectors.size(0)}, dimensions={self.vectors.size(1)}"


def _dots(adj: Adjacency, unit: Tensor) -> Tensor:
    unit = unit.to(adj.col.device)
    return ops.edge_dot(adj, unit, unit)


def _places(whole: Adjacency, part: Adjacency, n_id: Tensor) -> Tensor:
    """Of a part's entries among those of the whole, which are sorted by (target, source). [entries]"""
    known = whole.row * whole.num_src + whole.col
    wanted = n_id[part.row] * whole.num_src + n_id[part.col]
    place = torch.searchsorted(known, wanted).clamp(max=max(known.numel() - 1, 0))
    if wanted.numel() and (known.numel() == 0 or not bool((known[place] == wanted).all())):
        raise InputError(
            "n_id: a part holds an edge that is not in the whole graph; call observe(x, edge_index) of "
            "the network with the graph that the part was cut from"
        )
    return place


def _version(x: Tensor | None) -> int:
    return 0 if x is None or x.is_inference() else x._version


def _equal(one: Tensor, other: Tensor) -> bool:
    if one is other or one.shape != other.shape or one.layout != other.layout or one.device != other.device:
        return one is other
    if is_sparse(one):
        pairs = ((one.col_indices(), other.col_indices()), (one.values(), other.values()))
        return all(torch.equal(*pair) for pair in pairs)
    return torch.equal(one, other)
