"""Epoch after epoch: which weights are kept, when to stop, what goes to the run folder.

What an epoch consists of is the caller's: all rows at once (`fit`), or batches on one or many machines.
"""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import Diverged, Interrupted
from ..kernels import kept_memory
from ..nn.model import NodeModel
from ..products import steady_products
from .config import TrainConfig
from .fitted import Fitted
from .inputs import device_of
from .optimizer import set_rate
from .pause import deferred_interrupt
from .runs import Run
from .runs.checkpoint import Progress
from .seeding import own_randomness, seed_epoch
from .stopping import Seen, snapshot, watch

Row = dict[str, Any]
OnEpoch = Callable[[Row], None]
State = tuple[Progress, list[Row]]


@dataclass(frozen=True, eq=False)
class Work:
    """What training repeats, and how several processes that train one model keep in step.

    `together` turns an error of one process into an error of all, `agree` tells whether any of them wants
    something, `collect` brings what a checkpoint needs to the one that writes it, and `share` hands the state
    that one has restored to the others. One process needs none.
    """

    model: NodeModel
    optimizer: torch.optim.Adam
    nodes: int  # of the graph that one step computes; decides how products are computed
    step_through: Callable[[int], Row]  # epoch -> losses
    look: Callable[[], Row]  # at the validation nodes
    together: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    agree: Callable[[bool], bool] = bool
    collect: Callable[[], None] = lambda: None
    share: Callable[[State], State] = lambda state: state
    keeps_weights: bool = True  # whether this process holds the best weights so far


def train_epochs(
    work: Work, config: TrainConfig, *, progress: OnEpoch | None = None, run: Run | None = None
) -> Fitted:
    """Train until patience or epochs end, and leave the model with the weights that the rule chose."""
    model, optimizer, device = work.model, work.optimizer, device_of(work.model)
    now, history, stopped = Progress(0, Seen(), None), list[Row](), "epochs"
    with contextlib.ExitStack() as held:
        with work.together():
            if run is not None:
                held.enter_context(run.training())
                now, history = run.restore(model, optimizer) or (now, history)
        now, history = work.share((now, history))
        held.enter_context(own_randomness(device))
        held.enter_context(steady_products(work.nodes))
        held.enter_context(kept_memory())
        pause = held.enter_context(deferred_interrupt(run is not None))
        for epoch in range(now.epoch + 1, config.epochs + 1):
            seed_epoch(config.seed, epoch, device)
            row: Row = {"epoch": epoch, "lr": set_rate(optimizer, config, epoch)}
            row |= work.step_through(epoch)
            seen, best = now.seen, now.best
            if epoch % config.evaluate_every == 0 or epoch == config.epochs:
                row |= work.look()
                must_be_finite(row["val_loss"], "validation loss", epoch, config)
                seen, verdict = watch(config.rule, seen, row)
                if verdict.keep and work.keeps_weights:
                    best = snapshot(model, into=best)
            now = Progress(epoch, seen, best)
            history.append(row)
            with work.together():
                if run is not None:
                    run.append(row)
            if progress is not None:
                progress(row)
            if seen.out_of_patience(epoch, config.patience):
                stopped = "patience"
                break
            wants_to_stop = work.agree(pause.requested)
            saves = work.agree(wants_to_stop or (run is not None and run.due(epoch)))
            if saves:
                work.collect()
            with work.together():
                if run is not None and saves:
                    # A step can break the weights after its loss was seen; such weights are never saved.
                    must_be_finite(_largest_weight(model), "largest weight", epoch, config)
                    run.save(model, optimizer, now)
            if wants_to_stop:
                where = "" if run is None else f"; go on with: conjoint train --resume {run.path}"
                raise Interrupted(f"stopped after epoch {epoch}{where}")
        if now.best is not None:  # the last epoch is always evaluated, and the first evaluation always kept
            model.load_state_dict(now.best)
        fitted = Fitted(model.eval(), config, history, now.seen.kept_epoch, stopped)
        with work.together():
            if run is not None:
                assert now.best is not None
                run.finish(now.best, _result(fitted))
    return fitted


def must_be_finite(value: float, what: str, epoch: int, config: TrainConfig) -> None:
    if not math.isfinite(value):
        clip = "" if config.clip is not None else " or set clip=1.0"
        raise Diverged(
            f"the {what} is {value} at epoch {epoch} with lr={config.lr}; try lr={config.lr / 10:g}{clip}"
        )


def _largest_weight(model: NodeModel) -> float:
    """NaN if any weight is."""
    sizes = [weight.detach().abs().max().double() for weight in model.parameters() if weight.numel()]
    return float(torch.stack(sizes).max())


def _result(fitted: Fitted) -> Row:
    config = fitted.config
    chosen = {"best_epoch": fitted.best_epoch, "epochs": len(fitted.history), "stopped": fitted.stopped}
    return chosen | {"rule": config.rule, "saw_test": config.saw_test, "metrics": fitted.metrics}
