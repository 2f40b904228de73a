"""Interventions that the graph decides: dense definitions, parts of a graph, what is kept and what is not."""

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from conjoint import CAT, CATConv, FeatureSimilarity, InputError, Intervention, adjacency
from conjoint.graph import decoys
from conjoint.graph.adjacency import Adjacency
from conjoint.graph.field import receptive_field
from conjoint.graph.proximity import spectral_vectors
from conjoint.graph.sparse import to_csr
from conjoint.nn import interventions
from conjoint.nn.interventions import Computed, Several, SmoothedSimilarity, SpectralSimilarity, TrustedEdges
from graphs import random_features, random_graph

EDGES, N = random_graph(60, 150)
X = random_features(N, 5, dtype=torch.float32)
KINDS = [SpectralSimilarity, SmoothedSimilarity]


class Counted(Computed):
    """A score per pair of ids, and a count of how often it was worked out."""

    def __init__(self, reads_features: bool = False) -> None:
        super().__init__(temperature=1.0)
        self.times, self.reads_features = 0, reads_features

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        self.times += 1
        return (100.0 * adj.row + adj.col).float()


def test_smooth_is_the_cosine_of_centred_features_after_two_hops() -> None:
    adj = adjacency(EDGES, N)
    a = np.eye(N)
    a[EDGES[0], EDGES[1]] = 1.0
    root = np.sqrt(a.sum(axis=1))
    walk = a / np.outer(root, root)
    x = X.numpy() / np.linalg.norm(X.numpy(), axis=1, keepdims=True)
    z = walk @ walk @ (x - x.mean(axis=0))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    expected = 8.0 * (z @ z.T)[adj.row.numpy(), adj.col.numpy()]
    for given in (X, to_csr(X.numpy())):
        np.testing.assert_allclose(SmoothedSimilarity()(adj, given).numpy(), expected, atol=1e-4)


