"""What training minimises."""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor


class Loss(NamedTuple):
    total: Tensor
    prediction: Tensor
    penalty: Tensor


def objective(logits: Tensor, labels: Tensor, penalty: Tensor, penalty_weight: float) -> Loss:
    """The paper's loss, L_predict + lambda L_ext, with cross-entropy as L_predict. [targets, classes]"""
    prediction = F.cross_entropy(logits, labels)
    return Loss(prediction + penalty_weight * penalty, prediction, penalty)
