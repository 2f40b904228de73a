"""What a PyG user may expect of a layer that stands where GATConv stood."""

import copy
import io

import pytest
import torch
from torch import nn
from torch_geometric import EdgeIndex
from torch_geometric.explain import AttentionExplainer, Explainer
from torch_geometric.nn import GATConv, HeteroConv

from conjoint import CAT, CATConv, FeatureSimilarity, InputError, MatrixFactorization
from graphs import KITE, random_features, random_graph

EDGES, N = random_graph(24, 70)
X = random_features(N, 10, dtype=torch.float32)


def make(**options: object) -> CATConv:
    torch.manual_seed(0)
    return CATConv(10, 6, 2, intervention=MatrixFactorization(N, 3), **options)  # type: ignore[arg-type]


def test_signature_begins_as_gatconv_does() -> None:
    import inspect

    ours = list(inspect.signature(CATConv).parameters)
    theirs = [p for p in inspect.signature(GATConv).parameters if p != "kwargs"]
    assert ours[: len(theirs)] == theirs
    ours = list(inspect.signature(CATConv.forward).parameters)
    theirs = list(inspect.signature(GATConv.forward).parameters)
    assert ours[: len(theirs)] == theirs


def test_bipartite_equals_gat_without_the_extras() -> None:
    edges = torch.tensor([[0, 1, 2, 3, 3], [0, 0, 1, 1, 2]])
    pair = (torch.randn(4, 5), torch.randn(3, 7))
    gat = GATConv((5, 7), 6, 2, add_self_loops=False)
    conv = CATConv((5, 7), 6, 2, add_self_loops=False, self_term=False)
    conv.load_state_dict(gat.state_dict())
    torch.testing.assert_close(conv(pair, edges), gat(pair, edges))
    torch.testing.assert_close(conv((pair[0], None), edges), gat((pair[0], None), edges, size=(4, 3)))


def test_bipartite_with_scores_and_self_term() -> None:
    edges = torch.tensor([[0, 1, 2, 3, 3], [0, 0, 1, 1, 2]])
    pair = (torch.randn(4, 5), torch.randn(3, 7))
    conv = CATConv((5, 7), 6, 2, add_self_loops=False, strategy="explicit")
    out, attention = conv(pair, edges, return_attention_weights=True, score=torch.randn(5))
    assert out.shape == (3, 12)
    torch.testing.assert_close(attention.sums(), torch.ones(3, 2))


def test_bipartite_with_self_loops_is_refused_before_computing() -> None:
    edges = torch.tensor([[0, 1], [0, 1]])
    with pytest.raises(InputError, match="pass add_self_loops=False"):
        CATConv((5, 7), 6)((torch.randn(4, 5), torch.randn(4, 7)), edges)


def test_edge_index_class_and_sparse_adjacency() -> None:
    conv = make().eval()
    expected = conv(X, EDGES)
    torch.testing.assert_close(conv(X, EdgeIndex(EDGES, sparse_size=(N, N))), expected)
    adj_t = torch.sparse_coo_tensor(EDGES.flip(0), torch.ones(EDGES.size(1)), (N, N), check_invariants=True)
    torch.testing.assert_close(conv(X, adj_t), expected)


def test_empty_edge_set_and_isolated_nodes() -> None:
    conv = make()
    nothing = torch.empty(2, 0, dtype=torch.long)
    out, attention = conv(X, nothing, return_attention_weights=True)
    torch.testing.assert_close(attention.conjoint, torch.ones(N, 2))
    assert bool(torch.isfinite(out).all())
    bare = make(add_self_loops=False)
    out = bare(X, nothing)
    assert bool(torch.isfinite(out).all())
    out.sum().backward()


def test_no_self_loops_leaves_nodes_without_sources_with_their_self_term_alone() -> None:
    edges, n = KITE
    conv = CATConv(10, 6, 2, add_self_loops=False, self_term=False, bias=False)
    assert bool((conv(X[:n], edges)[4] == 0).all())


