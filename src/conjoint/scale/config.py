"""How a graph is cut into batches, as one frozen value."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..errors import InputError

KINDS = ("clusters", "neighbours")
DEFAULT_SIZE = {"clusters": 32_768, "neighbours": 1024}


@dataclass(frozen=True, kw_only=True)
class BatchConfig:
    """Settings of training in batches. What a run computes depends on them, not on the number of processes.

    Args:
        kind: "clusters" (parts of the graph with all edges inside) or "neighbours" (some training nodes with
            a bounded sample of their neighbourhood).
        size: nodes of a cluster batch, or training nodes of a neighbourhood batch; 0 = 32768 or 1024.
        joined: clusters joined in a batch, 2 or more.
        fanout: "neighbours": so many neighbours of a node at most, the first number nearest the targets; the
            last one serves all further layers.
        per_step: batches whose gradients are averaged for one step; the number of processes must divide it.
        penalty_neighbours: neighbours drawn per node to estimate the structural penalty.
        penalty_nodes: at most so many nodes per batch for that estimate ("neighbours").
    """

    kind: str
    size: int = 0
    joined: int = 10
    fanout: tuple[int, ...] = (10,)
    per_step: int = 1
    penalty_neighbours: int = 16
    penalty_nodes: int = 65_536

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"batch.kind={self.kind!r}: choose one of {', '.join(KINDS)}")
        least = {"size": 0, "joined": 2, "per_step": 1, "penalty_neighbours": 2, "penalty_nodes": 2}
        for name, low in least.items():
            value = getattr(self, name)
            if type(value) is not int or value < low:
                raise InputError(f"batch.{name}={value!r}: give a whole number, {low} or more")
        fanout = self.fanout
        if not isinstance(fanout, tuple) or not fanout or any(type(n) is not int or n < 1 for n in fanout):
            raise InputError(f"batch.fanout={fanout!r}: give whole numbers, 1 or more, for example 10,5")

    @property
    def nodes(self) -> int:
        return self.size or DEFAULT_SIZE[self.kind]

    def fanout_of(self, hops: int) -> tuple[int, ...]:
        """One number per hop."""
        return tuple(self.fanout[min(hop, len(self.fanout) - 1)] for hop in range(hops))


def batch_config_from(mapping: Mapping[str, Any], source: str = "batch") -> BatchConfig:
    known = [f.name for f in fields(BatchConfig)]
    for name in mapping:
        if name not in known:
            raise InputError(f"{source}: {name!r} is no setting of batches; there are {', '.join(known)}")
    settings = dict(mapping)
    if isinstance(settings.get("fanout"), list):
        settings["fanout"] = tuple(settings["fanout"])
    return BatchConfig(**settings)


def batch_config_to(config: BatchConfig) -> dict[str, Any]:
    return {**asdict(config), "fanout": list(config.fanout)}
