"""Numbers at the edge: the result is finite, or an error names the epoch and what to change."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from conjoint import CATConv, EdgeScores
from conjoint.errors import Diverged
from conjoint.graph.splits import build_split
from conjoint.nn import zoo
from conjoint.nn.model import NodeModel
from conjoint.training import TrainConfig, fit, predict_proba, resume_run, start_run
from conjoint.training.runs import ModelSpec
from small_training import CLASSES, FEATURES, NODES, small_data, small_split

CONFIG = TrainConfig(epochs=6, patience=0)
SPEC = ModelSpec("cat-i-mf", FEATURES, CLASSES, NODES, {"hidden": 4, "heads": 2})
Strategy = Literal["implicit", "explicit"]
STRATEGIES: tuple[Strategy, ...] = ("implicit", "explicit")


def finite(*tensors: Tensor | None) -> bool:
    return all(bool(t.isfinite().all()) for t in tensors if t is not None)


def model(name: str = "cat-i-mf") -> NodeModel:
    sizes = {"features": FEATURES, "classes": CLASSES, "num_nodes": NODES}
    return zoo.build(name, **sizes, seed=0, hidden=4, heads=2)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_scores_of_ten_thousand(strategy: Strategy, scale: float) -> None:
    data = small_data()
    generator = torch.Generator().manual_seed(0)
    scores = scale * torch.rand(data.edge_index.size(1), generator=generator)
    layer = CATConv(FEATURES, 4, heads=2, strategy=strategy, intervention=EdgeScores(scores))
    out = layer(data.x.requires_grad_(), data.edge_index)
    out.square().sum().backward()
    assert finite(out, data.x.grad, *(p.grad for p in layer.parameters()))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_hub_of_a_million(strategy: Strategy) -> None:
    leaves = 1_000_000
    ends = torch.stack([torch.arange(1, leaves + 1), torch.zeros(leaves, dtype=torch.int64)])
    x = torch.randn(leaves + 1, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    layer = CATConv(2, 2, heads=1, strategy=strategy)
    out = layer(x, torch.cat([ends, ends.flip(0)], dim=1))
    out.square().mean().backward()
    assert finite(out, x.grad, *(p.grad for p in layer.parameters()))
    assert float(out[0].detach().abs().max()) < 100  # an average over a million neighbours, not a sum


@pytest.mark.parametrize("name", ["cat-i-mf", "cat-e-sc", "cat-i-fs", "gat"])
@pytest.mark.parametrize("value", [0.0, 1.0, -3.0])
def test_features_that_are_all_equal(name: str, value: float) -> None:
    data = small_data()
    data = data.changed(given_x=torch.full_like(data.x, value))
    fitted = fit(model(name), data, small_split(), CONFIG)
    assert finite(predict_proba(fitted.model, data, CONFIG))
    assert all(np.isfinite(row["loss"]) for row in fitted.history)


def test_one_class_only_in_validation() -> None:
    data, split = small_data(), small_split()
    val = [i for i in split.val.tolist() if int(data.y[i]) == 0]
    rest = np.setdiff1d(np.arange(NODES), [*split.train.tolist(), *val])
    narrow = build_split(split.train.numpy(), np.array(val), rest, labels=data.y.numpy(), name="narrow")
    fitted = fit(model(), data, narrow, CONFIG)
    assert 0.0 <= fitted.metrics["val_accuracy"] <= 1.0 and np.isfinite(fitted.metrics["val_loss"])


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64, torch.int64])
def test_features_of_other_kinds_are_read_as_numbers(kind: torch.dtype) -> None:
    data = small_data()
    data = data.changed(given_x=(10 * data.x).round().to(kind))
    fitted = fit(model(), data, small_split(), CONFIG)
    assert finite(predict_proba(fitted.model, data, CONFIG))


@pytest.mark.parametrize("weight", [0.0, 1e-6, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("name", ["cat-i-mf", "cat-e-sc"])
def test_lambda_from_nothing_to_a_million(name: str, weight: float) -> None:
    config = replace(CONFIG, penalty_weight=weight)
    fitted = fit(model(name), small_data(), small_split(), config)
    assert finite(predict_proba(fitted.model, small_data(), config))


@pytest.mark.parametrize("rate", [1e3, 1e10, 1e20, 1e38])
@pytest.mark.parametrize("evaluate_every", [1, 50])
def test_a_rate_that_diverges_names_epoch_and_remedy_and_keeps_a_good_checkpoint(
    tmp_path: Path, rate: float, evaluate_every: int
) -> None:
    config = TrainConfig(epochs=50, patience=0, lr=rate, evaluate_every=evaluate_every)
    data, split = small_data(), small_split()
    run = start_run(tmp_path / "run", config, model=SPEC, data=data, split=split)
    run.every_epochs = 1
    try:
        fitted = fit(run.build_model(), data, split, config, run=run)
    except Diverged as error:
        assert "epoch" in str(error) and "try lr=" in str(error)
        again = resume_run(tmp_path / "run")
        opened = again.build_model()
        again.restore(opened, torch.optim.Adam(opened.parameters(), fused=True))
        assert finite(*opened.parameters())  # whatever was saved last, was good
    else:
        assert finite(predict_proba(fitted.model, data, config))


def test_the_largest_rate_does_diverge() -> None:
    """So that the test above cannot pass by never meeting the case."""
    with pytest.raises(Diverged, match=r"at epoch \d+ with lr=1e\+38; try lr=1e\+37 or set clip=1.0"):
        fit(model(), small_data(), small_split(), replace(CONFIG, lr=1e38, epochs=30))
