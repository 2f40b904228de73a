"""The operations that the layers call: compiled kernels where they serve, plain torch elsewhere.

Each is one function, with its shapes and its definition in plain torch, which the kernel is tested against
and which serves on a GPU and where no compiled kernels are at hand; the kernel, with its gradient, is below
it. Neither makes a tensor of entries x heads x channels.
"""
# ruff: noqa: F401 (the imports are the table of operations)

from .activation import activate_and_drop, draw_seed, drop, keep_mask
from .aggregation import aggregate, aggregate_and_project
from .attention_layer import attend, attention, shares
from .entries import edge_dot, edge_softmax, edge_total, spread, targets
from .extremum import neighbour_max
from .factors import expression_loss, factor_attention, factor_loss, gram_norm
from .projection import (
    dense_linear,
    head_dot,
    head_dots,
    head_project,
    project,
    sparse_project,
    without_zeros,
)
from .rows import add, affine
from .scaled import scaled, scaled_softmax
