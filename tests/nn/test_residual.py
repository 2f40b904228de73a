"""Residual blocks of conjoint attention: against dense matrices, and what each option changes."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import oracle
from conjoint.errors import InputError
from conjoint.graph.adjacency import adjacency
from conjoint.graph.roles import role_features
from conjoint.graph.sparse import to_csr
from conjoint.nn.interventions import Constant, MatrixFactorization, RandomSimilarity
from conjoint.nn.residual import Aggregators, Block, ResidualCAT
from conjoint.nn.zoo import build
from conjoint.threads import steady_products
from graphs import random_features, random_graph

EDGES, N = random_graph(24, 60)
GRAPH = adjacency(EDGES, N)
X = random_features(N, 7, dtype=torch.float32)
MASK = oracle.neighbourhood(EDGES.numpy(), N)


def make(**options: Any) -> ResidualCAT:
    torch.manual_seed(0)
    settings = {"intervention": MatrixFactorization(N, 3), "heads": 2, "dropout": 0.0, **options}
    model = ResidualCAT(7, 8, 3, **settings)
    model.observe(X, GRAPH)
    return model


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("norm", ["layer", "batch", "none"])
@pytest.mark.parametrize("aggregators", [False, True])
def test_shapes_and_a_gradient_for_every_parameter(sparse: bool, norm: str, aggregators: bool) -> None:
    x = to_csr(X.numpy()) if sparse else X
    model = make(norm=norm, aggregators=aggregators, num_layers=3, dropout=0.3, attention_dropout=0.2)
    (logits,), penalty = model.predict_often(x, GRAPH)
    (logits.square().mean() + penalty).backward()
    assert logits.shape == (N, 3) and model.embed(x, GRAPH).shape == (N, 8)
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())
    factors = [p.grad for name, p in model.named_parameters() if name.endswith("factor")]
    assert len(factors) == 3 and all(grad is not None and bool(grad.any()) for grad in factors)


@pytest.mark.parametrize("strategy", ["implicit", "explicit"])
def test_one_block_equals_dense_matrices(strategy: Any) -> None:
    model = make(num_layers=1, strategy=strategy, intervention=RandomSimilarity()).double().eval()
    (block,) = model.blocks
    assert isinstance(block, Block) and block.conv is not None and block.factor is not None
    block.factor.data = torch.tensor([-0.7, 1.3], dtype=torch.float64)  # likeness may mean distance
    x = X.double()
    found = model(x, GRAPH)

    z = (x - x.mean(0)) / x.std(0, correction=0)
    h = model.first(z) + model.place(role_features(EDGES, N).double())  # type: ignore[misc]
    n = F.layer_norm(h, (8,), block.norm.weight, block.norm.bias)
    score = np.zeros((N, N))
    assert model.intervention is not None
    score[GRAPH.row, GRAPH.col] = model.intervention(GRAPH, x)
    projected, conv, heads = block.conv.lin(n).view(N, 2, 4).detach().numpy(), block.conv, []  # type: ignore[misc]
    for k in range(2):
        att_src, att_dst = (att[0, k].detach().numpy() for att in (conv.att_src, conv.att_dst))  # type: ignore[index]
        f = oracle.feature_attention(projected[:, k], att_src, att_dst, MASK, 0.2)
        s = oracle.structural_attention(block.factor[k].item() * score, MASK)
        joined = oracle.implicit(f, s, 0.5, 0.5) if strategy == "implicit" else oracle.explicit(f, s)
        heads.append(joined @ projected[:, k])
    h = h + torch.relu(torch.from_numpy(np.concatenate(heads, axis=1)) + block.own(n))
    expected = model.last(F.layer_norm(h, (8,), model.norm.weight, model.norm.bias))
    assert torch.allclose(found, expected, atol=1e-6)


def test_the_aggregators_are_mean_deviation_maximum_and_tempered_sum() -> None:
    made, x = Aggregators(4).double(), random_features(N, 4)
    mask = torch.from_numpy(MASK)
    count = mask.sum(1, keepdim=True)
    mean = mask @ x / count
    deviation = ((mask @ (x * x)) / count - mean**2).clamp(min=1e-6).sqrt()
    largest = torch.where(mask.bool().unsqueeze(2), x, -torch.inf).max(dim=1).values
    total = (mask @ x) / count.sqrt()
    parts = torch.cat([mean, deviation, largest, total], dim=1)
    degree = count.log1p()
    expected = made.map(torch.cat([parts, parts * degree / degree.mean()], dim=1))
    assert torch.allclose(made(x, GRAPH), expected, atol=1e-9)


def test_without_edges_no_edge_matters() -> None:
    model = make(intervention=None, edges=False, roles=False).eval()
    other = adjacency(*random_graph(N, 50, seed=9))
    assert torch.equal(model(X, GRAPH), model(X, other))
    assert model.attention(X, GRAPH) == []
    with_edges = make(intervention=None, roles=False).eval()
    assert not torch.equal(with_edges(X, GRAPH), with_edges(X, other))


def test_roles_are_read_if_asked_for() -> None:
    x = torch.zeros(N, 7)
    assert bool(make(intervention=None, edges=False)(x, GRAPH).std(0).gt(0).all())
    assert torch.equal(make(intervention=None, edges=False, roles=False)(x, GRAPH).std(0), torch.zeros(3))


@pytest.mark.parametrize("strategy", ["implicit", "explicit"])
def test_attention_of_every_block_sums_to_1(strategy: Any) -> None:
    model = make(num_layers=3, strategy=strategy, attention_dropout=0.5)
    layers = model.attention(X, GRAPH)
    assert len(layers) == 3
    for layer in layers:
        for weight in (layer.feature, layer.structural, layer.conjoint):
            assert weight is not None
            total = torch.zeros(N, weight.size(1)).index_add(0, layer.edge_index[1], weight)
            assert torch.allclose(total, torch.ones_like(total), atol=1e-5)
    assert model.training


def test_scores_are_contaminated_in_training_alone() -> None:
    model = make(contamination=1.0, intervention=RandomSimilarity())
    assert not torch.equal(model(X, GRAPH), model(X, GRAPH))
    model.eval()
    assert torch.equal(model(X, GRAPH), model(X, GRAPH))


def test_columns_are_scaled_as_the_first_graph_says() -> None:
    """A new node must not change how the others are read."""
    model = make()
    shift = model.shift.clone()
    model.observe(X + 5.0, GRAPH)
    assert torch.equal(model.shift, shift)
    assert torch.allclose(shift, X.mean(0), atol=1e-6)
    constant = ResidualCAT(2, 8, 3, heads=2)
    constant.observe(torch.ones(N, 2), GRAPH)
    assert bool(constant(torch.ones(N, 2), GRAPH).isfinite().all())


def test_the_same_bits_at_one_and_two_threads() -> None:
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            model = make(aggregators=True, num_layers=3)
            with steady_products(N):
                model(X, GRAPH).square().mean().backward()
            found.append([p.grad for p in model.parameters()])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True) if a is not None and b is not None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"heads": 3}, "multiple of heads=3"),
        ({"norm": "group"}, "norm"),
        ({"num_layers": 0}, "num_layers"),
        ({"dropout": 1.0}, "dropout"),
        ({"strategy": "both"}, "strategy"),
    ],
)
def test_what_makes_no_sense_is_told(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(intervention=Constant(), **options)


def test_without_observe_dense_features_are_read_all_the_same() -> None:
    x = torch.randn(N, 5, generator=torch.Generator().manual_seed(1))
    sizes = {"features": 5, "classes": 3, "num_nodes": N}
    observed, plain = (build("resgat", **sizes, seed=0, hidden=8) for _ in range(2))
    observed.observe(x, GRAPH)
    assert torch.equal(observed.eval()(x, GRAPH), plain.eval()(x, GRAPH))
    assert not torch.equal(plain(x, GRAPH), plain(torch.zeros_like(x), GRAPH))


def test_of_several_interventions_the_mean_counts() -> None:
    x = torch.randn(N, 5, generator=torch.Generator().manual_seed(1))
    several = build("rescat-e-zero+random", features=5, classes=3, num_nodes=N, seed=0, hidden=8).eval()
    several.observe(x, GRAPH)
    out = several(x, GRAPH)
    assert out.shape == (N, 3) and bool(out.isfinite().all())


def test_attention_is_that_of_the_pass_itself() -> None:
    """Each block attends to what the blocks before it made."""
    model = make(num_layers=3).eval()
    seen: list[torch.Tensor] = []
    norms = [block.norm for block in model.blocks if isinstance(block, Block)]
    hooks = [norm.register_forward_hook(lambda *call: seen.append(call[2])) for norm in norms]
    model(X, GRAPH)
    for hook in hooks:
        hook.remove()
    score = model._score(X, GRAPH)
    for block, normed, told in zip(model.blocks, seen, model.attention(X, GRAPH), strict=True):
        assert isinstance(block, Block) and block.conv is not None
        structure = block.structure(GRAPH, score)
        expected = block.conv(normed, GRAPH, score=structure, return_attention_weights=True)[1]
        assert torch.equal(told.conjoint, expected.conjoint)


def test_a_block_has_the_parts_that_its_options_name() -> None:
    """No bias after the sum, no term of the node itself: `own` is both."""
    for options in ({"intervention": None}, {"roles": False}, {"edges": False, "intervention": None}):
        model = make(**options)
        size = 8 * 8 + 8 + 2 * 8  # own, norm
        if "edges" not in options:
            size += 8 * 8 + 2 * 8  # W, attention
        if "roles" in options:
            size += 2 * 2 + 2  # g_f and g_s, and the factor of each head
        assert [sum(p.numel() for p in block.parameters()) for block in model.blocks] == [size, size]


def test_units_are_dropped_before_the_output_in_training_alone() -> None:
    model, read = make(dropout=0.5), list[torch.Tensor]()
    model.last.register_forward_pre_hook(lambda _, given: read.append(given[0].detach()))
    for training in (True, False):
        torch.manual_seed(3)
        model.train(training)(X, GRAPH)
    shares = [float((units == 0).float().mean()) for units in read]
    assert 0.35 < shares[0] < 0.65 and shares[1] == 0.0
