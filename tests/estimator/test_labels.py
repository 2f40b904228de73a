from typing import Any

import numpy as np
import pandas as pd
import pytest

from conjoint.errors import InputError
from conjoint.estimator.labels import encode, labelled, require_two


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([7, -1, 3, 7], [3, 7]),
        (np.array([7.0, np.nan, 3.0, 7.0]), [3, 7]),
        (np.array([7.0, -1.0, 3.0, 7.0]), [3, 7]),
        (["b", "", "a", "b"], ["a", "b"]),
        (["b", -1, "a", "b"], ["a", "b"]),  # NumPy turns it into "-1"
        (np.array(["b", None, "a", "b"], dtype=object), ["a", "b"]),
        (np.array(["b", float("nan"), "a", "b"], dtype=object), ["a", "b"]),
        (np.array(["b", -1, "a", "b"], dtype=object), ["a", "b"]),
        (pd.Series(["b", None, "a", "b"]), ["a", "b"]),
        (pd.Series(["b", None, "a", "b"], dtype="category"), ["a", "b"]),
        (pd.Series([7, pd.NA, 3, 7], dtype="Int64"), [3, 7]),
        (np.array([7, pd.NA, 3, 7], dtype=object), [3, 7]),
    ],
)
def test_the_second_label_is_missing(y: Any, classes: list[Any]) -> None:
    found, codes = encode(y)
    assert found.tolist() == classes
    assert codes.tolist() == [1, -1, 0, 1]
    assert labelled(y)[1].tolist() == [True, False, True, True]


def test_booleans_are_classes() -> None:
    found, codes = encode([True, False, True])
    assert (found.tolist(), codes.tolist()) == ([False, True], [1, 0, 1])


def test_labels_that_cannot_be_learnt_from() -> None:
    with pytest.raises(InputError, match="no node has a label"):
        encode([-1, -1])
    with pytest.raises(ValueError, match="Unknown label type"):
        encode([0.5, 1.7])
    with pytest.raises(ValueError, match="infinity"):
        encode([np.inf, 1.0])
    with pytest.raises(InputError, match=r"one class only \(4\)"):
        require_two(encode([4, -1, 4])[0])
