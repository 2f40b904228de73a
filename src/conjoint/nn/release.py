"""The network of the authors' released code (CAT-I with MF), where it differs from what the paper says."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..graph.adjacency import Adjacency
from .attention import Structure
from .cat import CAT
from .conjoint_layer import ConjointLayer

GAIN = 1.414


class ReleaseCAT(CAT):
    """CAT as the authors' code trains it. It takes CAT's arguments.

    - ELU on the logits too, before the softmax.
    - W, the attention vectors and V come from Glorot's normal distribution with gain 1.414, where each head
      is a layer by itself; so does epsilon's logit, and (g_f, g_s) from the uniform one. CAT begins with
      zeros there: epsilon 1/2, and features and structure alike.
    - A quarter of the gradient of the structural loss: V V^T V - A V for MF.
    - Dropout of 0.9 on the self term (`self_dropout`).

    How the code trains and chooses an epoch is `conjoint train --rule release`, see docs/training.md.
    """

    def __init__(self, *sizes: int, self_dropout: float = 0.9, **options: Any) -> None:
        super().__init__(*sizes, self_dropout=self_dropout, **options)
        self.reach = None  # parts of a graph are trained and predicted by CAT's own rules
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        super().reset_parameters()
        factors = getattr(self.intervention, "factors", None)
        if factors is not None:
            nn.init.xavier_normal_(factors, GAIN)
        for conv in self.convs:
            assert isinstance(conv, ConjointLayer) and conv.lin is not None
            for weight in conv.lin.weight.view(conv.heads, conv.out_channels, -1):
                nn.init.xavier_normal_(weight, GAIN)
            for att in (conv.att_src, conv.att_dst):
                if att is not None:
                    nn.init.normal_(att, std=GAIN / conv.out_channels**0.5)  # Glorot's, of a [1, 1, out]
            if conv.mix_logit is not None:
                for logits in conv.mix_logit:
                    nn.init.xavier_uniform_(logits.unsqueeze(0), GAIN)
            if conv.eps_logit is not None:
                nn.init.normal_(conv.eps_logit, std=GAIN)  # Glorot's, of a [1, 1]

    def penalty(self, graph: Tensor | Adjacency | None = None, score: Tensor | None = None) -> Tensor:
        return super().penalty(graph, score) / 4

    def _logits(self, x: Tensor, layers: tuple[Adjacency, ...], structure: Structure | None) -> Tensor:
        return F.elu(super()._logits(x, layers, structure))
