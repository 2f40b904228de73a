"""The ensemble that is learnt by default: members are trained, judged by validation nodes, and weighed.

A split that names validation nodes enough is taken as it is: members train on the training nodes, the
validation nodes choose epochs and weights. Where every label is to serve (split "all"), or validation nodes
are few, nodes are cut into folds (folds.py): each member is trained once per fold, without its nodes, so that
each label is judged by a training that did not have it, and the trainings together have learnt from all of
them. Test nodes play no part.

A network's first training chooses how many epochs there should be, by its validation nodes, and so looks
better on them than it is. Its other trainings, on other folds or with other seeds, take that number as given:
members are weighed by these alone.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..errors import Diverged, InputError, Interrupted
from ..graph.graph import Graph
from ..graph.splits import Split
from ..nn import zoo
from ..nn.ensemble import Ensemble
from ..nn.model import NodeModel
from ..training import Fitted, ModelSpec, Run, TrainConfig, fit, load_run, resume_run, start_run
from ..training.closed_form import CLOSED_FORMS, fit_closed_form
from ..training.config import config_from
from ..training.metrics import all_metrics, check_metric, log_loss, merit
from ..training.predictions import predict_proba
from ..training.seeding import deferred_interrupt
from ..training.stopping import snapshot
from .folds import fold_splits
from .members import MEMBERS, Budget, Facts, Member, facts_of
from .portfolio import Portfolio, Trial
from .weighing import temperature, weigh

Array = npt.NDArray[Any]
OnEpoch = Callable[[dict[str, Any]], object]
Watch = Callable[[str, int], AbstractContextManager[OnEpoch | None]]
KEPT = 5  # networks that are trained more than once, at most
RESERVE = 0.5  # of the time that is left: for the other folds
CURVE = 60  # points of a learning curve
HOPELESS = 3.0  # standard errors behind the best on the first fold


@dataclass(eq=False)
class _Judged:
    """A member's trainings so far."""

    member: Member
    fitted: dict[int, tuple[NodeModel, dict[str, Any], bool]] = field(default_factory=dict)
    shares: dict[int, Array] = field(default_factory=dict)  # by fold: [nodes, classes]
    merits: dict[int, float] = field(default_factory=dict)
    epochs: int = 0  # that the first training chose
    seconds: float = 0.0


def default_minutes(facts: Facts) -> float:
    """Enough for the graph: five minutes for 10 000 nodes and 150 000 edges, at most fifteen."""
    size = facts.nodes / 20_000 + facts.entries / 620_000
    return min(15.0, 1.0 + 4.0 * size)


def learn_ensemble(
    graph: Graph,
    split: Split,
    seed: int,
    *,
    metric: str = "accuracy",
    budget: Budget | None = None,
    single: bool = False,
    folder: Path | None = None,
    members: Sequence[Member] = MEMBERS,
    tell: Callable[[str], None] | None = None,
    watch: Watch | None = None,
) -> tuple[Ensemble, dict[str, Any], Portfolio]:
    """The ensemble, the settings that build it again, and how it came about.

    Args:
        single: keep the best member alone.
        folder: where trainings are kept while others go on, so that nothing finished is lost.
        members: to choose among.
        tell, watch: called with a line after each training; entered for each with its title and epochs.
    """
    check_metric(metric)
    search = Search(graph, split, seed, metric, budget or Budget(), folder, members, tell, watch)
    interrupted = False
    try:
        with deferred_interrupt(folder is not None) as search.interrupt:
            search.run()
    except Interrupted:
        interrupted = True
        if not any(one.merits for one in search.judged.values()):
            raise
    return search.result(single, interrupted)


