"""CATConv against the dense oracle, equation by equation."""

import contextlib
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import oracle
from conjoint import (
    CATConv,
    Constant,
    FeatureSimilarity,
    Intervention,
    MatrixFactorization,
    SelfExpression,
    Structure,
    adjacency,
    kernels,
)
from conjoint.errors import InputError
from conjoint.graph.sparse import to_csr
from conjoint.nn import ops
from conjoint.nn.attention import ConjointAttention
from conjoint.nn.conjoint_layer import ConjointLayer
from graphs import ALL, KITE, random_features, random_graph

HEADS, OUT = 3, 4


def layer(strategy: str, n: int, width: int, **options: object) -> CATConv:
    torch.manual_seed(1)
    options.setdefault("intervention", MatrixFactorization(n, 2))
    conv = CATConv(width, OUT, HEADS, bias=False, strategy=strategy, **options).double()  # type: ignore[arg-type]
    for parameter in (conv.mix_logit, conv.eps_logit):
        if parameter is not None:
            torch.nn.init.normal_(parameter)
    return conv


def dense_output(conv: CATConv, x: Tensor, edges: Tensor, n: int, c: np.ndarray) -> np.ndarray:
    """Eq. 4-9, head by head."""
    mask = oracle.neighbourhood(edges.numpy(), n)
    assert conv.lin is not None
    weight = conv.lin.weight.detach().numpy()
    heads = []
    for k in range(conv.heads):
        h = x.numpy() @ weight[k * OUT : (k + 1) * OUT].T
        s = oracle.structural_attention(c, mask)
        alpha = s
        if conv.att_src is not None and conv.att_dst is not None:
            src, dst = conv.att_src[0, k].detach().numpy(), conv.att_dst[0, k].detach().numpy()
            f = oracle.feature_attention(h, src, dst, mask, conv.negative_slope)
            if conv.intervention is None:
                alpha = f
            elif conv.strategy == "explicit":
                alpha = oracle.explicit(f, s)
            else:
                assert conv.mix_logit is not None
                alpha = oracle.implicit(f, s, *oracle.mixing(*conv.mix_logit[k].tolist()))
        eps = 0.0 if conv.eps is None else conv.eps[k].item()
        heads.append(oracle.aggregate(alpha, h, eps, mask))
    return np.concatenate(heads, axis=1)


@pytest.mark.parametrize("name", ["kite", "star", "random"])
@pytest.mark.parametrize("strategy", ["implicit", "explicit", "structural"])
@pytest.mark.parametrize(
    "width", [5, 30]
)  # fewer and more than heads * out: aggregate-first, transform-first
def test_output_equals_the_equations(name: str, strategy: str, width: int) -> None:
    edges, n = ALL[name] if name in ALL else random_graph(25, 60, undirected=False)
    x = random_features(n, width)
    conv = layer(strategy, n, width)
    assert isinstance(conv.intervention, MatrixFactorization)
    v = conv.intervention.factors.detach().numpy()
    out = conv(x, edges)
    np.testing.assert_allclose(out.detach().numpy(), dense_output(conv, x, edges, n, v @ v.T), atol=1e-10)


def test_without_intervention_and_self_term_it_is_gat() -> None:
    from torch_geometric.nn import GATConv

    edges, n = random_graph(30, 80)
    x = random_features(n, 20)
    gat = GATConv(20, OUT, HEADS).double()
    conv = CATConv(20, OUT, HEADS, self_term=False).double()
    conv.load_state_dict(gat.state_dict())
    torch.testing.assert_close(conv(x, edges), gat(x, edges), rtol=0, atol=1e-12)


