"""Files of a run folder that are damaged, foreign or made to do harm: refused in one line, nothing run."""

import json
import pickle
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from conjoint.errors import ConjointError, InputError
from conjoint.nn.model import NodeModel
from conjoint.training import TrainConfig, fit, load_run, node_ids, predict_proba, resume_run, start_run
from conjoint.training import runs as folder
from conjoint.training.checkpoint import Progress, encode, encode_checkpoint
from conjoint.training.stopping import Seen, snapshot
from small_training import SPEC, build, same_weights, small_data, small_model, small_split

CONFIG = TrainConfig(epochs=6, patience=0)


@contextmanager
def refused(says: str) -> Iterator[None]:
    """In one line that begins with the file."""
    with pytest.raises(InputError, match=says) as told:
        yield
    assert str(told.value).startswith("/") and "\n" not in str(told.value)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    run = start_run(
        path, CONFIG, model=SPEC, data=small_data(), split=small_split(), origin={"name": "small"}
    )
    fit(run.build_model(build), small_data(), small_split(), CONFIG, run=run)
    return path


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_an_intact_copy_predicts_the_same_bits(finished: Path, copy: Path) -> None:
    model, run = load_run(copy, build)
    again, _ = load_run(finished, build)
    assert same_weights(model, again) and not model.training
    assert torch.equal(
        predict_proba(model, small_data(), run.config), predict_proba(again, small_data(), CONFIG)
    )
    assert run.origin == {"name": "small"} and run.sidecar.class_names == ("a", "b", "c")
    assert list(node_ids(run)) == list(small_data().node_ids)


def test_loading_leaves_the_random_state_alone(finished: Path) -> None:
    before = torch.get_rng_state()
    load_run(finished, build)
    assert torch.equal(before, torch.get_rng_state())


def test_every_truncation_of_the_weights_is_refused(copy: Path) -> None:
    weights = copy / "weights.safetensors"
    content = weights.read_bytes()
    for length in (0, 1, 7, 8, 50, len(content) // 2, len(content) - 1):
        weights.write_bytes(content[:length])
        with refused(r"weights\.safetensors"):
            load_run(copy, build)


def test_every_flipped_byte_of_a_checkpoint_is_refused(copy: Path) -> None:
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    content = b"".join(encode_checkpoint(model, optimizer, Progress(3, Seen(), None)))
    rng = np.random.default_rng(0)
    for place in rng.choice(len(content), 60, replace=False):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        with refused(r"checkpoint\.safetensors"):
            _resume_with(copy, bytes(damaged))


def test_weights_swapped_for_others_of_the_same_shape_are_refused(copy: Path) -> None:
    (copy / "weights.safetensors").write_bytes(b"".join(encode(small_model(seed=9).state_dict())))
    with refused(r"not the weights that model\.json vouches for"):
        load_run(copy, build)


def _vouch(run: Path, content: bytes) -> None:
    """Weights and a sidecar that agree, as a forger would make them."""
    import hashlib

    (run / "weights.safetensors").write_bytes(content)
    _edit(run, lambda sidecar: sidecar.update(weights_sha256=hashlib.sha256(content).hexdigest()))


def _edit(run: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    sidecar = json.loads((run / "model.json").read_text())
    change(sidecar)
    (run / "model.json").write_text(json.dumps(sidecar))


def _weights(**changes: torch.Tensor | None) -> dict[str, torch.Tensor]:
    state = {**small_model().state_dict(), **changes}
    return {name: value for name, value in state.items() if value is not None}


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        (_weights(extra=torch.zeros(3)), "'extra' is unknown here"),
        (_weights(rows=None), "'rows' is missing"),
        (_weights(rows=torch.zeros(61, 2)), r"'rows' is F32 \[61, 2\], expected F32 \[60, 2\]"),
        (_weights(rows=torch.zeros(60, 2, dtype=torch.float64)), "'rows' is F64"),
        (_weights(rows=torch.full((60, 2), torch.nan)), "'rows' holds NaN"),
    ],
)
def test_foreign_weights_are_refused_even_if_vouched_for(
    copy: Path, tensors: dict[str, torch.Tensor], says: str
) -> None:
    _vouch(copy, b"".join(encode(tensors)))
    with refused(says):
        load_run(copy, build)


def test_safetensors_from_elsewhere_and_pickles_are_refused(copy: Path) -> None:
    _vouch(copy, save(small_model().state_dict()))
    with refused("checksum does not match"):
        load_run(copy, build)
    _vouch(copy, pickle.dumps({"rows": 1}))
    with refused("damaged or not safetensors"):
        load_run(copy, build)


@pytest.mark.parametrize("size", [2**63 - 1, 2**40, 10**6])
def test_a_header_that_claims_to_be_huge_is_refused(copy: Path, size: int) -> None:
    _vouch(copy, struct.pack("<Q", size) + b"{}")
    with refused("damaged or not safetensors"):
        load_run(copy, build)


