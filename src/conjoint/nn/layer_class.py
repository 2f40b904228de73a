"""Which layer networks are made of: the only place that knows both."""

import sys

from .conjoint_layer import ConjointLayer


def layer_class() -> type[ConjointLayer]:
    """`CATConv` where PyG is loaded, whose tools look for their own kind of layer; else the same without.

    Both compute the same bits and read the same weights. Who imports names from `conjoint` itself has PyG.
    """
    if "torch_geometric" not in sys.modules:
        return ConjointLayer
    from .conv import CATConv  # imports PyG, which the command line does without

    return CATConv
