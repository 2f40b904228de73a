"""Several trained models as one: the weighted mean of their probabilities, with one temperature."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.sparse import row_normalise
from .model import NodeModel, Recent, ScoredModel

TINY = 1e-12


@dataclass(frozen=True)
class MemberInfo:
    """What an ensemble knows of a member beside its weights."""

    name: str  # what reports call it; members of one name are trainings of one kind on different folds
    weight: float
    divides_rows: bool  # reads features divided by their row sum


class Ensemble(ScoredModel):
    """p = (sum over members of w_m p_m)^(1/T), brought to sum 1.

    Args:
        members: trained models that share the form of graph.
        infos: one for each.
        temperature: T, fitted to nodes that the members were not trained on.
    """

    def __init__(
        self, members: Sequence[NodeModel], infos: Sequence[MemberInfo], temperature: float = 1.0
    ) -> None:
        super().__init__(None)
        if not members:
            raise InputError("members: an ensemble needs one or more")
        self.members, self.infos, self.temperature = nn.ModuleList(members), list(infos), temperature
        self._divided: Recent[Tensor] = Recent()

    def each(self) -> list[tuple[MemberInfo, NodeModel]]:
        """Members with what is known of them."""
        return [
            (info, m) for info, m in zip(self.infos, self.members, strict=True) if isinstance(m, NodeModel)
        ]

    def reads(self, info: MemberInfo, x: Tensor) -> Tensor:
        """The features as this member reads them."""
        return self._divided.get((x,), None, lambda: row_normalise(x)) if info.divides_rows else x

    def observe(self, x: Tensor, graph: Tensor | Adjacency) -> None:
        for info, member in self.each():
            member.observe(self.reads(info, x), graph)

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        return self.joined(member(self.reads(info, x), graph).softmax(dim=1) for info, member in self.each())

    def joined(self, shares: Iterable[Tensor]) -> Tensor:
        """Its logits from the probabilities of every member, in their order."""
        mean: Tensor | None = None
        for info, share in zip(self.infos, shares, strict=True):
            part = info.weight * share
            mean = part if mean is None else mean + part
        assert mean is not None
        return mean.clamp(min=TINY).log() / self.temperature

    def in_short(self) -> "Ensemble":
        """One training of each member, with the weight of all of them: for who asks it very often."""
        first = {info.name: (info, member) for info, member in reversed(self.each())}
        names = dict.fromkeys(info.name for info in self.infos)
        infos = [
            replace(first[name][0], weight=sum(one.weight for one in self.infos if one.name == name))
            for name in names
        ]
        return Ensemble([first[name][1] for name in names], infos, self.temperature).eval()

    def embed(self, x: Tensor, graph: Adjacency) -> Tensor:
        """The hidden units of one training of each member, rows of length sqrt(weight), side by side."""
        parts, seen = [], set[str]()
        for info, member in self.each():
            if info.name in seen:
                continue
            seen.add(info.name)
            hidden = member.embed(self.reads(info, x), graph)
            total = sum(other.weight for other in self.infos if other.name == info.name)
            parts.append(nn.functional.normalize(hidden, dim=1) * total**0.5)
        return torch.cat(parts, dim=1)
