"""Which of two networks the recommended setting trains, told by validation nodes.

Trust doubts edges whose ends look no more alike than random pairs. Wrong edges look so, but right ones do too
where features are poor or edges are few, and nothing in the graph alone tells which it is. So where many
edges are in doubt, the rival takes all edges for equal. Elsewhere it has a gate on the features, which helps
on some graphs and does harm on others.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch_geometric.data import Data

from .. import recommended
from ..data.splits import Split
from ..nn.interventions.computed import TrustedEdges
from ..nn.spread import Spread
from ..training import TrainConfig
from ..training.inputs import prepare
from .trials import Choice, Trial, Watch, attempt, blind, network

# Of T, by which trust multiplies a cosine. Below it, trust changes too little to be worth a comparison: the
# benchmarks as they are have 0.25 at most, with a quarter of random edges added 1.75 or more.
DOUBTFUL = 1.0


def rivals(data: Data, config: TrainConfig, settings: Mapping[str, Any] | None = None) -> tuple[str, str]:
    """The recommended network and the one that it is compared with on this graph."""
    return recommended.IF_DOUBTED if doubts_edges(data, config, settings) else recommended.OTHERWISE


def doubts_edges(data: Data, config: TrainConfig, settings: Mapping[str, Any] | None = None) -> bool:
    """Whether trust would weigh the edges of this graph very differently. No label is looked at."""
    model = network(recommended.MODEL, data, config.seed, settings or {})
    assert isinstance(model, Spread) and isinstance(model.intervention, TrustedEdges)
    inputs = prepare(model, data, config)
    return model.intervention.sharpness(inputs.graph, inputs.x) > DOUBTFUL


def compare(
    data: Data,
    split: Split,
    config: TrainConfig,
    settings: Mapping[str, Any] | None = None,
    *,
    on_trial: Callable[[Trial], None] | None = None,
    watch: Watch | None = None,
) -> Choice:
    """One training of the recommended network and one of its rival; higher validation accuracy wins.

    The arguments are those of `choice.choose`.
    """
    trials = list[Trial]()
    candidates = rivals(data, config, settings)
    for name in candidates:
        trials.append(attempt(name, data, split, blind(config), settings or {}, watch=watch))
        if on_trial is not None:
            on_trial(trials[-1])
    best, *_ = Choice("", candidates, tuple(trials)).best_first(list(candidates))
    return Choice(best, candidates, tuple(trials))
