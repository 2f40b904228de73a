"""Interventions that the graph decides: scores computed when the whole graph is seen, and then fixed."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ...errors import InputError
from ...graph import decoys
from ...graph.adjacency import Adjacency
from ...graph.decoys import Numbers
from ...graph.proximity import diffusion_vectors, spectral_vectors
from ...graph.smoothing import reduced_features, smooth, smoothed_features
from .. import ops
from .base import Intervention
from .temperature import Temperature


@dataclass(frozen=True, eq=False)
class _Seen:
    """The whole graph and the features that the scores are of, and the scores in entry order."""

    adj: Adjacency
    x: Tensor | None
    version: int  # of x, which may be changed in place
    scores: Tensor

    def of(self, adj: Adjacency, x: Tensor | None) -> bool:
        """Loading and normalising make new tensors, so equal graphs and features count as the same."""
        if self.x is not None and (x is None or self.x._version != self.version or not _equal(self.x, x)):
            return False
        return self.adj is adj or (_equal(self.adj.rowptr, adj.rowptr) and _equal(self.adj.col, adj.col))


class Computed(Intervention):
    """C_ij = temperature * similarity(i, j). Subclasses write `similarity`, which sees the whole graph.

    The whole graph comes in with `observe` (training does it), or with the first score asked of it. Parts of
    it then find their scores among those of the whole by the ids of an entry's two ends. Nothing of this is
    saved with the weights: the graph and the settings give the same scores again.

    Args:
        temperature: how sharply attention follows the similarity.
        learn_temperature: let training move it (it stays positive).
    """

    reads_features = False

    def __init__(self, temperature: float = 8.0, learn_temperature: bool = False) -> None:
        super().__init__()
        self.temperature = Temperature(temperature, learn_temperature)
        self._seen: _Seen | None = None
        self._parts: WeakKeyDictionary[Adjacency, Tensor] = WeakKeyDictionary()

    def reset_parameters(self) -> None:
        self.temperature.reset_parameters()

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        """One number per entry of the whole graph. -> [entries]"""
        raise NotImplementedError

    def observe(self, adj: Adjacency, x: Tensor | None = None) -> None:
        """Compute the scores of a whole graph, unless they are those at hand."""
        x = x if self.reads_features else None
        if self.reads_features and x is None:
            raise InputError(f"x: {type(self).__name__} needs the input features; pass x")
        if self._seen is not None and self._seen.of(adj, x):
            return
        if adj.num_src != adj.num_dst:
            raise InputError(
                f"intervention: {type(self).__name__} scores pairs of nodes of one kind, but the graph "
                f"is bipartite ({adj.num_src} sources, {adj.num_dst} targets); pass score= instead"
            )
        with torch.no_grad():
            version = 0 if x is None else x._version
            self._seen = _Seen(adj, x, version, self.similarity(adj, x))
        self._parts.clear()

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        if n_id is None:
            self.observe(adj, x)
            assert self._seen is not None
            return self.temperature(_as_in_use(self._seen.scores, x))
        kept = self._parts.get(adj)
        if kept is None:
            kept = self._parts[adj] = self._look_up(adj, n_id)
        return self.temperature(_as_in_use(kept, x))

    def _look_up(self, part: Adjacency, n_id: Tensor) -> Tensor:
        """Entries of the whole graph are sorted by (listener, speaker), so a pair is found by bisection."""
        if self._seen is None:
            raise InputError(
                f"intervention: {type(self).__name__} must see the whole graph before it scores a part of "
                "it; call observe(x, edge_index) of the network first"
            )
        whole = self._seen.adj
        known = whole.row * whole.num_src + whole.col
        wanted = n_id[part.row] * whole.num_src + n_id[part.col]
        place = torch.searchsorted(known, wanted).clamp(max=max(known.numel() - 1, 0))
        if wanted.numel() and (known.numel() == 0 or not bool((known[place] == wanted).all())):
            raise InputError(
                "n_id: a part holds an edge that is not in the whole graph; call observe(x, edge_index) of "
                "the network with the graph that the part was cut from"
            )
        return self._seen.scores[place]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_seen": None, "_parts": WeakKeyDictionary()}  # copies carry no graph along


class SpectralSimilarity(Computed):
    """Cosine of the `rank` leading eigenvectors of D^-1/2 (A + I) D^-1/2, see `spectral_vectors`.

    High where two nodes lie in the same well-knit part of the graph.
    """

    def __init__(
        self, rank: int = 64, temperature: float = 8.0, learn_temperature: bool = False, seed: int = 0
    ) -> None:
        super().__init__(temperature, learn_temperature)
        if rank < 2:
            raise InputError(f"rank: {rank}; choose 2 eigenvectors or more, for example 64")
        self.rank, self.seed = rank, seed

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        return _cosine(adj, spectral_vectors(adj.edge_index, adj.num_src, self.rank, self.seed))


class SmoothedSimilarity(Computed):
    """Cosine of the input features after smoothing over `hops` hops, see `smoothed_features`.

    High where not only two nodes but also their surroundings look alike; one wrong edge hardly moves it.

    Args:
        features: compare these instead of what the layer reads. A `CATConv` after the first needs them:
            hidden units change with every step. (`CAT` shows its intervention the input features anyway.)
    """

    reads_features = True

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
        assert x is not None
        options = {"hops": self.hops, "rank": self.rank, "seed": self.seed}
        return _cosine(adj, smoothed_features(x, adj.edge_index, adj.num_src, centre=True, **options))


class TrustedEdges(SmoothedSimilarity):
    """The cosine of `SmoothedSimilarity`, as sharp as the graph needs: see `conjoint.graph.decoys`.

    C_ij = T cosine(i, j), with the smallest T at which edges that look like random pairs have at most the
    share `leak` of all weight exp(C). On a clean graph T is about 0, and every edge counts alike; the more
    edges look random, the sharper it becomes.

    Args:
        leak: the share that is let through.
        temperature, learn_temperature: a factor of T.
    """

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
        assert x is not None
        vectors = self._vectors(x)
        smoothed = smooth(vectors, adj.edge_index, adj.num_src, self.hops)
        return self._sharpness(adj, vectors) * _cosine(adj, torch.from_numpy(smoothed))

    def sharpness(self, adj: Adjacency, x: Tensor) -> float:
        """T: how much it doubts the edges of this graph. 0 where it takes all for equal."""
        return self._sharpness(adj, self._vectors(x))

    def _vectors(self, x: Tensor) -> Numbers:
        return reduced_features(x, rank=self.rank, seed=self.seed, centre=True)

    def _sharpness(self, adj: Adjacency, vectors: Numbers) -> float:
        seen = decoys.compare(vectors, adj.edge_index, adj.num_src, self.hops, self.seed)
        return decoys.sharpness(*seen, self.leak)


class DiffusionSimilarity(Computed):
    """Cosine of two nodes' personalised PageRank (Page et al. 1999), sketched: see `diffusion_vectors`.

    High where walks from the two nodes end in the same places.
    """

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
        vectors = diffusion_vectors(
            adj.edge_index, adj.num_src, restart=self.restart, rank=self.rank, seed=self.seed
        )
        return _cosine(adj, vectors)


class RandomSimilarity(Computed):
    """Numbers between -1 and 1 that mean nothing: a control. Whatever listens to it should learn not to."""

    def __init__(self, temperature: float = 8.0, learn_temperature: bool = False, seed: int = 0) -> None:
        super().__init__(temperature, learn_temperature)
        self.seed = seed

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        return (2.0 * torch.rand(adj.num_entries, generator=generator) - 1.0).to(adj.col.device)


def _as_in_use(scores: Tensor, x: Tensor | None) -> Tensor:
    return scores if x is None else scores.to(device=x.device, dtype=x.dtype)


def _cosine(adj: Adjacency, unit: Tensor) -> Tensor:
    unit = unit.to(adj.col.device)
    return ops.edge_dot(adj, unit, unit)


def _equal(one: Tensor, other: Tensor) -> bool:
    if one is other:
        return True
    if one.shape != other.shape or one.layout != other.layout or one.device != other.device:
        return False
    if one.layout == torch.sparse_csr:
        pairs = ((one.col_indices(), other.col_indices()), (one.values(), other.values()))
        return all(a.shape == b.shape and torch.equal(a, b) for a, b in pairs)
    return torch.equal(one, other)
