"""Small functions of the networks against plain loops and at their boundaries."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor, nn

from conjoint import CAT, CATConv
from conjoint.errors import InputError
from conjoint.graph import overlap
from conjoint.graph.adjacency import adjacency
from conjoint.graph.field import receptive_field
from conjoint.graph.proximity import reduced_features, spectral_vectors
from conjoint.nn import checks, zoo
from conjoint.nn.baselines import GaussianConvolution, low_rank_graph
from conjoint.nn.interventions import NormalisedExpression, NormalisedFactorization
from conjoint.nn.interventions.computed import (
    AdamicAdarSimilarity,
    JaccardSimilarity,
    RandomSimilarity,
    SmoothedSimilarity,
    _equal,
    _Seen,
    edge_cosine,
)
from conjoint.nn.layers import BatchNorm, LayerNorm
from conjoint.nn.model import Recent
from conjoint.nn.new_nodes import _mean, extended_spectrum
from conjoint.nn.random_propagation import RandomPropagation, propagate, propagation_weights
from conjoint.nn.residual import Aggregators, Block
from conjoint.nn.simple import neighbour_mean, one_hot
from graphs import KITE, random_features, random_graph
from small_training import small_data
from topics import topic_graph


@pytest.mark.parametrize("with_self", [True, False])
def test_means_of_neighbours_by_a_loop(with_self: bool) -> None:
    edges, nodes = KITE
    adj, h = adjacency(edges, nodes), random_features(nodes, 3)
    expected = torch.zeros(nodes, 3, dtype=torch.float64)
    for node in range(nodes):
        near = edges[0, edges[1] == node].tolist() + [node] * with_self
        if near:
            expected[node] = h[near].mean(0)
    torch.testing.assert_close(neighbour_mean(adj, h, with_self), expected)
    labels = one_hot(torch.tensor([2, -1, 0]), adj, 3)  # the others came later
    assert labels.tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_aggregators_by_a_loop() -> None:
    torch.manual_seed(0)
    edges, nodes = KITE
    adj, x, made = adjacency(edges, nodes), random_features(nodes, 2), Aggregators(2).double()
    rows, count = [], []
    for node in range(nodes):
        near = x[[*edges[0, edges[1] == node].tolist(), node]]
        spread = near.var(0, correction=0).clamp(min=1e-6).sqrt()
        rows.append(torch.cat([near.mean(0), spread, near.amax(0), near.sum(0) / len(near) ** 0.5]))
        count.append(np.log1p(len(near)))
    scale = torch.tensor(count).unsqueeze(1) / float(np.mean(count))
    parts = torch.stack(rows)
    expected = torch.cat([parts, parts * scale], 1) @ made.map.weight.t() + made.map.bias
    torch.testing.assert_close(made(x, adj), expected)


@pytest.mark.parametrize("scored", [True, False])
@pytest.mark.parametrize("aggregators", [True, False])
def test_a_block_adds_what_its_parts_say(scored: bool, aggregators: bool) -> None:
    torch.manual_seed(0)
    adj, h = adjacency(*KITE), random_features(5, 4).float()
    block = Block(4, 2, "layer", 0.5, 0.0, "implicit", scored, True, aggregators).eval()
    if block.factor is not None:
        block.factor.data.copy_(torch.tensor([0.5, -2.0]))
    score = torch.linspace(-1, 1, adj.num_entries)
    n = block.norm(h)
    assert block.conv is not None and (block.aggregators is not None) is aggregators
    structure = block.structure(adj, score)
    assert (structure is not None) is scored and block.structure(adj, None) is None
    out = block.own(n) + block.conv(n, adj, score=structure)
    out = out + block.aggregators(n, adj) if block.aggregators is not None else out
    torch.testing.assert_close(block(h, adj, score), h + out.relu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "options", [{}, {"track_running_stats": False}, {"momentum": None}, {"affine": False}]
)
def test_batch_norm_is_torchs(dtype: torch.dtype, options: dict[str, Any]) -> None:
    ours, theirs = BatchNorm(3, **options).to(dtype), nn.BatchNorm1d(3, **options).to(dtype)
    x = [random_features(2500, 3, dtype=dtype).requires_grad_() for _ in range(2)]
    for _ in range(2):
        found, expected = ours(x[0]), theirs(x[1])
        torch.testing.assert_close(found, expected)
        found.square().sum().backward()
        expected.square().sum().backward()
    torch.testing.assert_close(x[0].grad, x[1].grad, rtol=1e-3, atol=1e-4)
    for (name, one), other in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, msg=name)
    ours.eval()
    theirs.eval()
    torch.testing.assert_close(ours(x[0][:7]), theirs(x[1][:7]))
    layer = LayerNorm(3).to(dtype)
    layer.weight.data.copy_(torch.tensor([1.0, 2.0, 3.0]))
    layer.bias.data.fill_(0.5)
    plain = nn.functional.layer_norm(x[0], (3,), layer.weight, layer.bias, layer.eps)
    torch.testing.assert_close(layer(x[0]), plain)


def test_an_extended_spectrum_by_dense_matrices() -> None:
    """Rows of new nodes follow from lambda u = S u, one after the other until they settle."""
    edges, known, nodes, rank = topic_graph(90, words=30).edge_index, 80, 90, 3
    before, after = adjacency(edges[:, (edges < known).all(0)], known), adjacency(edges, nodes)

    def normalised(edge_index: Tensor, count: int) -> Any:
        a = np.eye(count)
        a[edge_index[0], edge_index[1]] = 1.0
        root = np.sqrt(a.sum(1))
        return a / np.outer(root, root)

    old, new = normalised(before.edge_index, known), normalised(edges, nodes)
    unit = spectral_vectors(before.edge_index, known, rank, 0).double().numpy()
    degree = (old > 0).sum(1)
    count, part = connected_components(old)
    assert count > 1
    vectors = unit * (np.sqrt(degree / np.bincount(part, degree)[part]) / unit[:, 0])[:, None]
    values = np.diag(vectors.T @ old @ vectors) / (vectors**2).sum(0)
    own, rows = np.diag(new)[known:, None], np.zeros((nodes - known, rank))
    for _ in range(200):
        others = new[known:] @ np.concatenate([vectors, rows]) - own * rows
        rows = others / np.maximum(values[None] - own, 0.1)
    expected = np.concatenate([vectors, rows])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = extended_spectrum(before, after, rank).numpy()
    assert found.dtype == np.float32 and np.abs(found - expected).max() < 2e-3


@pytest.mark.parametrize("rank", [2, 3, 40])
def test_a_low_rank_graph_is_the_truncated_svd(rank: int) -> None:
    edges, nodes = random_graph(12, 30, seed=2)
    doubled = torch.cat([edges, edges[:, :5]], dim=1)  # parallel edges count once
    a = np.zeros((nodes, nodes))
    a[edges[1], edges[0]] = 1.0
    u, s, vt = np.linalg.svd(a)
    best = (u[:, :rank] * s[:rank]) @ vt[:rank]
    made = low_rank_graph(doubled, nodes, rank)
    left, right, root = (part.double().numpy() for part in (made.left, made.right, made.scale))
    assert np.allclose(left @ right.T, best, atol=1e-4)
    assert np.allclose(root[:, 0], 1 / np.sqrt(np.maximum(best.sum(1) + 1, 1)), atol=1e-4)
    weighted = low_rank_graph(edges, nodes, 12, torch.full((edges.size(1),), 2.0))
    assert np.allclose(weighted.left.numpy() @ weighted.right.numpy().T, 2 * a, atol=1e-4)


def test_random_scores_lie_between_minus_one_and_one() -> None:
    adj = adjacency(*random_graph(60, 900))
    found = RandomSimilarity(seed=3).similarity(adj, None)
    assert -1.0 <= float(found.min()) < -0.9 and 0.9 < float(found.max()) <= 1.0
    assert abs(float(found.mean())) < 0.1 and not torch.equal(found, RandomSimilarity().similarity(adj, None))


@pytest.mark.parametrize("kind", [JaccardSimilarity, AdamicAdarSimilarity])
def test_overlaps_are_counted_once_for_all_layers(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    compare = overlap.jaccard if kind is JaccardSimilarity else overlap.adamic_adar

    def counted(*args: Any, cap: int) -> Tensor:
        calls.append(cap)
        return compare(*args, cap=cap)

    monkeypatch.setattr(kind, "compare", staticmethod(counted))
    adj = adjacency(*KITE)
    one, two, other = kind(), kind(), kind(cap=3)
    assert torch.equal(one(adj, None), two(adj, None)) and calls == [128]
    other(adj, None)
    assert calls == [128, 3]


def test_cosines_by_a_loop() -> None:
    adj, x = adjacency(*KITE), random_features(5, 3)
    x[3] = 0.0
    expected = [
        float(x[i] @ x[j] / (x[i].norm() * x[j].norm())) if x[i].norm() * x[j].norm() > 0 else 0.0
        for i, j in zip(adj.row, adj.col, strict=True)
    ]
    for given in (x, x.to_sparse_csr()):
        assert edge_cosine(adj, given).tolist() == pytest.approx(expected)
    assert edge_cosine(adj, x, 2 * x).tolist() == pytest.approx(expected)
    for one, other in ((x, x.to_sparse_csr()), (x.to_sparse_csr(), x)):
        assert edge_cosine(adj, one, other).tolist() == pytest.approx(expected)
    assert edge_cosine(adj, x.to_sparse_csr(), (-x).to_sparse_csr()).tolist() == pytest.approx(
        -np.array(expected)
    )


@pytest.mark.parametrize(
    ("alpha", "sound"), [(0.0, False), (1e-9, True), (1.0, True), (1.5, False), (-0.1, False)]
)
def test_the_chance_to_restart_is_a_chance(alpha: float, sound: bool) -> None:
    if sound:
        zoo.build("appnp", features=3, classes=2, num_nodes=5, alpha=alpha)
        return
    with pytest.raises(InputError, match="alpha="):
        zoo.build("appnp", features=3, classes=2, num_nodes=5, alpha=alpha)


MEMBER = {"name": "a", "model": "gcn", "settings": {}, "weight": 1.0, "divides_rows": True}


@pytest.mark.parametrize(
    ("members", "temperature", "sound"),
    [
        ([MEMBER], 1.0, True),
        ([MEMBER], 0.0, False),
        ([MEMBER], 100.0, False),
        ([MEMBER], 1, False),
        ((MEMBER,), 1.0, False),
        ([{**MEMBER, "weight": 0.0}], 1.0, False),
        ([{**MEMBER, "weight": 1.01}], 1.0, False),
        ([{**MEMBER, "model": "ensemble"}], 1.0, False),
        ([{**MEMBER, "divides_rows": 1}], 1.0, False),
        ([{**MEMBER, "more": 1}], 1.0, False),
        ([7], 1.0, False),
    ],
)
def test_an_ensemble_is_built_from_sound_members_alone(members: Any, temperature: Any, sound: bool) -> None:
    sizes = {"features": 3, "classes": 2, "num_nodes": 5}
    if sound:
        made: Any = zoo.build("ensemble", **sizes, members=members, temperature=temperature)
        assert len(made.members) == 1
        return
    with pytest.raises(InputError, match="ensemble: "):
        zoo.build("ensemble", **sizes, members=members, temperature=temperature)


def test_graphs_as_models_read_them() -> None:
    graph = small_data()
    joining = next(name for name in zoo.EMBEDDINGS if zoo.reads_embedding(name))
    assert zoo.input_graph("gat", graph) is graph and zoo.input_graph("ensemble", graph) is graph
    folder = graph.changed()
    object.__setattr__(folder, "folder", Path("somewhere"))
    with pytest.raises(InputError, match="use another for a folder"):
        zoo.input_graph(joining, folder)
    joined = zoo.input_graph(joining, graph, dim=4)
    assert joined.num_features == graph.num_features + 4 and not zoo.reads_embedding("ensemble")


def test_sizes_and_widths_are_checked() -> None:
    assert checks.sizes((3, 4), (3, 4)) == (3, 4) == checks.sizes((3, 4), (3, None))
    for wrong in ((2, 4), (3, 5)):
        with pytest.raises(InputError, match="size: it says"):
            checks.sizes(wrong, (3, 4))
    adj = adjacency(*KITE)
    checks.rows(adj, torch.ones(5, 2), None)
    for src, dst in ((4, None), (5, 6)):
        with pytest.raises(InputError, match="rows for the graph's 5"):
            checks.rows(adj, torch.ones(src, 2), None if dst is None else torch.ones(dst, 2))
    layer = CATConv(3, 2)
    with pytest.raises(InputError, match="it has 4 features, but the layer was made with 3"):
        layer(torch.ones(5, 4), KITE[0])


def test_one_number_per_edge_may_be_a_row() -> None:
    torch.manual_seed(0)
    edges, nodes = KITE
    layer, x = CATConv(3, 2, heads=2, edge_dim=1), random_features(nodes, 3).float()
    weight = torch.linspace(0.0, 1.0, edges.size(1))
    torch.testing.assert_close(
        layer(x, edges, edge_attr=weight), layer(x, edges, edge_attr=weight.unsqueeze(1))
    )
    with pytest.raises(InputError, match="edge_attr: it has shape"):
        layer(x, edges, edge_attr=weight[1:])
    with pytest.raises(InputError, match="edge_attr: missing"):
        layer(x, edges)
    with pytest.raises(InputError, match="without edge_dim"):
        CATConv(3, 2)(x, edges, edge_attr=weight)


def test_defaults_of_similarities() -> None:
    for kind in (JaccardSimilarity, AdamicAdarSimilarity):
        made = kind()
        assert made.cap == 128 and made.temperature.log is not None and made.temperature.start == 8.0
    for learnt in (NormalisedFactorization(5, 2), NormalisedExpression(5, 2)):
        assert learnt.temperature.log is not None and learnt.temperature.start == 8.0
    plain = RandomSimilarity()
    assert plain.seed == 0 and plain.temperature.log is None and plain.temperature.start == 8.0


def test_controls_are_called_so() -> None:
    told = zoo.parse("cat-i-random").about, zoo.parse("cat-i-mf").about
    assert "(a control)" in told[0] and "(a control)" not in told[1]


@pytest.mark.parametrize("size", [None, 1, 3])
def test_the_last_results_are_found_again(size: int | None) -> None:
    made: list[int] = []
    recent: Recent[int] = Recent() if size is None else Recent(size)
    tensors = [torch.ones(2) for _ in range(4)]

    def get(k: int, rest: str = "") -> int:
        def make() -> int:
            made.append(k)
            return len(made)

        return recent.get((tensors[k], None), rest, make)

    most = 2 if size is None else size
    assert recent.last is None
    for k in range(most):
        get(k)
    for k in range(most):
        assert get(k) == k + 1
    assert len(made) == most and recent.last == most
    get(0)  # now the last one used, so that the next drops another
    get(3)
    assert len(made) == most + 1 and get(3) == most + 1
    before = len(made)
    tensors[3].add_(1.0)
    assert get(3) == before + 1  # changed in place
    assert get(3, "other") == before + 2
    copied = copy.deepcopy(recent)
    assert copied.size == most and copied.last is None


def test_random_propagation_by_dense_matrices() -> None:
    """The mean over 0 to K steps of P, with P_ij = exp(C_ij) / sqrt(d_i d_j)."""
    torch.manual_seed(0)
    edges, nodes = KITE
    adj, x = adjacency(edges, nodes), random_features(nodes, 3).float()
    score = torch.linspace(-1, 2, adj.num_entries)
    full = torch.zeros(nodes, nodes)
    full[adj.row, adj.col] = score.exp()
    full = (full + full.t()) / 2
    sym = full[adj.row, adj.col].log()
    degree = full.sum(1)
    p = full / torch.outer(degree, degree).sqrt()
    weights = propagation_weights(adj, sym)
    torch.testing.assert_close(weights.squeeze(1), p[adj.row, adj.col])
    torch.testing.assert_close(propagation_weights(adj, torch.stack([sym + 1, sym - 1], 1)), weights)
    assert float(propagation_weights(adj, 100 * score).max()) <= 1.0
    start = random_features(nodes, 4).float()
    now = start
    for _ in range(3):
        now = 0.9 * p @ now + 0.1 * start
    torch.testing.assert_close(propagate(adj, weights, start, 3, 0.1), now)
    model = RandomPropagation(3, 6, 2, steps=3, gate=True).eval()
    assert model.gate is not None
    model.gate.data.copy_(torch.tensor([0.5, 1.0, 2.0]))
    model.first_bias.data.uniform_(-1, 1)
    plain = propagation_weights(adj, None)
    q = torch.zeros(nodes, nodes)
    q[adj.row, adj.col] = plain.squeeze(1)
    hidden = (x * model.gate) @ model.first.weight.t()
    mean = sum(torch.linalg.matrix_power(q, k) @ hidden for k in range(4)) / 4
    expected = (mean + model.first_bias).relu()
    torch.testing.assert_close(model.embed(x, adj), expected)
    logits, penalty = model.predict_often(x, adj, passes=3)
    torch.testing.assert_close(logits, model.second(expected).expand(3, -1, -1))
    assert float(penalty.detach()) == 0.0
    other = adjacency(*KITE)
    passes, _ = model.predict_often(x, adj, passes=2, perturb=lambda x, graph: (2 * x, other))
    torch.testing.assert_close(passes[1], model(2 * x, adj))
    found = model.attention(x, adj)[0]
    torch.testing.assert_close(found.structural, adj.to_user_order(plain).squeeze(1))


def test_masked_nodes_are_made_up_for() -> None:
    torch.manual_seed(0)
    model = RandomPropagation(3, 6, 2, dropout=0.0, drop_node=0.25).train()
    x = torch.ones(20_000, 3)
    made, plain = model._project(x), x @ model.first.weight.t()
    share = (made == 0).all(1).float().mean().item()
    assert share == pytest.approx(0.25, abs=0.02)
    kept = ~(made == 0).all(1)
    torch.testing.assert_close(made[kept], plain[kept] / 0.75)
    model.drop_node = 0.0
    torch.testing.assert_close(model._project(x), plain)


def test_gaussian_kernels_are_spread_over_the_coordinates() -> None:
    made = GaussianConvolution(3, 2, 4)
    assert made.mu.tolist() == [[c, c] for c in (-0.75, -0.25, 0.25, 0.75)] and bool((made.sigma == 1).all())
    adj, x = adjacency(*KITE), random_features(5, 3).float()
    where = random_features(adj.num_entries, 2).float()
    expected = made.bias.expand(5, 2).clone()
    for node in range(5):
        here = (adj.row == node).nonzero().squeeze(1)
        far = (where[here].unsqueeze(1) - made.mu).square().sum(-1)
        for k, share in enumerate((-0.5 * far).softmax(0).t()):
            expected[node] += (share @ x[adj.col[here]]) @ made.g[:, 2 * k : 2 * k + 2]
    torch.testing.assert_close(made(x, adj, where), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_means_over_known_neighbours_by_a_loop(weighted: bool) -> None:
    """Node 3 is new and hears 2, node 4 is new and hears nobody but itself and 3."""
    edges = torch.tensor([[0, 1, 2, 0, 3], [1, 2, 3, 3, 4]])
    adj, held = adjacency(edges, 5), random_features(3, 2).float()
    adj = adj.with_weights(torch.tensor([1.0, 2.0, 3.0, 5.0, 7.0])) if weighted else adj
    share = 3.0 / 8.0 if weighted else 0.5
    expected = torch.stack([share * held[2] + (1 - share) * held[0], torch.zeros(2)])
    torch.testing.assert_close(_mean(held, adj), expected)


def test_values_are_compared_with_their_kind() -> None:
    a, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]])
    assert _equal(a, a) is True and _equal(a, b) is True and _equal(a, b + 1) is False
    assert _equal(a, torch.ones(1, 3)) is False and _equal(a, a.to_sparse_csr()) is False
    assert _equal(a.to_sparse_csr(), b.to_sparse_csr()) and not _equal(
        a.to_sparse_csr(), (2 * b).to_sparse_csr()
    )
    assert _equal(torch.ones(2, 2).to_sparse_csr(), torch.eye(2).to_sparse_csr()) is False


def test_a_perturbed_graph_is_scored_as_the_one_it_comes_from() -> None:
    torch.manual_seed(0)
    model = zoo.build("cat-i-mf", features=3, classes=2, num_nodes=5, hidden=4, heads=2, dropout=0.0).eval()
    adj, other, x = adjacency(*KITE), adjacency(*KITE), random_features(5, 3).float()
    plain = model(x, adj)
    for perturb in (None, lambda x, graph: (x, graph), lambda x, graph: (x, other)):
        logits, penalty = model.predict_often(x, adj, adj, 2, perturb)
        torch.testing.assert_close(logits, plain.expand(2, -1, -1))
        torch.testing.assert_close(penalty, model.penalty(adj))


def test_what_a_network_refuses() -> None:
    sizes: dict[str, Any] = {"features": 3, "classes": 2, "num_nodes": 5}
    for wrong in ({"bias": "some"}, {"norm": "odd"}, {"dropout": 1.0}, {"num_layers": 0}, {"heads": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            zoo.build("gat", **sizes, **wrong)
    with pytest.raises(InputError, match="intervention= is given too"):
        CAT(3, 4, 2, intervention="fs", interventions=["smooth"])  # type: ignore[list-item]
    x, field = torch.ones(5, 3), receptive_field(adjacency(*KITE), torch.tensor([0]), 3)
    with pytest.raises(InputError, match="a field of 3 hops for 2 layers"):
        zoo.build("gat", **sizes)(x, field)
    with pytest.raises(InputError, match="only the whole graph will do"):
        zoo.build("gat", **sizes, propagate=2)(x, receptive_field(adjacency(*KITE), torch.tensor([0]), 2))


def test_logits_that_take_steps_along_the_edges() -> None:
    torch.manual_seed(0)
    adj, x = adjacency(*KITE), random_features(5, 3).float()
    sizes: dict[str, Any] = {"features": 3, "classes": 2, "num_nodes": 5, "hidden": 4, "heads": 2}
    plain, moved = (zoo.build("gat", **sizes, seed=1, propagate=steps).eval() for steps in (0, 3))
    made: Any = moved
    expected = propagate(adj, propagation_weights(adj, None), plain(x, adj), 3, made.teleport)
    torch.testing.assert_close(moved(x, adj), expected)


def test_what_was_seen_is_known_again() -> None:
    adj, x = adjacency(*KITE), random_features(5, 3)
    bare, seen = _Seen(adj, None, 0), _Seen(adj, x, x._version)
    assert bare.has_features(None) and not bare.has_features(x) and not seen.has_features(None)
    assert seen.has_features(x.clone()) and not seen.has_features(x + 1.0)
    assert seen.has_edges(adjacency(*KITE)) and not seen.has_edges(adjacency(*random_graph(5, 3)))
    x.add_(1.0)
    assert not seen.has_features(x)


def test_random_propagation_has_one_unit_or_more() -> None:
    RandomPropagation(3, 1, 1, steps=0, dropout=0.0, drop_node=0.0)
    for wrong in (
        {"hidden_channels": 0},
        {"out_channels": 0},
        {"steps": -1},
        {"dropout": 1.0},
        {"drop_node": 1.0},
    ):
        given: dict[str, Any] = {"hidden_channels": 1, "out_channels": 1, **wrong}
        with pytest.raises(InputError, match=next(iter(wrong))):
            RandomPropagation(3, **given)


def test_smoothing_over_no_hop_compares_the_features_themselves() -> None:
    adj, x = adjacency(*random_graph(30, 80)), random_features(30, 5).float()
    found = SmoothedSimilarity(rank=5, hops=0).similarity(adj, x)
    vectors = torch.from_numpy(reduced_features(x, rank=5, seed=0, centre=True))
    torch.testing.assert_close(found, edge_cosine(adj, vectors), rtol=1e-4, atol=1e-4)
    cases: list[dict[str, Any]] = [{"hops": -1}, {"rank": 0}]
    for wrong in cases:
        with pytest.raises(InputError, match="choose a rank of 1 or more and hops of 0 or more"):
            SmoothedSimilarity(**wrong)
