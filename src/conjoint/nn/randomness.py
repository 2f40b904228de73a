"""Dropout masks that are a function of (seed, place) alone.

Nothing is stored, forward and backward make the same mask, and the number of threads does not matter.
The compiled kernels compute the same function.
"""

import torch
from torch import Tensor

_WORD = 0xFFFFFFFF

Mask = tuple[Tensor | None, int, float]  # seed, threshold, scale


def draw_seed(device: torch.device | None = None) -> Tensor:
    """A fresh seed from torch's generator, so that `torch.manual_seed` governs it as it does F.dropout."""
    return torch.randint(0, 2**62, (1,), dtype=torch.long, device=device)


def mask_of(dropout: float, seed: Tensor | None) -> Mask:
    """A place is kept when its 32-bit hash is at least the threshold, and multiplied by the scale."""
    if seed is None or dropout <= 0.0:
        return None, 0, 1.0
    return seed, min(round(dropout * 2.0**32), 2**32 - 1), 1.0 / (1.0 - dropout) if dropout < 1.0 else 0.0


def keep_mask(seed: Tensor, count: int, dropout: float) -> Tensor:
    """Which of `count` places are kept: hash(seed, place) >= threshold. [count] bool

    The hash is two rounds of a 32-bit multiply-xorshift over the place, started from the two halves of
    the seed. int64 arithmetic keeps every product below 2^63.
    """
    place = torch.arange(count, dtype=torch.long, device=seed.device)
    low, high = seed & _WORD, (seed >> 32) & _WORD
    word = _mix((place & _WORD) ^ low)
    word = _mix(word ^ (place >> 32) ^ high)
    return word >= mask_of(dropout, seed)[1]


def _mix(word: Tensor) -> Tensor:
    """The 32-bit finaliser "lowbias32" (C. Wellons, public domain): multiply and xorshift."""
    word = word ^ (word >> 16)
    word = (word * 0x7FEB352D) & _WORD
    word = word ^ (word >> 15)
    # Times 0x846CA68B, split so that no product leaves int64: the top bit only moves the lowest one.
    word = (word * 0x046CA68B + ((word & 1) << 31)) & _WORD
    return word ^ (word >> 16)
