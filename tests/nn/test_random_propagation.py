"""Random propagation against the sum written out with dense matrices."""

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from conjoint import CAT, Constant, MatrixFactorization
from conjoint.errors import InputError
from conjoint.graph.adjacency import Adjacency, adjacency
from conjoint.graph.field import receptive_field
from conjoint.graph.sparse import to_csr
from conjoint.nn.interventions import Intervention, TrustedEdges
from conjoint.nn.random_propagation import RandomPropagation, propagate, propagation_weights
from conjoint.training import Consistency
from conjoint.training.loss import perturbation

NODES, FEATURES, HIDDEN, CLASSES = 30, 12, 6, 3


def graph(seed: int = 0) -> tuple[Tensor, Tensor]:
    torch.manual_seed(seed)
    pairs = torch.randint(0, NODES, (2, 60))
    return torch.rand(NODES, FEATURES), torch.cat([pairs, pairs.flip(0)], dim=1)


def dense(adj: Adjacency, score: Tensor | None) -> Tensor:
    p = torch.zeros(adj.num_dst, adj.num_src)
    return p.index_put((adj.row, adj.col), propagation_weights(adj, score).squeeze(1), accumulate=True)


class Given(Intervention):
    """Scores of the entries, as they are given."""

    def __init__(self, scores: Tensor) -> None:
        super().__init__()
        self.scores = scores

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        return self.scores


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("gated", [False, True])
def test_logits_are_those_of_the_formula(steps: int, scored: bool, sparse: bool, gated: bool) -> None:
    x, edges = graph()
    model = RandomPropagation(FEATURES, HIDDEN, CLASSES, steps=steps, gate=gated).eval()
    gate = torch.rand(FEATURES) if gated else torch.ones(FEATURES)
    if model.gate is not None:
        model.gate.data.copy_(gate)
    adj = model.prepare(edges, NODES)
    score = torch.randn(adj.num_entries) if scored else None
    model.intervention = Given(score) if score is not None else None
    p = dense(adj, score)
    walked = sum((torch.linalg.matrix_power(p, k) @ x for k in range(steps + 1)), torch.zeros_like(x))
    walked = walked / (steps + 1)
    hidden = ((walked * gate) @ model.first.weight.t() + model.first_bias).relu()
    given = to_csr(sp.csr_array(x.numpy())) if sparse else x
    assert torch.allclose(model(given, adj), model.second(hidden), atol=1e-5)
    assert torch.allclose(model.embed(given, adj), hidden, atol=1e-5)


def test_every_pass_has_its_own_dropout_and_their_mean_is_the_plain_one() -> None:
    x, edges = graph()
    model = RandomPropagation(FEATURES, HIDDEN, CLASSES, steps=2, dropout=0.2, drop_node=0.3)
    adj = model.prepare(edges, NODES)
    said = torch.stack([model._project(x) for _ in range(3000)])
    assert not torch.equal(said[0], said[1])
    silent = (said == 0).all(dim=2).float().mean()
    assert float(silent) == pytest.approx(0.3, abs=0.02)
    assert torch.allclose(said.mean(dim=0), model.eval()._project(x), atol=0.06)
    logits, penalty = model.train().predict_often(x, adj, passes=3)
    assert logits.shape == (3, NODES, CLASSES) and float(penalty) == 0.0
    assert not torch.allclose(logits[0], logits[1])


def test_side_by_side_is_one_after_another() -> None:
    x, edges = graph()
    model = RandomPropagation(FEATURES, HIDDEN, CLASSES, dropout=0.0, drop_node=0.0)
    adj = model.prepare(edges, NODES)
    logits, _ = model.predict_often(x, adj, passes=4)
    assert torch.allclose(logits, model(x, adj).expand(4, -1, -1), atol=1e-6)


def test_how_many_passes_walk_at_once_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    x, edges = graph()
    model = RandomPropagation(FEATURES, HIDDEN, CLASSES)
    adj = model.prepare(edges, NODES)
    found = []
    for widest in (1, 2 * HIDDEN, 64):
        monkeypatch.setattr("conjoint.nn.random_propagation.WIDEST", widest)
        torch.manual_seed(0)
        logits, _ = model.predict_often(x, adj, passes=5)
        gradient = torch.autograd.grad(logits.square().sum(), [model.first.weight])
        found.append(torch.cat([logits.detach().flatten(), gradient[0].flatten()]))
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