class Search:
    def __init__(
        self,
        graph: Graph,
        split: Split,
        seed: int,
        metric: str,
        budget: Budget,
        folder: Path | None,
        members: Sequence[Member],
        tell: Callable[[str], None] | None,
        watch: Watch | None,
    ) -> None:
        self.graph, self.seed, self.metric, self.folder = graph, seed, metric, folder
        self.splits = fold_splits(graph, split, seed)
        self.y = graph.y.numpy()
        self.facts = facts_of(graph, self.splits[0].train.numel())
        self.members = [member for member in members if member.suits(self.facts)]
        self.tell, self.watch = tell or (lambda line: None), watch
        self.judged = {member.name: _Judged(member) for member in self.members}
        self.trials: list[Trial] = []
        self.left_out: list[str] = []
        self.interrupt: threading.Event | None = None
        self.most = budget.trials
        minutes = budget.minutes if budget.minutes is not None else default_minutes(self.facts)
        self.deadline = None if budget.trials is not None else time.monotonic() + 60.0 * minutes
        limit = f"{minutes:.1f} minutes at most" if self.most is None else f"{self.most} trainings at most"
        self.crossed = len(self.splits) > 1
        self.unjudged = self.splits[0].val is self.splits[0].train
        if self.unjudged:
            self.members = [member for member in self.members if member.blind]
        folds = f"{len(self.splits)} folds" if self.crossed else "one validation part"
        self.tell(f"{len(self.members)} kinds of models on {folds}, {limit}")

    def run(self) -> None:
        """Every member on the first fold, then those that may matter on the others."""
        reserve = RESERVE if self.crossed else 0.0
        for member in sorted(self.members, key=lambda one: (not one.first, one.seconds(self.facts))):
            if self.hopeless(member.family):
                continue
            if self.affordable(member, reserve):
                self.attempt(member, 0)
            else:
                self.left_out.append(member.name)
        for member in self.promising():
            rest = range(1, len(self.splits))
            if self.affordable(member, 0.0, len(rest)):
                for fold in rest:
                    self.attempt(member, fold)

    def first_merits(self) -> dict[str, float]:
        return {one.member.name: one.merits[0] for one in self.judged.values() if 0 in one.merits}

    def worst_worth_trying(self) -> float:
        """What the first fold's best has, less what may be luck."""
        best, nodes = max(self.first_merits().values()), self.splits[0].val.numel()
        error = max(np.sqrt(max(best * (1.0 - best), 0.01) / nodes), 0.002) if 0.0 <= best <= 1.0 else np.inf
        return best - HOPELESS * error

    def hopeless(self, family: str | None) -> bool:
        """Whether members of this family were tried that use edges, and all were far behind."""
        found = self.first_merits()
        tried = [one.member.name for one in self.judged.values() if one.member.family == family is not None]
        seen = [found[name] for name in tried if name in found and self.judged[name].member.model != "resmlp"]
        return bool(seen) and max(seen) < self.worst_worth_trying()

    def promising(self) -> list[Member]:
        """Members that are not clearly behind on the first fold, best first."""
        found = self.first_merits()
        if not found:
            raise InputError("every model diverged or none fitted into the time; give more --minutes")
        order, least = sorted(found, key=lambda name: -found[name]), self.worst_worth_trying()
        near = [self.judged[name].member for name in order if found[name] >= least]
        networks = [member for member in near if member.kind == "network"][:KEPT]
        return [member for member in near if member.kind != "network" or member in networks]

    def affordable(self, member: Member, reserve: float, trainings: int = 1) -> bool:
        """Whether so many trainings of a member fit into what is left of the budget, less a reserve."""
        if self.most is not None:
            return len(self.trials) + trainings <= self.most
        assert self.deadline is not None
        known = self.judged[member.name]
        seconds = known.seconds / len(known.merits) if known.merits else self.predicted(member)
        left = self.deadline - time.monotonic()
        return trainings * seconds < left * (1.0 - reserve) or not self.trials

    def predicted(self, member: Member) -> float:
        """Seconds of a training, corrected by what others of its kind took here."""
        kin = [one for one in self.judged.values() if one.merits and one.member.kind == member.kind]
        took = sum(one.seconds for one in kin)
        thought = sum(one.member.seconds(self.facts) * len(one.merits) for one in kin)
        return member.seconds(self.facts) * (took / thought if thought > 0.5 else 1.0)

    def attempt(self, member: Member, fold: int) -> None:
        """Train a member on a fold and look at its validation nodes."""
        started, split, known = time.monotonic(), self.splits[fold], self.judged[member.name]
        try:
            fitted, settings = self.train(member, fold)
        except Diverged:
            self.trials.append(Trial(member.name, fold, -1.0, 0.0, 1e30, 0, time.monotonic() - started))
            return
        config = fitted.config
        shares = predict_proba(fitted.model, self.graph, config).numpy()
        seconds = time.monotonic() - started
        val = split.val.numpy()
        truth, found = self.y[val], shares[val]
        known.merits[fold] = merit(self.metric, truth, found)
        known.shares[fold] = shares
        known.fitted[fold] = (fitted.model, settings, self.graph.normalises(config.row_normalise))
        known.seconds += seconds
        known.epochs = known.epochs or fitted.best_epoch
        accuracy = float((found.argmax(axis=1) == truth).mean())
        row = (known.merits[fold], accuracy, log_loss(truth, found), len(fitted.history), round(seconds, 3))
        self.trials.append(Trial(member.name, fold, *row, () if fold else _curve(fitted.history)))
        if self.interrupt is not None and self.interrupt.is_set():  # pressed while nothing counts epochs
            raise Interrupted(f"stopped after {member.name}", 0)
        self.tell(
            f"{member.name}, {split.name}: {self.metric} {abs(known.merits[fold]):.3f}, {seconds:.1f} s"
        )

    def train(self, member: Member, fold: int) -> tuple[Fitted, dict[str, Any]]:
        """The training, or what an earlier one left in the folder."""
        graph, split = self.graph, self.splits[fold]
        # Whatever was asked for, no member chooses its epoch by test nodes.
        config = config_from({**member.train, "seed": self.seed + fold}, member.name).blind()
        if fold > 0 and member.kind == "network":
            epochs = self.judged[member.name].epochs
            config = replace(config, epochs=epochs, patience=0, evaluate_every=epochs)
        spec = ModelSpec(
            member.model, graph.num_features, graph.num_classes, graph.num_nodes, dict(member.settings)
        )
        run = None
        if self.folder is not None:
            run = _open(
                self.folder / f"{member.name.replace(', ', '-').replace(' ', '-')}-{fold}",
                config,
                spec,
                graph,
                split,
            )
            if run.sidecar.finished:
                model, run = load_run(run.path)
                result = run.sidecar.result or {}
                history = run.history(result["epochs"])
                done = Fitted(model, config, history, result["best_epoch"], str(result.get("stopped")))
                return done, dict(run.sidecar.model.settings)
        title = f"{member.name}, {split.name}"
        with nullcontext() if self.watch is None else self.watch(title, config.epochs) as show:
            return train_model(spec, graph, split, config, run=run, progress=show)

    def complete(self) -> list[_Judged]:
        """Members that were trained on every fold; all of the first fold where there is none."""
        tried = [one for one in self.judged.values() if one.merits]
        if not self.crossed:
            return tried
        return [one for one in tried if len(one.merits) == len(self.splits)] or tried

    def unseen(self, chosen: list[_Judged]) -> tuple[Array, list[Array]]:
        """Validation nodes, and what each member says of them where they did not choose its epochs."""
        whole = all(len(one.merits) == len(self.splits) for one in chosen)
        later = range(1, len(self.splits)) if self.crossed and whole else range(1)  # else: time was up
        parts = [self.splits[k].val.numpy() for k in later]
        nodes, counts = np.unique(np.concatenate(parts), return_counts=True)
        found = []
        for one in chosen:  # a node of several folds has the mean of what their trainings say
            total = np.zeros((self.graph.num_nodes, self.graph.num_classes))
            for k, part in zip(later, parts, strict=True):
                total[part] += one.shares[k][part]
            found.append(total[nodes] / counts[:, None])
        return nodes, found

    def result(self, single: bool, interrupted: bool) -> tuple[Ensemble, dict[str, Any], Portfolio]:
        chosen = self.complete()
        if not chosen:
            raise InputError("no model was finished in time; give more --minutes or --trials")
        nodes, judged = self.unseen(chosen)
        truth = self.y[nodes]
        own = [merit(self.metric, truth, shares) for shares in judged]
        if self.unjudged:
            weights = np.full(len(chosen), 1.0 / len(chosen))
        elif single:
            weights = np.eye(len(chosen))[int(np.argmax(own))]
        else:
            weights = weigh(judged, truth, self.metric, self.seed)
        mean = np.tensordot(weights, np.stack(judged), axes=1)
        heat = 1.0 if self.unjudged else temperature(mean, truth)
        calibrated = np.maximum(mean, 1e-12) ** (1.0 / heat)
        calibrated /= calibrated.sum(axis=1, keepdims=True)
        settings, models, everywhere = [], [], []
        for one, weight in zip(chosen, weights, strict=True):
            for fold, (model, own_settings, divides) in one.fitted.items() if weight > 0 else ():
                models.append(model)
                everywhere.append(torch.from_numpy(one.shares[fold]))
                settings.append(
                    {
                        "name": one.member.name,
                        "model": one.member.model,
                        "settings": own_settings,
                        "weight": float(weight) / len(one.fitted),
                        "divides_rows": divides,
                    }
                )
        spec: dict[str, Any] = {"members": settings, "temperature": heat}
        graph = self.graph
        ensemble = zoo.build(
            zoo.ENSEMBLE,
            features=graph.num_features,
            classes=graph.num_classes,
            num_nodes=graph.num_nodes,
            **spec,
        )
        assert isinstance(ensemble, Ensemble)
        for place, model in zip(ensemble.members, models, strict=True):
            place.load_state_dict(model.state_dict())
        table: list[dict[str, Any]] = [
            {"name": one.member.name, "weight": round(float(weight), 4), self.metric: round(abs(found), 6)}
            for one, weight, found in zip(chosen, weights, own, strict=True)
        ]
        table.sort(key=lambda row: -row["weight"])
        labels = len({int(node) for split in self.splits for node in split.train})
        portfolio = Portfolio(
            self.metric,
            len(self.splits) if self.crossed else 1,
            labels,
            tuple(self.trials),
            tuple(table),
            all_metrics(truth, calibrated),
            tuple(self.left_out),
            interrupted,
            None if self.unjudged else (nodes, calibrated),
            ensemble.joined(everywhere).softmax(dim=-1).numpy(),
        )
        return ensemble.eval(), spec, portfolio


