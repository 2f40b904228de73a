"""A run folder whose ensemble was learnt is used as it is; one that was interrupted is gone on with."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conjoint.errors import InputError
from conjoint.graph.graph import as_graph
from conjoint.selection import learner
from conjoint.selection.setting import make_setting
from conjoint.training.memory import Way
from small_training import small_data, small_split


@pytest.mark.parametrize(
    ("result", "searches"),
    [({"stopped": "epochs"}, False), (None, False), ({"stopped": "interrupted"}, True)],
)
def test_only_a_search_that_was_stopped_goes_on(
    result: Any, searches: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*_: object, **__: object) -> None:
        raise InputError("searching")

    monkeypatch.setattr(learner, "learn_ensemble", search)
    monkeypatch.setattr(learner, "load_run", lambda path: ("the model", None))
    monkeypatch.setattr(learner, "read_portfolio", lambda path: f"portfolio of {path.parent.name}")
    run: Any = SimpleNamespace(
        path=tmp_path / "run",
        sidecar=SimpleNamespace(finished=True, result=result),
        history=lambda rows: [{"epoch": 1, "seconds": 2.5}][:rows],
        config="the settings",
        spec="the spec",
        training=nullcontext,
    )
    graph, split = as_graph(small_data()), small_split()
    if searches:
        with pytest.raises(InputError, match="searching"):
            learner.train_ensemble(make_setting(), graph, split, 0, run=run)
        return
    found = learner.train_ensemble(make_setting(), graph, split, 0, run=run)
    assert (found.fitted.model, found.fitted.config, found.spec) == ("the model", "the settings", "the spec")
    assert found.portfolio == "portfolio of run" and found.seconds == 2.5
    assert found.fitted.history == [{"epoch": 1, "seconds": 2.5}] and found.fitted.best_epoch == 1


def test_an_ensemble_is_kept_as_a_training_of_one_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = SimpleNamespace(estimate={"log-loss": 0.5, "accuracy": 0.75}, interrupted=False)
    monkeypatch.setattr(learner, "learn_ensemble", lambda *_, **__: ("the model", {"members": []}, made))
    fitted = learner.train_ensemble(make_setting(), as_graph(small_data()), small_split(), 3).fitted
    assert fitted.result() | {"metrics": None} == {
        "best_epoch": 1,
        "epochs": 1,
        "stopped": "epochs",
        "rule": fitted.config.rule,
        "saw_test": False,
        "metrics": None,
    }
    assert (fitted.metrics["epoch"], fitted.metrics["val_loss"], fitted.metrics["val_accuracy"]) == (
        1,
        0.5,
        0.75,
    )


def test_attention_in_place_of_an_ensemble_is_planned_for_the_split_that_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def chosen(model: str, settings: Any, graph: Any, train: Any, val: Any, **_: Any) -> Way:
        seen.append((train.tolist(), val.tolist()))
        return Way("field", 1, 2, "so", must=True)

    monkeypatch.setattr(learner, "choose_way", chosen)
    monkeypatch.setattr(learner, "fits", lambda member, graph: not member.conjoint)
    graph, split = as_graph(small_data()), small_split()
    setting, told = learner.settle(make_setting(), graph, split)
    assert setting.model == "cat-i-mf" and setting.train["field"] == "receptive"
    assert told is not None and told.startswith("training on the receptive field")
    assert seen == [(split.train.tolist(), split.val.tolist())]


@pytest.mark.parametrize(
    ("model", "verbose", "epochs"),
    [("gcn", 0, []), ("gcn", 1, [10]), (None, 0, []), (None, 1, []), (None, 2, [9, 10])],
)
def test_lines_of_epochs_are_for_one_network_or_for_who_asks_for_more(
    model: str | None, verbose: int, epochs: list[int], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def train(*_: Any, progress: Any, tell: Any, **__: Any) -> None:
        assert (tell is None) is (verbose == 0)
        for epoch in (9, 10):
            if progress is not None:
                progress({"epoch": epoch})

    monkeypatch.setattr(learner, "train_one", train)
    learner.train_graph(as_graph(small_data()), split=small_split(), model=model, verbose=verbose)
    assert capsys.readouterr().out == "".join(f"epoch {epoch}\n" for epoch in epochs)
