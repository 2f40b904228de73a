"""What an intervention is: a score for every edge, and optionally a loss that it is learnt with (Eq. 1)."""

import torch
from torch import Tensor, nn

from ...errors import InputError
from ...graph.adjacency import Adjacency
from ..attention import Structure


class Intervention(nn.Module):
    """Scores edges from outside the network. Subclasses write `score`; those that learn also write `penalty`.

    Every call may carry `n_id`, the global ids of the nodes in `adj` and the rows of `x`, so that an
    intervention with one row of parameters per node also works on a part of its graph. One that cannot sets
    `serves_parts = False`.
    """

    serves_parts: bool = True
    count: int = 1  # how many scores an edge gets; more than one only from `Several`

    @property
    def names(self) -> list[str]:
        """What each of its scores is called in reports."""
        return [type(self).__name__]

    def reset_parameters(self) -> None:
        """Draw what it learns anew; most learn nothing."""

    def observe(self, adj: Adjacency, x: Tensor | None = None) -> None:
        """Look at the whole graph and all features, before parts of it are scored. Most need not."""

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        """C_ij for every entry of `adj` (i = `adj.row` listens to j = `adj.col`). -> [entries]"""
        raise NotImplementedError

    def score_between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        """C_ij where speakers and listeners are nodes of two kinds, if that makes sense. -> [entries]"""
        raise InputError(
            f"intervention: {type(self).__name__} scores pairs of nodes of one kind, but the graph is "
            f"bipartite ({adj.num_src} sources, {adj.num_dst} targets); give this relation one number per "
            "edge instead, as intervention= or score="
        )

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        """L_ext, added to the training loss with the weight lambda. -> scalar

        `score` is C_ij where the caller has it already. With `n_id`, the pairs among those nodes alone.
        """
        return torch.zeros((), device=adj.col.device)

    def forward(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        return self._checked(adj, self.score(adj, x, n_id))

    def structure(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Structure:
        """The scores as the implicit strategy wants them, with their softmax beside them."""
        return Structure(adj, self(adj, x, n_id))

    def between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        return self._checked(adj, self.score_between(adj, x_src, x_dst))

    def _checked(self, adj: Adjacency, score: Tensor) -> Tensor:
        if score.shape != ((adj.num_entries,) if self.count == 1 else (adj.num_entries, self.count)):
            raise InputError(
                f"intervention: {type(self).__name__}.score returned shape {tuple(score.shape)}; "
                f"expected one number for each of the {adj.num_entries} entries of the graph"
            )
        return score


class Constant(Intervention):
    """Scores every edge alike: attention to structure becomes the plain mean of the neighbourhood.

    A control: what is left of an intervention's gain when the intervention knows nothing.
    """

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.value = value

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        dtype = torch.get_default_dtype() if x is None else x.dtype
        return torch.full((adj.num_entries,), self.value, dtype=dtype, device=adj.col.device)

    def score_between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        return self.score(adj, x_src)


class EdgeScores(Intervention):
    """Any per-edge tensor as an intervention: one number for each edge of the graph, in the user's order.

    Self-loops that the layer adds get `loop_score`, the mean of the given scores by default.
    """

    serves_parts = False
    scores: Tensor

    def __init__(self, scores: Tensor, loop_score: float | None = None) -> None:
        super().__init__()
        if scores.dim() != 1 or not scores.is_floating_point():
            raise InputError(
                f"scores: expected a float tensor with one number per edge, got {scores.dtype} of shape "
                f"{tuple(scores.shape)}"
            )
        if not bool(torch.isfinite(scores).all()):
            raise InputError("scores: NaN or infinite values; replace them before training")
        self.register_buffer("scores", scores.detach().clone())
        self.loop_score = loop_score

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        if n_id is not None:
            raise InputError(
                "intervention: scores given as a per-edge tensor belong to one whole graph, not to a part of "
                "it; train on the whole graph, or write an Intervention with a score(adj, x, n_id) method"
            )
        return align_scores(adj, self.scores, self.loop_score)

    def score_between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        return self.score(adj)


def align_scores(adj: Adjacency, scores: Tensor, loop_score: float | None = None) -> Tensor:
    """Scores in the user's order of edges -> scores in entry order, added self-loops included. [entries]"""
    if scores.shape != (adj.num_edges,):
        raise InputError(
            f"score: it has shape {tuple(scores.shape)}, but the graph has {adj.num_edges} edges; "
            "give one number per column of edge_index, in the same order"
        )
    fill = scores.mean() if loop_score is None and scores.numel() else scores.new_tensor(loop_score or 0.0)
    return adj.from_user_order(scores, fill.expand(adj.num_loops))
