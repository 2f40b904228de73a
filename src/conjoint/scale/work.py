"""Training in batches, on one process or many: the same model either way."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data.splits import Split
from ..errors import InputError
from ..nn import ops
from ..nn.attention import Structure
from ..nn.cat import CAT
from ..nn.interventions import LowRank
from ..nn.model import NodeModel
from ..store import StoredGraph
from ..training.config import TrainConfig
from ..training.epochs import OnEpoch, State, Work, must_be_finite, train_epochs
from ..training.fitted import Fitted
from ..training.inputs import device_of
from ..training.optimizer import RowAdam, parameter_groups
from ..training.runs import Run
from ..training.runs.checkpoint import Progress
from ..training.seeding import seed_words
from ..training.stopping import Seen
from .batches import NodeBatch, Plan, cluster_count, plan_batches
from .buffers import averaged_statistics
from .clusters import clusters
from .config import BatchConfig
from .gradients import GradientSums
from .inference import attention_network, infer
from .penalty import estimate, has_estimate
from .ranks import Ranks, alone


def fit_batches(
    model: NodeModel,
    graph: StoredGraph,
    split: Split,
    config: TrainConfig,
    batch: BatchConfig,
    *,
    ranks: Ranks = alone,
    workers: int = 0,
    progress: OnEpoch | None = None,
    run: Run | None = None,
) -> Fitted:
    """Train `model` in place on batches of `graph`. Every process of `ranks` makes the same call.

    Args:
        run: a run folder, for rank 0 alone.
        workers: processes that prepare batches ahead; they change nothing but the time.
    """
    network = check_fit(model, split, config, batch, ranks)
    with ranks.together():
        assigned = None
        if batch.kind == "clusters" and ranks.leads:
            count = cluster_count(batch, graph.num_nodes, len(split.train))
            assigned = clusters(graph, count, config.seed)
    assigned = ranks.from_first(assigned)
    with ranks.together():
        plan = plan_batches(
            graph,
            split.train,
            batch,
            seed=config.seed,
            hops=len(network.convs),
            normalise=normalises(graph, config),
            penalise=isinstance(network.intervention, LowRank),
            assigned=assigned,
        )
    trainer = _Trainer(network, plan, config, ranks, workers)
    look = _judge(network, graph, split, config, ranks)
    work = Work(
        network,
        trainer.optimizer,
        min(graph.num_nodes, 10 * batch.nodes),
        trainer.step_through,
        look,
        together=ranks.together,
        agree=ranks.agree,
        collect=trainer.collect,
        share=lambda state: _share(state, network, trainer.optimizer, ranks),
        keeps_weights=ranks.leads,
    )
    try:
        return train_epochs(work, config, progress=progress, run=run if ranks.leads else None)
    finally:
        if trainer.factors is not None:
            trainer.factors.requires_grad_(True)


def normalises(graph: StoredGraph, config: TrainConfig) -> bool:
    auto = config.row_normalise == "auto" and not graph.negative_features
    return config.row_normalise == "always" or auto


def check_fit(
    model: NodeModel, split: Split, config: TrainConfig, batch: BatchConfig, ranks: Ranks = alone
) -> CAT:
    """What `fit_batches` would refuse, told before anything is made for it."""
    network = attention_network(model)
    if not has_estimate(network.intervention):
        raise InputError(
            f"--batch: the loss of {type(network.intervention).__name__} cannot be estimated from a batch; "
            "use --batch full"
        )
    if batch.per_step % ranks.world:
        fitting = [n for n in range(1, batch.per_step + 1) if batch.per_step % n == 0]
        raise InputError(
            f"{ranks.world} ranks do not divide --batches-per-step {batch.per_step}; start "
            f"{' or '.join(map(str, fitting))} of them, or choose another number for a new run"
        )
    if config.consistency is not None:
        raise InputError("consistency: it needs the full graph; leave it out, or train with --batch full")
    if config.saw_test:
        raise InputError(f"rule={config.rule!r}: it needs the full graph; use 'val-loss', or --batch full")
    if split.val.numel() == 0:
        raise InputError(f"split {split.name!r} has no validation nodes, so no epoch can be chosen")
    return network


class _Trainer:
    """One model, its optimiser and the plan of batches.

    V is the same in every process. A step reads the rows that its batches name, and updates those alone: each
    process the rows that it owns, of which it tells the others. Adam's memory of a row is right at its owner.
    """

    def __init__(self, model: CAT, plan: Plan, config: TrainConfig, ranks: Ranks, workers: int) -> None:
        self.model, self.plan, self.config, self.ranks, self.workers = model, plan, config, ranks, workers
        structural = model.intervention
        self.factors = structural.factors if isinstance(structural, LowRank) else None
        self.optimizer = RowAdam(parameter_groups(model, config), lr=config.lr, fused=True)
        if self.factors is not None:
            self.factors.requires_grad_(False)  # its gradient is made row by row
        self.sums = GradientSums(model.parameters(), plan.config.per_step)
        self.module = ranks.wrap(model, self.sums.reduce)
        self.device = device_of(model)

    def step_through(self, epoch: int) -> dict[str, Any]:
        """One pass over all batches. Losses are means over the batches' estimates."""
        self.model.train()
        share = self.plan.config.per_step // self.ranks.world  # batches of a step that are ours
        first = self.ranks.rank * share
        steps = range(0, self.plan.count, self.plan.config.per_step)
        mine = [step + first + k for step in steps for k in range(share)]
        batches = iter(self.plan.epoch(epoch).loader(mine, self.workers))
        sums = np.zeros(3)
        for _ in steps:
            with self.ranks.together():
                ours = [next(batches) for _ in range(share)]
            sums += self._step(ours, epoch)
        total, prediction, penalty = sums / len(steps)
        return {"loss": float(total), "prediction_loss": float(prediction), "penalty": float(penalty)}

    def _step(self, batches: list[NodeBatch], epoch: int) -> "np.ndarray[Any, Any]":
        """One update from the average gradient over the batches of all processes."""
        per_step, ranks = self.plan.config.per_step, self.ranks
        self.optimizer.zero_grad(set_to_none=True)
        rows, grads, losses = [], [], np.zeros(3)
        with averaged_statistics(self.model, len(batches), ranks) as next_batch:
            for k, batch in enumerate(batches):
                batch = batch.to(self.device)
                next_batch()
                seed_words([self.config.seed, epoch, batch.number, 2], self.device)
                leaf = None
                if self.factors is not None:
                    leaf = self.factors[batch.rows].requires_grad_()
                last = k == len(batches) - 1
                with ranks.listening(), self._synchronising(last):
                    loss, parts = self._loss(batch, leaf)
                    loss.backward()
                if not last:
                    self.sums.take()
                losses += parts / per_step
                if leaf is not None and leaf.grad is not None:
                    rows.append(batch.rows)
                    grads.append(leaf.grad / per_step)
        if ranks.world == 1:
            self.sums.close()
        losses = np.sum(ranks.numbers(losses.tolist()), axis=0)
        # Before the step, so that the weights which the last checkpoint may hold are never the broken ones.
        must_be_finite(float(losses[0]), "training loss", epoch, self.config)
        touched, slope = self._joined(rows, grads)
        self._clip(slope)
        self.optimizer.step()
        if touched is not None and slope is not None:
            self._step_factors(touched, slope)
        return losses

    def _loss(self, batch: NodeBatch, leaf: Tensor | None) -> tuple[Tensor, "np.ndarray[Any, Any]"]:
        """The batch's estimate of the loss over the whole graph, weight decay of V included."""
        structure, first = None, batch.field.layers[0]
        if leaf is not None:
            left, right = leaf[: first.num_dst], leaf[: first.num_src]
            structure = Structure(first, ops.edge_dot(first, left, right))
        logits = self.module(batch.x, batch.field, structure=structure)
        if len(batch.labels) and int(batch.labels.max()) >= logits.size(1):
            raise InputError(
                f"the model has {logits.size(1)} classes but a label is {int(batch.labels.max())}"
            )
        prediction = batch.weight * F.cross_entropy(logits[batch.pick], batch.labels, reduction="sum")
        penalty = prediction.new_zeros(())
        if leaf is not None and batch.sample is not None and self.model.intervention is not None:
            penalty = estimate(self.model.intervention, leaf, batch.sample)
        total = prediction + self.config.penalty_weight * penalty
        parts = torch.stack([total, prediction, penalty]).detach().double().cpu().numpy()
        if leaf is not None and batch.sample is not None:
            given = self.config.structural_weight_decay
            decay = self.config.weight_decay if given is None else given
            total = total + 0.5 * decay * batch.sample.c1 * leaf[batch.sample.own].square().sum()
        return total, parts

    def _synchronising(self, last: bool) -> contextlib.AbstractContextManager[Any]:
        """Gradients travel once per step, with the last of its batches."""
        if last or not isinstance(self.module, nn.parallel.DistributedDataParallel):
            return contextlib.nullcontext()
        return self.module.no_sync()

    def _joined(self, rows: list[Tensor], grads: list[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        """Our rows of V that any process has a gradient for, each once, and the sums of their gradients."""
        if self.factors is None:
            return None, None
        ids, values = self.ranks.to_owners(torch.cat(rows), torch.cat(grads))
        unique, place = ids.unique(return_inverse=True)
        return unique, values.new_zeros(len(unique), values.size(1)).index_add_(0, place, values)

    def _step_factors(self, touched: Tensor, slope: Tensor) -> None:
        assert self.factors is not None
        self.optimizer.step_rows(self.factors, touched, slope)
        if self.ranks.world > 1:
            rows, values = self.ranks.to_all(touched, self.factors[touched])
            self.factors[rows] = values

    def collect(self) -> None:
        """Adam's memory of all rows of V, for a checkpoint."""
        if self.factors is not None:
            self.ranks.collect_rows(*self.optimizer.state.get(self.factors, {}).values())

    def _clip(self, slope: Tensor | None) -> None:
        if self.config.clip is None:
            return
        dense = [p.grad for p in self.model.parameters() if p.grad is not None]
        own = [] if slope is None else [slope]
        of_rows = sum(part[0] for part in self.ranks.numbers([_square(own)]))
        norm = math.sqrt(_square(dense) + of_rows)
        for grad in dense + own:
            grad.mul_(min(1.0, self.config.clip / (norm + 1e-6)))


def _square(tensors: list[Tensor]) -> float:
    return sum(float(tensor.square().sum(dtype=torch.float64)) for tensor in tensors)


def _judge(model: CAT, graph: StoredGraph, split: Split, config: TrainConfig, ranks: Ranks) -> Any:
    """Exact predictions for the validation nodes, each process for its share of them."""
    nodes = np.sort(split.val.numpy())
    mine = np.array_split(nodes, ranks.world)[ranks.rank]

    def look() -> dict[str, Any]:
        loss, right = 0.0, 0
        with ranks.together():
            pieces: Iterator[Any] = infer(model, graph, mine, normalise=normalises(graph, config))
            for ids, logits in pieces if len(mine) else ():
                labels = graph.y[torch.from_numpy(ids)]
                loss += float(F.cross_entropy(logits, labels, reduction="sum"))
                right += int((logits.argmax(dim=1) == labels).sum())
        all_loss, all_right = (sum(part) for part in zip(*ranks.numbers([loss, right]), strict=True))
        return {"val_loss": all_loss / len(nodes), "val_accuracy": all_right / len(nodes)}

    return look


def _share(state: State, model: CAT, optimizer: RowAdam, ranks: Ranks) -> State:
    """Every process starts from what rank 0 has: its weights, its optimiser, its history."""
    if ranks.world == 1:
        return state
    now, history = state
    names = dict(model.named_parameters())
    slots = {
        name: {slot: (tuple(v.shape), v.dtype) for slot, v in optimizer.state.get(p, {}).items()}
        for name, p in names.items()
    }
    epoch, seen, history, slots = ranks.from_first((now.epoch, asdict(now.seen), history, slots))
    for name, parts in slots.items():
        for slot, (shape, dtype) in parts.items():
            kept = optimizer.state[names[name]]
            kept.setdefault(slot, torch.empty(shape, dtype=dtype))
            ranks.copy_first(kept[slot])
    ranks.copy_first(*(value.data for value in model.state_dict().values()))
    return Progress(epoch, Seen(**seen), now.best), history