def test_duplicate_edges_are_two_messages_as_in_gat() -> None:
    edges = torch.tensor([[0, 0, 1, 2], [1, 1, 0, 1]])
    gat, conv = GATConv(10, 6, 2), CATConv(10, 6, 2, self_term=False)
    conv.load_state_dict(gat.state_dict())
    torch.testing.assert_close(conv(X[:3], edges), gat(X[:3], edges))


FILLS = ["mean", "add", "sum", "mul", "min", "max", 0.5, torch.tensor(0.25), torch.tensor([0.5])]


@pytest.mark.parametrize("fill_value", FILLS, ids=str)
@pytest.mark.parametrize("width", [1, 3])
def test_edge_features_as_in_gat(fill_value: float | str | torch.Tensor, width: int) -> None:
    edge_attr = torch.randn(EDGES.size(1), width)
    gat = GATConv(10, 6, 2, edge_dim=width, fill_value=fill_value)
    conv = CATConv(10, 6, 2, edge_dim=width, fill_value=fill_value, self_term=False)
    conv.load_state_dict(gat.state_dict())
    torch.testing.assert_close(conv(X, EDGES, edge_attr), gat(X, EDGES, edge_attr))
    if width == 1:
        torch.testing.assert_close(conv(X, EDGES, edge_attr[:, 0]), gat(X, EDGES, edge_attr[:, 0]))
    loops = torch.cat([EDGES, torch.tensor([[3, 5], [3, 5]])], 1)  # which the layer replaces by its own
    inputs = (X, loops, torch.randn(loops.size(1), width))
    torch.testing.assert_close(conv(*inputs), gat(*inputs))
    recorded = torch.export.export(conv, inputs).module()
    torch.testing.assert_close(recorded(*inputs), gat(*inputs))


def test_a_tensor_fills_column_by_column_and_other_words_are_refused() -> None:
    fill, edge_attr = torch.tensor([0.5, -1.0, 2.0]), torch.randn(EDGES.size(1), 3)
    gat, conv = GATConv(10, 6, 2, edge_dim=3, fill_value=fill), make_gat(edge_dim=3, fill_value=fill)
    conv.load_state_dict(gat.state_dict())
    torch.testing.assert_close(conv(X, EDGES, edge_attr), gat(X, EDGES, edge_attr))
    with pytest.raises(InputError, match="fill_value: 'median' is unknown; choose one of add"):
        CATConv(10, 6, edge_dim=3, fill_value="median")


def make_gat(**options: object) -> CATConv:
    return CATConv(10, 6, 2, self_term=False, **options)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of PyG's own tensors
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_attention_of_a_sparse_adjacency_is_sparse(layout: torch.layout) -> None:
    edges = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]])
    adj_t = torch.sparse_coo_tensor(edges.flip(0), torch.ones(4), (4, 4), check_invariants=True)
    adj_t = adj_t.coalesce() if layout == torch.sparse_coo else adj_t.to_sparse_csr()
    gat, conv = GATConv(10, 6, 2), make_gat()
    conv.load_state_dict(gat.state_dict())
    wanted, (sparse, alpha) = gat(X[:4], adj_t, return_attention_weights=True)
    found, attention = conv(X[:4], adj_t, return_attention_weights=True)
    torch.testing.assert_close(found, wanted)
    assert attention[0].layout == layout and attention[0].shape == (4, 4, 2)
    torch.testing.assert_close(attention[0].to_dense(), sparse.to_dense())
    torch.testing.assert_close(attention[1], alpha)
    torch.testing.assert_close(attention.sums(), torch.ones(4, 2))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_a_sparse_adjacency_knows_the_number_of_targets(layout: torch.layout) -> None:
    edges = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]])  # the third target has no edge
    adj_t = torch.sparse_coo_tensor(edges.flip(0), torch.ones(4), (3, 4), check_invariants=True)
    if layout != torch.sparse_coo:
        adj_t = adj_t.to_sparse_csr() if layout == torch.sparse_csr else adj_t.to_sparse_csc()
    gat = GATConv((10, 7), 6, 2, add_self_loops=False)
    conv = CATConv((10, 7), 6, 2, add_self_loops=False, self_term=False)
    conv.load_state_dict(gat.state_dict())
    found = conv((X[:4], None), adj_t)
    assert found.shape == (3, 12)
    torch.testing.assert_close(found, gat((X[:4], None), edges, size=(4, 3)))


