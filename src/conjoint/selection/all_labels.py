"""One network from every label, in two trainings.

The first leaves some labels out: some of them choose how many epochs there should be, others tell how good
it is. The second starts anew, learns from all labels for as many epochs, and is what predicts.
"""

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..graph.graph import Graph
from ..graph.splits import Split
from ..nn.model import NodeModel
from ..training import BatchConfig, Fitted, ModelSpec, Ranks, Run, TrainConfig, alone, fit, predict_proba
from ..training.closed_form import CLOSED_FORMS, fit_closed_form
from ..training.inference import infer
from ..training.loop import OnEpoch
from ..training.runs import take_up
from ..training.stopping import snapshot
from .choose import Watch
from .folds import judging_split
from .portfolio import JUDGED, encode_judged, read_judged

Array = npt.NDArray[Any]
Judged = tuple[Array, Array]  # nodes, and their probabilities by a training without their labels
TRAININGS = "trainings"  # the folder of both, while they go on


def learn_from_all(
    build: Callable[[], NodeModel],
    graph: Graph,
    split: Split,
    config: TrainConfig,
    *,
    spec: ModelSpec | None = None,
    batches: BatchConfig | None = None,
    ranks: Ranks = alone,
    workers: int = 0,
    run: Run | None = None,
    watch: Watch | None = None,
    first: Fitted | None = None,
) -> tuple[Fitted, ModelSpec | None, Judged | None]:
    """What `fit` gives for a split without validation nodes, whose training nodes are all to serve.

    The history and its chosen epoch are those of the first training, which knows validation nodes; the
    weights are those of the second. Where labels are too few to hold any out, there is one training.

    Args:
        build: gives the model with its initial weights, each time the same.
        spec: the model's name and settings, where it has some.
        run: a folder that keeps both trainings while they go on, and then what came out.
        watch: entered for each training with its title and epochs.
        first: the first training, if it was done while the model was chosen.

    Returns: the training; the spec by which its model is built again; the judged nodes, if there are any.
    """
    check_rule(config, split)
    run = run if ranks.is_first else None
    batch: dict[str, Any] = {"batches": batches, "ranks": ranks, "workers": workers}
    if ranks.broadcast(run is not None and run.sidecar.finished):
        done = fit(build(), graph, split, config, run=run, **batch)
        if run is not None:
            shutil.rmtree(run.path / TRAININGS, ignore_errors=True)
        return done, spec, None if run is None else read_judged(run.path / JUDGED)
    part, name = judging_split(graph, split), "network" if spec is None else spec.name

    def train(title: str, split: Split, config: TrainConfig, like: Fitted | None = None) -> Fitted:
        nonlocal spec
        if spec is not None and spec.name in CLOSED_FORMS:
            fitted, settings = fit_closed_form(spec.name, dict(spec.settings), graph, split, config, like)
            spec = replace(spec, settings=settings)
            return fitted
        kept = None
        with ranks.shared_errors():
            if run is not None:
                place = run.path / TRAININGS / title.replace(" ", "-")
                kept = take_up(place, config, model=run.spec, data=graph, split=split)
                kept.every_seconds, kept.every_epochs = run.every_seconds, run.every_epochs
                if first is not None and like is None and not kept.sidecar.finished:
                    kept.adopt(first.history, snapshot(first.model), first.result())
        if first is not None and like is None:
            return first
        epochs, about = (config.epochs if like is None else like.best_epoch), f"{name} seed {config.seed}"
        whole = split.val is split.train or like is not None  # the labels that choose train too
        with contextlib.nullcontext() if watch is None else watch(f"{about}, {title}", epochs) as show:
            told = _until(None if like is None else epochs, show) if whole else show
            return fit(build(), graph, split, config, progress=told, run=kept, **batch)

    with contextlib.ExitStack() as held:
        with ranks.shared_errors():
            if run is not None:
                held.enter_context(run.training())
        chosen = train("first training", part, config)
        judged, made = None, chosen
        if part.val is not split.train:
            with ranks.shared_errors():
                judged = _judge(chosen, graph, part, batches)
            every = replace(part, train=split.train, name=split.name)
            # As many epochs as were chosen, with the learning rates that they had.
            epochs = chosen.best_epoch
            made = train("all labels", every, replace(config, patience=0, evaluate_every=epochs), chosen)
        fitted = replace(chosen, model=made.model)
        with ranks.shared_errors():
            if run is not None:
                if judged is not None:
                    run.write(JUDGED, encode_judged(judged))
                if spec is not None:
                    run.sidecar = replace(run.sidecar, model=spec)
                run.keep(fitted.history, snapshot(fitted.model), fitted.result())
                shutil.rmtree(run.path / TRAININGS, ignore_errors=True)
    return fitted, spec, judged


def check_rule(config: TrainConfig, split: Split) -> None:
    if config.saw_test and not split.val.numel():
        raise InputError(
            f"rule={config.rule!r}: it looks at test nodes, and here every label trains; name a split that "
            "has some, such as hold-out"
        )


def _until(epochs: int | None, show: OnEpoch | None) -> OnEpoch:
    """Ends a training after so many epochs. What it says of labels that train is shown to nobody."""

    def told(row: dict[str, Any]) -> object:
        shown = {name: value for name, value in row.items() if not name.startswith("val_")}
        asked = None if show is None else show(shown)
        return asked if epochs is None else row["epoch"] >= epochs

    return told


def _judge(fitted: Fitted, graph: Graph, split: Split, batches: BatchConfig | None) -> Judged:
    """What a training says of the nodes that it was held back from. Of several processes each asks for all of
    them, so that the bits are those of one, and none waits for another."""
    nodes = np.sort(split.reveal_test().numpy())
    if batches is None:
        return nodes, predict_proba(fitted.model, graph, fitted.config)[nodes].cpu().numpy()
    pieces = infer(fitted.model, graph, nodes, normalise=graph.normalises(fitted.config.row_normalise))
    return nodes, np.concatenate([logits.softmax(dim=1).numpy() for _, logits in pieces])