def _curve(history: Sequence[dict[str, Any]]) -> tuple[tuple[float, ...], ...]:
    names = ("epoch", "prediction_loss", "val_loss", "val_accuracy")
    rows = [tuple(round(float(row[name]), 5) for name in names) for row in history if set(names) <= set(row)]
    return tuple(rows[:: -(-len(rows) // CURVE)]) if len(rows) > 1 else ()


def train_model(
    spec: ModelSpec,
    graph: Graph,
    split: Split,
    config: TrainConfig,
    *,
    run: Run | None = None,
    progress: OnEpoch | None = None,
) -> tuple[Fitted, dict[str, Any]]:
    """A trained model and the settings that build it again: by epochs, or in closed form where it has one."""
    if spec.name not in CLOSED_FORMS:
        model = spec.build(config.seed)
        return fit(model, graph, split, config, progress=progress, run=run), dict(spec.settings)
    fitted, settings = fit_closed_form(spec.name, dict(spec.settings), graph, split, config)
    if run is not None:
        run.sidecar = replace(run.sidecar, model=replace(spec, settings=settings))
        run.adopt(fitted.history, snapshot(fitted.model), fitted.result())
    return fitted, settings


def _open(path: Path, config: TrainConfig, spec: ModelSpec, graph: Graph, split: Split) -> Run:
    if not path.exists():
        return start_run(path, config, model=spec, data=graph, split=split)
    run = resume_run(path)
    run.check(config, graph, split)
    return run
