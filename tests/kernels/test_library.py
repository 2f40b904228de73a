import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

import conjoint
from conjoint import kernels
from conjoint.graph.adjacency import Adjacency
from conjoint.kernels import build
from conjoint.nn import ops
from conjoint.nn.ops.factors import gram_norm
from kernel_cases import numbers, outcome, random_graph

SOURCE = Path(conjoint.__file__).resolve().parent.parent


def _python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": ""}
    variables = {**os.environ, **settings, **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
    )


def test_status_names_the_build_in_use() -> None:
    status = kernels.status()
    assert status["active"] and status["variant"] in build.variants()
    assert status["threads"] == torch.get_num_threads()


def test_threads_are_counted_without_importing_torch() -> None:
    code = "import sys; from conjoint import kernels; n = kernels.status()['threads']\n"
    code += "print('torch' in sys.modules, n); import torch; print(torch.get_num_threads())"
    found = _python(code, OMP_NUM_THREADS="2")
    assert found.stdout.split() == ["False", "2", "2"]


def test_disabled_is_undone_at_the_end_even_after_an_error() -> None:
    with pytest.raises(RuntimeError), kernels.disabled():
        assert not kernels.active()
        assert "switched off" in kernels.status()["reason"]
        raise RuntimeError
    assert kernels.active()


def test_environment_switches_the_kernels_off_without_a_warning() -> None:
    found = _python("from conjoint import kernels; print(kernels.active())", CONJOINT_KERNELS="0")
    assert (found.stdout.strip(), found.stderr) == ("False", "")


def test_a_missing_library_warns_once() -> None:
    code = "from conjoint import kernels; print([kernels.active() for _ in range(3)])"
    found = _python(code, CONJOINT_KERNELS_LIBRARY="/nowhere/lib.so")
    assert found.stdout.strip() == "[False, False, False]"
    assert found.stderr.count("conjoint runs without its fast kernels") == 1
    assert "python -m conjoint.kernels" in found.stderr


