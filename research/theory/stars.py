"""The same neighbourhoods as graphs: a star around each centre, and the real layer."""

import numpy as np
import torch
from torch import Tensor

from conjoint.nn.conv import CATConv
from conjoint.nn.interventions import Constant

from .neighbourhoods import Floats, Neighbourhood, Strategy


def star(hood: Neighbourhood, num_features: int) -> tuple[Tensor, Tensor, Tensor]:
    """(x, edge_index, score): node 0 and its leaves, each with an edge to node 0; features are one-hot rows.

    The centre's loop is one of the edges, so that it has a score of its own: use `add_self_loops=False`.
    """
    x = torch.eye(num_features, dtype=torch.float64)[torch.from_numpy(hood.features)]
    members = torch.arange(hood.size)
    return x, torch.stack([members, torch.zeros_like(members)]), torch.from_numpy(hood.scores)


def conv(
    strategy: Strategy, g: Floats, att_centre: Floats, att_neighbour: Floats, r_s: float, eps: float
) -> CATConv:
    """A float64 CATConv with these weights, to be called with `score=`. eps = 0 leaves the self term out."""
    layer = CATConv(
        g.shape[0],
        g.shape[1],
        bias=False,
        add_self_loops=False,
        strategy="implicit" if strategy == "gat" else strategy,
        intervention=None if strategy == "gat" else Constant(),
        self_term=eps > 0.0,
    ).double()
    values = {"lin.weight": g.T, "att_dst": att_centre[None, None], "att_src": att_neighbour[None, None]}
    if strategy == "implicit":
        values["mix_logit"] = np.log([[1.0 - r_s, r_s]])
    if eps > 0.0:
        values["eps_logit"] = np.log([eps / (1.0 - eps)])
    layer.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in values.items()})
    return layer
