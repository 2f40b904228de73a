"""Several interventions at once: a column of scores for each, which every layer weighs for itself."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...errors import InputError
from ...graph.adjacency import Adjacency
from .base import EdgeScores, Intervention


class Several(Intervention):
    """k interventions as one. A layer learns, head by head, how much each of them counts.

    Args:
        members: interventions, or tensors with one number per edge.
        names: what reports call them; by default, their classes.
    """

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
        self._names = _told_apart([type(one).__name__ for one in made] if names is None else list(names))

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
        columns = [one(adj, x, n_id) for one in self.each]
        return torch.stack([column.to(columns[0].dtype) for column in columns], dim=1)

    def score_between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        columns = [one.between(adj, x_src, x_dst) for one in self.each]
        return torch.stack([column.to(columns[0].dtype) for column in columns], dim=1)

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        total = torch.zeros((), device=adj.col.device)
        for k, one in enumerate(self.each):
            total = total + one.penalty(adj, n_id, None if score is None else score[:, k])
        return total


def _told_apart(names: list[str]) -> list[str]:
    """Two of a kind get numbers."""
    twice = {name for name in names if names.count(name) > 1}
    return [f"{name} {names[: k + 1].count(name)}" if name in twice else name for k, name in enumerate(names)]
