"""Several models as one."""

from typing import Any

import pytest
import torch

from conjoint.errors import InputError
from conjoint.graph.sparse import row_normalise
from conjoint.nn import zoo
from conjoint.nn.ensemble import Ensemble, MemberInfo
from small_training import CLASSES, FEATURES, NODES, small_data

GRAPH = small_data()
SIZES = {"features": FEATURES, "classes": CLASSES, "num_nodes": NODES}
INFOS = [MemberInfo("a", 0.5, False), MemberInfo("b", 0.2, True), MemberInfo("b", 0.3, False)]


def make(heat: float = 2.0) -> Ensemble:
    members = [zoo.build(name, **SIZES, seed=k) for k, name in enumerate(("gat", "gcn", "rescat-i-mf"))]
    made = Ensemble([members[0], members[2], zoo.build("cat-i-mf", **SIZES, seed=3)], INFOS, heat).eval()
    made.observe(GRAPH.x, GRAPH.adjacency)
    return made


def test_it_is_the_weighted_mean_at_a_temperature() -> None:
    made, graph = make(), GRAPH.adjacency
    mean = torch.zeros(NODES, CLASSES)
    for info, member in made.each():
        x = row_normalise(GRAPH.x) if info.divides_rows else GRAPH.x
        mean += info.weight * member.probabilities(x, graph)
    expected = mean.sqrt() / mean.sqrt().sum(dim=1, keepdim=True)
    assert torch.allclose(made.probabilities(GRAPH.x, graph), expected, atol=1e-6)
    assert torch.allclose(made.embed(GRAPH.x, graph).norm(dim=1), torch.ones(NODES), atol=1e-4)


def test_in_short_it_asks_one_training_of_each_member() -> None:
    made, graph = make(), GRAPH.adjacency
    short = made.in_short()
    assert short.infos == [MemberInfo("a", 0.5, False), MemberInfo("b", 0.5, True)]
    assert list(short.members) == list(made.members)[:2] and short.temperature == made.temperature
    x = row_normalise(GRAPH.x)
    parts = made.members[0].probabilities(GRAPH.x, graph), made.members[1].probabilities(x, graph)  # type: ignore[operator]
    assert torch.equal(short.probabilities(GRAPH.x, graph), short.joined(parts).softmax(dim=1))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"members": [], "temperature": 1.0},
        {"members": [{"name": "x"}], "temperature": 1.0},
        {"members": [], "temperature": "hot"},
        {
            "members": [
                {"name": "x", "model": "ensemble", "settings": {}, "weight": 1.0, "divides_rows": False}
            ],
            "temperature": 1.0,
        },
        {
            "members": [{"name": "x", "model": "gat", "settings": {}, "weight": 2.0, "divides_rows": False}],
            "temperature": 1.0,
        },
    ],
)
def test_what_a_file_may_say_is_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"ensemble|members"):
        zoo.build(zoo.ENSEMBLE, **SIZES, **settings)


def test_a_member_counts_in_the_embedding_by_the_weight_of_all_its_trainings() -> None:
    infos = [MemberInfo("a", 0.6, False), MemberInfo("b", 0.1, False), MemberInfo("b", 0.3, False)]
    made = Ensemble([zoo.build("gat", **SIZES, seed=k) for k in range(3)], infos, 1.0).eval()
    squares = made.embed(GRAPH.x, GRAPH.adjacency).square()
    width = squares.size(1) // 2
    torch.testing.assert_close(squares[:, :width].sum(1), torch.full((NODES,), 0.6))
    torch.testing.assert_close(squares[:, width:].sum(1), torch.full((NODES,), 0.4))
