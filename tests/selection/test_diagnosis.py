"""What is told about a graph agrees with counting by hand, and only the given labels are looked at."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from conjoint.errors import InputError
from conjoint.evaluation.plots import diagnosis_figure, picture
from conjoint.graph.graph import Graph
from conjoint.selection.diagnosis import ALWAYS, Diagnosis, Evidence, Interval, advice, diagnose, shortlist
from topics import topic_graph


@pytest.fixture(scope="module")
def clean() -> Graph:
    return topic_graph(random_edges=0)


@pytest.fixture(scope="module")
def noisy() -> Graph:
    """As many random edges as meant ones."""
    return topic_graph(random_edges=900)


@pytest.fixture(scope="module")
def found(noisy: Graph) -> Diagnosis:
    return diagnose(noisy, torch.arange(0, 300, 2))


def test_counts_are_those_of_the_graph(noisy: Graph, found: Diagnosis) -> None:
    pairs = {(i, j) for i, j in noisy.edge_index.t().tolist() if i < j}
    judged = [(i, j) for i, j in pairs if i % 2 == 0 and j % 2 == 0]
    same = [noisy.y[i] == noisy.y[j] for i, j in judged]
    assert (found.nodes, found.edges, found.labelled_edges) == (300, len(pairs), len(judged))
    assert found.homophily is not None and found.homophily.value == pytest.approx(np.mean(same))
    assert found.degree["mean"] == pytest.approx(2 * len(pairs) / 300)
    assert found.by_chance == pytest.approx(1 / 3, abs=0.01)


def test_scores_that_know_the_classes_come_first(found: Diagnosis) -> None:
    by_name = {evidence.name: evidence for evidence in found.evidence}
    assert by_name["smooth"].knows and found.evidence[0].auc is not None
    lows = [evidence.auc.low for evidence in found.evidence if evidence.auc is not None]
    assert lows == sorted(lows, reverse=True)
    mf = by_name["mf"].auc
    assert mf is not None and by_name["smooth"].auc is not None and mf.value < by_name["smooth"].auc.value


def test_random_edges_are_noticed(clean: Graph, found: Diagnosis) -> None:
    before = diagnose(clean, torch.arange(0, 300, 2), interventions=[])
    assert before.random_edges is not None and found.random_edges is not None
    # Half of the noisy graph is random, and of the other half the share that looked so already.
    assert found.random_edges == pytest.approx(0.5 + 0.5 * before.random_edges, abs=0.08)


def test_only_the_given_labels_are_looked_at(noisy: Graph, found: Diagnosis) -> None:
    hidden = noisy.changed(y=noisy.y.clone())
    hidden.y[1::2] = (hidden.y[1::2] + 1) % 3
    again = diagnose(hidden, torch.arange(0, 300, 2))
    assert again == found
    low = [e.auc.low for e in again.evidence if e.auc is not None]
    assert low == sorted(low, reverse=True) and low[0] > low[-1]


def test_without_labelled_edges_nothing_is_claimed(clean: Graph) -> None:
    found = diagnose(clean, torch.tensor([0, 1]), interventions=["smooth", "mf"])
    assert found.homophily is None and all(evidence.auc is None for evidence in found.evidence)
    assert "cannot judge" in advice(found)[0] and shortlist(found) == list(ALWAYS)


def test_a_graph_without_labels_or_features_is_refused() -> None:
    edges = torch.tensor([[0], [1]])
    with pytest.raises(InputError, match="no features"):
        diagnose(Data(edge_index=edges, y=torch.zeros(2)), torch.tensor([0]))


def test_advice_follows_the_evidence(found: Diagnosis) -> None:
    assert "the graph looks noisy" in advice(found)[1]
    assert advice(found)[-1].startswith(f"Try cat-e-{found.evidence[0].name}: ")
    calm = replace(found, random_edges=0.1)
    assert advice(calm)[-1].startswith("Try cat-i-")
    unsure = tuple(Evidence(e.name, e.about, Interval(0.6, 0.4, 0.8)) for e in found.evidence)
    assert "let validation choose" in advice(replace(calm, evidence=unsure))[-1]
    useless = replace(found, homophily=Interval(0.33, 0.3, 0.36))
    assert "Edges say little" in advice(useless)[-1]


def test_the_shortlist_has_the_controls_and_the_best(found: Diagnosis) -> None:
    names = shortlist(found)
    others = [e.name for e in found.evidence if e.name not in ALWAYS]
    assert names == [*ALWAYS, *others[:2]] and len(names) == len(set(names))


def test_the_picture_can_be_drawn_with_and_without_evidence(found: Diagnosis, clean: Graph) -> None:
    for one in (found, diagnose(clean, torch.tensor([0, 1]), interventions=["smooth"])):
        assert picture(diagnosis_figure(one), "svg").startswith(b"<?xml")
