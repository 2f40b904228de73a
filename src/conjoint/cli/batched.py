"""conjoint train where a step computes only a part of the graph, in this process or with others."""

import argparse
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from .. import recommended
from ..data.splits import Split
from ..errors import InputError, Interrupted
from ..scale.choice import USABLE, Choice, available_memory, choose
from ..scale.clusters import metis_bytes
from ..scale.config import BatchConfig, batch_config_from, batch_config_to
from ..scale.predictions import predicted_pieces, table_in_pieces, tabulated
from ..scale.ranks import DEFAULT_TIMEOUT, Ranks, joined, own_device, restarted
from ..scale.work import check_fit, fit_batches
from ..store import StoredGraph, open_graph, stored_from
from ..training import Fitted, Run, config_from, load_run, resume_run, start_run
from ..training.fitted import result_row
from ..training.loop import finished
from ..training.runs.sidecar import ModelSpec
from .graph import load_graph, load_stored, model_of, split_of
from .plan import Plan
from .progress import progress
from .reopen import best_of, plan_of_run
from .results import Trained, report
from .terminal import clean, print_json, say, table

KINDS = ("clusters", "neighbours")


@dataclass(frozen=True, eq=False)
class Job:
    """One command: a plan whose batches are settled, and who takes part in it."""

    plan: Plan
    batch: BatchConfig
    graph: StoredGraph
    out: Path
    ranks: Ranks
    options: argparse.Namespace

    def folder(self, seed: int) -> Path:
        return self.out if len(self.plan.seeds) == 1 else self.out / f"seed-{seed}"

    @property
    def silent(self) -> bool:
        return self.options.quiet or self.options.json or not self.ranks.leads


def graph_of(plan: Plan) -> Data | StoredGraph:
    """The plan's graph: mapped if it is a folder, and else in memory."""
    return open_graph(plan.data["folder"]) if "folder" in plan.data else load_graph(plan)


def settle(plan: Plan, data: Data | StoredGraph, options: argparse.Namespace) -> Plan:
    """The plan with what a step computes: as --batch says, or chosen by memory, which is told.

    A plan without `batch` is for the full graph or the receptive field.
    """
    kind = plan.batch.get("kind", "auto")
    if kind in KINDS:
        return plan
    if kind != "auto":
        field = {"full": "whole", "field": "receptive"}[kind]
        return replace(plan, train={**plan.train, "field": field}, batch={})
    if getattr(data, "edge_weight", None) is not None or plan.train.get("field", "auto") != "auto":
        return replace(plan, batch={})
    graph = data if isinstance(data, StoredGraph) else stored_from(data)
    made = _choice(plan, graph)
    if made.must and made.kind == "full" and plan.recommended:
        plan = _attention_instead(plan)
        made = _choice(plan, graph)
    if not (options.quiet or options.json):
        say(f"{clean(graph.name)}: {made}")
    batch = {**plan.batch, "kind": made.kind} if made.kind in KINDS else {}
    # What does not fit as a whole is cut, also where cutting would not save time.
    needs_cut = made.kind == "field" and made.must
    train = {**plan.train, "field": "receptive"} if needs_cut else plan.train
    return replace(plan, train=train, batch=batch)


def _attention_instead(plan: Plan) -> Plan:
    """The recommended network needs the whole graph. Where that does not fit, attention takes its place."""
    train = {key: value for key, value in plan.train.items() if recommended.TRAIN.get(key) != value}
    model = {**plan.model, "name": recommended.FALLBACK}
    return replace(plan, model=model, train=train, recommended=False)


def _choice(plan: Plan, graph: StoredGraph) -> Choice:
    name, settings = model_of(plan)
    split = split_of(graph, plan.split, plan.seeds[0])
    return choose(name, settings, graph, split.train.numpy(), split.val.numpy())


def start(
    plan: Plan,
    options: argparse.Namespace,
    out: Path | None,
    graph: Data | StoredGraph | None = None,
) -> None:
    """Train a new run in batches; or go on with it, if the launcher has started the ranks again."""
    if out is None:
        raise InputError(
            "--out is missing: ranks that are started again must find the run that they go on with"
        )
    options.device = own_device(options.device)
    with joined(options.device, options.timeout or DEFAULT_TIMEOUT) as ranks:
        with ranks.together():
            stored = load_stored(plan) if graph is None or "folder" in plan.data else graph
            stored = stored if isinstance(stored, StoredGraph) else stored_from(stored)
        _same_graph(stored, ranks)
        kind = plan.batch.get("kind", "auto")
        if kind == "auto":
            fits = metis_bytes(stored) < USABLE * available_memory()
            kind = ranks.from_first("clusters" if fits else "neighbours")
        if kind not in KINDS:
            raise InputError(f"--batch {kind}: several ranks share batches; use clusters or neighbours")
        batch = batch_config_from({"per_step": ranks.world, **plan.batch, "kind": kind})
        plan = replace(plan, batch=batch_config_to(batch))
        _train_all(Job(plan, batch, stored, out, ranks, options), restarted() and out.exists())


def resume(plan: Plan, out: Path, options: argparse.Namespace) -> None:
    options.device = own_device(options.device)
    with joined(options.device, options.timeout or DEFAULT_TIMEOUT) as ranks:
        batch = batch_config_from(plan.batch, f"{out}: [origin.batch]")
        with ranks.together():
            graph = load_stored(plan)
        _same_graph(graph, ranks)
        _train_all(Job(plan, batch, graph, out, ranks, options), True)


def _same_graph(graph: StoredGraph, ranks: Ranks) -> None:
    first = ranks.from_first(graph.fingerprint)
    with ranks.together():
        if graph.fingerprint != first:
            raise InputError(f"{graph.folder or graph.name}: another graph than that of rank 0; copy it anew")


