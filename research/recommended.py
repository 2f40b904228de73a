"""What `conjoint train` did before it learnt ensembles: random propagation against one rival.

Validation nodes choose between the two. Kept for its rows in results/.
"""

from collections.abc import Callable, Mapping
from typing import Any

from conjoint.graph.graph import Graph, as_graph
from conjoint.graph.splits import Split
from conjoint.nn.interventions.computed import TrustedEdges
from conjoint.nn.random_propagation import RandomPropagation
from conjoint.selection.choose import Choice, Contest, Trial, Watch, network
from conjoint.training import TrainConfig
from conjoint.training.steps import whole_graph

MODEL = "spread-trust"
# Its rival: equal edges where many are in doubt, else a gate on features.
IF_DOUBTED = (MODEL, "spread-zero")
OTHERWISE = (MODEL, "gated-trust")
# Of T, by which trust multiplies a cosine. Below it, trust changes too little to be worth a comparison: the
# benchmarks as they are have 0.25 at most, with a quarter of random edges added 1.75 or more.
DOUBTFUL = 1.0


def choose_recommended(
    data: Graph,
    split: Split,
    config: TrainConfig,
    settings: Mapping[str, Any] | None = None,
    *,
    on_trial: Callable[[Trial], None] | None = None,
    watch: Watch | None = None,
) -> Choice:
    """One training of the recommended network and one of its rival; higher validation accuracy wins.

    The arguments are those of `choose_intervention`.
    """
    contest = Contest(data, split, config, settings, on_trial, watch)
    candidates = rivals(contest.graph, contest.config, settings)
    for name in candidates:
        contest.attempt(name, config.seed)
    return contest.choice(contest.best_first(candidates)[0], candidates)


def rivals(data: Graph, config: TrainConfig, settings: Mapping[str, Any] | None = None) -> tuple[str, str]:
    """The recommended network and the one that it is compared with on this graph.

    Trust doubts edges whose ends look no more alike than random pairs. Wrong edges look so, but right ones do
    too where features are poor or edges are few, and nothing in the graph alone tells which it is. So where
    many edges are in doubt, the rival takes all edges for equal. Elsewhere it has a gate on the features,
    which helps on some graphs and does harm on others.
    """
    return IF_DOUBTED if doubts_edges(data, config, settings) else OTHERWISE


def doubts_edges(data: Graph, config: TrainConfig, settings: Mapping[str, Any] | None = None) -> bool:
    """Whether trust would weigh the edges of this graph very differently. No label is looked at."""
    graph = as_graph(data)
    model = network(MODEL, graph, config.seed, settings or {})
    assert isinstance(model, RandomPropagation) and isinstance(model.intervention, TrustedEdges)
    whole = whole_graph(model, graph, config)
    return model.intervention.sharpness(whole.graph, whole.x) > DOUBTFUL
