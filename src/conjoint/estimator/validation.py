"""Which labelled nodes choose the epoch: a share of every class."""

import numpy as np
import numpy.typing as npt
import torch

from ..data.splits import Split
from ..errors import InputError

Codes = npt.NDArray[np.int64]


def hold_out(codes: Codes, share: float, seed: int) -> Split:
    """Training and validation nodes among the labelled ones (code 0 or more), class by class.

    A class of n labels gives round(share * n) of them to validation, at least one, but keeps at least one to
    train on: a class with one label only trains. Where no label can be spared, or `share` is 0, the training
    nodes choose the epoch themselves: lowest training loss, measured without dropout.
    """
    if not 0 <= share < 1:
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
