import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import conjoint
from conjoint import kernels
from conjoint.kernels import build
from conjoint.nn import ops
from kernel_cases import random_graph

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
