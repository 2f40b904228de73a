"""How much of a graph looks like chance: measured with edges that are known to be chance.

Random pairs, the decoys, are put among the edges before features are smoothed over the graph, so that they
gain by the smoothing what a wrong edge gains. Then edges are a mixture of right ones and of ones that look
like decoys. No labels are needed.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .proximity import smooth

Numbers = npt.NDArray[np.float32]

SHARE = 0.1  # decoys against edges: enough to measure, too few to change the graph
WANTED = 1000  # decoys; small graphs are measured several times
TURNS = 20
MOST = 100_000  # decoys and edges of a large graph that are looked at
LOWEST = 0.2  # of the decoys: hardly any right edge is as unlike as these
SHARPEST = 32.0


def compare(
    vectors: Numbers, edge_index: Tensor, num_nodes: int, hops: int, seed: int
) -> tuple[Numbers, Numbers]:
    """Cosines over edges and over decoys, after smoothing the vectors over both. Self-loops do not count."""
    rng = np.random.default_rng(seed)
    src, dst = edge_index.cpu().numpy()
    pairs = np.stack([src, dst])[:, src < dst]
    count = min(MOST, int(np.ceil(SHARE * pairs.shape[1])))
    if count == 0:
        return np.zeros(0, np.float32), np.zeros(0, np.float32)
    edges, decoys = [], []
    for _ in range(min(TURNS, int(np.ceil(WANTED / count)))):
        drawn = rng.integers(0, num_nodes, (2, count))
        drawn = drawn[:, drawn[0] != drawn[1]]
        both = np.concatenate([np.stack([src, dst]), drawn, drawn[::-1]], axis=1)
        smoothed = smooth(vectors, torch.from_numpy(both), num_nodes, hops)
        seen = pairs[:, rng.permutation(pairs.shape[1])[:MOST]]
        edges.append(_cosines(smoothed, seen))
        decoys.append(_cosines(smoothed, drawn))
    return np.concatenate(edges), np.concatenate(decoys)


def noise_share(edges: Numbers, decoys: Numbers) -> float:
    """The share of edges that look like decoys, from how many lie where hardly any right edge does."""
    if len(edges) == 0 or len(decoys) == 0:
        return 0.0
    low = np.quantile(decoys, LOWEST)
    return min(1.0, float(np.mean(edges <= low)) / float(np.mean(decoys <= low)))


def sharpness(edges: Numbers, decoys: Numbers, leak: float) -> float:
    """The smallest T for which edges that look like decoys have at most the share `leak` of all weight.

    An edge of cosine c weighs exp(T c). 0 on a graph that is clean already; where no T is enough, the best.
    """
    noise = noise_share(edges, decoys)
    if noise <= leak:
        return 0.0
    tried = np.arange(0.25, SHARPEST + 0.25, 0.25)
    leaks = [noise * np.exp(t * (decoys - 1.0)).mean() / np.exp(t * (edges - 1.0)).mean() for t in tried]
    enough = np.flatnonzero(np.array(leaks) <= leak)
    return float(tried[enough[0] if len(enough) else int(np.argmin(leaks))])


def _cosines(unit: Numbers, pairs: npt.NDArray[np.int64]) -> Numbers:
    return np.einsum("ij,ij->i", unit[pairs[0]], unit[pairs[1]])
