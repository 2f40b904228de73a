"""Training ends with the bits recorded in `bits.json`; `scripts/bits.py` compares more networks."""

import json

import pytest

from golden.bits import CHEAP, EPOCHS, skip_unless_made_here, train
from golden.commands import HERE

RECORDED = json.loads((HERE / "bits.json").read_text())


@pytest.mark.parametrize("name", CHEAP)
def test_training_ends_with_the_same_bits(name: str) -> None:
    skip_unless_made_here(RECORDED["made_with"])
    assert RECORDED["epochs"] == EPOCHS
    assert train(name) == RECORDED["models"][name]
