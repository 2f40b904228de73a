r"""Propagation along edges that weigh as much as their structural score says.

.. math:: P_{ij} = \frac{w_{ij}}{\sqrt{d_i d_j}}, \quad w_{ij} = e^{C_{ij}},
    \quad d_i = \sum_{j \in N_i} w_{ij}

Without an intervention C is 0, and P is the normalised adjacency. Scores that tell wrong edges from right
ones keep features and predictions from taking them.
"""

import torch
from torch import Tensor

from ..graph.adjacency import Adjacency
from . import ops


@torch.no_grad()
def propagation_weights(adj: Adjacency, score: Tensor | None) -> Tensor:
    """P on the entries of the graph; learnt scores get no gradient through it. [entries, 1]

    `score` is [entries], or [entries, k] of k interventions, whose mean counts.
    """
    if score is None:
        score = torch.zeros(adj.num_entries, device=adj.col.device)
    elif score.dim() == 2:
        score = score.mean(dim=1)
    if adj.log_weight is not None:
        score = score + adj.log_weight.to(score.dtype)
    # Logarithms of d, as a score of 100 must not overflow. Every node has a loop, so each row has a largest.
    largest = score.new_full((adj.num_dst,), -torch.inf).scatter_reduce(0, adj.row, score, "amax")
    total = score.new_zeros(adj.num_dst).index_add(0, adj.row, (score - largest[adj.row]).exp())
    log_degree = largest + total.log()
    # Above 0 only where C_ij and C_ji differ: no edge may multiply what it carries.
    return (score - 0.5 * (log_degree[adj.row] + log_degree[adj.col])).clamp(max=0.0).exp().unsqueeze(1)


def propagate(adj: Adjacency, weights: Tensor, logits: Tensor, steps: int, teleport: float) -> Tensor:
    """Logits Z after `steps` of personalised PageRank, H <- (1 - t) P H + t Z. logits: [nodes, ...]

    As in APPNP ("Predict then Propagate", Klicpera et al., 2019).
    """
    start = logits.flatten(1).unsqueeze(1)  # [nodes, 1, channels]: one head
    now = start
    for _ in range(steps):
        now = torch.lerp(ops.aggregate(adj, weights, now), start, teleport)
    return now.reshape(logits.shape)
