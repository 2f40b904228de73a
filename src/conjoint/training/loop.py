"""Training: epoch after epoch, which weights are kept, when to stop, what goes to the run folder.

What an epoch computes is in `steps` (a graph in memory) and `batch_steps` (batches, one process or many).
"""

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from ..errors import InputError, Interrupted
from ..graph.graph import Graph, as_graph
from ..graph.splits import Split
from ..kernels import kept_memory
from ..nn.model import NodeModel
from ..threads import steady_products
from .batch_steps import BatchSteps, check_batches
from .checkpoint import Progress
from .config import BatchConfig, TrainConfig
from .loss import must_be_finite
from .optimizer import set_rate
from .ranks import Ranks, alone
from .runs import Run, load_run
from .seeding import deferred_interrupt, own_randomness, seed_torch
from .steps import Batches, Row, Steps, WholeSteps
from .stopping import Seen, snapshot, watch

OnEpoch = Callable[[Row], object]  # returning True ends the training


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model, with the weights that the selection rule chose.

    `history` has one row per epoch, `metrics` is the row of the chosen one; neither knows the test nodes
    unless the rule itself looks at them (then each row says so).
    """

    model: NodeModel
    config: TrainConfig
    history: list[Row] = field(repr=False)
    best_epoch: int
    stopped: str  # "patience", "epochs" or "callback"

    @property
    def metrics(self) -> Row:
        return self.history[self.best_epoch - 1]

    def result(self) -> Row:
        """What a run folder keeps of the training, beside the weights."""
        chosen = {"best_epoch": self.best_epoch, "epochs": len(self.history), "stopped": self.stopped}
        rule = {"rule": self.config.rule, "saw_test": self.config.saw_test}
        return chosen | rule | {"metrics": self.metrics}


def fit(
    model: NodeModel,
    graph: Graph,
    split: Split,
    config: TrainConfig,
    *,
    batches: BatchConfig | Batches | None = None,
    ranks: Ranks = alone,
    workers: int = 0,
    progress: OnEpoch | None = None,
    run: Run | None = None,
) -> Fitted:
    """Train `model` in place and leave it with the weights that the rule of `config` chose.

    Args:
        model: with its initial weights; see `build_seeded`.
        graph: a `Graph`, or PyG's `Data`.
        batches: None computes all training nodes at once, on the whole graph or on their receptive field
            (`config.field`). A `BatchConfig` cuts the graph, which may be larger than memory, into clusters
            or sampled neighbourhoods. A function gives the batches of an epoch, from epoch and seed alone.
        ranks: the processes that train together; each makes the same call, with a `BatchConfig`.
        workers: processes that prepare batches ahead; they change nothing but the time.
        progress: called with each epoch's row: epoch, lr, loss, val_loss, val_accuracy, ... If it returns
            True, training ends as if patience were over, after the next epoch that is evaluated.
        run: a folder from `start_run` or `resume_run`, for rank 0; training goes on from its last checkpoint.
    """
    graph, run = as_graph(graph), run if ranks.is_first else None
    if isinstance(batches, BatchConfig):
        check_batches(model, config, batches, ranks)
    elif ranks.world > 1:
        raise InputError(f"{ranks.world} ranks share batches: give a BatchConfig, or train in one process")
    with ranks.shared_errors():
        if run is not None:
            run.check(config, graph, split)
    if ranks.broadcast(run is not None and run.sidecar.finished):
        return _finished(model, config, run, ranks)
    if split.val.numel() == 0:
        raise InputError(
            f"split {split.name!r} has no validation nodes, so no epoch can be chosen; give it some"
        )
    steps: Steps
    if isinstance(batches, BatchConfig):
        steps = BatchSteps(model, graph, split, config, batches, ranks, workers)
    else:
        steps = WholeSteps(model, graph, split, config, batches)
    return _train(steps, model, config, ranks, progress, run)


def _train(
    steps: Steps,
    model: NodeModel,
    config: TrainConfig,
    ranks: Ranks,
    progress: OnEpoch | None,
    run: Run | None,
) -> Fitted:
    """Train until patience or epochs end, in step with the other ranks."""
    optimizer, device = steps.optimizer, next(model.parameters()).device
    now, history, stopped, halted = Progress(0, Seen(), None), list[Row](), "epochs", False
    with contextlib.ExitStack() as held:
        held.callback(steps.close)
        with ranks.shared_errors():
            if run is not None:
                held.enter_context(run.training())
                now, history = run.restore(model, optimizer) or (now, history)
        now, history = _state_of_first(now, history, model, optimizer, ranks)
        held.enter_context(own_randomness(device))
        held.enter_context(steady_products(steps.nodes))
        held.enter_context(kept_memory())
        interrupt = held.enter_context(deferred_interrupt(run is not None))
        for epoch in range(now.epoch + 1, config.epochs + 1):
            seed_torch(config.seed, epoch, device=device)
            row: Row = {"epoch": epoch, "lr": set_rate(optimizer, config.lr_at(epoch))}
            row |= steps.train_epoch(epoch)
            seen, best = now.seen, now.best
            if epoch % config.evaluate_every == 0 or epoch == config.epochs:
                row |= steps.evaluate()
                must_be_finite(row["val_loss"], "validation loss", epoch, config)
                seen, verdict = watch(config.rule, seen, row)
                if verdict.keep and ranks.is_first:
                    best = snapshot(model, into=best)
            now = Progress(epoch, seen, best)
            history.append(row)
            with ranks.shared_errors():
                if run is not None:
                    run.append(row)
            halted |= ranks.any_of(progress is not None and progress(row) is True)
            if halted and "val_loss" in row:
                stopped = "callback"
                break
            if seen.out_of_patience(epoch, config.patience):
                stopped = "patience"
                break
            stops = ranks.any_of(interrupt.is_set())
            saves = ranks.any_of(stops or (run is not None and run.due(epoch)))
            if saves:
                steps.gather_state()
            with ranks.shared_errors():
                if run is not None and saves:
                    # A step can break the weights after its loss was seen; such weights are never saved.
                    must_be_finite(_largest_weight(model), "largest weight", epoch, config)
                    run.save(model, optimizer, now)
            if stops:
                where = "" if run is None else f"; go on with: conjoint train --resume {run.path}"
                raise Interrupted(f"stopped after epoch {epoch}{where}", epoch)
        if now.best is not None:  # the last epoch is always evaluated, and the first evaluation always kept
            model.load_state_dict(now.best)
        fitted = Fitted(model.eval(), config, history, now.seen.kept_epoch, stopped)
        with ranks.shared_errors():
            if run is not None:
                assert now.best is not None
                run.finish(now.best, fitted.result())
    return fitted


def _state_of_first(
    now: Progress, history: list[Row], model: NodeModel, optimizer: torch.optim.Adam, ranks: Ranks
) -> tuple[Progress, list[Row]]:
    """Every process starts from what rank 0 has: its weights, its optimiser, its history."""
    if ranks.world == 1:
        return now, history
    parameters = dict(model.named_parameters())
    slots = {
        name: {slot: (tuple(v.shape), v.dtype) for slot, v in optimizer.state.get(p, {}).items()}
        for name, p in parameters.items()
    }
    epoch, seen, history, slots = ranks.broadcast((now.epoch, asdict(now.seen), history, slots))
    for name, parts in slots.items():
        for slot, (shape, dtype) in parts.items():
            kept = optimizer.state[parameters[name]]
            kept.setdefault(slot, torch.empty(shape, dtype=dtype))
            ranks.broadcast_tensors(kept[slot])
    ranks.broadcast_tensors(*(value.data for value in model.state_dict().values()))
    return Progress(epoch, Seen(**seen), now.best), history


def _finished(model: NodeModel, config: TrainConfig, run: Run | None, ranks: Ranks) -> Fitted:
    """Resuming a run that was complete: nothing to compute."""
    result, history = dict[str, Any](), list[Row]()
    with ranks.shared_errors():
        if run is not None:
            run.tidy()
            load_run(run.path, lambda *_, **__: model)
            result = dict(run.sidecar.result or {})
            history = run.history(result["epochs"])
    result, history = ranks.broadcast((result, history))
    ranks.broadcast_tensors(*(value.data for value in model.state_dict().values()))
    return Fitted(model.eval(), config, history, result["best_epoch"], str(result.get("stopped")))


def _largest_weight(model: NodeModel) -> float:
    """NaN if any weight is."""
    sizes = [weight.detach().abs().max().double() for weight in model.parameters() if weight.numel()]
    return float(torch.stack(sizes).max())
