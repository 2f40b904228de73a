"""What training minimises."""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from .config import TrainConfig
from .consistency import disagreement


class Loss(NamedTuple):
    total: Tensor
    prediction: Tensor
    penalty: Tensor
    disagreement: Tensor


def objective(
    logits: Tensor,  # [passes, rows, classes]
    labels: Tensor,  # [targets]
    pick: Tensor | None,  # the rows of the targets; None: rows are targets
    penalty: Tensor,
    config: TrainConfig,
    epoch: int,
) -> Loss:
    """The paper's loss, L_predict + lambda L_ext, plus the weighted consistency term if there is one.

    L_predict is cross-entropy, averaged over the passes.
    """
    targets = logits if pick is None else logits[:, pick]
    prediction = F.cross_entropy(targets.flatten(0, 1), labels.repeat(logits.size(0)))
    total = prediction + config.penalty_weight * penalty
    if config.consistency is None:
        return Loss(total, prediction, penalty, penalty.new_zeros(()))
    apart = disagreement(logits, config.consistency)
    return Loss(total + config.consistency.weight_at(epoch) * apart, prediction, penalty, apart)
