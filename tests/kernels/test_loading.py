"""Which library is loaded, when it is used, and what is said of it."""

import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conjoint.kernels import loading

INFO = "flags : fpu sse2 avx2 fma\n"


@pytest.mark.parametrize(
    ("text", "has"), [(INFO, True), (INFO.replace("fma", ""), False), (INFO.replace("avx2", "avx"), False)]
)
def test_the_processor_is_asked_for_both_kinds_of_instructions(
    text: str, has: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading.Path, "read_text", lambda path: text)
    assert loading._has_avx2() is has


@pytest.mark.parametrize(("capability", "has"), [("AVX2", True), ("AVX512", True), ("DEFAULT", False)])
def test_without_the_systems_answer_torch_is_asked(
    capability: str, has: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(path: Path) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(loading.Path, "read_text", missing)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: capability)
    assert loading._has_avx2() is has


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of builds that can be loaded, plain ones and ones for newer processors."""
    monkeypatch.delenv("CONJOINT_KERNELS_LIBRARY", raising=False)
    monkeypatch.setattr(
        loading, "library_path", lambda folder, name: tmp_path / f"conjoint_kernels_{name}.so"
    )
    monkeypatch.setattr(loading, "variants", lambda: ["plain", "avx2"])
    monkeypatch.setattr(loading.ctypes, "CDLL", lambda path: f"library {Path(path).name}")
    for name in ("plain", "avx2"):
        (tmp_path / f"conjoint_kernels_{name}.so").touch()
    return tmp_path


@pytest.mark.parametrize(("has", "name"), [(True, "avx2"), (False, "plain")])
def test_the_best_build_is_taken(has: bool, name: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_has_avx2", lambda: has)
    path = files / f"conjoint_kernels_{name}.so"
    assert loading._load() == (f"library {path.name}", path, "in use")
    if has:
        path.unlink()
        assert loading._load()[1] == files / "conjoint_kernels_plain.so"
    own = files / "own.so"
    own.touch()
    monkeypatch.setenv("CONJOINT_KERNELS_LIBRARY", str(own))
    assert loading._load()[1] == own


def test_why_there_is_none(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: str) -> None:
        raise OSError("no such symbol")

    monkeypatch.setattr(loading.ctypes, "CDLL", broken)
    monkeypatch.setattr(loading, "_has_avx2", lambda: True)
    told = "conjoint_kernels_plain.so could not be loaded: no such symbol"
    assert loading._load() == (None, None, told)
    for path in files.iterdir():
        path.unlink()
    assert loading._load()[2] == "the kernels were not compiled when the package was built"


def test_a_missing_library_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_found", (None, None, "so it is"))
    monkeypatch.setattr(loading, "_warned", False)
    monkeypatch.setattr(loading, "_switched_off", False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert not loading.active(quiet=True) and not told
        assert not loading.active() and not loading.active()
    assert len(told) == 1 and "without its fast kernels: so it is; install a C compiler" in str(
        told[0].message
    )
    found = loading.status()
    assert (found["active"], found["variant"], found["path"]) == (False, None, None)
    assert found["reason"].startswith("so it is; install")


def test_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    library: Any = SimpleNamespace()
    monkeypatch.setattr(loading, "_found", (library, Path("/a/conjoint_kernels_x.so"), "in use"))
    monkeypatch.setattr(loading, "_switched_off", False)
    assert loading.active() and loading.found()[0] is library
    found = loading.status()
    assert (found["active"], found["variant"], found["reason"]) == (True, "x", "in use")
    assert found["path"] == "/a/conjoint_kernels_x.so" and found["threads"] >= 1
    with loading.disabled():
        assert not loading.active() and loading.status()["reason"].startswith("switched off")
        with loading.disabled():
            pass
        assert not loading.active()
    assert loading.active()


def test_threads_are_told_by_torchs_library_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if not (Path(torch.__file__).parent / "lib" / "libtorch_cpu.so").exists():
        pytest.skip("another build of torch, which has to be imported")
    expected = torch.get_num_threads()
    monkeypatch.delitem(sys.modules, "torch")
    assert loading.threads() == expected
    assert "torch" not in sys.modules
