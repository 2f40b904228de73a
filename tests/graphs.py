"""Hand-made graphs that all tests share, each small enough to draw on paper."""

import torch
from torch import Tensor

# A triangle 0-1-2 with a tail 2-3 and an isolated node 4.
KITE = (torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]]), 5)
# A hub 0 with five leaves.
STAR = (torch.tensor([[0, 1, 0, 2, 0, 3, 0, 4, 0, 5], [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]]), 6)
# Directed, with a self-loop, a parallel edge and a node that nobody hears.
MESSY = (torch.tensor([[0, 0, 1, 2, 2, 3], [1, 1, 2, 2, 0, 1]]), 4)

ALL = {"kite": KITE, "star": STAR, "messy": MESSY}


def random_graph(
    num_nodes: int, num_edges: int, seed: int = 0, undirected: bool = True
) -> tuple[Tensor, int]:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, num_nodes, (2, num_edges), generator=generator)
    if undirected:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    edges = edges[:, edges[0] != edges[1]]
    return edges.unique(dim=1).contiguous(), num_nodes


def random_features(num_nodes: int, width: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(num_nodes, width, generator=torch.Generator().manual_seed(seed), dtype=dtype)
