"""Each baseline against PyG's own layers with the same weights, on dense and on sparse features."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn as pyg

from conjoint.errors import InputError
from conjoint.graph.sparse import to_csr
from conjoint.nn import baselines as base
from conjoint.nn import ops
from conjoint.nn.baselines import ARMAConvolution, GaussianConvolution, symmetric
from conjoint.nn.layers import dropped, project
from conjoint.nn.model import NodeModel
from conjoint.nn.ops import draw_seed

NODES, FEATURES, CLASSES = 12, 9, 3

MODELS: dict[str, Callable[[], NodeModel]] = {
    "gcn": lambda: base.GCN(FEATURES, CLASSES, hidden=16, num_layers=3),
    "jknet-cat": lambda: base.JKNet(FEATURES, CLASSES, hidden=4, num_layers=3),
    "jknet-max": lambda: base.JKNet(FEATURES, CLASSES, mode="max"),
    "sgc": lambda: base.SGC(FEATURES, CLASSES),
    "appnp": lambda: base.APPNP(FEATURES, CLASSES),
    "sage": lambda: base.SAGE(FEATURES, CLASSES),
    "arma": lambda: base.ARMA(FEATURES, CLASSES, num_stacks=3, num_layers=2),
    "gin": lambda: base.GIN(FEATURES, CLASSES, hidden=6, train_eps=True),
    "gin-linear": lambda: base.GIN(FEATURES, CLASSES, mlp_layers=1),
    "gin-no-norm": lambda: base.GIN(FEATURES, CLASSES, norm="none"),
    "monet": lambda: base.MoNet(FEATURES, CLASSES),
}


@pytest.fixture
def edge_index() -> Tensor:
    """A ring with two chords and a bridge to a triangle; node 11 stands alone."""
    ring = [(i, (i + 1) % 8) for i in range(8)] + [(0, 4), (2, 6)]
    pairs = [*ring, (7, 8), (8, 9), (9, 10), (10, 8)]
    one_way = torch.tensor(pairs).t()
    return torch.cat([one_way, one_way.flip(0)], dim=1)


@pytest.fixture
def x() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    values = torch.rand(NODES, FEATURES, generator=generator)
    return values * (torch.rand(NODES, FEATURES, generator=generator) < 0.5)


def build(name: str) -> NodeModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return MODELS[name]()


@pytest.mark.parametrize("name", MODELS)
def test_sparse_features_give_the_logits_and_gradients_of_dense_ones(
    name: str, x: Tensor, edge_index: Tensor
) -> None:
    results = []
    for features in (x, to_csr(x.numpy())):
        model = build(name).eval()
        out = model(features, model.prepare(edge_index, NODES))
        out.square().sum().backward()
        results.append((out, {key: p.grad for key, p in model.named_parameters()}))
    (dense, dense_grad), (sparse, sparse_grad) = results
    assert dense.shape == (NODES, CLASSES)
    torch.testing.assert_close(sparse, dense)
    for key, grad in dense_grad.items():
        assert grad is not None and bool(torch.isfinite(grad).all()), key
        torch.testing.assert_close(sparse_grad[key], grad, msg=key)


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"sgc"}))
def test_dropout_acts_in_training_alone_and_follows_the_seed(
    name: str, x: Tensor, edge_index: Tensor
) -> None:
    model = build(name)
    graph = model.prepare(edge_index, NODES)

    def draw(seed: int, features: Tensor) -> Tensor:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            return model(features, graph)

    model.train()
    assert not torch.equal(draw(0, x), draw(1, x))
    assert torch.equal(draw(0, x), draw(0, x))
    assert torch.equal(draw(0, to_csr(x.numpy())), draw(0, to_csr(x.numpy())))
    model.eval()
    assert torch.equal(draw(0, x), draw(1, x))


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_dropout_that_waits_for_the_product_is_dropout(dropout: float, x: Tensor) -> None:
    module = torch.nn.Module().train()
    sparse, weight = to_csr(x.numpy()), torch.eye(FEATURES)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        twice = project(dropped(module, dropped(module, sparse, 0.3), dropout), weight)
        torch.manual_seed(4)
        first = ops.drop(sparse, 0.3, draw_seed())
        expected = (ops.drop(first, dropout, draw_seed()) if dropout else first).to_dense()
    assert bool((expected == 0).sum() > (x == 0).sum())
    torch.testing.assert_close(twice, expected)


@pytest.mark.parametrize("name", MODELS)
def test_embeddings_are_one_finite_row_per_node(name: str, x: Tensor, edge_index: Tensor) -> None:
    model = build(name).eval()
    hidden = model.embed(x, model.prepare(edge_index, NODES))
    assert hidden.size(0) == NODES and bool(torch.isfinite(hidden).all())


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_without_edges_is_no_obstacle(name: str, x: Tensor) -> None:
    model = build(name).eval()
    out = model(x, model.prepare(torch.empty(2, 0, dtype=torch.long), NODES))
    assert bool(torch.isfinite(out).all())


@pytest.mark.parametrize("name", MODELS)
def test_a_model_can_learn_labels_that_follow_the_features(name: str, x: Tensor, edge_index: Tensor) -> None:
    model = build(name)
    graph = model.prepare(edge_index, NODES)
    labels = torch.arange(NODES) // 4  # neighbours mostly agree, as all these models presume
    clear = torch.cat([F.one_hot(labels, CLASSES).float(), x], dim=1)[:, :FEATURES]
    optimiser = torch.optim.Adam(model.parameters(), lr=0.03)
    model.eval()  # the question is whether gradients reach the weights, not how dropout regularises
    losses = []
    for _ in range(120):
        optimiser.zero_grad()
        loss = F.cross_entropy(model(clear, graph), labels)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.6 * losses[0]


def test_gcn_is_two_gcn_convs(x: Tensor, edge_index: Tensor) -> None:
    weight = torch.rand(edge_index.size(1), generator=torch.Generator().manual_seed(0))
    model = base.GCN(FEATURES, CLASSES).eval()
    convs = [pyg.GCNConv(FEATURES, 16), pyg.GCNConv(16, CLASSES)]
    for ours, theirs in zip(model.convs, convs, strict=True):
        theirs.load_state_dict(ours.state_dict())
    for edge_weight in (None, weight):
        expected = convs[1](convs[0](x, edge_index, edge_weight).relu(), edge_index, edge_weight)
        torch.testing.assert_close(model(x, model.prepare(edge_index, NODES, edge_weight)), expected)


def test_jknet_reads_every_layer(x: Tensor, edge_index: Tensor) -> None:
    model = base.JKNet(FEATURES, CLASSES, hidden=4, num_layers=2).eval()
    convs = [pyg.GCNConv(FEATURES, 4), pyg.GCNConv(4, 4)]
    for ours, theirs in zip(model.convs, convs, strict=True):
        theirs.load_state_dict(ours.state_dict())
    first = convs[0](x, edge_index).relu()
    both = torch.cat([first, convs[1](first, edge_index).relu()], dim=1)
    expected = F.linear(both, model.read.weight, model.read.bias)
    torch.testing.assert_close(model(x, model.prepare(edge_index, NODES)), expected)


def test_sgc_is_sg_conv(x: Tensor, edge_index: Tensor) -> None:
    model = base.SGC(FEATURES, CLASSES, steps=3).eval()
    theirs = pyg.SGConv(FEATURES, CLASSES, K=3, bias=False)
    theirs.lin.load_state_dict(model.read.state_dict())
    torch.testing.assert_close(model(x, model.prepare(edge_index, NODES)), theirs(x, edge_index))


def test_appnp_spreads_as_pyg_does(x: Tensor, edge_index: Tensor) -> None:
    ours = base.APPNP(FEATURES, CLASSES, steps=7, alpha=0.2).eval()
    expected = pyg.APPNP(7, 0.2)(x, edge_index)
    torch.testing.assert_close(ours.propagated(x, symmetric(edge_index, NODES)), expected)


def test_appnp_drops_edges_with_the_right_mean(x: Tensor, edge_index: Tensor) -> None:
    ours = base.APPNP(FEATURES, CLASSES, steps=1, alpha=0.2).train()
    graph = symmetric(edge_index, NODES)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        mean = torch.stack([ours.propagated(x, graph) for _ in range(2000)]).mean(dim=0)
    torch.testing.assert_close(mean, ours.eval().propagated(x, graph), atol=0.05, rtol=0)


def test_sage_is_two_sage_convs(x: Tensor, edge_index: Tensor) -> None:
    model = base.SAGE(FEATURES, CLASSES).eval()
    hidden = x
    conv: Any
    for layer, conv in enumerate(model.convs):
        theirs = pyg.SAGEConv(conv.in_channels, conv.out_channels, bias=False)
        theirs.lin_l.load_state_dict(conv.lin_l.state_dict())
        theirs.lin_r.weight.data.copy_(conv.lin_r.weight)
        hidden = theirs(hidden, edge_index) + conv.lin_r.bias
        hidden = hidden.relu() if layer == 0 else hidden
    torch.testing.assert_close(model(x, model.prepare(edge_index, NODES)), hidden)


def test_sage_takes_weighted_means(x: Tensor) -> None:
    model = base.SAGE(FEATURES, CLASSES)
    edges = torch.tensor([[1, 2], [0, 0]])
    graph = model.prepare(edges, NODES, torch.tensor([1.0, 3.0]))
    torch.testing.assert_close(graph.gather(x)[0], (x[1] + 3 * x[2]) / 4)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("act", [torch.nn.ReLU(), None])
def test_arma_is_arma_conv(shared: bool, act: Any, x: Tensor, edge_index: Tensor) -> None:
    options: dict[str, Any] = {"num_stacks": 3, "num_layers": 3, "shared_weights": shared, "act": act}
    ours = ARMAConvolution(FEATURES, 4, **options).eval()
    theirs = pyg.ARMAConv(FEATURES, 4, **options)
    theirs.load_state_dict(ours.state_dict())
    graph = symmetric(edge_index, NODES, self_loops=False)
    torch.testing.assert_close(ours(x, graph), theirs(x, edge_index))


@pytest.mark.parametrize("settings", [{}, {"norm": "none"}, {"mlp_layers": 1}])
def test_gin_is_gin_convs(settings: dict[str, Any], x: Tensor, edge_index: Tensor) -> None:
    model = base.GIN(FEATURES, CLASSES, hidden=6, **settings).eval()
    hidden = x
    for layer in range(2):
        theirs = pyg.GINConv(torch.nn.Identity())
        theirs.nn = torch.nn.Sequential(model.firsts[layer], _as_module(model.convs[layer].nn))
        hidden = theirs(hidden, edge_index)
        hidden = hidden.relu() if layer == 0 else hidden
    torch.testing.assert_close(model(x, model.prepare(edge_index, NODES)), hidden)


def _as_module(found: Any) -> torch.nn.Module:
    assert isinstance(found, torch.nn.Module)
    return found


def test_monet_weighs_neighbours_by_scaled_gaussians(x: Tensor, edge_index: Tensor) -> None:
    conv = GaussianConvolution(FEATURES, 4, kernels=3)
    torch.nn.init.uniform_(conv.sigma, 0.5, 1.5)
    graph = base.MoNet(FEATURES, CLASSES).prepare(edge_index, NODES)
    linked = torch.eye(NODES)
    linked[edge_index[1], edge_index[0]] = 1.0
    root = linked.sum(dim=1).rsqrt()
    expected = torch.zeros(NODES, 4)
    for k, weight in enumerate(conv.g.view(FEATURES, 3, 4).unbind(1)):
        (mu_i, mu_j), (sigma_i, sigma_j) = conv.mu[k], conv.sigma[k]
        of_i, of_j = ((root - mu_i) / sigma_i).square(), ((root - mu_j) / sigma_j).square()
        gaussian = linked * (-0.5 * (of_i[:, None] + of_j[None, :])).exp()
        expected = expected + gaussian / gaussian.sum(dim=1, keepdim=True) @ x @ weight
    torch.testing.assert_close(conv(x, *graph), expected)


@pytest.mark.parametrize(
    ("network", "wrong"),
    [
        (base.GCN, {"hidden": 0}),
        (base.GCN, {"hidden": 2.5}),
        (base.GCN, {"dropout": 1.0}),
        (base.GCN, {"dropout": "high"}),
        (base.JKNet, {"mode": "lstm"}),
        (base.GIN, {"mlp_layers": 3}),
        (base.APPNP, {"alpha": 0.0}),
        (base.ARMA, {"shared_weights": 1}),
    ],
)
def test_a_bad_setting_is_named(network: Callable[..., NodeModel], wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        network(FEATURES, CLASSES, **wrong)


def test_monet_weighs_edges_by_the_degrees_at_both_ends(edge_index: Tensor, x: Tensor) -> None:
    """Its coordinates are tanh(A u + b) of u = (1 / sqrt(deg i), 1 / sqrt(deg j)), self-loops counted."""
    model: Any = build("monet").eval()
    adj, coordinates = model.prepare(edge_index, NODES)
    degree = 1.0 + torch.bincount(edge_index[1], minlength=NODES)
    u = torch.stack([degree[adj.row].rsqrt(), degree[adj.col].rsqrt()], dim=1)
    torch.testing.assert_close(coordinates, u)
    for k, features in ((0, x), (1, torch.rand(NODES, 16))):
        linear = model.places[k][0]
        places = torch.tanh(u @ linear.weight.t() + linear.bias)
        expected = model.convs[k](features, adj, places)
        torch.testing.assert_close(model.layer(k, features, (adj, coordinates)), expected)
