"""Labels of test nodes decide nothing: with others in their place every choice and weight is the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from conjoint import learn
from conjoint.graph.graph import Graph
from conjoint.graph.splits import Split
from conjoint.selection import choose_intervention
from conjoint.selection.choose import network
from conjoint.selection.tune import Budget, tune
from conjoint.training import TrainConfig, fit
from research.recommended import choose_recommended
from small_training import small_data, small_split

QUICK = TrainConfig(epochs=4, patience=0, lr=0.05, seed=1)
SEES = replace(QUICK, rule="release", see_test=True)


def scrambled(data: Graph, split: Split) -> Graph:
    y, test = data.y.clone(), split.reveal_test()
    y[test] = (y[test] + 1) % (int(y.max()) + 1)
    return replace(data, y=y)


def chosen(data: Graph, config: TrainConfig, folder: Path) -> dict[str, Any]:
    split = small_split()
    folder.mkdir()
    model = network("cat-i-mf", data, 1, {})
    fit(model, data, split, config.blind())
    first = choose_intervention(data, split, config)
    second = choose_recommended(data, split, config)
    budget = Budget(minutes=5.0, trials=2, seeds=1, epochs=4, patience=0)
    told = {"rule": config.rule, "see_test": config.see_test, "epochs": 4, "patience": 0}
    learned = learn(data, split=split, seed=1, trials=4, train=told)
    tried = tune(data, split, folder, budget=budget, base=config)
    return {
        "learn": learned.best.probabilities.tolist(),
        "fit": [part.clone() for part in model.state_dict().values()],
        "choose": [(one.model, one.trials) for one in (first, second)],
        "tune": [(one.point, one.val_accuracy, one.val_loss) for one in tried],
    }


@pytest.mark.parametrize("config", [QUICK, SEES], ids=["usual", "with the release's rule"])
def test_test_labels_reach_no_selection(config: TrainConfig, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    one = chosen(small_data(), config, tmp_path / "one")
    other = chosen(scrambled(small_data(), small_split()), config, tmp_path / "other")
    assert all(torch.equal(a, b) for a, b in zip(one["fit"], other["fit"], strict=True))
    assert repr(one["choose"]) == repr(other["choose"])
    assert one["tune"] == other["tune"]


def test_the_release_itself_does_learn_from_them() -> None:
    """Otherwise the test above could not fail."""
    kept = []
    for data in (small_data(), scrambled(small_data(), small_split())):
        config = replace(SEES, epochs=30)
        kept.append(fit(network("gat", data, 1, {}), data, small_split(), config).best_epoch)
    assert kept[0] != kept[1]
