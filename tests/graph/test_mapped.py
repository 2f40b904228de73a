"""Files of arrays: readable by NumPy, checked before they are mapped, and the pages can go."""

from pathlib import Path

import numpy as np
import pytest

from conjoint.errors import InputError
from conjoint.graph.mapped import Mapped, NpyWriter, create, gather


def test_pieces_become_one_file_that_numpy_reads(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((1000, 3)).astype(np.float32)
    with NpyWriter(tmp_path / "x.npy", np.float32, 3) as file:
        for part in np.array_split(values, 7):
            file.append(part)
    assert np.array_equal(np.load(tmp_path / "x.npy"), values)
    with NpyWriter(tmp_path / "again.npy", np.float32, 3) as again:
        again.append(values)
    assert again.sha256 == file.sha256  # of the values, not of the pieces


@pytest.mark.parametrize("cut", [-1, -4, 20])
def test_a_file_of_the_wrong_size_is_not_mapped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(100))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"x\.npy: truncated or damaged .*ingest the graph again"):
        Mapped(path)


def test_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="truncated or damaged"):
        Mapped(tmp_path / "x.npy")


def resident(path: Path) -> int:
    """Bytes of a file that this process holds."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            inside = line.endswith(str(path))
        elif inside and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total


def test_rows_far_apart_do_not_make_the_whole_file_resident(tmp_path: Path) -> None:
    made = create(tmp_path / "x.npy", (200_000, 8), np.float32)
    made.values[:] = np.arange(200_000)[:, None]
    made.release()
    index = np.random.default_rng(0).integers(0, 200_000, 5000)
    most = 0

    def release() -> None:
        nonlocal most
        most = max(most, resident(tmp_path / "x.npy"))
        made.release()

    found = gather(made.values, index, release, window=1 << 20)
    assert np.array_equal(found[:, 0], index)
    if Path("/proc/self/smaps").exists():
        assert 0 < most <= 2 << 20  # a window of 1 MB and what the system maps around it, of 6.4 MB
    assert np.array_equal(gather(made.values, index, made.release)[:, 3], index)


def test_written_values_survive_the_release_of_their_pages(tmp_path: Path) -> None:
    made = create(tmp_path / "x.npy", (100_000, 8), np.float32)
    made.values[:] = 3.0
    if Path("/proc/self/smaps").exists():
        assert resident(tmp_path / "x.npy") >= 3_200_000
        made.release()
        assert resident(tmp_path / "x.npy") == 0
    assert bool((made.values == 3.0).all())
    assert bool((np.load(tmp_path / "x.npy") == 3.0).all())