def test_spectral_is_the_cosine_of_its_vectors() -> None:
    adj = adjacency(EDGES, N)
    z = spectral_vectors(EDGES, N, 5)
    expected = 3.0 * (z @ z.t())[adj.row, adj.col]
    torch.testing.assert_close(SpectralSimilarity(rank=5, temperature=3.0)(adj), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_the_graph_gets_the_scores_of_the_whole(kind: type[Computed]) -> None:
    whole = adjacency(EDGES, N)
    intervention = kind()
    intervention.observe(whole, X)
    field = receptive_field(whole, torch.tensor([7, 3]), 2)
    part, ids = field.layers[0], field.n_id
    dense = torch.full((N, N), torch.nan)
    dense[whole.row, whole.col] = intervention(whole, X)
    expected = dense[ids[part.row], ids[part.col]]
    torch.testing.assert_close(intervention(part, X[ids], ids), expected)


def test_scores_are_computed_once_for_equal_graphs_and_features() -> None:
    plain, reader = Counted(), Counted(reads_features=True)
    for _ in range(2):
        plain(adjacency(EDGES, N), X.clone())
        reader(adjacency(EDGES, N), X.clone())
        reader.observe(adjacency(EDGES, N), X)
    assert (plain.times, reader.times) == (1, 1)
    plain(adjacency(EDGES[:, :-2], N))
    reader(adjacency(EDGES, N), X + 1.0)  # the scores belong to the graph
    assert (plain.times, reader.times) == (2, 1)
    reader.observe(adjacency(EDGES, N), X + 1.0)
    assert reader.times == 2


def test_features_changed_in_place_are_noticed() -> None:
    x, reader = X.clone(), Counted(reads_features=True)
    reader(adjacency(EDGES, N), x)
    x.mul_(2.0)
    reader.observe(adjacency(EDGES, N), x)
    assert reader.times == 2


def test_another_graph_forgets_the_parts_of_the_first() -> None:
    intervention = SpectralSimilarity(rank=4)
    whole = adjacency(EDGES, N)
    intervention.observe(whole)
    field = receptive_field(whole, torch.tensor([5]), 1)
    first = intervention(field.layers[0], None, field.n_id)
    intervention.observe(adjacency(torch.cat([EDGES, torch.tensor([[0, 9], [9, 0]])], dim=1), N))
    assert not torch.equal(first, intervention(field.layers[0], None, field.n_id))


def test_copies_carry_no_graph_and_weights_hold_no_scores() -> None:
    model = CAT(5, 4, 3, heads=2, intervention=SmoothedSimilarity(learn_temperature=True))
    model.observe(X, EDGES)
    copied = copy.deepcopy(model).intervention
    assert isinstance(copied, SmoothedSimilarity) and copied._seen is None
    assert [name for name in model.state_dict() if name.startswith("inter")] == [
        "intervention.temperature.log"
    ]


class TwoLayers(nn.Module):
    """A network of a user's own, each layer of which sorts its edges for itself."""

    def __init__(self, first: Intervention, second: Intervention) -> None:
        super().__init__()
        self.first = CATConv(5, 4, 2, intervention=first)
        self.second = CATConv(8, 3, intervention=second, strategy="explicit")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def epochs(network: nn.Module, number: int = 4) -> None:
    """Training and validation take turns."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(number):
        optimizer.zero_grad()
        network.train()(X, EDGES).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            network.eval()(X, EDGES)


@pytest.mark.parametrize("wrap", [False, True])
def test_layers_that_share_an_intervention_share_its_scores_of_the_input(wrap: bool) -> None:
    counted = Counted(reads_features=True)
    shared = Several([counted, FeatureSimilarity()]) if wrap else counted
    epochs(TwoLayers(shared, shared))
    assert counted.times == 1


@pytest.mark.parametrize("kind", [SmoothedSimilarity, FeatureSimilarity])
def test_a_later_layer_scores_the_input_features(kind: type[Computed]) -> None:
    """Shared, or told by `observe`: both give what the input features give."""
    told, shared = kind(), kind()
    torch.manual_seed(0)
    network = TwoLayers(kind(), told)
    network.second.observe(X, EDGES)
    epochs(network)
    torch.manual_seed(0)
    other = TwoLayers(shared, shared)
    epochs(other)
    assert torch.equal(network(X, EDGES), other(X, EDGES))
    whole = adjacency(EDGES, N)
    torch.testing.assert_close(told(whole, torch.rand(N, 8)), kind()(whole, X))


@pytest.mark.parametrize("kind", [SmoothedSimilarity, TrustedEdges, FeatureSimilarity])
def test_hidden_units_are_no_input_features(kind: type[Computed]) -> None:
    with pytest.raises(
        InputError, match=r"hidden units.*object of the first layer.*observe\(x, edge_index\)"
    ):
        TwoLayers(kind(), kind())(X, EDGES)
    if kind is not FeatureSimilarity:  # which compares what is learnt anew in every step
        with pytest.raises(InputError, match="hidden units"):
            CATConv(5, 4, intervention=kind())(nn.Parameter(X.clone()), EDGES)
    inputs = X.clone().requires_grad_()  # an explainer that asks for the gradient of the input is no layer
    CATConv(5, 4, intervention=kind())(inputs, EDGES).sum().backward()
    assert inputs.grad is not None


def test_two_graphs_that_take_turns_are_scored_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = count_fits(monkeypatch)
    network, other = TwoLayers(shared := TrustedEdges(), shared), torch.cat([EDGES, EDGES[:, :7] // 2], dim=1)
    for _ in range(3):
        network(X, EDGES)
        network(X, other)
    assert len(fits) == 2


def count_fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    fits, compare = [], decoys.compare

    def counted(*given: object) -> object:
        fits.append(1)
        return compare(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(decoys, "compare", counted)
    return fits


def test_models_on_one_graph_share_what_it_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    fits, adj = count_fits(monkeypatch), adjacency(EDGES, N)
    assert TrustedEdges().sharpness(adj, X) >= 0.0
    scores = [TrustedEdges(temperature=t)(adj, X) for t in (1.0, 2.0)]
    assert len(fits) == 1 and torch.equal(2.0 * scores[0], scores[1])
    TrustedEdges()(adj.without(adj.row == 3), X)
    assert len(fits) == 1
    TrustedEdges(leak=0.2)(adj, X)
    TrustedEdges()(adj, X.clone())
    TrustedEdges()(adjacency(EDGES, N), X)
    assert len(fits) == 4


def test_a_class_that_does_not_say_what_decides_it_shares_nothing() -> None:
    class Offset(SpectralSimilarity):
        def __init__(self, offset: float) -> None:
            super().__init__(rank=4, temperature=1.0)
            self.offset = offset

        def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
            return super().similarity(adj, x) + self.offset

    adj = adjacency(EDGES, N)
    torch.testing.assert_close(Offset(0.0)(adj) + 1.0, Offset(1.0)(adj))


@pytest.mark.parametrize("learn", [True, False])
def test_temperature_is_learnt_only_on_request(learn: bool) -> None:
    intervention = SpectralSimilarity(rank=4, temperature=2.0, learn_temperature=learn)
    assert float(intervention.temperature(torch.ones(1)).detach()) == pytest.approx(2.0)
    model = CAT(5, 4, 3, heads=2, strategy="explicit", intervention=intervention)
    model(X, EDGES).square().sum().backward()
    assert len(model.structural_parameters()) == int(learn)
    for parameter in model.structural_parameters():
        assert parameter.grad is not None and float(parameter.grad) != 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_training_on_a_field_equals_training_on_the_whole(kind: type[Computed]) -> None:
    model = CAT(5, 4, 3, heads=2, intervention=kind(), dropout=0.0)
    whole = model.prepare(EDGES, N)
    model.observe(X, whole)
    nodes = torch.tensor([3, 8, 20])
    field = receptive_field(whole, nodes, 2)
    torch.testing.assert_close(model(X[field.n_id], field), model(X, whole)[nodes])


def test_bad_arguments_are_named() -> None:
    whole = adjacency(EDGES, N)
    field = receptive_field(whole, torch.tensor([7]), 1)
    cases = {
        "rank: 1": lambda: SpectralSimilarity(rank=1),
        "hops=-1": lambda: SmoothedSimilarity(hops=-1),
        "temperature: 0": lambda: SpectralSimilarity(temperature=0.0),
        "needs the input features": lambda: SmoothedSimilarity()(whole),
        "must see the whole graph": lambda: SpectralSimilarity()(field.layers[0], None, field.n_id),
        "nodes of one kind": lambda: SpectralSimilarity()(adjacency(EDGES, (N, N + 1), self_loops=False)),
    }
    for words, attempt in cases.items():
        with pytest.raises(InputError, match=words):
            attempt()
    seen = SpectralSimilarity(rank=2)
    seen.observe(adjacency(EDGES[:, :4], N))
    with pytest.raises(InputError, match="not in the whole graph"):
        seen(field.layers[0], None, field.n_id)


def test_defaults_are_those_of_the_documented_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "interventions.md").read_text(encoding="utf-8")
    told = re.findall(r"`(\w+)\(([^`]*=[^`]*)\)`", page.split("A name goes with")[0])
    assert len(told) >= 4
    for name, settings in told:
        made = getattr(interventions, name)()
        for setting in settings.split(", "):
            key, value = setting.split("=")
            assert repr(getattr(made, key)) == value, (name, setting)


def test_a_graph_without_entries_has_no_scores() -> None:
    bare = adjacency(torch.zeros(2, 0, dtype=torch.long), 3, self_loops=False)
    for x in (random_features(3, 4), to_csr(np.eye(3, 4))):
        assert FeatureSimilarity().score(bare, x).numel() == 0


def test_what_reads_no_features_keeps_its_scores_whatever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    similarity = SpectralSimilarity.similarity

    def counted(self: SpectralSimilarity, adj: Any, x: Any) -> Any:
        calls.append(x)
        return similarity(self, adj, x)

    monkeypatch.setattr(SpectralSimilarity, "similarity", counted)
    made, adj = SpectralSimilarity(rank=3), adjacency(*random_graph(20, 50))
    for x in (torch.ones(20, 2), torch.zeros(20, 2), None):
        made.observe(adj, x)
        assert made._seen is not None and made._seen.x is None
    assert calls == [None]
