"""The table of options: every entry can be used, and a file may only say what an option could."""

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from conjoint import defaults
from conjoint.cli.options import KINDS, SECTIONS, TABLE, VERBS, sections, whole_number
from conjoint.cli.plan import read_config
from conjoint.errors import InputError


def test_every_option_has_a_kind_a_place_and_a_verb() -> None:
    assert {group for groups in VERBS.values() for group in groups} == set(TABLE["groups"])
    assert set(TABLE["titles"]) <= set(TABLE["groups"])
    for group in TABLE["groups"].values():
        for flag, option in group.items():
            assert option.get("kind", "text") in KINDS and option["help"], flag
            assert option.get("at", "data.").partition(".")[0] in SECTIONS, flag


def test_the_variants_are_those_that_there_are() -> None:
    assert TABLE["groups"]["network"]["--variant"]["choices"] == sorted(defaults.VARIANTS)


def test_options_stand_where_a_file_would_have_them() -> None:
    found = sections(
        {"layers": 3, "split": "public", "split_column": "part", "penalty_weight": 0.1, "quiet": True}
    )
    assert found == {
        "data": {"split": "part"},
        "split": {"name": "public"},
        "model": {"num_layers": 3},
        "train": {"penalty_weight": 0.1},
        "batch": {},
        "search": {},
    }


def test_whole_numbers_as_people_write_them() -> None:
    assert [whole_number(text) for text in ("169_343", "1e6", "-3")] == [169343, 1000000, -3]
    for text in ("many", "1.5", "1e-3", "nan", "1e400"):
        with pytest.raises(ArgumentTypeError, match="not a whole number"):
            whole_number(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[data]\nedges = 1\n", r"\[data\] edges = 1: expected text"),
        ('[data]\nedges = "e.csv"\ntext = [1]\n', r"\[data\] text = \[1\]: expected text or a list"),
        ("[split]\ntrain = [[1]]\n", r"\[split\] train = .*: expected a number"),
        ("[split]\nnum_val = true\n", r"\[split\] num_val = True: expected a whole number"),
        ("[model]\nname = 07:32:00\n", r"\[model\] name = .*: expected text"),
        ('[data]\nedges = "a\\u0000b"\n', "expected text"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        read_config(str(file))
