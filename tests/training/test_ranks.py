"""Two and four real processes: one model, and trouble of one is told by all, without waiting for ever."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import conjoint
from conjoint.errors import InputError
from conjoint.training import ranks

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    paths = os.pathsep.join([str(HERE.parent), str(Path(conjoint.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-W", "ignore", str(HERE / "forked_ranks.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["neighbours", "clusters"])
def test_the_model_does_not_depend_on_the_number_of_ranks(outcomes: dict[str, Any], kind: str) -> None:
    apart = outcomes[f"same {kind}"]
    assert apart["2"] <= 1e-7 and apart["4"] <= 1e-7


def test_a_checkpoint_of_two_ranks_has_the_memory_of_all_rows(outcomes: dict[str, Any]) -> None:
    assert outcomes["resumed"] <= 1e-7


def test_ranks_learn_from_all_labels_whatever_their_number_and_whoever_dies(outcomes: dict[str, Any]) -> None:
    """The weights, and what the first training says of the judged nodes; on resuming, the history too."""
    ends, died = outcomes["all labels"]["ends"], outcomes["all labels"]["died"]
    for name in ("weights.safetensors", "judged.safetensors"):
        assert len({said[name] for said in ends}) == 1
    for survivor, victim in died[:2]:  # in the first training, then in the second
        assert victim == "killed" and survivor.startswith("PeerLost: rank 0 of 2")
    assert died[2][0] == ends[1]


def test_a_wrong_number_of_ranks_is_told_by_all(outcomes: dict[str, Any]) -> None:
    assert len(outcomes["wrong number"]) == 3
    assert all("3 ranks do not divide --batches-per-step 4" in said for said in outcomes["wrong number"])


def test_a_rank_that_cannot_read_ends_all_with_its_reason(outcomes: dict[str, Any]) -> None:
    first, second = outcomes["unreadable"]
    assert first == "InputError: rank 1 of 2 cannot go on: x.npy: truncated"
    assert second == "InputError: x.npy: truncated"


def test_a_full_disk_ends_all_with_its_reason(outcomes: dict[str, Any]) -> None:
    first, second = outcomes["full disk"]
    assert first == "StorageError: checkpoint.safetensors: no space left"
    assert second == "InputError: rank 0 of 2 cannot go on: checkpoint.safetensors: no space left"


def test_a_rank_that_dies_ends_the_others(outcomes: dict[str, Any]) -> None:
    first, second = outcomes["killed"]
    assert second == "killed"
    assert first.startswith("PeerLost: rank 0 of 2: another rank has gone or is late")


def test_a_rank_that_is_silent_ends_the_others(outcomes: dict[str, Any]) -> None:
    first, second = outcomes["silent"]
    assert first.startswith("PeerLost: rank 0 of 2: another rank has gone or is late")
    assert second.startswith("PeerLost: rank 1 of 2")


@pytest.mark.parametrize(
    ("variables", "is_launched"),
    [("", False), ("RANK", False), ("WORLD_SIZE", False), ("RANK WORLD_SIZE", True)],
)
def test_a_launcher_is_known_by_both_of_its_variables(
    variables: str, is_launched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name in variables.split():
        monkeypatch.setenv(name, "1")
    assert ranks.launched() is is_launched


def test_a_process_that_is_alone_exchanges_nothing() -> None:
    values = torch.tensor([1.0, 2.0])
    ranks.alone.broadcast_tensors(values)
    ranks.alone.gather_rows(values)
    assert ranks.alone.mean(values) is values and values.tolist() == [1.0, 2.0]


def test_why_ranks_do_not_find_each_other_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("the address is taken\n  at TCPStore.cpp:120\n  at main")

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("torch.distributed.rendezvous", refuse)
    with (
        pytest.raises(InputError, match=r"do not find each other \(the address is taken\); check"),
        ranks.connected(),
    ):
        pass
