"""The page about graphs that nobody tuned for is made from the rows, and from nothing else."""

from pathlib import Path

import numpy as np
import pytest

from conjoint.errors import InputError
from research.any_graph import OTHER, PAPER, SHARES, page, published_split, read_rows, specs

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_rows_give() -> None:
    assert (ROOT / "docs" / "any-graph.md").read_text() == page(read_rows())


def test_every_row_is_one_of_the_plan_and_stands_once() -> None:
    keys = [(row["graph"], row["setting"], row["split"]) for row in read_rows()]
    assert keys and len(set(keys)) == len(keys) and set(keys) <= set(specs(10))


def test_an_ensemble_counts_as_much_as_its_members_say() -> None:
    for row in read_rows():
        assert abs(sum(row["weights"].values()) - 1.0) < 0.01
        assert set(row["weights"]) <= set(row["test"])


def test_groups_name_each_graph_once() -> None:
    names = [*(name for group in OTHER.values() for name in group), *PAPER]
    assert len(set(names)) == len(names) == len([one for one in specs(1) if one[1] == SHARES])


def test_the_published_split_has_each_node_once(tmp_path: Path) -> None:
    path = tmp_path / "small_split.npz"
    with pytest.raises(InputError, match="tunedGNN"):
        published_split(path, 5)
    np.savez(path, train=[4, 0, 2], valid=[1], test=[3])
    split = published_split(path, 5)
    assert split.train.tolist() == [0, 2, 4] and split.val.tolist() == [1]
    assert split.reveal_test().tolist() == [3]
    for nodes in (4, 6):
        with pytest.raises(InputError, match=f"not the {nodes} nodes"):
            published_split(path, nodes)
    np.savez(path, train=[0, 2], valid=[1, 2], test=[3])
    with pytest.raises(InputError, match="each once"):
        published_split(path, 5)
