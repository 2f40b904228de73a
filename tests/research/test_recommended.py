"""The earlier default and its rival: which is better here is for validation nodes to say."""

from typing import Any

import numpy as np
import pytest

from conjoint.data import Split, make_split
from conjoint.graph.adjacency import adjacency
from conjoint.graph.graph import Graph
from conjoint.graph.sparse import row_normalise, to_csr
from conjoint.nn.interventions.computed import TrustedEdges
from conjoint.selection import choose as module
from conjoint.selection.choose import Trial
from conjoint.training import Fitted, TrainConfig
from research import recommended
from research.recommended import DOUBTFUL, choose_recommended, doubts_edges, rivals
from small_training import small_model
from topics import topic_graph

CONFIG = TrainConfig(epochs=30, lr=0.05, rule="val-accuracy")


def with_poor_features() -> Graph:
    """Right edges, and words that have next to nothing to do with the topics."""
    data = topic_graph()
    rng = np.random.default_rng(1)
    x = (rng.random((300, 120)) < 0.05).astype(np.float32)
    x[:, :3] += 0.3 * (rng.random((300, 3)) < 0.2) * np.eye(3)[data.y.numpy()]
    return data.changed(given_x=to_csr(x))


def split_of(data: Graph) -> Split:
    return make_split(data, "fraction", 0, train=0.3, val=0.3)


def test_a_clean_graph_is_not_doubted_and_a_damaged_one_is() -> None:
    assert not doubts_edges(topic_graph(), CONFIG)
    assert rivals(topic_graph(), CONFIG) == ("spread-trust", "gated-trust")
    assert doubts_edges(topic_graph(random_edges=900), CONFIG)
    assert rivals(topic_graph(random_edges=900), CONFIG) == ("spread-trust", "spread-zero")
    assert doubts_edges(with_poor_features(), CONFIG)


def test_validation_tells_wrong_edges_from_poor_features() -> None:
    """Trust is right about the one graph and wrong about the other, though both look doubtful."""
    told = list[Trial]()
    poor, noisy = with_poor_features(), topic_graph(random_edges=12000)
    assert choose_recommended(poor, split_of(poor), CONFIG, on_trial=told.append).model == "spread-zero"
    assert [trial.model for trial in told] == list(recommended.IF_DOUBTED)
    assert choose_recommended(noisy, split_of(noisy), CONFIG).model == "spread-trust"


def test_test_labels_have_no_say() -> None:
    data = topic_graph(random_edges=900)
    split = split_of(data)
    changed = data.changed(y=data.y.clone())
    changed.y[split.reveal_test()] = 0
    looks = TrainConfig(epochs=3, rule="release", see_test=True)
    assert choose_recommended(data, split, looks) == choose_recommended(changed, split, looks)


@pytest.mark.parametrize(("equal", "chosen"), [(0.7, 1), (0.6, 0), (0.65, 0)])
def test_a_tie_goes_to_the_lower_loss(equal: float, chosen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def pretend(name: str, *_: Any) -> Fitted:
        trusts = name == recommended.MODEL
        row = {"val_accuracy": 0.65 if trusts else equal, "val_loss": 0.5 if trusts else 0.9}
        return Fitted(small_model(), CONFIG, [row], 1, "epochs")

    monkeypatch.setattr(module, "train_candidate", pretend)
    data = topic_graph()
    assert choose_recommended(data, split_of(data), CONFIG).model == recommended.OTHERWISE[chosen]


def test_settings_of_the_network_are_taken_along() -> None:
    """One dimension is too few to see topics by: whatever there is to doubt, it is not the same."""
    data, network = topic_graph(random_edges=900), {"hidden": 4}
    narrow, wide = (
        TrustedEdges(rank=rank).sharpness(adjacency(data.edge_index, 300), row_normalise(data.x))
        for rank in (1, 64)
    )
    assert narrow != wide
    assert doubts_edges(data, CONFIG, {"rank": 1, **network}) == (narrow > DOUBTFUL)
    assert doubts_edges(data, CONFIG, {"rank": 64, **network}) == (wide > DOUBTFUL)
