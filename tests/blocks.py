"""A graph of three communities whose features hint at them: too faint alone, clear with the graph."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

CLASSES = 3
# Few epochs at a high rate: enough for these graphs, and fast.
QUICK: dict[str, Any] = {"epochs": 30, "lr": 0.05, "dropout": 0.2, "hidden": 4, "heads": 2, "random_state": 0}


class Blocks(NamedTuple):
    x: npt.NDArray[np.float64]
    graph: sp.csr_array
    truth: npt.NDArray[np.int64]
    y: npt.NDArray[np.int64]  # five labels per class, -1 elsewhere


def blocks(num_nodes: int = 90, seed: int = 0) -> Blocks:
    rng = np.random.default_rng(seed)
    truth = np.arange(num_nodes) % CLASSES
    x = rng.normal(size=(num_nodes, 6))
    x[np.arange(num_nodes), truth] += 0.9
    chance = np.where(truth[:, None] == truth[None, :], 0.2, 0.01)
    upper = np.triu(rng.random((num_nodes, num_nodes)) < chance, 1)
    y = truth.copy()
    y[5 * CLASSES :] = -1
    return Blocks(x, sp.csr_array((upper | upper.T).astype(float)), truth, y)
