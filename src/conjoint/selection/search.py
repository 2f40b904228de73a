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

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import ConjointError, Diverged, InputError, Interrupted
from ..graph.graph import Graph
from ..graph.splits import Split
from ..nn.ensemble import Ensemble
from ..training import TrainConfig
from ..training.closed_form import as_they_are
from ..training.config import config_from
from ..training.metrics import check_metric, log_loss, merit
from ..training.seeding import deferred_interrupt
from .folds import fold_splits
from .joining import Judged, join
from .member_training import OnEpoch, Outcome, curve_of, train_member
from .members import MEMBERS, Budget, Facts, Member, facts_of
from .portfolio import Portfolio, Trial
from .side_by_side import Workers

Array = npt.NDArray[Any]
Watch = Callable[[str, int], AbstractContextManager[OnEpoch | None]]
KEPT = 5  # networks that are trained more than once, at most
RESERVE = 0.5  # of the time that is left: for the other folds
HOPELESS = 3.0  # standard errors behind the best on the first fold
OVERTIME = 0.2  # of the time: what goes on for longer than that beyond the limit is given up


class Late(ConjointError):
    """A training that has not ended in time."""


class Job(NamedTuple):
    """One training."""

    member: str
    fold: int
    epochs: int  # that the member's first training chose; 0: this is the first


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
    processes: int = 1,
) -> tuple[Ensemble, dict[str, Any], Portfolio]:
    """The ensemble, the settings that build it again, and how it came about.

    Args:
        single: keep the best member alone.
        folder: where trainings are kept while others go on, so that nothing finished is lost.
        members: to choose among.
        tell, watch: called with a line after each training; entered for each with its title and epochs.
        processes: trainings at a time. They change nothing but the time.
    """
    check_metric(metric)
    search = Search(graph, split, seed, metric, budget or Budget(), folder, members, tell, watch, processes)
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
        processes: int = 1,
    ) -> None:
        self.graph, self.seed, self.metric, self.folder = graph, seed, metric, folder
        self.splits = fold_splits(graph, split, seed)
        self.y = graph.y.numpy()
        self.facts = facts_of(graph, self.splits[0].train.numel())
        self.members = [member for member in members if member.suits(self.facts)]
        self.tell, self.watch = tell or (lambda line: None), watch
        self.judged = {member.name: Judged(member) for member in self.members}
        self.trials: list[Trial] = []
        self.left_out: list[str] = []
        self.interrupt: threading.Event | None = None
        self.processes = processes
        self.workers: Workers | None = None
        self.upcoming: list[tuple[Member, int]] = []  # trainings in order, by what is known so far
        self.most = budget.trials
        minutes = budget.minutes if budget.minutes is not None else default_minutes(self.facts)
        self.deadline = None if budget.trials is not None else time.monotonic() + 60.0 * minutes
        self.overtime = OVERTIME * 60.0 * minutes
        limit = f"{minutes:.1f} minutes at most" if self.most is None else f"{self.most} trainings at most"
        self.crossed = len(self.splits) > 1
        self.unjudged = self.splits[0].val is self.splits[0].train
        if self.unjudged:
            self.members = [member for member in self.members if member.blind]
        folds = f"{len(self.splits)} folds" if self.crossed else "one validation part"
        self.tell(f"{len(self.members)} kinds of models on {folds}, {limit}")

    def run(self) -> None:
        """Every member on the first fold, then those that may matter on the others."""
        with contextlib.ExitStack() as held:
            if self.processes > 1:
                self.workers = Workers(self.processes, self.work)
                held.callback(self.workers.close)
            order = sorted(self.members, key=lambda one: (not one.first, one.seconds(self.facts)))
            self.upcoming = [(member, 0) for member in order]
            for member in order:
                if self.hopeless(member.family):
                    self.upcoming.remove((member, 0))
                elif self.affordable(member, 0):
                    self.attempt(member, 0)
                else:
                    self.left_out.append(member.name)
            near, rest = self.promising(), range(1, len(self.splits))
            self.upcoming = [(member, fold) for member in near for fold in rest]
            for member in near if rest else ():
                if self.affordable(member, 1):
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

    def affordable(self, member: Member, fold: int) -> bool:
        """Whether a member's training on the first fold, or those on all others, fit into what is left."""
        trainings = len(self.splits) - 1 if fold else 1
        if self.most is not None:
            return len(self.trials) + trainings <= self.most
        assert self.deadline is not None
        if self.workers is not None and self.workers.knows(self.job(member, fold)):
            return True
        known = self.judged[member.name]
        seconds = known.seconds / len(known.merits) if known.merits else self.predicted(member)
        reserve = RESERVE if self.crossed and not fold else 0.0
        left = (self.deadline - time.monotonic()) * (1.0 - reserve)
        return -(-trainings // self.processes) * seconds < left or not self.trials

    def predicted(self, member: Member) -> float:
        """Seconds of a training, corrected by what others of its kind took here."""
        kin = [one for one in self.judged.values() if one.merits and one.member.kind == member.kind]
        took = sum(one.seconds for one in kin)
        thought = sum(one.member.seconds(self.facts) * len(one.merits) for one in kin)
        return member.seconds(self.facts) * (took / thought if thought > 0.5 else 1.0)

    def attempt(self, member: Member, fold: int) -> None:
        """Train a member on a fold and look at its validation nodes."""
        started, split, known = time.monotonic(), self.splits[fold], self.judged[member.name]
        job = self.job(member, fold)
        try:
            found = self.outcome(job)
        except Diverged:
            self.trials.append(Trial(member.name, fold, -1.0, 0.0, 1e30, 0, time.monotonic() - started))
            return
        except Late:
            self.left_out += [] if member.name in self.left_out else [member.name]
            return
        val = split.val.numpy()
        truth, shares = self.y[val], found.shares[val]
        known.merits[fold] = merit(self.metric, truth, shares)
        known.fitted[fold] = found
        known.seconds += found.seconds
        known.epochs = known.epochs or found.best_epoch
        accuracy = float((shares.argmax(axis=1) == truth).mean())
        seconds, epochs = round(found.seconds, 3), len(found.history)
        row = (known.merits[fold], accuracy, log_loss(truth, shares), epochs, seconds)
        self.trials.append(Trial(member.name, fold, *row, () if fold else curve_of(found.history)))
        self.stop_if_asked(job, epochs)
        self.tell(
            f"{member.name}, {split.name}: {self.metric} {abs(known.merits[fold]):.3f}, {found.seconds:.1f} s"
        )

    def job(self, member: Member, fold: int) -> Job:
        return Job(member.name, fold, self.judged[member.name].epochs if fold else 0)

    def outcome(self, job: Job) -> Outcome:
        """Of a training that is done here, or of one in another process while others go on beside it."""
        member = self.judged[job.member].member
        self.upcoming = [one for one in self.upcoming if one != (member, job.fold)]
        title, epochs = f"{job.member}, {self.splits[job.fold].name}", self.config(job).epochs
        with nullcontext() if self.watch is None else self.watch(title, epochs) as show:
            if self.workers is None:
                self.give_up_if_late()
                return self.work(job, show)
            told = 0
            while True:
                done, rows = job in self.workers.done, self.workers.rows.get(job, [])
                for row in rows[told:]:
                    if show is not None:
                        show(row)
                told = len(rows)
                if done:
                    break
                self.stop_if_asked(job, told)
                self.give_up_if_late()
                self.employ(self.workers, job)
                self.workers.turn()
            good, found = self.workers.done.pop(job)
            if not good:
                raise found
            return found

    def employ(self, workers: Workers, job: Job) -> None:
        """Every idle process has work: this job, or one that will be wanted if nothing changes."""
        if not workers.idle:
            return
        # What may turn out to be hopeless by a training of its family that goes on comes last.
        at_stake = {self.judged[one.member].member.family for one in (job, *workers.busy.values())} - {None}
        later = [
            self.job(member, fold)
            for member, fold in sorted(self.upcoming, key=lambda one: one[0].family in at_stake)
            if not (fold == 0 and self.hopeless(member.family)) and self.affordable(member, fold)
        ]
        for one in [one for one in (job, *later) if not workers.knows(one)][: len(workers.idle)]:
            workers.start(one)

    def give_up_if_late(self) -> None:
        """The limit of time was predicted to suffice, and did not; something was finished all the same."""
        over = self.deadline is not None and time.monotonic() > self.deadline + self.overtime
        if over and any(one.merits for one in self.judged.values()):
            raise Late("the time is up")

    def stop_if_asked(self, job: Job, epoch: int) -> None:
        if self.interrupt is not None and self.interrupt.is_set():
            raise Interrupted(f"stopped in {job.member} after epoch {epoch}", epoch)

    def config(self, job: Job) -> TrainConfig:
        """How a member is trained. Whatever was asked for, none chooses its epoch by test nodes."""
        member = self.judged[job.member].member
        config = config_from({**member.train, "seed": self.seed + job.fold}, member.name).blind()
        config = as_they_are(member.model, config)
        if job.fold > 0 and member.kind == "network":
            config = replace(config, epochs=job.epochs, patience=0, evaluate_every=job.epochs)
        return config

    def work(self, job: Job, on_epoch: OnEpoch | None) -> Outcome:
        """A training, or what an earlier one left in the folder."""

        def told(row: dict[str, Any]) -> object:
            self.give_up_if_late()
            return None if on_epoch is None else on_epoch(row)

        place = f"{job.member.replace(', ', '-').replace(' ', '-')}-{job.fold}"
        return train_member(
            self.judged[job.member].member,
            self.graph,
            self.splits[job.fold],
            self.config(job),
            folder=None if self.folder is None else self.folder / place,
            progress=told,
            check=self.give_up_if_late,
        )

    def complete(self) -> list[Judged]:
        """Members that were trained on every fold; all of the first fold where there is none."""
        tried = [one for one in self.judged.values() if one.merits]
        if not self.crossed:
            return tried
        return [one for one in tried if len(one.merits) == len(self.splits)] or tried

    def unseen(self, chosen: list[Judged]) -> tuple[Array, list[Array]]:
        """Validation nodes, and what each member says of them where they did not choose its epochs."""
        whole = all(len(one.merits) == len(self.splits) for one in chosen)
        later = range(1, len(self.splits)) if self.crossed and whole else range(1)  # else: time was up
        parts = [self.splits[k].val.numpy() for k in later]
        nodes, counts = np.unique(np.concatenate(parts), return_counts=True)
        found = []
        for one in chosen:  # a node of several folds has the mean of what their trainings say
            total = np.zeros((self.graph.num_nodes, self.graph.num_classes))
            for k, part in zip(later, parts, strict=True):
                total[part] += one.fitted[k].shares[part]
            found.append(total[nodes] / counts[:, None])
        return nodes, found

    def result(self, single: bool, interrupted: bool) -> tuple[Ensemble, dict[str, Any], Portfolio]:
        chosen = self.complete()
        if not chosen:
            raise InputError("no model was finished in time; give more --minutes or --trials")
        return join(
            self.graph,
            chosen,
            *self.unseen(chosen),
            metric=self.metric,
            seed=self.seed,
            single=single,
            judged=not self.unjudged,
            trials=self.trials,
            folds=len(self.splits) if self.crossed else 1,
            labels=len({int(node) for split in self.splits for node in split.train}),
            left_out=self.left_out,
            interrupted=interrupted,
        )