@pytest.mark.parametrize("gated", [False, True])
def test_gradients_are_those_of_the_formula(gated: bool) -> None:
    x, edges = graph()
    model = RandomPropagation(FEATURES, HIDDEN, CLASSES, steps=3, dropout=0.0, drop_node=0.0, gate=gated)
    adj = model.prepare(edges, NODES)
    p = dense(adj, None)
    walked = sum((torch.linalg.matrix_power(p, k) @ x for k in range(4)), torch.zeros_like(x)) / 4
    gate = 1.0 if model.gate is None else model.gate
    logits = model.second(((walked * gate) @ model.first.weight.t() + model.first_bias).relu())
    wanted = torch.autograd.grad(logits.square().sum(), list(model.parameters()))
    found = torch.autograd.grad(model(x, adj).square().sum(), list(model.parameters()))
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(found, wanted, strict=True))


def test_the_gate_begins_open_and_opens_again() -> None:
    x, edges = graph()
    torch.manual_seed(0)
    plain = RandomPropagation(FEATURES, HIDDEN, CLASSES).eval()
    torch.manual_seed(0)
    gated = RandomPropagation(FEATURES, HIDDEN, CLASSES, gate=True).eval()
    adj = plain.prepare(edges, NODES)
    assert torch.equal(plain(x, adj), gated(x, adj))
    assert gated.gate is not None and plain.gate is None
    gated.gate.data.zero_()
    assert torch.equal(gated(x, adj), gated.second(gated.first_bias.relu()).expand(NODES, CLASSES))
    gated.reset_parameters()
    assert torch.equal(gated.gate, torch.ones(FEATURES))


def test_a_pass_can_have_a_graph_of_its_own() -> None:
    x, edges = graph()
    model = RandomPropagation(FEATURES, HIDDEN, CLASSES, dropout=0.0, drop_node=0.0)
    adj = model.prepare(edges, NODES)
    logits, _ = model.predict_often(
        x, adj, passes=2, perturb=perturbation(Consistency(passes=2, drop_edge=0.5))
    )
    assert not torch.allclose(logits[0], logits[1])


def test_a_learnt_intervention_is_penalised_and_decides_the_walk() -> None:
    x, edges = graph()
    model = RandomPropagation(FEATURES, HIDDEN, CLASSES, intervention=MatrixFactorization(NODES, 4)).eval()
    adj = model.prepare(edges, NODES)
    before = model(x, adj)
    assert float(model.penalty(adj).detach()) > 0.0 and len(model.structural_parameters()) == 1
    with torch.no_grad():
        model.structural_parameters()[0].mul_(30.0)
    assert not torch.allclose(before, model(x, adj))


def test_trust_takes_every_edge_of_a_clean_graph_alike_and_not_of_a_noisy_one() -> None:
    torch.manual_seed(0)
    kind = torch.arange(400) % 2
    x = torch.nn.functional.one_hot(kind, 2).float() + 0.3 * torch.randn(400, 2)
    first = torch.randint(0, 400, (1200,))
    right = torch.stack([first, (first + 2 * torch.randint(1, 200, (1200,))) % 400])
    chance = torch.randint(0, 400, (2, 1200))
    scores = {}
    for name, pairs in (("clean", right), ("noisy", torch.cat([right, chance], dim=1))):
        model = RandomPropagation(2, HIDDEN, 2, intervention=TrustedEdges(rank=2))
        adj = model.prepare(torch.cat([pairs, pairs.flip(0)], dim=1), 400)
        assert model.intervention is not None
        scores[name] = adj, model.intervention(adj, x)
    assert float(scores["clean"][1].abs().max()) == 0.0
    adj, score = scores["noisy"]
    other = adj.row != adj.col
    same = (kind[adj.row] == kind[adj.col])[other]
    assert float(score[other][same].mean()) > float(score[other][~same].mean()) + 1.0


def test_what_is_shown_as_attention_is_the_walk() -> None:
    x, edges = graph()
    model = RandomPropagation(FEATURES, HIDDEN, CLASSES)
    adj = model.prepare(edges, NODES)
    model.intervention = Given(torch.randn(adj.num_entries))
    ((shown, alpha),) = model.attention(x, adj)
    p = torch.zeros(NODES, NODES).index_put((shown[1], shown[0]), alpha.squeeze(1), accumulate=True)
    assert torch.allclose(p, dense(adj, model.intervention.scores), atol=1e-6)