def test_a_sidecar_that_asks_for_a_giant_model_allocates_nothing(copy: Path) -> None:
    _edit(copy, lambda sidecar: sidecar["model"].update(num_nodes=2**39))
    with refused("'rows' is F32"):
        load_run(copy, build)
    _edit(copy, lambda sidecar: sidecar["model"].update(num_nodes=2**60))
    with refused(r"num_nodes=.* out of range"):
        load_run(copy, build)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: s.update(format=2), "format 2, this version reads 1"),
        (lambda s: s.pop("format"), "format None"),
        (lambda s: s.update(evil=1), "unknown entry 'evil'"),
        (lambda s: s.pop("data_fingerprint"), "'data_fingerprint' is missing"),
        (lambda s: s.update(class_names="abc"), "'class_names' is str"),
        (lambda s: s.update(class_names=[1]), "class_names must be strings"),
        (lambda s: s.update(split_sizes=[1, 2]), "three whole numbers"),
        (lambda s: s.update(split_seed=True), "'split_seed' is bool"),
        (lambda s: s.update(model=[]), "'model' is list"),
        (lambda s: s.update(result=None), "finished without a result"),
        (lambda s: s["result"].update(best_epoch=9), "finished without a result"),
        (lambda s: s["result"].update(best_epoch="1"), "finished without a result"),
        (lambda s: s["model"].update(classes="3"), "'classes' is str"),
        (lambda s: s["model"].update(features=-1), "features=-1 is out of range"),
        (lambda s: s["model"]["settings"].update(seed=1), "cannot be built"),
    ],
)
def test_a_sidecar_is_checked_entry_by_entry(
    copy: Path, change: Callable[[dict[str, Any]], Any], says: str
) -> None:
    _edit(copy, change)
    with refused(says):
        load_run(copy, build)


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff\xfe", b"{", b"[" * 100_000, b'{"format": NaN}'])
def test_a_sidecar_that_is_no_object_is_refused(copy: Path, content: bytes) -> None:
    (copy / "model.json").write_bytes(content)
    with refused(r"model\.json"):
        load_run(copy, build)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"epochs = ", "not valid TOML"),
        (b"[train]\nepochs = 5\n", r"sections \[train\] and \[origin\]"),
        (b"[origin]\n[train]\nepoch = 5\n", "'epoch' is not a training setting"),
        (b"[origin]\n[train]\nepochs = -5\n", "epochs=-5"),
        (b"[origin]\n[train]\nlr = 'fast'\n", "lr='fast'"),
        (b"\xff", "not text"),
    ],
)
def test_settings_are_checked_before_use(copy: Path, content: bytes, says: str) -> None:
    (copy / "config.toml").write_bytes(content)
    with pytest.raises(InputError, match=says):
        resume_run(copy)