def test_a_network_takes_the_ids_of_its_rows() -> None:
    """PyG's loaders hand out parts of a graph with `n_id`: with all neighbours it gives the same."""
    model = CAT(10, 4, 3, intervention=MatrixFactorization(N, 3), heads=2).eval()
    order = torch.randperm(N)
    place = torch.empty_like(order)
    place[order] = torch.arange(N)
    torch.testing.assert_close(model(X[order], place[EDGES], n_id=order), model(X, EDGES)[order])


@pytest.mark.parametrize("concat", [True, False])
def test_residual_and_bias_as_in_gat(concat: bool) -> None:
    gat = GATConv(10, 6, 2, concat=concat, residual=True)
    conv = CATConv(10, 6, 2, concat=concat, residual=True, self_term=False)
    conv.load_state_dict(gat.state_dict())
    torch.testing.assert_close(conv(X, EDGES), gat(X, EDGES))


def test_lazy_in_channels() -> None:
    conv = CATConv(-1, 6, 2, intervention=FeatureSimilarity())
    assert conv(X, EDGES).shape == (N, 12)
    assert conv.lin is not None and conv.lin.weight.shape == (12, 10)
    pair = CATConv((-1, -1), 6, 2, add_self_loops=False)
    assert pair((X, X[:4]), torch.tensor([[0, 9], [1, 3]])).shape == (4, 12)


def test_hetero_conv_takes_it_per_relation() -> None:
    x = {"paper": torch.randn(6, 5), "author": torch.randn(4, 3)}
    edges = {
        ("author", "writes", "paper"): torch.tensor([[0, 1, 2, 3], [0, 1, 2, 5]]),
        ("paper", "cites", "paper"): torch.tensor([[0, 1, 2], [1, 2, 0]]),
        ("paper", "by", "author"): torch.tensor([[0, 1], [1, 2]]),
    }
    layer = HeteroConv(
        {
            ("author", "writes", "paper"): CATConv((-1, -1), 8, add_self_loops=False),
            ("paper", "by", "author"): CATConv((-1, -1), 8, add_self_loops=False),
            ("paper", "cites", "paper"): CATConv(-1, 8, intervention=MatrixFactorization(6, 2)),
        }
    )
    out = layer(x, edges)
    assert out["paper"].shape == (6, 8)
    with pytest.raises(InputError, match="nodes of one kind"):
        wrong = CATConv((-1, -1), 8, add_self_loops=False, intervention=MatrixFactorization(6, 2))
        wrong((x["author"], x["paper"]), edges["author", "writes", "paper"])


