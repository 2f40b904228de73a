"""Adam with the structural parameters in a group of their own, and its state by parameter name."""

import torch
from torch import Tensor

from ..nn.model import NodeModel
from .config import TrainConfig
from .schedule import rate


def make_optimizer(model: NodeModel, config: TrainConfig) -> torch.optim.Adam:
    """Adam in its fused form: one pass over the weights, the same bits at any number of threads."""
    structural = model.structural_parameters()
    apart = {id(p) for p in structural}
    plain = [p for p in model.parameters() if id(p) not in apart]
    decay = config.structural_weight_decay
    groups = [
        {"params": plain, "weight_decay": config.weight_decay},
        {"params": structural, "weight_decay": config.weight_decay if decay is None else decay},
    ]
    return torch.optim.Adam([g for g in groups if g["params"]], lr=config.lr, fused=True)


def set_rate(optimizer: torch.optim.Adam, config: TrainConfig, epoch: int) -> float:
    """The learning rate of this epoch, computed and not accumulated."""
    lr = config.lr * rate(config.schedule, epoch, config.epochs, config.warmup)
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr


def optimizer_state(model: NodeModel, optimizer: torch.optim.Adam) -> dict[str, Tensor]:
    """Adam's memory as `name/slot` tensors. A parameter that never had a gradient has none."""
    return {
        f"{name}/{slot}": value
        for name, parameter in model.named_parameters()
        for slot, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(model: NodeModel, optimizer: torch.optim.Adam, saved: dict[str, Tensor]) -> None:
    by_name = dict(model.named_parameters())
    for key, value in saved.items():
        name, slot = key.rsplit("/", 1)
        parameter = by_name[name]
        optimizer.state[parameter][slot] = value.to(parameter.device)
