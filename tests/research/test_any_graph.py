"""The page about graphs that nobody tuned for is made from the rows, and from nothing else."""

from pathlib import Path

from research.any_graph import OTHER, PAPER, SHARES, page, read_rows, specs

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
