"""Adam with the structural parameters in a group of their own."""

from inspect import unwrap
from typing import Any

import torch
from torch import Tensor, nn

from ..nn.model import NodeModel
from .config import TrainConfig


class Adam(torch.optim.Adam):
    """torch's Adam, called without the wrappers by which torch's compiler passes over it.

    At their first call they import that compiler, 800 modules that take as long as torch itself.
    """

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        unwrap(torch.optim.Adam.add_param_group)(self, param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        unwrap(torch.optim.Adam.zero_grad)(self, set_to_none)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        unwrap(torch.optim.Adam.step)(self)


class RowAdam(Adam):
    """Adam that also updates single rows of large parameters: `step_rows` reads and writes those rows alone.

    Every row counts its own steps, so the bias correction is right however rarely a row is met. A parameter
    that is stepped by rows must have no gradient of its own.
    """

    @torch.no_grad()
    def step_rows(self, parameter: nn.Parameter, rows: Tensor, grad: Tensor) -> None:
        """One step on these rows (each once). [rows], [rows, columns]"""
        group = next(g for g in self.param_groups if any(p is parameter for p in g["params"]))
        (first, second), lr, eps = group["betas"], group["lr"], group["eps"]
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(parameter.size(0), device=parameter.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        count = state["step"][rows] + 1.0
        mean = torch.lerp(state["exp_avg"][rows], grad, 1.0 - first)
        square = torch.lerp(state["exp_avg_sq"][rows], grad.square(), 1.0 - second)
        state["step"][rows], state["exp_avg"][rows], state["exp_avg_sq"][rows] = count, mean, square
        exact = count.double().unsqueeze(1)  # one minus a power near one
        scale = (lr / (1.0 - first**exact)).to(grad.dtype)
        corrected = square / (1.0 - second**exact).to(grad.dtype)
        parameter[rows] -= mean.mul_(scale).div_(corrected.sqrt_().add_(eps))


def make_optimizer(model: NodeModel, config: TrainConfig, kind: type[Adam] = Adam) -> Any:
    """Adam in its fused form: one pass over the weights, the same bits at any number of threads."""
    structural = model.structural_parameters()
    apart = {id(p) for p in structural}
    plain = [p for p in model.parameters() if id(p) not in apart]
    groups = [
        {"params": plain, "weight_decay": config.weight_decay},
        {"params": structural, "weight_decay": structural_decay(config)},
    ]
    return kind([group for group in groups if group["params"]], lr=config.lr, fused=True)


def structural_decay(config: TrainConfig) -> float:
    decay = config.structural_weight_decay
    return config.weight_decay if decay is None else decay


def set_rate(optimizer: torch.optim.Adam, lr: float) -> float:
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr
