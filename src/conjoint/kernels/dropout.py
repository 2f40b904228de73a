"""Dropout as the kernels take it: a seed, a threshold on the hash, a factor for what is kept."""

from torch import Tensor


def threshold(dropout: float) -> int:
    """A place is kept when its 32-bit hash is at least this."""
    return min(round(dropout * 2.0**32), 2**32 - 1)


def scale(dropout: float) -> float:
    """What a kept value is multiplied by; 0 where everything is dropped."""
    return 1.0 / (1.0 - dropout) if dropout < 1.0 else 0.0


def in_use(dropout: float, seed: Tensor | None) -> Tensor | None:
    """The seed if there is anything to drop."""
    return seed if dropout > 0.0 else None
