"""What one epoch computes in batches, in one process or many: the same model either way."""

import math
from contextlib import nullcontext
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from ..errors import InputError
from ..graph.graph import Graph
from ..graph.splits import Split
from ..nn import ops
from ..nn.attention import Structure
from ..nn.cat import CAT
from ..nn.interventions import LowRank
from ..nn.model import NodeModel
from .batches import BatchPlan, NodeBatch, assign_clusters
from .config import BatchConfig, TrainConfig
from .inference import attention_network, infer
from .loss import label_weights, must_be_finite
from .optimizer import RowAdam, make_optimizer, structural_decay
from .penalty import estimate, has_estimate
from .ranks import GradientSums, Ranks, alone, averaged_statistics
from .seeding import seed_torch
from .steps import Row, Steps, check_labels

Floats = npt.NDArray[np.float64]


def check_batches(model: NodeModel, config: TrainConfig, batch: BatchConfig, ranks: Ranks = alone) -> CAT:
    """What training in batches would refuse, told before anything is made for it."""
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
    return network


class BatchSteps(Steps):
    """A model, its optimiser and a plan of batches, of which this process computes its share.

    V is the same in every process. A step reads the rows that its batches name, and updates those alone: each
    process the rows that it owns, which it sends to the others. Adam's memory of a row is right at its owner.
    """

    def __init__(
        self,
        model: NodeModel,
        graph: Graph,
        split: Split,
        config: TrainConfig,
        batch: BatchConfig,
        ranks: Ranks = alone,
        workers: int = 0,
    ) -> None:
        self.model = check_batches(model, config, batch, ranks)
        self.graph, self.config, self.ranks, self.workers = graph, config, ranks, workers
        self.per_step, self.nodes = batch.per_step, min(graph.num_nodes, 10 * batch.nodes)
        self.normalise = graph.normalises(config.row_normalise)
        self.val = np.sort(split.val.numpy())
        self.weight = label_weights(graph, split.train, config)
        self.plan = self._plan(split.train, batch)
        structural = self.model.intervention
        self.factors = structural.factors if isinstance(structural, LowRank) else None
        self.optimizer: RowAdam = make_optimizer(model, config, RowAdam)
        if self.factors is not None:
            self.factors.requires_grad_(False)  # its gradient is made row by row
        self.sums = GradientSums(model.parameters(), batch.per_step)
        self.module = ranks.parallel(model, self.sums.reduce)
        self.device = next(model.parameters()).device

    def _plan(self, train: Tensor, batch: BatchConfig) -> BatchPlan:
        assigned, seed, hops = None, self.config.seed, len(self.model.convs)
        with self.ranks.shared_errors():
            if batch.kind == "clusters" and self.ranks.is_first:
                assigned = assign_clusters(self.graph, train, batch, seed)
        shared = {"assigned": self.ranks.broadcast(assigned), "normalise": self.normalise}
        penalise = isinstance(self.model.intervention, LowRank)
        with self.ranks.shared_errors():
            return BatchPlan(self.graph, train, batch, seed=seed, hops=hops, penalise=penalise, **shared)

    def train_epoch(self, epoch: int) -> Row:
        """Losses are means over the batches' estimates."""
        self.model.train()
        share = self.per_step // self.ranks.world  # batches of a step that are ours
        first = self.ranks.rank * share
        steps = range(0, self.plan.count, self.per_step)
        mine = [step + first + k for step in steps for k in range(share)]
        batches = iter(self.plan.epoch(epoch).loader(mine, self.workers))
        sums = np.zeros(3)
        for _ in steps:
            with self.ranks.shared_errors():
                ours = [next(batches) for _ in range(share)]
            sums += self.step(ours, epoch)
        return dict(zip(("loss", "prediction_loss", "penalty"), (sums / len(steps)).tolist(), strict=True))

    def step(self, batches: list[NodeBatch], epoch: int) -> Floats:
        """One update from the average gradient over the batches of all processes -> losses."""
        ranks = self.ranks
        self.optimizer.zero_grad(set_to_none=True)
        rows, grads, losses = [], [], np.zeros(3)
        with averaged_statistics(self.model, len(batches), ranks) as one_batch:
            for batch in batches:
                last = batch is batches[-1]
                batch = batch.to(self.device)
                seed_torch(self.config.seed, epoch, batch.number, 2, device=self.device)
                leaf = None if self.factors is None else self.factors[batch.rows].requires_grad_()
                # Gradients travel once per step, with the last of its batches.
                waits = not last and ranks.world > 1
                quiet = cast(DistributedDataParallel, self.module).no_sync() if waits else nullcontext()
                with one_batch(), ranks.connection_errors(), quiet:
                    loss, parts = self._loss(batch, leaf)
                    loss.backward()
                if not last:
                    self.sums.add()
                losses += parts / self.per_step
                if leaf is not None and leaf.grad is not None:
                    rows.append(batch.rows)
                    grads.append(leaf.grad / self.per_step)
        if ranks.world == 1:
            self.sums.close()
        losses = np.sum(ranks.gather(losses.tolist()), axis=0)
        # Before the step, so that the weights which the last checkpoint may hold are never the broken ones.
        must_be_finite(float(losses[0]), "training loss", epoch, self.config)
        if self.factors is None:
            self._clip([])
            self.optimizer.step()
        else:
            touched, slope = self._own_rows(torch.cat(rows), torch.cat(grads))
            self._clip([slope])
            self.optimizer.step()
            self.optimizer.step_rows(self.factors, touched, slope)
            if ranks.world > 1:
                others, values = ranks.send_to_all(touched, self.factors[touched])
                self.factors[others] = values
        return losses

    def _loss(self, batch: NodeBatch, leaf: Tensor | None) -> tuple[Tensor, Floats]:
        """The batch's estimate of the loss over the whole graph, weight decay of V included."""
        structure, first, config = None, batch.field.layers[0], self.config
        if leaf is not None:
            score = ops.edge_dot(first, leaf[: first.num_dst], leaf[: first.num_src])
            structure = Structure(first, score)
        logits = self.module(batch.x, batch.field, structure=structure)
        check_labels(batch.labels, logits.size(1))
        nodes = batch.field.n_id[batch.pick]
        prediction = batch.weight * self._cross_entropy(logits[batch.pick], batch.labels, nodes)
        penalty, decay = prediction.new_zeros(()), None
        if leaf is not None and batch.sample is not None and self.model.intervention is not None:
            penalty = estimate(self.model.intervention, leaf, batch.sample)
            squares = leaf[batch.sample.own].square().sum()
            decay = 0.5 * structural_decay(config) * batch.sample.c1 * squares
        total = prediction + config.penalty_weight * penalty
        parts = torch.stack([total, prediction, penalty]).detach().double().cpu().numpy()
        return total if decay is None else total + decay, parts

    def _cross_entropy(self, logits: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
        """The sum over these nodes, each with its weight."""
        if self.weight is None:
            return F.cross_entropy(logits, labels, reduction="sum")
        weight = self.weight[nodes.cpu()].to(logits.device)
        return (weight * F.cross_entropy(logits, labels, reduction="none")).sum()

    def _own_rows(self, rows: Tensor, grads: Tensor) -> tuple[Tensor, Tensor]:
        """Our rows of V that any process has a gradient for, each once, and the sums of their gradients."""
        ids, values = self.ranks.send_to_owners(rows, grads)
        unique, place = ids.unique(return_inverse=True)
        return unique, values.new_zeros(len(unique), values.size(1)).index_add_(0, place, values)

    def _clip(self, of_rows: list[Tensor]) -> None:
        if self.config.clip is None:
            return
        dense = [p.grad for p in self.model.parameters() if p.grad is not None]
        squares = _square(dense) + sum(part[0] for part in self.ranks.gather([_square(of_rows)]))
        for grad in dense + of_rows:
            grad.mul_(min(1.0, self.config.clip / (math.sqrt(squares) + 1e-6)))

    def evaluate(self) -> Row:
        """Exact predictions for the validation nodes, each process for its share of them."""
        mine = np.array_split(self.val, self.ranks.world)[self.ranks.rank]
        loss, right = 0.0, 0
        with self.ranks.shared_errors():
            pieces = infer(self.model, self.graph, mine, normalise=self.normalise) if len(mine) else ()
            for ids, logits in pieces:
                labels = self.graph.y[torch.from_numpy(ids)]
                loss += float(self._cross_entropy(logits, labels, torch.from_numpy(ids)))
                right += int((logits.argmax(dim=1) == labels).sum())
        loss, right = (sum(part) for part in zip(*self.ranks.gather([loss, right]), strict=True))
        total = len(self.val) if self.weight is None else float(self.weight[self.val].sum())
        return {"val_loss": loss / total, "val_accuracy": right / len(self.val)}

    def gather_state(self) -> None:
        """Adam's memory of all rows of V."""
        if self.factors is not None:
            self.ranks.gather_rows(*self.optimizer.state.get(self.factors, {}).values())

    def close(self) -> None:
        if self.factors is not None:
            self.factors.requires_grad_(True)


def _square(tensors: list[Tensor]) -> float:
    return sum(float(tensor.square().sum(dtype=torch.float64)) for tensor in tensors)