def test_a_file_too_large_to_be_true_is_not_read(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(copy / "config.toml", "r+b") as file:
        file.truncate(2**34)  # sparse: takes no room
    with refused("too many for the run's settings"):
        resume_run(copy)


@pytest.mark.parametrize("name", ["config.toml", "model.json", "weights.safetensors"])
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with refused(f"{name}: no such file"):
        load_run(copy, build)


def test_ids_with_pickled_objects_are_refused(copy: Path) -> None:
    np.save(copy / "node_ids.npy", np.array([{}] * 60), allow_pickle=True)
    run = resume_run(copy)
    with refused("not a whole array of numbers or text"):
        node_ids(run)
    np.save(copy / "node_ids.npy", np.arange(59))
    with refused("expected 60 ids"):
        node_ids(run)


@pytest.mark.parametrize(
    "header", [b"{'descr': '<i8', 'fortran_order': False, 'shape': (60,", b"[" * 90, b"(" * 90]
)
def test_ids_with_a_broken_header_are_refused(copy: Path, header: bytes) -> None:
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    (copy / "node_ids.npy").write_bytes(head + bytes(480))
    with refused("not a whole array of numbers or text"):
        node_ids(resume_run(copy))


def test_ids_that_state_more_than_the_file_holds_allocate_nothing(copy: Path) -> None:
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (100000000000,)}"
    (copy / "node_ids.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with refused("header and its size disagree"):
        node_ids(resume_run(copy))


def test_settings_nested_without_end_are_one_line(copy: Path) -> None:
    (copy / "config.toml").write_text("a = " + "[" * 5000)
    with refused("not valid TOML"):
        resume_run(copy)


def _resume_with(run: Path, checkpoint: bytes, history: str | None = None) -> NodeModel:
    """Go on with the run as if it had been stopped, on this checkpoint."""
    (run / "checkpoint.safetensors").write_bytes(checkpoint)
    rows = (
        "".join(json.dumps({"epoch": epoch}) + "\n" for epoch in range(1, 4)) if history is None else history
    )
    (run / "metrics.jsonl").write_text(rows)
    _edit(run, lambda sidecar: sidecar.update(weights_sha256=None, result=None))
    going = resume_run(run)
    return fit(going.build_model(build), small_data(), small_split(), CONFIG, run=going).model


def _checkpoint(seen: Seen | None = None, epoch: Any = 3, best: bool = False) -> bytes:
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    progress = Progress(epoch, Seen() if seen is None else seen, snapshot(model) if best else None)
    return b"".join(encode_checkpoint(model, optimizer, progress))


def _without_a_moment() -> bytes:
    """All weights, and of one of them what the optimiser remembers, but for a part."""
    tensors = {f"model/{name}": value for name, value in small_model().state_dict().items()}
    tensors |= {"adam/rows/step": torch.tensor(3.0), "adam/rows/exp_avg": torch.zeros(60, 2)}
    note = json.dumps({"epoch": 3, "seen": asdict(Seen())})
    return b"".join(encode(tensors, note))


def test_the_values_of_a_file_start_where_the_format_wants_them() -> None:
    for length in range(9):
        content = b"".join(encode({"x" * (length + 1): torch.ones(2)}))
        assert int.from_bytes(content[:8], "little") % 8 == 0


def test_a_sound_checkpoint_is_taken(copy: Path) -> None:
    _resume_with(copy, _checkpoint())


@pytest.mark.parametrize(
    ("checkpoint", "says"),
    [
        (lambda: _checkpoint(epoch=0), "counters make no sense"),
        (lambda: _checkpoint(epoch=-1), "counters make no sense"),
        (lambda: _checkpoint(epoch="3"), "counters make no sense"),
        (lambda: _checkpoint(Seen(alive_epoch=4)), "counters make no sense"),
        (lambda: _checkpoint(Seen(alive_epoch=-1)), "counters make no sense"),
        (lambda: _checkpoint(Seen(val_loss=float("nan"))), "counters make no sense"),
        (lambda: _checkpoint(Seen(kept_epoch=2)), "counters and the best weights disagree"),
        (lambda: _checkpoint(best=True), "counters and the best weights disagree"),
        (
            lambda: b"".join(encode({f"model/{k}": v for k, v in small_model().state_dict().items()})),
            "counters",
        ),
        (lambda: b"".join(encode({"model/rows": torch.zeros(60, 2)})), "'model/first.bias' is missing"),
        (lambda: b"", "damaged or not safetensors"),
        (lambda: _without_a_moment(), "optimiser's or the best weights are missing"),
    ],
)
def test_a_checkpoint_is_checked_as_a_whole(copy: Path, checkpoint: Callable[[], bytes], says: str) -> None:
    with refused(says):
        _resume_with(copy, checkpoint())


@pytest.mark.parametrize(
    ("history", "says"),
    [
        ("", "0 rows, the checkpoint counts 3"),
        ('{"epoch": 1}\n{"epoch": 2}\n{"epoch": 4}\n', "line 3: not the row of epoch 3"),
        ('{"epoch": 1}\n{"epo\n{"epoch": 3}\n', "line 2: not valid JSON"),
    ],
)
def test_a_history_that_does_not_fit_its_checkpoint_is_refused(copy: Path, history: str, says: str) -> None:
    with refused(says):
        _resume_with(copy, _checkpoint(), history)


def test_random_damage_anywhere_ends_in_one_line(finished: Path, tmp_path: Path) -> None:
    """Whatever byte is wrong: either the run still loads with the very same weights, or it is refused."""
    rng = np.random.default_rng(1)
    truth, _ = load_run(finished, build)
    for trial in range(60):
        run = Path(shutil.copytree(finished, tmp_path / str(trial)))
        path = run / rng.choice([folder.CONFIG, folder.SIDECAR, folder.WEIGHTS])
        content = bytearray(path.read_bytes())
        for _ in range(rng.integers(1, 4)):
            content[rng.integers(len(content))] = rng.integers(256)
        path.write_bytes(bytes(content))
        try:
            model, _ = load_run(run, build)
        except ConjointError as error:
            assert "\n" not in str(error)
        else:
            assert same_weights(model, truth)


def test_a_training_done_elsewhere_is_kept_as_if_done_here(tmp_path: Path) -> None:
    fitted, data, split = fit(small_model(), small_data(), small_split(), CONFIG), small_data(), small_split()
    path = tmp_path / "adopted"
    start_run(path, CONFIG, model=SPEC, data=data, split=split, origin={"name": "small"}).adopt(
        fitted.history, snapshot(fitted.model), fitted.result()
    )
    model, run = load_run(path, build)
    assert run.sidecar.finished and same_weights(model, fitted.model)
    assert run.history(len(fitted.history)) == fitted.history
