"""What an intervention is: a score for every edge, and optionally a loss that it is learnt with (Eq. 1)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...errors import InputError
from ...graph.adjacency import Adjacency
from ..attention import Structure


class Intervention(nn.Module):
    """Scores edges from outside the network. Subclasses write `score`; those that learn also write `penalty`.

    Every call may carry `n_id`, the global ids of the nodes in `adj` and the rows of `x`, so that an
    intervention with one row of parameters per node also works on a part of its graph. One that cannot sets
    `serves_parts = False`; one that must `observe` the whole graph before it can sets `whole_first = True`.
    """

    serves_parts: bool = True
    whole_first: bool = False
    count: int = 1  # how many scores an edge gets; more than one only from `Several`

    @property
    def names(self) -> list[str]:
        """What each of its scores is called in reports."""
        return [type(self).__name__]

    def reset_parameters(self) -> None:
        """Draw what it learns anew."""
        for part in self.children():
            if isinstance(part, Intervention | Temperature):
                part.reset_parameters()

    def observe(self, adj: Adjacency, x: Tensor | None = None) -> None:
        """Take this for the whole graph and x for its input features. Most have no use for them."""

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        """C_ij for every entry of `adj` (target i = `adj.row`, source j = `adj.col`). -> [entries]"""
        raise NotImplementedError

    def score_between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        """C_ij where sources and targets are nodes of two kinds, if that makes sense. -> [entries]"""
        raise self.of_one_kind(adj)

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        """L_ext, added to the training loss with the weight lambda. -> scalar

        `score` is C_ij where the caller has it already. With `n_id`, the pairs among those nodes alone.
        """
        return torch.zeros((), device=adj.col.device)

    def forward(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        return self._checked(adj, self.score(adj, x, n_id))

    def structure(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Structure:
        """The scores for the implicit strategy, with their softmax beside them."""
        return Structure(adj, self(adj, x, n_id))

    def between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        return self._checked(adj, self.score_between(adj, x_src, x_dst))

    def of_one_kind(self, adj: Adjacency) -> InputError:
        return InputError(
            f"intervention: {type(self).__name__} scores pairs of nodes of one kind, but the graph is "
            f"bipartite ({adj.num_src} sources, {adj.num_dst} targets); give this relation one number per "
            "edge instead, as intervention= or score="
        )

    def _checked(self, adj: Adjacency, score: Tensor) -> Tensor:
        if score.shape != ((adj.num_entries,) if self.count == 1 else (adj.num_entries, self.count)):
            raise InputError(
                f"intervention: {type(self).__name__}.score returned shape {tuple(score.shape)}; "
                f"expected one number for each of the {adj.num_entries} entries of the graph"
            )
        return score


class Temperature(nn.Module):
    """A positive factor of scores that have no scale of their own: how sharply attention follows them.

    Args:
        start: its value, before training if it is learnt; 0 would ignore the scores.
        learn: let training move it.
    """

    def __init__(self, start: float = 8.0, learn: bool = False) -> None:
        super().__init__()
        if not (start > 0.0 and math.isfinite(start)):
            raise InputError(f"temperature: {start}; choose a number above 0, for example 8")
        self.start = float(start)
        self.log = nn.Parameter(torch.empty(())) if learn else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.log is not None:
            nn.init.constant_(self.log, math.log(self.start))

    def forward(self, scores: Tensor) -> Tensor:
        if self.log is not None:
            return scores * self.log.exp()
        return scores if self.start == 1.0 else scores * self.start


class Several(Intervention):
    """k interventions as one. A layer learns, head by head, how much each of them counts.

    Args:
        members: interventions, or tensors with one number per edge.
        names: what reports call them; by default, their classes.
    """

    whole_first = True

    def __init__(self, members: Sequence[Intervention | Tensor], names: Sequence[str] | None = None) -> None:
        super().__init__()
        if not members:
            raise InputError("interventions: the list is empty; name one, or leave it out for none")
        made = [EdgeScores(one) if isinstance(one, Tensor) else one for one in members]
        if any(one.count > 1 for one in made):
            raise InputError("interventions: one of them is itself several; put them all in one list")
        self.members = nn.ModuleList(made)
        self.count = len(made)
        self.serves_parts = all(one.serves_parts for one in made)
        names = [type(one).__name__ for one in made] if names is None else list(names)
        twice = {name for name in names if names.count(name) > 1}  # two of a kind get numbers
        self._names = [f"{n} {names[: k + 1].count(n)}" if n in twice else n for k, n in enumerate(names)]

    @property
    def each(self) -> list[Intervention]:
        return [one for one in self.members if isinstance(one, Intervention)]

    @property
    def names(self) -> list[str]:
        return self._names

    def reset_parameters(self) -> None:
        for one in self.each:
            one.reset_parameters()

    def observe(self, adj: Adjacency, x: Tensor | None = None) -> None:
        for one in self.each:
            one.observe(adj, x)

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        """A column for each. -> [entries, k]"""
        return _columns([one(adj, x, n_id) for one in self.each])

    def score_between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        return _columns([one.between(adj, x_src, x_dst) for one in self.each])

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        total = torch.zeros((), device=adj.col.device)
        for k, one in enumerate(self.each):
            total = total + one.penalty(adj, n_id, None if score is None else score[:, k])
        return total


def _columns(scores: list[Tensor]) -> Tensor:
    return torch.stack([score.to(scores[0].dtype) for score in scores], dim=1)


class Constant(Intervention):
    """A control that scores every edge alike: structural attention is the mean of the neighbourhood."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.value = value

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        dtype = torch.get_default_dtype() if x is None else x.dtype
        return torch.full((adj.num_entries,), self.value, dtype=dtype, device=adj.col.device)

    def score_between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        return self.score(adj, x_src)


class EdgeScores(Intervention):
    """One number for each edge, in the user's order; `loop_score`, or their mean, for added self-loops."""

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
