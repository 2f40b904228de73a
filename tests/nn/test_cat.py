"""The network: its size, its attention, its penalty, its manners."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from conjoint import CAT, Constant, InputError, MatrixFactorization, SelfExpression, adjacency
from conjoint.graph.adjacency import Adjacency
from conjoint.graph.field import receptive_field
from conjoint.nn import zoo
from graphs import random_features, random_graph

EDGES, N = random_graph(30, 80)
X = random_features(N, 7, dtype=torch.float32)

ARXIV = {"heads": 3, "out_heads": 3, "residual": True, "norm": "batch", "bias": "output", "per_head": False}
# Nodes, features, classes, hidden, settings; then the paper's Table 5 for CAT-I and CAT-E.
TABLE_5 = {
    "cora": ((2708, 1433, 7, 8, {}), 111285, 111267),
    "cite": ((3327, 3703, 6, 8, {}), 257505, 257487),
    "pubmed": ((19717, 500, 3, 8, {}), 91504, 91486),
    "coauthor-cs": ((18333, 6805, 15, 32, {}), 2021484, 2021466),
    "ogbn-arxiv": ((169343, 128, 40, 256, ARXIV), 7158006, 7158002),
}


@pytest.mark.parametrize("kind", [MatrixFactorization, SelfExpression])
@pytest.mark.parametrize("dataset", TABLE_5)
def test_parameter_counts_equal_table_5(dataset: str, kind: type) -> None:
    (nodes, features, classes, hidden, settings), implicit, explicit = TABLE_5[dataset]
    for strategy, expected in (("implicit", implicit), ("explicit", explicit)):
        intervention = kind(nodes, classes)
        model = CAT(features, hidden, classes, intervention=intervention, strategy=strategy, **settings)  # type: ignore[arg-type]
        assert sum(p.numel() for p in model.parameters()) == expected


def make(**options: object) -> CAT:
    torch.manual_seed(0)
    settings = {"intervention": MatrixFactorization(N, 3), "heads": 2, **options}
    return CAT(7, 4, 3, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("layers", [1, 2, 4])
@pytest.mark.parametrize("strategy", ["implicit", "explicit", "structural"])
def test_every_parameter_gets_a_gradient(layers: int, strategy: str) -> None:
    model = make(num_layers=layers, strategy=strategy, residual=True, norm="batch", bias="all")
    (logits,), penalty = model.predict_often(X, model.prepare(EDGES, N))
    (logits.square().mean() + penalty).backward()
    assert logits.shape == (N, 3)
    assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in model.parameters())


def test_scores_are_computed_once_per_step() -> None:
    calls = []

    class Counting(Constant):
        def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
            calls.append(1)
            return super().score(adj, x, n_id)

    model = make(intervention=Counting(), num_layers=3)
    model.predict_often(X, model.prepare(EDGES, N))
    assert len(calls) == 1


def test_edge_index_and_prepared_graph_give_the_same() -> None:
    model = make().eval()
    assert torch.equal(model(X, EDGES), model(X, adjacency(EDGES, N)))
    assert model.prepare(EDGES, N) is model.prepare(EDGES, N)


def test_attention_lists_every_layer_with_its_edges() -> None:
    model = make()
    first, last = model.attention(X, EDGES)
    assert model.training
    assert first.conjoint.shape == (EDGES.size(1) + N, 2) and last.conjoint.shape[1] == 1
    for layer in (first, last):
        torch.testing.assert_close(layer.sums(), torch.ones_like(layer.sums()))
        assert torch.equal(layer.edge_index[:, : EDGES.size(1)], EDGES)
    assert first.structural is not None and last.structural is not None
    assert torch.equal(first.structural, last.structural)


def test_penalty_of_the_graph_just_seen() -> None:
    model = make()
    with pytest.raises(InputError, match="before any forward pass"):
        model.penalty()
    model(X, EDGES)
    assert isinstance(model.intervention, MatrixFactorization)
    assert model.penalty().item() == pytest.approx(model.penalty(EDGES).item())
    assert make(intervention=None).penalty().item() == 0.0


def test_embedding_is_what_the_output_layer_reads() -> None:
    model = make().eval()
    assert model.embed(X, EDGES).shape == (N, 8)
    adj = model.prepare(EDGES, N)
    out = model.convs[-1](model.embed(X, adj), adj, score=model.structure(X, adj))
    torch.testing.assert_close(out, model(X, adj))


def test_probabilities_ignore_dropout_and_restore_the_mode() -> None:
    model = make()
    first = model.probabilities(X, EDGES)
    assert torch.equal(first, model.probabilities(X, EDGES)) and model.training
    torch.testing.assert_close(first.sum(-1), torch.ones(N))


def test_copies_leave_the_graph_behind_and_learn_apart() -> None:
    model = make().eval()
    expected = model(X, EDGES)
    twin = copy.deepcopy(model)
    assert twin._graphs.last is None
    model.reset_parameters()
    assert not torch.equal(model(X, EDGES), expected)
    assert torch.equal(twin(X, EDGES), expected)


def test_a_tensor_of_scores_serves_as_intervention() -> None:
    model = make(intervention=torch.randn(EDGES.size(1)), strategy="explicit")
    assert model(X, EDGES).shape == (N, 3)
    assert model.reach is None  # such scores cannot be cut to a part of the graph


@pytest.mark.parametrize("strategy", ["implicit", "explicit", "structural"])
@pytest.mark.parametrize("part", [False, True])
def test_an_edge_of_weight_two_is_two_parallel_edges(strategy: str, part: bool) -> None:
    model = make(strategy=strategy, self_term=False).double().eval()
    x = X.double()
    doubled = torch.cat([EDGES, EDGES[:, :20]], dim=1)
    weight = torch.ones(EDGES.size(1), dtype=torch.double)
    weight[:20] = 2.0
    loops = torch.arange(N).repeat(2, 1)  # with their own weight, so that no mean is taken for them
    plain = adjacency(torch.cat([doubled, loops], 1), N, self_loops=False)
    weighted = adjacency(torch.cat([EDGES, loops], 1), N, self_loops=False)
    weighted = weighted.with_weights(torch.cat([weight, torch.ones(N, dtype=torch.double)]))
    expected = model(x, plain)
    if part:
        targets = torch.tensor([2, 11])
        field = receptive_field(weighted, targets, 2)
        torch.testing.assert_close(model(x[field.n_id], field), expected[targets])
    else:
        torch.testing.assert_close(model(x, weighted), expected)


def test_only_ratios_of_edge_weights_matter() -> None:
    model = make().eval()
    expected = model(X, EDGES)
    heavy = model.prepare(EDGES, N, torch.full((EDGES.size(1),), 7.0))
    isolated = torch.bincount(EDGES[1], minlength=N) == 0
    torch.testing.assert_close(model(X, heavy)[~isolated], expected[~isolated])
    for bad in (torch.zeros(EDGES.size(1)), torch.ones(3)):
        with pytest.raises(InputError, match="edge_weight"):
            model.prepare(EDGES, N, bad)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: make(norm="layer"), "norm: 'layer' is unknown"),
        (lambda: make(activation="gelu"), "activation"),
        (lambda: make(num_layers=0), "num_layers: 0"),
        (lambda: make(dropout=-0.1), "dropout"),
        (lambda: make()(torch.full_like(X, torch.nan), EDGES), "NaN"),
        (lambda: make()(X[:5], EDGES), "out of range for 5 nodes"),
        (lambda: make()(X[:, :3], EDGES), "it has 3 features"),
    ],
)
def test_bad_input_is_named(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=words):
        call()


def test_the_penalty_of_a_graph_that_no_intervention_counts() -> None:
    """Its nodes are those that edges name, or as many as the last graph had."""
    edges = torch.tensor([[0, 1, 3], [1, 0, 1]])
    model = CAT(4, 2, 3, heads=2, intervention=Constant())
    assert model._num_nodes(edges) == 4 and float(model.penalty(edges)) == 0.0
    model(torch.ones(6, 4), edges)
    assert model._num_nodes(edges) == 6
    assert CAT(4, 2, 3, heads=2, intervention=MatrixFactorization(9, 2))._num_nodes(edges) == 9


def test_one_pass_is_the_default() -> None:
    for name in ("gat", "gcn", "spread-zero", "resgat"):
        model = zoo.build(name, features=4, classes=3, num_nodes=5, seed=0)
        edges = torch.tensor([[0, 1], [1, 0]])
        graph = model.prepare(edges, 5)
        model.observe(torch.ones(5, 4), graph)
        assert model.predict_often(torch.rand(5, 4), graph)[0].shape == (1, 5, 3)


@pytest.mark.parametrize("intervention", [None, Constant()])
def test_passes_may_have_other_graphs(intervention: Any) -> None:
    """With the scores of the whole, and without any."""
    adj = adjacency(EDGES, N)
    dropped = adj.without(torch.arange(adj.num_entries) % 3 == 1)
    torch.manual_seed(0)
    model = CAT(7, 4, 3, heads=2, dropout=0.0, intervention=intervention)
    found, penalty = model.predict_often(X, adj, passes=2, perturb=lambda x, graph: (x, dropped))
    assert torch.equal(found[0], model(X, dropped)) and torch.equal(*found) and float(penalty) == 0.0
    same, _ = model.predict_often(X, adj, perturb=lambda x, graph: (2 * x, graph))
    assert torch.equal(same[0], model(2 * X, adj))
