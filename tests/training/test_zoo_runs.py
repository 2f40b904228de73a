"""Every model of the zoo can be kept in a run folder and taken out again."""

from pathlib import Path

import pytest
import torch

from conjoint.nn import names
from conjoint.training import ModelSpec, TrainConfig, fit, load_run, predict_proba, start_run
from conjoint.training.checkpoint import shapes_of
from small_training import CLASSES, FEATURES, NODES, same_weights, small_data, small_split

CONFIG = TrainConfig(epochs=3, patience=0)


@pytest.mark.parametrize("name", list(names.MODELS))
def test_a_model_can_be_compared_without_its_memory(name: str) -> None:
    spec = ModelSpec(name, FEATURES, CLASSES, NODES)
    with torch.device("meta"):
        empty = spec.build(0)
    assert shapes_of(empty.state_dict()) == shapes_of(spec.build(0).state_dict())


@pytest.mark.parametrize("name", ["cat-i-mf", "cat-e-fs", "gcn", "gin", "monet"])
def test_a_run_is_loaded_with_the_bits_it_was_finished_with(name: str, tmp_path: Path) -> None:
    data, split = small_data(), small_split()
    spec = ModelSpec(name, FEATURES, CLASSES, NODES, {"hidden": 4})
    run = start_run(tmp_path / "run", CONFIG, model=spec, data=data, split=split)
    fitted = fit(run.build_model(), data, split, CONFIG, run=run)
    model, again = load_run(tmp_path / "run")
    assert again.spec == spec and same_weights(model, fitted.model)
    assert torch.equal(predict_proba(model, data, CONFIG), predict_proba(fitted.model, data, CONFIG))
