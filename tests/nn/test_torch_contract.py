"""What torch promises of a module: it can be traced, exported, compiled, transformed and made smaller."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch_geometric.data import Batch, Data

from conjoint import (
    CAT,
    CATConv,
    FeatureSimilarity,
    InputError,
    MatrixFactorization,
    SelfExpression,
    adjacency,
)
from conjoint.nn.interventions.catalogue import KINDS, make
from conjoint.nn.names import Strategy
from graphs import random_features, random_graph

# torch's tracers and exporters warn about themselves.
pytestmark = pytest.mark.filterwarnings("default")

N = 4
X = random_features(N, 8, dtype=torch.float32)
LOOPS = torch.tensor(
    [[0, 1, 2, 3, 3, 2], [0, 0, 1, 1, 2, 2]]
)  # with two self-loops, which the layer replaces
OTHER = torch.tensor([[0, 1, 2, 3, 1, 2], [0, 0, 1, 1, 2, 3]])  # as many edges, one of them such

MODELS: dict[str, Callable[[], nn.Module]] = {
    "implicit": lambda: CATConv(8, 4, 2, intervention=MatrixFactorization(N, 2)),
    "explicit": lambda: CATConv(8, 4, 2, intervention=SelfExpression(N, 2), strategy="explicit"),
    "structural": lambda: CATConv(8, 4, 2, intervention=MatrixFactorization(N, 2), strategy="structural"),
    "wide": lambda: CATConv(8, 40, 2, intervention=MatrixFactorization(N, 2)),
    "gat": lambda: CATConv(8, 4, 2, self_term=False),
    "network": lambda: CAT(8, 4, 3, intervention=MatrixFactorization(N, 2), norm="batch", residual=True),
}


@pytest.fixture(params=list(MODELS))
def model(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    return MODELS[request.param]().eval()


class OnOneGraph(nn.Module):
    def __init__(self, model: nn.Module, edges: Tensor) -> None:
        super().__init__()
        self.model, self.graph = model, adjacency(edges, N)

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x, self.graph)


def agree(recorded: Callable[..., Tensor], model: nn.Module) -> None:
    """On the edges that were recorded, and on others, also of other values."""
    for edges in (LOOPS, OTHER):
        torch.testing.assert_close(recorded(2 * X, edges), model(2 * X, edges), rtol=1e-4, atol=1e-5)


def test_trace(model: nn.Module) -> None:
    model(X, LOOPS)  # what it keeps of this graph must not go into the recording
    agree(torch.jit.trace(model, (X, LOOPS)), model)


@pytest.mark.parametrize("strict", [False, True])
def test_export(model: nn.Module, strict: bool) -> None:
    agree(torch.export.export(model, (X, LOOPS), strict=strict).module(), model)
    fixed = OnOneGraph(model, LOOPS)
    found = torch.export.export(fixed, (X,), strict=strict).module()(X)
    torch.testing.assert_close(found, model(X, LOOPS), rtol=1e-4, atol=1e-5)
    assert type(fixed.graph.row) is Tensor  # nothing of the recording is left in the graph
    torch.testing.assert_close(fixed(X), model(X, LOOPS))


@pytest.mark.parametrize("graph", ["edge_index", "adjacency"])
def test_compile_without_graph_breaks(model: nn.Module, graph: str) -> None:
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    prepared = adjacency(LOOPS, N)
    _ = prepared.transposed, prepared.degree
    edges = LOOPS if graph == "edge_index" else prepared
    grads = []
    for run in (compiled, model):
        x = X.clone().requires_grad_()
        run(x, edges).square().sum().backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)
    if graph == "edge_index":
        agree(compiled, model)
    torch.compiler.reset()


def test_onnx(model: nn.Module, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    file = tmp_path / "model.onnx"
    program = torch.onnx.export(model, (X, LOOPS), dynamo=True, verbose=False)
    assert program is not None
    program.save(file)
    session = runtime.InferenceSession(file.read_bytes())
    names = [given.name for given in session.get_inputs()]

    def run(x: Tensor, edges: Tensor) -> Tensor:
        return torch.from_numpy(
            session.run(None, dict(zip(names, (x.numpy(), edges.numpy()), strict=True)))[0]
        )

    with torch.no_grad():
        agree(run, model)


def test_computed_scores_are_exported_with_their_graph() -> None:
    model = CAT(8, 4, 3, intervention="smooth").eval()
    with pytest.raises(Exception, match="call observe"):
        torch.export.export(model, (X, LOOPS))
    fixed = OnOneGraph(model, LOOPS)
    model.observe(X, fixed.graph)
    found = torch.export.export(fixed, (X,)).module()(X)
    torch.testing.assert_close(found, fixed(X), rtol=1e-4, atol=1e-5)


def test_shapes_alone(model: nn.Module) -> None:
    shape = model(X, LOOPS).shape
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        assert model(fake.from_tensor(X), fake.from_tensor(LOOPS)).shape == shape
    before = model(X, LOOPS)
    assert type(before) is Tensor and bool(before.isfinite().all())
    assert model.to("meta")(X.to("meta"), LOOPS.to("meta")).shape == shape


def test_transforms(model: nn.Module) -> None:
    """vmap, forward and backward derivatives of torch.func against ordinary ones."""

    def loss(x: Tensor) -> Tensor:
        return model(x, LOOPS).square().sum()

    several = torch.stack([X, 2 * X])
    mapped = torch.vmap(lambda x: model(x, LOOPS))(several)
    torch.testing.assert_close(mapped, torch.stack([model(x, LOOPS) for x in several]), rtol=1e-4, atol=1e-5)
    x = X.clone().requires_grad_()
    loss(x).backward()
    assert x.grad is not None
    torch.testing.assert_close(torch.func.grad(loss)(X), x.grad, rtol=1e-4, atol=1e-4)
    along = torch.func.jvp(loss, (X,), (X,))[1]
    torch.testing.assert_close(along, (x.grad * X).sum(), rtol=1e-4, atol=1e-4)
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(loss(forward_ad.make_dual(X, X))).tangent
    torch.testing.assert_close(dual, along, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("power", [1, 2])
def test_a_second_derivative_is_an_error_or_right(model: nn.Module, dtype: torch.dtype, power: int) -> None:
    model = model.to(dtype)
    x = X.to(dtype).clone().requires_grad_()

    def loss(x: Tensor) -> Tensor:
        return model(x, LOOPS).pow(power).sum()

    (grad,) = torch.autograd.grad(loss(x), x, create_graph=True)
    if not grad.requires_grad:  # the layer is linear in x: nothing depends on it
        assert power == 1
        return
    with pytest.raises(RuntimeError, match="first derivative alone"):
        torch.autograd.grad(grad.square().sum(), x)
    if dtype == torch.float64:
        numbers, step, along = X.double(), 1e-5, torch.randn_like(X, dtype=dtype)
        slope = torch.func.grad(loss)
        found = torch.func.jvp(slope, (numbers,), (along,))[1]
        wanted = (slope(numbers + step * along) - slope(numbers - step * along)) / (2 * step)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_vectorised_backward_pass_is_an_error(model: nn.Module) -> None:
    x = X.clone().requires_grad_()
    out = model(x, LOOPS)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(out, x, torch.ones(2, *out.shape), is_grads_batched=True)


def test_memory_in_another_order(model: nn.Module) -> None:
    wanted = model(X, LOOPS)
    torch.testing.assert_close(model(X.t().contiguous().t(), LOOPS.t().contiguous().t()), wanted)
    torch.testing.assert_close(model(torch._neg_view(-X), LOOPS), wanted)
    torch.testing.assert_close(model(torch.cat([X, X], 1)[:, :8], LOOPS), wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(model: nn.Module, dtype: torch.dtype) -> None:
    wanted = model(X, LOOPS)
    x = X.to(dtype).requires_grad_()
    found = model.to(dtype)(x, LOOPS)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), wanted, rtol=0.05, atol=0.05)
    model.train()(x, LOOPS).sum().backward()
    assert x.grad is not None and bool(x.grad.isfinite().all())


def test_autocast(model: nn.Module) -> None:
    wanted = model(X, LOOPS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = X.clone().requires_grad_()
        found = model(x, LOOPS)
        loss = found.sum() + (model.penalty() if isinstance(model, CAT) else 0.0)
    loss.backward()
    assert found.dtype == torch.float32 and x.grad is not None  # both as in GATConv
    torch.testing.assert_close(found, wanted, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", list(KINDS))
@pytest.mark.parametrize("strategy", ["implicit", "explicit"])
def test_several_graphs_in_one_batch(name: str, strategy: Strategy) -> None:
    """Every intervention takes a batch for one graph; those that look at pairs alone as one by one."""
    graphs = []
    for seed, count in enumerate((12, 17)):
        edges, nodes = random_graph(count, 3 * count, seed)
        graphs.append(Data(x=random_features(nodes, 8, dtype=torch.float32), edge_index=edges))
    batch = Batch.from_data_list(graphs)
    torch.manual_seed(0)
    model = CAT(8, 4, 3, intervention=make(name, batch.num_nodes, 3, rank=2), strategy=strategy).eval()
    whole = model(batch.x, batch.edge_index)
    assert bool(whole.isfinite().all())
    if name in ("mf", "sc", "fs", "zero", "jaccard", "adamic", "nmf", "nsc"):
        ids = torch.arange(batch.num_nodes).split([one.num_nodes for one in graphs])
        per_node = KINDS[name].per_node
        each = [
            model(one.x, one.edge_index, n_id=rows if per_node else None)
            for one, rows in zip(graphs, ids, strict=True)
        ]
        torch.testing.assert_close(torch.cat(each), whole, rtol=1e-4, atol=1e-5)
    if KINDS[name].per_node:
        with pytest.raises(InputError, match="or pass n_id for a part"):
            model(graphs[0].x, graphs[0].edge_index)


def test_names_in_place_of_interventions() -> None:
    assert isinstance(CATConv(8, 4, intervention="fs").intervention, FeatureSimilarity)
    assert CAT(8, 4, 3, intervention="smooth+jaccard").intervention is not None
    with pytest.raises(InputError, match=r"pass intervention=MatrixFactorization\(num_nodes, rank\)"):
        CATConv(8, 4, intervention="mf")
    with pytest.raises(InputError, match="'both' is not known; choose one of mf"):
        CAT(8, 4, 3, intervention="both")