def test_feature_similarity_and_constant_as_interventions() -> None:
    edges, n = random_graph(25, 60)
    x = random_features(n, 30)
    for intervention, c in (
        (FeatureSimilarity(), oracle.cosine(x.numpy())),
        (Constant(), np.zeros((n, n))),
    ):
        conv = layer("explicit", n, 30, intervention=intervention)
        expected = dense_output(conv, x, edges, n, c)
        np.testing.assert_allclose(conv(x, edges).detach().numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("strategy", ["implicit", "explicit", "structural"])
@pytest.mark.parametrize("kind", ["mf", "sc", "fs"])
@pytest.mark.parametrize("width", [3, 14])
def test_gradients(strategy: str, kind: str, width: int) -> None:
    edges, n = KITE
    makes: dict[str, Intervention] = {
        "mf": MatrixFactorization(n, 2),
        "sc": SelfExpression(n, 2),
        "fs": FeatureSimilarity(),
    }
    conv = layer(strategy, n, width, intervention=makes[kind])
    adj = adjacency(edges, n)
    x = random_features(n, width).requires_grad_()
    names, values = zip(*conv.named_parameters(), strict=True)

    def run(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        out = torch.func.functional_call(conv, dict(zip(names, values, strict=True)), (x, adj))
        assert conv.intervention is not None
        return out, conv.intervention.penalty(adj)

    assert torch.autograd.gradcheck(run, (x, *values), atol=1e-6)


def test_explicit_equals_the_renormalised_product_for_extreme_scores() -> None:
    edges, n = KITE
    x = random_features(n, 6).float()
    conv = CATConv(6, OUT, HEADS, strategy="explicit", intervention=Constant())
    scores = torch.linspace(-1e4, 1e4, edges.size(1))
    out, attention = conv(x, edges, return_attention_weights=True, score=scores)
    assert bool(torch.isfinite(out).all())
    torch.testing.assert_close(attention.sums(), torch.ones(n, HEADS))


@pytest.mark.parametrize("strategy", ["implicit", "explicit"])
def test_attention_comes_back_whole_and_in_parts(strategy: str) -> None:
    edges, n = random_graph(20, 50, undirected=False)
    x = random_features(n, 30)
    conv = layer(strategy, n, 30, dropout=0.5)
    conv.train()
    _, attention = conv(x, edges, return_attention_weights=True)
    edge_index, alpha = attention
    assert torch.equal(edge_index[:, : edges.size(1)], edges)
    assert alpha.shape == (edges.size(1) + n, HEADS)
    torch.testing.assert_close(attention.sums(), torch.ones(n, HEADS, dtype=torch.double))
    f, s = attention.feature, attention.structural
    assert f is not None and s is not None
    if strategy == "implicit":
        assert attention.mix is not None
        torch.testing.assert_close(attention.mix.sum(-1), torch.ones(HEADS, dtype=torch.double))
        torch.testing.assert_close(alpha, attention.mix[:, 0] * f + attention.mix[:, 1] * s.unsqueeze(1))
    else:
        product = f * s.unsqueeze(1)
        total = torch.zeros(n, HEADS, dtype=torch.double).index_add(0, edge_index[1], product)
        torch.testing.assert_close(alpha, product / total[edge_index[1]])


def test_scores_given_from_outside_equal_those_of_the_intervention() -> None:
    edges, n = random_graph(20, 50)
    x = random_features(n, 8)
    conv = layer("implicit", n, 8)
    assert isinstance(conv.intervention, MatrixFactorization)
    adj = adjacency(edges, n)
    shared = Structure(adj, conv.intervention(adj))
    torch.testing.assert_close(conv(x, adj, score=shared), conv(x, edges))
    v = conv.intervention.factors
    per_edge = (v[edges[1]] * v[edges[0]]).sum(-1)
    with_mean_loops = conv(x, edges, score=per_edge)
    assert with_mean_loops.shape == (n, HEADS * OUT)


def test_sparse_features_give_the_dense_result() -> None:
    edges, n = random_graph(20, 50)
    x = random_features(n, 40).float()
    x[x.abs() < 1.0] = 0.0
    conv = CATConv(40, OUT, HEADS, intervention=MatrixFactorization(n, 2), residual=True)
    sparse = to_csr(x.numpy())
    torch.testing.assert_close(conv(sparse, edges), conv(x, edges), rtol=1e-5, atol=1e-5)
    conv(sparse, edges).sum().backward()
    assert conv.lin is not None and conv.lin.weight.grad is not None
    from_sparse = conv.lin.weight.grad.clone()
    conv.zero_grad()
    conv(x, edges).sum().backward()
    torch.testing.assert_close(conv.lin.weight.grad, from_sparse, rtol=1e-4, atol=1e-4)


def test_dropout_follows_the_global_seed_and_is_off_in_evaluation() -> None:
    edges, n = random_graph(20, 80)
    x = random_features(n, 8)
    conv = layer("implicit", n, 8, dropout=0.6, self_dropout=0.9)

    def run(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return conv(x, edges).detach()

    conv.train()
    assert torch.equal(run(3), run(3))
    assert not torch.equal(run(3), run(4))
    conv.eval()
    assert torch.equal(run(3), run(4))


def test_dropout_keeps_the_expectation() -> None:
    edges, n = random_graph(10, 30)
    x = random_features(n, 8)
    conv = layer("implicit", n, 8, dropout=0.5, self_dropout=0.5)
    conv.eval()
    expected = conv(x, edges).detach()
    conv.train()
    torch.manual_seed(0)
    mean = torch.stack([conv(x, edges).detach() for _ in range(600)]).mean(0)
    assert float((mean - expected).abs().mean()) < 0.08 * float(expected.abs().mean())


def test_self_term_stays_inside_its_bounds() -> None:
    conv = CATConv(4, 2, 2)
    assert conv.eps is not None and conv.eps_logit is not None
    for value in (-15.0, 0.0, 15.0):
        torch.nn.init.constant_(conv.eps_logit, value)
        assert bool(((conv.eps > 0) & (conv.eps < 1)).all())


@pytest.mark.parametrize("path", ["kernels", "plain", "watched", "bipartite", "dropped"])
def test_the_self_term_is_epsilon_over_the_size_of_the_neighbourhood(path: str) -> None:
    """Eq. 9 with epsilon and without it differ by eps / |N_i| W x_i, whatever computes them."""
    edges = torch.tensor([[0, 1, 2, 3, 3, 4], [1, 0, 1, 1, 2, 0]])
    x = torch.randn(5, 6, dtype=torch.float64)
    bipartite = path == "bipartite"
    conv = CATConv((6, 6) if bipartite else 6, 2, 3, add_self_loops=not bipartite, bias=False).double()
    assert conv.eps_logit is not None
    conv.eps_logit.data = torch.tensor([-1.0, 0.3, 2.0], dtype=torch.float64)
    share = 0.5 if path == "dropped" else 0.0
    conv.self_dropout = share
    if path == "watched":
        conv.register_message_forward_hook(lambda module, inputs, out: None)
    lin = conv.lin_dst if bipartite else conv.lin
    assert lin is not None
    with kernels.disabled() if path == "plain" else contextlib.nullcontext():
        given = (x, x.clone()) if bipartite else x
        found = conv(given, edges)
        conv.eps_logit.data.fill_(-torch.inf)
        found = (found - conv(given, edges)).view(5, 3, 2)
    size = torch.bincount(edges[1], minlength=5) + (0 if bipartite else 1)
    eps = torch.tensor([-1.0, 0.3, 2.0], dtype=torch.float64).sigmoid()
    wanted = (eps / size.clamp(min=1).unsqueeze(1)).unsqueeze(2) * lin(x).view(5, 3, 2)
    if share:
        kept = found != 0
        assert bool(kept.any()) and not bool(kept.all())
        wanted = wanted * kept / (1 - share)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fast", [True, False])
def test_features_and_structure_keep_their_shares_on_weighted_graphs(fast: bool) -> None:
    """With r_f far from r_s: at 50/50, where training begins, the two could change places unseen."""
    edges = torch.tensor([[0, 1, 2, 3, 3, 4], [1, 0, 1, 1, 2, 0]])
    adj = adjacency(edges, 5).with_weights(torch.tensor([1.0, 2.0, 0.5, 4.0, 1.5, 3.0]))
    x = torch.randn(5, 6, dtype=torch.float64)
    conv = CATConv(6, 4, 2, intervention=MatrixFactorization(5, 2), self_term=False, bias=False).double()
    assert conv.mix_logit is not None and conv.lin is not None and conv.intervention is not None
    conv.mix_logit.data = torch.tensor([[2.0, -1.0], [-3.0, 0.5]], dtype=torch.float64)
    with contextlib.nullcontext() if fast else kernels.disabled():
        out, found = conv(x, adj, return_attention_weights=True)
        alone = conv(x, adj)
        score = conv.intervention(adj, x)
    feature = CATConv(6, 4, 2, self_term=False, bias=False).double()
    feature.load_state_dict({k: v for k, v in conv.state_dict().items() if k.startswith(("lin", "att"))})
    f = feature(x, adj, return_attention_weights=True)[1].conjoint
    assert adj.log_weight is not None
    weight = score.exp() * adj.log_weight.exp()
    s = adj.to_user_order(weight / torch.zeros(5).double().index_add(0, adj.row, weight)[adj.row])
    share = conv.mix_logit.softmax(-1)
    wanted = share[:, 0] * f + share[:, 1] * s.unsqueeze(1)
    torch.testing.assert_close(found.conjoint, wanted, rtol=1e-6, atol=1e-8)
    assert not torch.allclose(found.conjoint, share[:, 1] * f + share[:, 0] * s.unsqueeze(1), atol=1e-3)
    source, target = found.edge_index
    messages = wanted.unsqueeze(2) * conv.lin(x).view(5, 2, 4)[source]
    summed = torch.zeros(5, 2, 4).double().index_add(0, target, messages).flatten(1)
    torch.testing.assert_close(out, summed, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(alone, summed, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("width", [3, 30])
def test_averaged_heads_are_the_mean_of_concatenated_ones_on_every_path(width: int) -> None:
    edges, n = random_graph(20, 50)
    x = random_features(n, width)
    side, mean = layer("implicit", n, width), layer("implicit", n, width, concat=False)
    mean.load_state_dict(side.state_dict())
    wanted = side(x, edges).view(n, HEADS, OUT).mean(1)
    torch.testing.assert_close(mean(x, edges), wanted)
    torch.testing.assert_close(mean(x, edges, return_attention_weights=True)[0], wanted)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_dropout_of_the_features_may_be_left_to_the_layer(sparse: bool, bias: bool) -> None:
    """Dense and sparse x, with W before and after the sum: the same as features that were dropped before."""
    edges, n = random_graph(25, 60, undirected=False)
    seed = torch.tensor([5])
    for width in (5, 30):
        torch.manual_seed(0)
        x, conv = random_features(n, width), CATConv(width, OUT, HEADS, bias=bias).double()
        if conv.bias is not None:
            torch.nn.init.normal_(conv.bias)
        given = x.to_sparse_csr() if sparse else x
        wanted = conv(ops.drop(given, 0.4, seed).to_dense() if sparse else ops.drop(x, 0.4, seed), edges)
        torch.testing.assert_close(conv(given, edges, x_dropout=(0.4, seed)), wanted)
        with kernels.disabled():
            torch.testing.assert_close(conv(given, edges, x_dropout=(0.4, seed)), wanted)
    with pytest.raises(InputError, match="x_dropout"):
        CATConv((30, 30), OUT, add_self_loops=False)((x.float(), x.float()), edges, x_dropout=(0.4, seed))


@pytest.mark.parametrize("options", [{"intervention": Constant()}, {"edge_dim": 3, "residual": True}])
@pytest.mark.parametrize("bipartite", [False, True])
def test_every_part_is_drawn_anew(options: dict[str, Any], bipartite: bool) -> None:
    made = []
    for _ in range(2):
        torch.manual_seed(4)
        conv = CATConv((6, 5) if bipartite else 6, 2, 3, add_self_loops=not bipartite, **options)
        made.append(conv)
    for part in made[0].parameters():
        part.data.fill_(7.0)
    torch.manual_seed(4)
    made[0].reset_parameters()
    for (name, one), other in zip(made[0].state_dict().items(), made[1].state_dict().values(), strict=True):
        assert not bool((one == 7.0).any()) and bool(one.any()) is bool(other.any()), name
        assert one.std(correction=0) == 0.0 or float(one.min()) < 0.0 < float(one.max()), name


def test_messages_that_are_looked_at_are_dropped_as_others_are() -> None:
    edges, n = random_graph(12, 40)
    x, conv = random_features(n, 6), layer("implicit", n, 6, dropout=0.5, self_term=False)
    conv.train()
    torch.manual_seed(1)
    expected = conv(x, edges)
    conv.register_message_forward_hook(lambda module, inputs, out: None)
    torch.manual_seed(1)
    torch.testing.assert_close(conv(x, edges), expected)
    assert not torch.allclose(conv.eval()(x, edges), expected)


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("channels", [1, OUT])
@pytest.mark.parametrize("parts", [True, False])
def test_so_many_averaged_heads_are_as_wide_as_one(heads: int, channels: int, parts: bool) -> None:
    edges, n = random_graph(20, 50)
    x = random_features(n, 30)
    side, mean = (CATConv(30, channels, heads, concat=way, bias=False).double() for way in (True, False))
    mean.load_state_dict(side.state_dict())
    found = mean(x, edges, return_attention_weights=True)[0] if parts else mean(x, edges)
    torch.testing.assert_close(found, side(x, edges).view(n, heads, channels).mean(1))


@pytest.mark.parametrize("width", [3, 30])
def test_the_layer_without_pyg_is_the_same(width: int) -> None:
    edges, n = random_graph(20, 50)
    x, torchs = random_features(n, width), CATConv(width, OUT, HEADS, residual=True).double()
    plain = ConjointLayer(width, OUT, HEADS, residual=True).double()
    plain.load_state_dict(torchs.state_dict())
    for mode in (True, False):
        plain.train(mode), torchs.train(mode)
        found, attention = plain(x, edges, return_attention_weights=True)
        assert torch.equal(plain(x, edges), torchs(x, edges)) and isinstance(attention, ConjointAttention)
        torch.testing.assert_close(found, torchs(x, edges))
    plain.self_dropout = 0.5
    assert not torch.equal(plain.train()(x, edges), torchs(x, edges))


@pytest.mark.parametrize("width", [5, 30])
def test_a_self_term_that_is_not_dropped_has_the_same_bits_in_training(width: int) -> None:
    edges, n = random_graph(25, 60)
    conv, x = layer("implicit", n, width), random_features(n, width)
    assert torch.equal(conv.train()(x, edges), conv.eval()(x, edges))
