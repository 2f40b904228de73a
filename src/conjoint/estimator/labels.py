"""Labels, some of them missing."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ..errors import InputError

Codes = npt.NDArray[np.int64]


def labelled(y: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The labels as one array, and which of them say something.

    Nothing is said by -1, as in `sklearn.semi_supervised`, and by NaN, None and "".
    """
    values = column_or_1d(y if hasattr(y, "dtype") else _array(y), warn=True)
    if values.dtype.kind == "f":
        told = ~np.isnan(values) & (values != -1)
        assert_all_finite(values[told], input_name="y")
    elif values.dtype.kind in "iub":
        told = values != -1
    elif values.dtype.kind == "U":
        told = (values != "") & (values != "-1")  # "-1": what NumPy makes of -1 in a list of names
    else:
        told = np.array([not _missing(value) for value in values], dtype=bool)
    return values, told


def encode(y: Any) -> tuple[npt.NDArray[Any], Codes]:
    """(classes, codes): the classes in sorted order, and for each node its place among them or -1."""
    values, told = labelled(y)
    codes = np.full(len(values), -1, dtype=np.int64)
    known = np.asarray(values[told].tolist()) if values.dtype == object else values[told]
    if not len(known):
        raise InputError("y: no node has a label (-1, NaN, None and '' mean unlabelled); label some nodes")
    check_classification_targets(known)
    classes, codes[told] = np.unique(known, return_inverse=True)
    return classes, codes


def require_two(classes: npt.NDArray[Any]) -> None:
    if len(classes) < 2:
        raise InputError(
            f"y: the labelled nodes hold one class only ({classes[0].item()!r}); two are needed "
            "to learn from, and -1 counts as unlabelled: number classes from 0"
        )


def _array(y: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(y)
    except ValueError:
        raise InputError("y: rows of different length; give one label per row of X") from None


def _missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":  # pandas' NA refuses to be compared
        return True
    return bool(value != value) or value in (-1, "", "-1")
