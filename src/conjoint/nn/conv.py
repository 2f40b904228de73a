"""The conjoint attention layer as PyG's layer: hooks on messages, explainers, lazy sizes, `HeteroConv`."""

from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.dense.linear import Linear, is_uninitialized_parameter

from ..graph.adjacency import Adjacency
from . import checks
from .conjoint_layer import ConjointLayer


class CATConv(ConjointLayer, MessagePassing):
    __doc__ = ConjointLayer.__doc__

    if TYPE_CHECKING:  # PyG publishes no types

        def __getattr__(self, name: str) -> Any: ...

    def _base_options(self, given: dict[str, Any]) -> dict[str, Any]:
        checks.one_of("aggr", given.setdefault("aggr", "add"), ("add",))
        return {**given, "node_dim": 0}

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha.unsqueeze(-1) * x_j

    @property
    def _is_watched(self) -> bool:
        on_message = self._message_forward_pre_hooks or self._message_forward_hooks
        on_propagate = self._propagate_forward_pre_hooks or self._propagate_forward_hooks
        return bool(self.explain or on_message or on_propagate)

    def _summed_messages(self, adj: Adjacency, alpha: Tensor, h: Tensor) -> Tensor:
        ends, size = (h, h[: adj.num_dst]), (adj.num_src, adj.num_dst)
        return self.propagate(adj.edge_index, x=ends, alpha=alpha, size=size)

    def _linear(self, in_channels: int, out_channels: int) -> Linear:
        """PyG's: of a size that the first input decides, if in_channels is -1."""
        return Linear(in_channels, out_channels, bias=False, weight_initializer="glorot")

    def _size(self, linear: Linear | None, x: Tensor) -> None:
        if linear is not None and is_uninitialized_parameter(linear.weight):
            linear.initialize_parameters(linear, (x,))