def _train_all(job: Job, again: bool) -> None:
    trained = [_train_one(job, seed, again) for seed in job.plan.seeds]
    if job.ranks.leads:
        report([one for one in trained if one is not None], job.graph, job.out, job.options)


def _train_one(job: Job, seed: int, again: bool) -> Trained | None:
    ranks, options = job.ranks, job.options
    split = split_of(job.graph, job.plan.split, seed)
    spec = _spec(job.plan, job.graph)
    config = config_from({**job.plan.train, "seed": seed}, "settings")
    model = spec.build(seed).to(options.device)
    check_fit(model, split, config, job.batch, ranks)  # no folder is made for what cannot be trained
    run: Run | None = None
    with ranks.together():
        if ranks.leads:
            run = _open(job, seed, spec, split, again)
    if ranks.from_first(run is not None and run.sidecar.finished):
        return None if run is None else _finish(job, run, finished(model, config, run), split, 0.0)
    if run is not None and not job.silent:
        for note in [*job.graph.notes, *run.notes]:
            say(f"{clean(job.graph.name)}: {clean(note)}")
    title = clean(f"{job.graph.name} {spec.name} seed {seed}")
    started = time.perf_counter()
    try:
        with progress(title, config.epochs, options.quiet or not ranks.leads) as show:
            fitted = fit_batches(
                model,
                job.graph,
                split,
                config,
                job.batch,
                ranks=ranks,
                workers=options.workers,
                progress=show,
                run=run,
            )
    except Interrupted as stop:
        reached = str(stop).partition(";")[0]
        raise Interrupted(f"{reached}; go on with: conjoint train --resume {job.out}") from None
    seconds = time.perf_counter() - started
    return None if run is None else _finish(job, run, fitted, split, seconds)


def _open(job: Job, seed: int, spec: ModelSpec, split: Split, again: bool) -> Run:
    folder, options = job.folder(seed), job.options
    if again and folder.exists():
        run = resume_run(folder)
        if job.graph.fingerprint != run.sidecar.data_fingerprint:
            raise InputError(
                f"{folder}: trained on another graph than the one found now; name it with --data"
            )
    else:
        config = config_from({**job.plan.train, "seed": seed}, "settings")
        origin = job.plan.origin()
        run = start_run(folder, config, model=spec, data=job.graph, split=split, origin=origin)
    if options.save_every is not None:
        run.every_seconds = options.save_every
    return run


def _finish(job: Job, run: Run, fitted: Fitted, split: Split, seconds: float) -> Trained:
    """The result row and the predictions, both from one pass over the graph."""
    names = list(run.sidecar.class_names)
    pieces = predicted_pieces(fitted.model, job.graph, fitted.config)
    guesses = []
    with table_in_pieces(run.path / "predictions.csv") as append:
        for columns, guess in tabulated(pieces, job.graph, names, split, False):
            append(columns)
            guesses.append(guess)
    row = {
        "dataset": job.graph.name,
        "model": run.spec.name,
        **result_row(fitted, torch.cat(guesses), job.graph.y, split),
        "parameters": sum(p.numel() for p in fitted.model.parameters()),
        "seconds": round(seconds, 3),
        "batch": batch_config_to(job.batch),
        "ranks": job.ranks.world,
    }
    run.write("result.json", (json.dumps(row, indent=1, allow_nan=False) + "\n").encode())
    return Trained(run, fitted, split, row)


def _spec(plan: Plan, graph: StoredGraph) -> ModelSpec:
    name, settings = model_of(plan)
    classes = len(graph.class_names) or int(graph.y.max()) + 1
    return ModelSpec(name, graph.num_features, classes, graph.num_nodes, settings)


def predict(options: argparse.Namespace) -> bool:
    """`conjoint predict` for a run that was trained in batches or on a folder; False for any other.

    The graph is read in pieces, and the table written in pieces.
    """
    folder = best_of(Path(options.run))
    plan = plan_of_run(resume_run(folder), options)
    if not plan.batch and "folder" not in plan.data:
        return False
    model, run = load_run(folder)
    graph = load_stored(plan)
    if graph.fingerprint != run.sidecar.data_fingerprint:
        raise InputError(f"{run.path}: trained on another graph than the one found now; name it with --data")
    split = split_of(graph, plan.split, run.config.seed)
    names = list(run.sidecar.class_names)
    pieces = tabulated(predicted_pieces(model, graph, run.config), graph, names, split, True)
    shown: list[dict[str, Any]] = []
    total = 0

    def take(columns: dict[str, Any]) -> dict[str, Any]:
        nonlocal total
        if options.unlabelled:
            wanted = columns["label"] == ""
            columns = {name: np.asarray(values)[wanted] for name, values in columns.items()}
        total += len(columns["id"])
        room = max(0, options.rows - len(shown))
        first = {name: values[:room].tolist() for name, values in columns.items()}
        shown.extend(dict(zip(first, cells, strict=True)) for cells in zip(*first.values(), strict=True))
        return columns

    if options.out:
        with table_in_pieces(options.out) as append:
            for columns, _ in pieces:
                append(take(columns))
    else:
        for columns, _ in pieces:
            take(columns)
    if options.json:
        print_json({"run": str(run.path), "nodes": total, "out": options.out, "rows": shown})
    elif options.out:
        print(f"{total} rows written to {clean(options.out)}")
    else:
        brief = [{**row, "probability": f"{row['probability']:.3f}"} for row in shown]
        keys = ("id", "part", "label", "predicted", "probability")
        print(table([{key: row[key] for key in keys} for row in brief], right=("probability",)))
    return True
