"""From a spec to a row, on the Cora that ships with the package."""

from dataclasses import replace

import pytest
from torch_geometric.data import Data

from conjoint.errors import InputError
from conjoint.experiments import variants
from conjoint.experiments.execute import execute
from conjoint.experiments.grid import experiment
from conjoint.experiments.spec import RunSpec, spec_from

SHORT = {"epochs": 3, "patience": 0}


def cora(model: str) -> RunSpec:
    [spec] = [
        spec
        for spec in experiment("random-splits").specs
        if (spec.model, spec.dataset, spec.seed) == (model, "cora", 1)
    ]
    return replace(spec, train_settings={**spec.train_settings, **SHORT})


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONJOINT_DATA", raising=False)


def test_a_row_says_what_was_run_and_what_came_out() -> None:
    spec = cora("cat-i-mf")
    row = execute(spec)
    assert row["key"] == spec.key and spec_from(row) == spec
    assert row["epochs"] == 3 and row["stopped"] == "epochs" and row["saw_test"] is False
    assert 0 < row["test_accuracy"] < 1 and 0 < row["all_accuracy"] < 1 and 0 < row["val_accuracy"] < 1
    assert row["release"]["saw_test"] is True
    assert row["release"]["test_accuracy"] >= 0
    assert row["parameters"] == 111285  # the paper's Table 5
    assert row["peak_mib"] >= row["grown_mib"] >= 0
    assert row["made_with"]["torch"].startswith("2.")


def test_the_same_spec_gives_the_same_numbers() -> None:
    one, other = execute(cora("gat")), execute(cora("gat"))
    for name in ("val_loss", "test_accuracy", "all_accuracy", "best_epoch", "release"):
        assert one[name] == other[name]


def test_joined_features_reach_the_model() -> None:
    plain, joined = execute(cora("gat")), execute(cora("gat-klap"))
    assert joined["parameters"] == plain["parameters"] + 64 * 64  # 64 eigenvectors into 64 hidden units


def test_a_run_that_diverges_gives_a_row_that_says_so() -> None:
    spec = cora("gat")
    row = execute(replace(spec, train_settings={**spec.train_settings, "lr": 1e30}))
    assert "failed" in row and "lr" in row["failed"]
    assert "test_accuracy" not in row


def test_variants_change_the_graph_and_leave_the_kept_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_edges(data: Data, options: object) -> Data:
        changed = data.clone()
        changed.edge_index = data.edge_index[:, : options["keep"]]  # type: ignore[index]
        return changed

    monkeypatch.setitem(variants.VARIANTS, "few-edges", without_edges)
    before = execute(cora("gat"))
    few = execute(replace(cora("gat"), variant={"few-edges": {"keep": 2}}))
    assert few["val_loss"] != before["val_loss"] and few["key"] != before["key"]
    assert execute(cora("gat"))["val_loss"] == before["val_loss"]


def test_an_unknown_variant_is_named() -> None:
    with pytest.raises(InputError, match="variant 'fog' is not known"):
        execute(replace(cora("gat"), variant={"fog": {}}))