def test_no_compiler_is_a_reason_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no C compiler" in str(build.build(tmp_path))
    monkeypatch.setenv("CC", "/nowhere/cc")
    assert "/nowhere/cc" in str(build.build(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_what_the_kernels_do_not_take_goes_to_plain_torch() -> None:
    adj = random_graph(20, 60, 0)
    x = torch.randn(20, 2, 4, dtype=torch.bfloat16)
    assert ops.head_dot(x, x[0]).dtype == torch.bfloat16
    meta = torch.empty(20, 2, 4, device="meta")
    assert ops.head_dot(meta, meta[0]).device.type == "meta"
    assert ops.edge_softmax(adj, torch.zeros(adj.num_entries, 2000)).shape == (adj.num_entries, 2000)


def test_a_second_derivative_is_refused() -> None:
    adj = random_graph(20, 60, 0)
    v = torch.randn(20, 3, requires_grad=True)
    (grad,) = torch.autograd.grad(ops.edge_dot(adj, v, v).square().sum(), v, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


# torch's own tracer of autograd functions trips over torch's own notice.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")

SEED = torch.tensor([42])
ADJ = random_graph(50, 200, 0)


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    yield
    torch.compiler.reset()


def _structure(adj: Adjacency) -> Callable[..., Tensor]:
    def run(v: Tensor) -> Tensor:
        score, total = ops.edge_dot(adj, v, v), ops.edge_total(adj, v)
        return ops.edge_softmax(adj, score.unsqueeze(1)) * total + ops.spread(adj, v).sum()

    return run


def _attention(adj: Adjacency) -> Callable[..., Tensor]:
    def run(x: Tensor, att: Tensor, mix: Tensor, eps: Tensor, structure: Tensor) -> Tensor:
        a_src, a_dst = ops.head_dots(x, att[0], att[1])
        alpha, _ = ops.attention(adj, a_src, a_dst, None, structure, mix, 0.2)
        return ops.activate_and_drop(ops.aggregate(adj, alpha, x, eps, 0.4, SEED), "elu", 0.5, SEED)

    return run


def _layer(adj: Adjacency) -> Callable[..., Tensor]:
    def run(v: Tensor, h: Tensor, att: Tensor, mix: Tensor, eps: Tensor) -> Tensor:
        score, structure = ops.factor_attention(adj, v)
        loss = ops.factor_loss(adj, v, score) + ops.expression_loss(adj, v)
        parts = (h, att[0], att[1], None, structure, mix, eps)
        return ops.attend(adj, *parts, 0.2, 0.4, SEED, merge=True) + loss

    return run


def _neighbours_first(adj: Adjacency) -> Callable[..., Tensor]:
    def run(alpha: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        return ops.aggregate_and_project(adj, alpha, x, weight, None, 0.4, SEED)

    return run


@pytest.mark.parametrize(
    "step, shapes",
    [
        (_structure(ADJ), [(50, 4)]),
        (_attention(ADJ), [(50, 4, 8), (2, 4, 8), (4, 2), (4,), (ADJ.num_entries, 1)]),
        (_layer(ADJ), [(50, 4), (50, 4, 8), (2, 4, 8), (4, 2), (4,)]),
        (_neighbours_first(ADJ), [(ADJ.num_entries, 4), (50, 1, 3), (4, 8, 3)]),
    ],
    ids=["structure", "attention", "layer", "neighbours first"],
)
def test_whole_graph_without_breaks(step: Callable[..., Tensor], shapes: list[tuple[int, ...]]) -> None:
    inputs = [numbers(*shape, seed=place) for place, shape in enumerate(shapes)]
    eager = outcome(step, inputs, fast=True)
    compiled = outcome(torch.compile(step, backend="aot_eager", fullgraph=True), inputs, fast=True)
    for found, wanted in zip(compiled, eager, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_a_graph_that_nothing_was_derived_from() -> None:
    """What the adjacency makes when asked, its transpose, breaks the graph in two once; no more than that."""
    h, att = numbers(50, 4, 8, seed=0), numbers(2, 4, 8, seed=1)

    def step(adj: Adjacency, h: Tensor, att: Tensor) -> Tensor:
        return ops.attend(adj, h, att[0], att[1], None, None, None, None, 0.2)

    compiled = torch.compile(step, backend="aot_eager")
    fresh = random_graph(50, 200, 0)
    found = outcome(lambda *inputs: compiled(fresh, *inputs), [h, att], fast=True)
    wanted = outcome(lambda *inputs: step(ADJ, *inputs), [h, att], fast=True)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_the_operation_is_registered_with_torch() -> None:
    """opcheck: its schema, fake shapes and eager behaviour agree, with a structure and without."""
    v, out = numbers(50, 4, seed=0), numbers(ADJ.num_entries, seed=1)
    check, f64 = torch.library.opcheck, torch.float64
    run = torch.ops.conjoint.run.default
    check(run, ("edge_dot", f64, 0, "ttiiittw", [ADJ.rowptr, ADJ.col, v, v], [50, 50, 4], [], [out]))
    alpha, x, out = numbers(ADJ.num_entries, 2, seed=1), numbers(50, 2, 3, seed=2), numbers(50, 2, 3, seed=3)
    tensors, sizes = [ADJ.rowptr, ADJ.col, alpha, x, SEED], [50, 50, 2, 2, 3, 0, 2**31]
    check(run, ("aggregate", f64, 17, "ttnnniiiiiittntifw", tensors, sizes, [2.0], [out]))
    expected = ops.aggregate(ADJ, alpha, x, None, 0.5, SEED)
    run("aggregate", f64, 17, "ttnnniiiiiittntifw", tensors, sizes, [2.0], [out])
    assert torch.equal(out, expected)


def test_a_second_derivative_is_refused_of_one_gradient_too() -> None:
    """Whose backward returns a tensor, not a tuple."""
    v = torch.randn(20, 3, requires_grad=True)
    (grad,) = torch.autograd.grad(gram_norm(v), v, create_graph=True)
    torch.testing.assert_close(grad, 4.0 * v @ (v.t() @ v))
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_both_ways_to_a_function_of_c_are_the_same_and_the_eager_one_is_direct(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """torch's dispatcher, which a compiled graph goes through, takes longer than a small graph does."""
    inputs = [numbers(50, 4, 8, seed=0), numbers(2, 4, 8, seed=1), numbers(4, 2, seed=2)]

    def step(h: Tensor, att: Tensor, mix: Tensor) -> Tensor:  # of what is written on the way back, parts
        structure = torch.zeros(ADJ.num_entries, dtype=torch.float64)  # are left out
        return ops.attend(ADJ, h, att[0], att[1], None, structure, mix, None, 0.2)

    found, called = [], []
    for compiled in (False, True):
        monkeypatch.setattr("conjoint.kernels.library.compiling", lambda compiled=compiled: compiled)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
            found.append(outcome(step, inputs, fast=True))
        called.append(sum(event.key == "conjoint::run" for event in seen.key_averages()))
    assert called == [0, 1]
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_a_library_is_compiled_into_a_folder_that_is_made_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(
        f"#!{sys.executable}\nimport sys\nopen(sys.argv[sys.argv.index('-o') + 1], 'w').write('made')\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    target = tmp_path / "a" / "b" / "kernels.so"
    for _ in range(2):  # into a folder that is there, too
        assert build.compile_library(target, ()) is None and target.read_text() == "made"
    assert list(target.parent.iterdir()) == [target]
