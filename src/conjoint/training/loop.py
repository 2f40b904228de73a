"""Training on a graph in memory: all rows at once, or the batches that the caller makes."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from ..data.splits import Split
from ..errors import InputError
from ..nn.model import NodeModel
from .config import TrainConfig
from .consistency import perturbation
from .epochs import OnEpoch, Work, must_be_finite, train_epochs
from .fitted import Fitted
from .inputs import Batch, Inputs, batch_of, check_labels, prepare, with_unlabelled
from .loss import objective
from .optimizer import make_optimizer
from .runs import Run, load_run

Batches = Callable[[int], Iterable[Batch]]


def fit(
    model: NodeModel,
    data: Data,
    split: Split,
    config: TrainConfig,
    *,
    progress: OnEpoch | None = None,
    run: Run | None = None,
    batches: Batches | None = None,
) -> Fitted:
    """Train `model` in place and leave it with the weights that the rule of `config` chose.

    Args:
        model: with its initial weights; see `build_seeded`.
        progress: called with each epoch's row.
        run: a folder from `start_run` or `resume_run`; training goes on from its last checkpoint.
        batches: epoch -> batches of that epoch, a function of the epoch and the seed alone. Default: all
            training nodes at once.
    """
    if run is not None:
        run.check(config, data, split)
        if run.sidecar.finished:
            return finished(model, config, run)
    inputs = prepare(model, data, config)
    if batches is None:
        batches = _all_at_once(model, inputs, split, config)
    look = _judge(model, inputs, split, config)
    optimizer = make_optimizer(model, config)

    def step_through(epoch: int) -> dict[str, Any]:
        return _step_through(batches(epoch), model, inputs, optimizer, config, epoch)

    work = Work(model, optimizer, len(inputs.y), step_through, look)
    return train_epochs(work, config, progress=progress, run=run)


def _all_at_once(model: NodeModel, inputs: Inputs, split: Split, config: TrainConfig) -> Batches:
    """One batch per epoch: the training nodes, with the nodes that must be consistent if there are any."""
    if config.consistency is not None and config.consistency.sample:
        return lambda epoch: [with_unlabelled(split.train, inputs, model, config)]
    if config.consistency is not None:
        everything = with_unlabelled(split.train, inputs, model, config)
    else:
        everything = batch_of(split.train, inputs, model, config.field)
    return lambda epoch: [everything]


def _step_through(
    batches: Iterable[Batch],
    model: NodeModel,
    inputs: Inputs,
    optimizer: torch.optim.Adam,
    config: TrainConfig,
    epoch: int,
) -> dict[str, float]:
    """One pass of gradient steps. Losses are means over the epoch's targets."""
    model.train()
    passes = 1 if config.consistency is None else config.consistency.passes
    perturb = None if config.consistency is None else perturbation(config.consistency)
    sums, targets = torch.zeros(4), 0
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        whole = None if batch.graph is inputs.graph else inputs.graph
        logits, penalty = model.predict_often(batch.x, batch.graph, whole, passes, perturb)
        if epoch == 1:
            check_labels(batch.labels, logits)
        loss = objective(logits, batch.labels, batch.pick, penalty, config, epoch)
        loss.total.backward()
        if config.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        parts = torch.stack([part.detach().float() for part in loss]).cpu()
        # Before the step, so that the weights which the last checkpoint may hold are never the broken ones.
        must_be_finite(float(parts[0]), "training loss", epoch, config)
        optimizer.step()
        sums += parts * len(batch.labels)
        targets += len(batch.labels)
    if targets == 0:
        raise InputError(f"epoch {epoch} has no batches; give `batches` a function that returns at least one")
    total, prediction, penalty_mean, disagreement = (sums / targets).tolist()
    row = {"loss": total, "prediction_loss": prediction, "penalty": penalty_mean}
    return row if config.consistency is None else row | {"disagreement": disagreement}


def _judge(
    model: NodeModel, inputs: Inputs, split: Split, config: TrainConfig
) -> Callable[[], dict[str, Any]]:
    """A function that looks at the validation nodes (and the test nodes, for a rule that asks for them)."""
    if split.val.numel() == 0:
        raise InputError(
            f"split {split.name!r} has no validation nodes, so no epoch can be chosen; give it some"
        )
    val = batch_of(split.val, inputs, model, config.field)
    test = batch_of(split.reveal_test(), inputs, model, config.field) if config.saw_test else None

    @torch.no_grad()
    def look() -> dict[str, Any]:
        model.eval()
        logits = val.logits(model)
        row: dict[str, Any] = {
            "val_loss": float(F.cross_entropy(logits, val.labels)),
            "val_accuracy": _share_right(logits, val.labels),
        }
        if test is not None:
            row |= {"test_accuracy": _share_right(test.logits(model), test.labels)}
            row |= {"rule": config.rule, "saw_test": True}
        return row

    return look


def _share_right(logits: Tensor, labels: Tensor) -> float:
    return int((logits.argmax(dim=1) == labels).sum()) / len(labels)


def finished(model: NodeModel, config: TrainConfig, run: Run) -> Fitted:
    """Resuming a run that was complete: nothing to compute."""
    run.tidy()
    trained, _ = load_run(run.path, lambda *_, **__: model)
    result = dict(run.sidecar.result or {})
    history = run.history(result["epochs"])
    return Fitted(trained, config, history, result["best_epoch"], str(result.get("stopped")))
