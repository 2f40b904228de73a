"""Training in batches: the full graph's numbers where a batch is the full graph, else only its own rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from conjoint.errors import InputError
from conjoint.graph.graph import as_graph
from conjoint.nn.cat import CAT
from conjoint.nn.zoo import build
from conjoint.training import (
    BatchConfig,
    Consistency,
    ModelSpec,
    Ranks,
    TrainConfig,
    fit,
    resume_run,
    start_run,
)
from conjoint.training.batch_steps import BatchSteps
from scale_runs import CLASSES, FEATURES, NODES, graph_and_split

CONFIG = TrainConfig(epochs=6, patience=0, lr=0.02)
SETTINGS: dict[str, Any] = {"hidden": 4, "heads": 2, "dropout": 0.0}
SMALL = BatchConfig(kind="neighbours", size=15, fanout=(3, 2), penalty_neighbours=4)


def network(name: str = "cat-i-mf", **more: Any) -> CAT:
    sizes = {"features": FEATURES, "classes": CLASSES, "num_nodes": NODES}
    made = build(name, **sizes, seed=0, **{**SETTINGS, **more})
    assert isinstance(made, CAT)
    return made


@pytest.mark.parametrize("name", ["cat-i-mf", "cat-e-sc", "cat-i-fs", "gat"])
@pytest.mark.parametrize("kind", ["clusters", "neighbours"])
def test_one_batch_of_everything_is_the_full_graph(name: str, kind: str) -> None:
    """Without dropout, and with every neighbour heard, nothing is left to chance."""
    data, split = graph_and_split()
    whole = fit(network(name), data, split, CONFIG)
    everything = BatchConfig(kind=kind, size=1000, fanout=(1000,), penalty_neighbours=1000)
    pieces = fit(network(name), as_graph(data), split, CONFIG, batches=everything)
    for one, other in zip(whole.history, pieces.history, strict=True):
        assert other == pytest.approx(one, rel=1e-4, abs=1e-5)
    left, right = whole.model.state_dict(), pieces.model.state_dict()
    assert all(torch.allclose(left[key], right[key], atol=1e-4) for key in left)


def test_a_step_changes_the_rows_of_its_batch_and_no_others() -> None:
    data, split = graph_and_split()
    model = network()
    config = replace(SMALL, penalty_nodes=4)
    trainer = BatchSteps(model, as_graph(data), split, CONFIG, config, Ranks(), 0)
    plan = trainer.plan
    assert trainer.factors is not None
    before = trainer.factors.clone()
    batch = plan.epoch(1)[0]
    trainer.step([batch], 1)
    moved = (trainer.factors != before).any(dim=1).nonzero().squeeze(1)
    assert 0 < len(moved) <= len(batch.rows) < NODES
    assert bool(torch.isin(moved, batch.rows).all())
    assert trainer.factors.grad is None  # no gradient of the size of V was ever made


def test_it_learns(tmp_path: Path) -> None:
    data, split = graph_and_split()
    for kind in ("clusters", "neighbours"):
        batch = BatchConfig(kind=kind, size={"clusters": 50, "neighbours": 20}[kind], joined=3, fanout=(5,))
        fitted = fit(network(), as_graph(data), split, replace(CONFIG, epochs=25), batches=batch)
        first, last = fitted.history[0], fitted.history[-1]
        assert last["prediction_loss"] < 0.8 * first["prediction_loss"]
        assert fitted.metrics["val_accuracy"] > 0.45  # chance is a third, and the edges say nothing
        assert all(p.requires_grad for p in fitted.model.parameters())


def test_a_run_that_was_stopped_ends_with_the_same_bits(tmp_path: Path) -> None:
    data, split = graph_and_split()
    graph = as_graph(data)
    spec = ModelSpec("cat-i-mf", FEATURES, CLASSES, NODES, {**SETTINGS, "dropout": 0.5})
    whole = fit(spec.build(0), graph, split, CONFIG, batches=SMALL)

    class Stop(Exception):
        pass

    def stop(row: dict[str, Any]) -> None:
        if row["epoch"] == 4:
            raise Stop

    run = start_run(tmp_path / "run", CONFIG, model=spec, data=data, split=split)
    run.every_epochs = 1
    with pytest.raises(Stop):
        fit(spec.build(0), graph, split, CONFIG, batches=SMALL, run=run, progress=stop)
    again = resume_run(tmp_path / "run")
    rows: list[int] = []
    resumed = fit(
        again.build_model(),
        graph,
        split,
        CONFIG,
        batches=SMALL,
        run=again,
        progress=lambda row: rows.append(row["epoch"]),
    )
    assert rows == [4, 5, 6] and resumed.history == whole.history
    left, right = whole.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(left[key], right[key]) for key in left)


def test_the_number_of_batches_per_step_is_an_average() -> None:
    """Clipping, which looks at the whole gradient, acts on the average."""
    data, split = graph_and_split()
    graph = as_graph(data)
    config = replace(CONFIG, clip=0.1, epochs=3)
    fitted = fit(network(), graph, split, config, batches=replace(SMALL, per_step=4))
    assert len(fitted.history) == 3 and fitted.history[-1]["loss"] < fitted.history[0]["loss"]


@pytest.mark.parametrize(
    ("config", "ranks", "said"),
    [
        (CONFIG, Ranks(0, 3), "3 ranks do not divide --batches-per-step 4; start 1 or 2 or 4 of them"),
        (replace(CONFIG, consistency=Consistency()), Ranks(), "consistency: it needs the full graph"),
        (replace(CONFIG, rule="release", see_test=True), Ranks(), "rule='release': it needs the full graph"),
    ],
)
def test_what_batches_cannot_do_is_said(config: TrainConfig, ranks: Ranks, said: str) -> None:
    data, split = graph_and_split()
    with pytest.raises(InputError, match=said):
        fit(network(), as_graph(data), split, config, batches=replace(SMALL, per_step=4), ranks=ranks)


@pytest.mark.parametrize("clip", [0.5, 1e6])
def test_gradients_are_clipped_as_torch_clips_them_rows_of_v_included(clip: float) -> None:
    data, split = graph_and_split()
    model = network()
    steps = BatchSteps(model, as_graph(data), split, replace(CONFIG, clip=clip), SMALL, Ranks(), 0)
    generator = torch.Generator().manual_seed(0)
    others = torch.nn.Parameter(torch.zeros(5, 2))
    expected = []
    for p in (*model.parameters(), others):
        p.grad = torch.randn(p.shape, generator=generator)
        expected.append(torch.nn.Parameter(torch.zeros_like(p)))
        expected[-1].grad = p.grad.clone()
    torch.nn.utils.clip_grad_norm_(expected, clip)
    assert others.grad is not None
    steps._clip([others.grad])
    for p, wanted in zip((*model.parameters(), others), expected, strict=True):
        torch.testing.assert_close(p.grad, wanted.grad)
