"""The learning rate of each epoch, as a share of `lr`: pure functions, so resuming needs no state."""

import math
from collections.abc import Callable

# Name -> share of the learning rate, given how far training has come (0 at the first epoch, 1 at the last).
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
    "linear": lambda done: 1.0 - done,
}

# The last epochs still learn a little, otherwise the very last would be spent on nothing.
FLOOR = 0.01


def rate(schedule: str, epoch: int, epochs: int, warmup: int) -> float:
    """Share of the learning rate in `epoch` (1-based)."""
    if epoch <= warmup:
        return epoch / (warmup + 1)
    done = (epoch - warmup - 1) / max(1, epochs - warmup - 1)
    return max(FLOOR, SCHEDULES[schedule](done))