def test_attention_explainer_finds_alpha() -> None:
    model = CAT(10, 4, 3, intervention=MatrixFactorization(N, 3), heads=2, dropout=0.0)
    explainer = Explainer(
        model,
        algorithm=AttentionExplainer(),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    mask = explainer(X, EDGES, index=5).edge_mask
    assert mask.shape == (EDGES.size(1),)
    layers = model.attention(X, EDGES)
    expected = torch.stack([a.conjoint[: EDGES.size(1)].amax(-1) for a in layers], -1).amax(-1)
    used = mask > 0
    assert bool(used.any())
    torch.testing.assert_close(mask[used], expected[used])


def test_the_message_path_of_explainers_gives_the_same_output() -> None:
    conv = make().eval()
    expected = conv(X, EDGES)
    handle = conv.register_message_forward_hook(lambda module, inputs, out: None)
    torch.testing.assert_close(conv(X, EDGES), expected)
    handle.remove()


@pytest.mark.filterwarnings("default")  # torch's own compiler stack warns on some versions
def test_torch_compile() -> None:
    conv = make().eval()
    expected = conv(X, EDGES)
    torch.testing.assert_close(torch.compile(conv, backend="aot_eager")(X, EDGES), expected)


def test_state_dict_round_trip_and_deep_copy() -> None:
    conv = make().eval()
    expected = conv(X, EDGES)
    buffer = io.BytesIO()
    torch.save(conv.state_dict(), buffer)
    buffer.seek(0)
    other = CATConv(10, 6, 2, intervention=MatrixFactorization(N, 3)).eval()
    other.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(other(X, EDGES), expected)
    twin = copy.deepcopy(conv)
    assert conv.lin is not None
    nn.init.zeros_(conv.lin.weight)
    assert torch.equal(twin(X, EDGES), expected)


def test_float64_and_module_moves() -> None:
    conv = make().eval()
    expected = conv(X, EDGES)
    torch.testing.assert_close(conv.double()(X.double(), EDGES).float(), expected)
    torch.testing.assert_close(conv.float().to("cpu")(X, EDGES), expected)


@pytest.mark.parametrize("strategy", ["implicit", "explicit"])
def test_relabelling_nodes_relabels_the_output(strategy: str) -> None:
    conv = make(strategy=strategy).double().eval()
    x = X.double()
    expected = conv(x, EDGES)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(5))
    place = torch.empty_like(order)
    place[order] = torch.arange(N)
    moved = copy.deepcopy(conv)
    assert isinstance(moved.intervention, MatrixFactorization)
    moved.intervention.factors.data = moved.intervention.factors.data[order]
    torch.testing.assert_close(moved(x[order], place[EDGES]), expected[order], rtol=0, atol=1e-12)


def test_edge_index_changed_in_place_is_noticed() -> None:
    conv = make().eval()
    edges = EDGES.clone()
    before = conv(X, edges)
    edges[0, :10] = 0
    assert not torch.equal(conv(X, edges), before)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: CATConv(10, 6, strategy="both"), "strategy: 'both' is unknown; choose one of explicit"),  # type: ignore[arg-type]
        (lambda: CATConv(10, 0), "out_channels: 0"),
        (lambda: CATConv(10, 6, dropout=1.0), "dropout: 1.0"),
        (lambda: CATConv(10, 6, strategy="structural"), "pass intervention="),
        (lambda: make()(X[:9], EDGES), "out of range for 9 nodes"),
        (lambda: make()(X[:, :4], EDGES), "it has 4 features, but the layer was made with 10"),
        (lambda: make()(torch.full((N, 10), float("nan")), EDGES), "240 of its values are NaN or infinite"),
        (lambda: make()(X, EDGES, size=(N, 3)), "size: it says 3 targets"),
        (lambda: CATConv(10, 6)(X, EDGES, score=torch.ones(EDGES.size(1))), "pass intervention=Constant()"),
        (lambda: make()(X, EDGES, torch.ones(3)), "made without edge_dim"),
        (lambda: CATConv(10, 6, edge_dim=2)(X, EDGES, torch.ones(3, 2)), "edge_attr: it has shape"),
        (lambda: CATConv(10, 6, edge_dim=2)(X, EDGES), "edge_attr: missing"),
        (lambda: make()(X.long(), EDGES), "expected float features"),
        (lambda: make()(X[0], EDGES), "expected node features of shape"),
        (lambda: CATConv(10, 6, intervention=MatrixFactorization(7, 2))(X, EDGES), "made for 7 nodes"),
    ],
)
def test_bad_input_is_named(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=words):
        call()