@pytest.mark.parametrize(
    "wrong", [{"steps": -1}, {"dropout": 1.0}, {"drop_node": -0.1}, {"hidden_channels": 0}]
)
def test_wrong_arguments_are_named(wrong: dict[str, float]) -> None:
    given = {"hidden_channels": HIDDEN, **wrong}
    with pytest.raises(InputError, match=next(iter(wrong))):
        RandomPropagation(FEATURES, out_channels=CLASSES, **given)  # type: ignore[arg-type]


def test_the_leak_is_a_share() -> None:
    with pytest.raises(InputError, match="leak"):
        TrustedEdges(leak=0.0)


EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 3], [1, 0, 2, 1, 3, 2, 3, 0]])
ADJ = adjacency(EDGES, 5)  # node 4 has nobody but itself


def _dense(score: torch.Tensor) -> torch.Tensor:
    weight = torch.zeros(5, 5)
    weight[ADJ.row, ADJ.col] = score.exp()
    degree = weight.sum(1)
    return weight / (degree.unsqueeze(1) * degree.unsqueeze(0)).sqrt()


def test_without_scores_it_is_the_normalised_adjacency() -> None:
    found = propagation_weights(ADJ, None)
    torch.testing.assert_close(found.squeeze(1), _dense(torch.zeros(ADJ.num_entries))[ADJ.row, ADJ.col])
    torch.testing.assert_close(found, propagation_weights(ADJ, torch.full((ADJ.num_entries,), 3.0)))


def test_scores_weigh_the_edges() -> None:
    generator = torch.Generator().manual_seed(0)
    score = torch.randn(ADJ.num_entries, generator=generator)
    weights = propagation_weights(ADJ, score)
    matrix = _dense(score)
    torch.testing.assert_close(weights.squeeze(1), matrix[ADJ.row, ADJ.col])
    logits = torch.randn(5, 3, generator=generator)
    expected = logits
    for _ in range(4):
        expected = 0.8 * matrix @ expected + 0.2 * logits
    torch.testing.assert_close(propagate(ADJ, weights, logits, 4, 0.2), expected)


def test_large_scores_and_dropped_edges_stay_finite() -> None:
    score = torch.linspace(-1e4, 1e4, ADJ.num_entries)
    assert propagation_weights(ADJ, score).isfinite().all()
    thinned = ADJ.without(ADJ.row != ADJ.col)
    weights = propagation_weights(thinned, None).squeeze(1)
    torch.testing.assert_close(weights, (ADJ.row == ADJ.col).float())


def test_a_network_spreads_what_it_predicts() -> None:
    torch.manual_seed(0)
    x = torch.rand(5, 4)
    model = CAT(4, 3, 2, heads=2, intervention=Constant(), propagate=3, teleport=0.2).eval()
    plain = CAT(4, 3, 2, heads=2, intervention=Constant()).eval()
    plain.load_state_dict(model.state_dict())
    expected = propagate(ADJ, propagation_weights(ADJ, None), plain(x, EDGES), 3, 0.2)
    torch.testing.assert_close(model(x, EDGES), expected)
    assert model.reach is None  # three hops further than a receptive field of two
    with pytest.raises(InputError, match="whole graph"):
        model(x, receptive_field(ADJ, torch.tensor([0]), 2))


def test_passes_side_by_side_are_passes_one_by_one() -> None:
    x = torch.rand(5, 4)
    model = CAT(4, 3, 2, heads=2, intervention=MatrixFactorization(5, 2), propagate=2)
    torch.manual_seed(1)
    together, penalty = model.predict_often(x, ADJ, passes=3)
    torch.manual_seed(1)
    one_by_one = torch.stack([model(x, ADJ) for _ in range(3)])
    torch.testing.assert_close(together, one_by_one)
    assert penalty.requires_grad


def test_wrong_settings_of_propagation_are_named() -> None:
    with pytest.raises(InputError, match="propagate: -1"):
        CAT(4, 3, 2, propagate=-1)
    with pytest.raises(InputError, match="teleport"):
        CAT(4, 3, 2, teleport=1.0)


def test_no_edge_multiplies_what_it_carries() -> None:
    """Where C_ij is much above C_ji, exp(C_ij) / sqrt(d_i d_j) would be above 1."""
    adj = adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    score = torch.where((adj.row == 0) & (adj.col == 1), 8.0, 0.0)
    found = propagation_weights(adj, score).squeeze(1)
    degree = torch.zeros(2).index_add(0, adj.row, score.exp())
    plain = score.exp() / (degree[adj.row] * degree[adj.col]).sqrt()
    assert plain.max() > 1.0
    torch.testing.assert_close(found, plain.clamp(max=1.0))
