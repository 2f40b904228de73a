"""Labels, some of them missing, and which of them choose the epoch and the model."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ..errors import InputError
from ..graph.splits import Split

Codes = npt.NDArray[np.int64]


def labelled(y: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The labels as one array, and which rows have one.

    -1 means none, as in `sklearn.semi_supervised`, and so do NaN, None and "".
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
    if len(classes) < 2:
        raise InputError(
            f"y: the labelled nodes hold one class only ({classes[0].item()!r}); two are needed "
            "to learn from, and -1 counts as unlabelled: number classes from 0"
        )
    return classes, codes


def hold_out(codes: Codes, share: Any, seed: int) -> Split:
    """Training and validation nodes among the labelled ones (code 0 or more), class by class.

    A class of n labels gives round(share * n) of them to validation, at least one, but keeps at least one to
    train on: a class with one label only trains. Where no label can be spared, or `share` is 0, the training
    nodes choose the epoch themselves: lowest training loss, measured without dropout.
    """
    number = isinstance(share, int | float | np.number) and not isinstance(share, bool)
    if not number or not 0 <= share < 1:
        raise InputError(f"validation_fraction={share!r}: give a share from 0 to below 1, for example 0.2")
    rng = np.random.default_rng(seed)
    train, val = [], []
    for code in range(int(codes.max()) + 1):
        members = rng.permutation(np.flatnonzero(codes == code))
        spared = min(max(1, round(share * len(members))), len(members) - 1) if share > 0 else 0
        val.append(members[:spared])
        train.append(members[spared:])
    nodes = torch.from_numpy(np.sort(np.concatenate(train)))
    chosen = torch.from_numpy(np.sort(np.concatenate(val)))
    return Split(nodes, chosen if len(chosen) else nodes, "held-out", seed)


def set_aside(codes: Codes, validation: Any) -> Split:
    """The rows of `validation` (indices or a mask) choose; all other labelled rows train."""
    rows = np.asarray(validation)
    if rows.dtype == bool and rows.shape == codes.shape:
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise InputError(
            "validation: give some rows of X, as their indices or as a mask with one entry per row"
        )
    if rows.min() < 0 or rows.max() >= len(codes) or len(np.unique(rows)) < len(rows):
        raise InputError(f"validation: name rows from 0 to {len(codes) - 1}, each once")
    if (codes[rows] < 0).any():
        row = rows[codes[rows] < 0][0].item()
        raise InputError(f"validation: row {row} has no label, so it cannot choose; leave it out")
    others = codes >= 0
    others[rows] = False
    if len(np.unique(codes[others])) < 2:
        raise InputError("validation: fewer than two classes are left to train on; set fewer rows aside")
    return Split(torch.from_numpy(np.flatnonzero(others)), torch.from_numpy(rows.astype(np.int64)), "given")


def label_weight(sample_weight: Any, codes: Codes) -> torch.Tensor:
    """One weight per row, 0 or more; those of rows without a label mean nothing."""
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("sample_weight: give a number for each row of X") from None
    if weight.shape != codes.shape:
        raise InputError(
            f"sample_weight.shape == {weight.shape}, expected {codes.shape}: give a number for each row of X"
        )
    known = weight[codes >= 0]
    if not np.isfinite(known).all() or (known < 0).any():
        raise InputError("sample_weight: a weight is negative, NaN or infinite; give numbers of 0 or more")
    if not known.any():
        raise InputError(
            "sample_weight: the weight of every row with a label is zero; give some that are not"
        )
    return torch.from_numpy(np.where(codes >= 0, weight, 0.0)).float()


def _array(y: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(y)
    except ValueError:
        raise InputError("y: rows of different length; give one label per row of X") from None


def _missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":  # pandas' NA refuses to be compared
        return True
    return bool(value != value) or value in (-1, "", "-1")
