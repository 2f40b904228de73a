"""One training of one member, and what came out in a form that one process can send to another."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ..graph.graph import Graph
from ..graph.splits import Split
from ..nn import zoo
from ..training import Fitted, ModelSpec, Run, TrainConfig, fit, load_run
from ..training.closed_form import CLOSED_FORMS, fit_closed_form
from ..training.predictions import predict_proba
from ..training.runs import take_up
from ..training.stopping import snapshot
from .members import Member

Array = npt.NDArray[Any]
OnEpoch = Callable[[dict[str, Any]], object]
CURVE = 60  # points of a learning curve


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out of a training."""

    state: dict[str, Array]  # the model's
    settings: dict[str, Any]  # that build it
    divides: bool  # whether it reads features whose rows were divided by their sums
    shares: Array  # of every node: [nodes, classes]
    history: list[dict[str, Any]]
    best_epoch: int
    seconds: float


def train_member(
    member: Member,
    graph: Graph,
    split: Split,
    config: TrainConfig,
    *,
    folder: Path | None = None,
    progress: OnEpoch | None = None,
    check: Callable[[], None] | None = None,
) -> Outcome:
    """The training, kept in a folder of its own if there is one, or what an earlier one left there."""
    started = time.monotonic()
    spec = ModelSpec(
        member.model, graph.num_features, graph.num_classes, graph.num_nodes, dict(member.settings)
    )
    run = None if folder is None else take_up(folder, config, model=spec, data=graph, split=split)
    if run is not None and run.sidecar.finished:
        model, run = load_run(run.path)
        result, settings = run.sidecar.result or {}, dict(run.sidecar.model.settings)
        history = run.history(result["epochs"])
        fitted = Fitted(model, config, history, result["best_epoch"], str(result.get("stopped")))
    else:
        fitted, settings = train_model(spec, graph, split, config, run=run, progress=progress, check=check)
    return Outcome(
        {name: part.numpy() for name, part in fitted.model.state_dict().items()},
        settings,
        graph.normalises(fitted.config.row_normalise),
        predict_proba(fitted.model, graph, fitted.config).numpy(),
        fitted.history,
        fitted.best_epoch,
        time.monotonic() - started,
    )


def train_model(
    spec: ModelSpec,
    graph: Graph,
    split: Split,
    config: TrainConfig,
    *,
    run: Run | None = None,
    progress: OnEpoch | None = None,
    check: Callable[[], None] | None = None,
) -> tuple[Fitted, dict[str, Any]]:
    """A trained model and the settings that build it again: by epochs, told to `progress`, or in closed form
    where it has one, when `check` is called now and then. Either may end the training by an error."""
    if spec.name not in CLOSED_FORMS:
        model = spec.build(config.seed)
        return fit(model, graph, split, config, progress=progress, run=run), dict(spec.settings)
    settings = {**zoo.settings_of(spec.name), **spec.settings}
    fitted, settings = fit_closed_form(spec.name, settings, graph, split, config, check=check)
    if run is not None:
        run.sidecar = replace(run.sidecar, model=replace(spec, settings=settings))
        run.adopt(fitted.history, snapshot(fitted.model), fitted.result())
    return fitted, settings


def curve_of(history: Sequence[dict[str, Any]]) -> tuple[tuple[float, ...], ...]:
    """The learning curve of a network, thinned out; nothing of a model without epochs."""
    names = ("epoch", "prediction_loss", "val_loss", "val_accuracy")
    rows = [tuple(round(float(row[name]), 5) for name in names) for row in history if set(names) <= set(row)]
    return tuple(rows[:: -(-len(rows) // CURVE)]) if len(rows) > 1 else ()
