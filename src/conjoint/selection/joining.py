"""From members that were judged to one ensemble: their weights, one temperature, and how good it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..graph.graph import Graph
from ..nn import zoo
from ..nn.ensemble import Ensemble
from ..training.metrics import all_metrics, merit
from .member_training import Outcome
from .members import Member
from .portfolio import Portfolio, Trial
from .weighing import temperature, weigh

Array = npt.NDArray[Any]


@dataclass(eq=False)
class Judged:
    """A member's trainings so far, by fold."""

    member: Member
    fitted: dict[int, Outcome] = field(default_factory=dict)
    merits: dict[int, float] = field(default_factory=dict)
    epochs: int = 0  # that the first training chose
    seconds: float = 0.0


def join(
    graph: Graph,
    chosen: Sequence[Judged],
    nodes: Array,
    unseen: Sequence[Array],
    *,
    metric: str,
    seed: int,
    single: bool,
    judged: bool,
    trials: Sequence[Trial],
    folds: int,
    labels: int,
    left_out: Sequence[str],
    interrupted: bool,
) -> tuple[Ensemble, dict[str, Any], Portfolio]:
    """The ensemble, the settings that build it again, and how it came about.

    Args:
        nodes, unseen: those that judge, and what each member says of them. k x [nodes, classes]
        single: keep the best member alone.
        judged: whether they can judge at all; else all members count the same.
        trials, folds, labels, left_out, interrupted: what is told of the search.
    """
    truth = graph.y.numpy()[nodes]
    own = [merit(metric, truth, shares) for shares in unseen]
    if not judged:
        weights = np.full(len(chosen), 1.0 / len(chosen))
    elif single:
        weights = np.eye(len(chosen))[int(np.argmax(own))]
    else:
        weights = weigh(unseen, truth, metric, seed)
    mean = np.tensordot(weights, np.stack(unseen), axes=1)
    heat = temperature(mean, truth) if judged else 1.0
    calibrated = np.maximum(mean, 1e-12) ** (1.0 / heat)
    calibrated /= calibrated.sum(axis=1, keepdims=True)
    settings, used = [], []
    for one, weight in zip(chosen, weights, strict=True):
        for found in one.fitted.values() if weight > 0 else ():
            used.append(found)
            settings.append(
                {
                    "name": one.member.name,
                    "model": one.member.model,
                    "settings": found.settings,
                    "weight": float(weight) / len(one.fitted),
                    "divides_rows": found.divides,
                }
            )
    spec: dict[str, Any] = {"members": settings, "temperature": heat}
    shape = {"features": graph.num_features, "classes": graph.num_classes, "num_nodes": graph.num_nodes}
    ensemble = zoo.build(zoo.ENSEMBLE, **shape, **spec)
    assert isinstance(ensemble, Ensemble)
    for place, found in zip(ensemble.members, used, strict=True):
        place.load_state_dict({name: torch.from_numpy(part) for name, part in found.state.items()})
    table: list[dict[str, Any]] = [
        {"name": one.member.name, "weight": round(float(weight), 4), metric: round(abs(alone), 6)}
        for one, weight, alone in zip(chosen, weights, own, strict=True)
    ]
    table.sort(key=lambda row: -row["weight"])
    portfolio = Portfolio(
        metric,
        folds,
        labels,
        tuple(trials),
        tuple(table),
        all_metrics(truth, calibrated),
        tuple(left_out),
        interrupted,
        (nodes, calibrated) if judged else None,
        ensemble.joined([torch.from_numpy(found.shares) for found in used]).softmax(dim=-1).numpy(),
    )
    return ensemble.eval(), spec, portfolio
