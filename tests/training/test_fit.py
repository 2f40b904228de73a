"""What one call of `fit` promises."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from conjoint.errors import Diverged, InputError
from conjoint.training import Batch, TrainConfig, evaluate, fit
from conjoint.training.loss import objective
from conjoint.training.predictions import result_row
from conjoint.training.seeding import own_randomness, seed_torch
from conjoint.training.steps import part_of, whole_graph
from small_training import WholeModel, build_seeded, same_weights, small_data, small_model, small_split

QUICK = TrainConfig(epochs=30, patience=0)


def test_training_learns_more_than_chance_and_the_loss_falls() -> None:
    fitted = fit(small_model(), small_data(), small_split(), replace(QUICK, epochs=120))
    assert fitted.history[-1]["loss"] < 0.5 * fitted.history[0]["loss"]
    assert evaluate(fitted, small_data(), small_split())["test_accuracy"] > 0.6


def test_same_seed_same_bits_and_another_seed_other_bits() -> None:
    one, two, other = (
        fit(small_model(), small_data(), small_split(), replace(QUICK, seed=seed)) for seed in (4, 4, 5)
    )
    assert one.history == two.history and same_weights(one.model, two.model)
    assert one.history != other.history


def test_the_callers_random_state_is_left_alone() -> None:
    torch.manual_seed(11)
    before = torch.get_rng_state()
    fit(small_model(), small_data(), small_split(), QUICK)
    assert torch.equal(before, torch.get_rng_state())


def test_the_callers_random_state_decides_nothing() -> None:
    histories = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        histories.append(fit(small_model(), small_data(), small_split(), QUICK).history)
    assert histories[0] == histories[1]


@pytest.mark.parametrize("field", ["whole", "receptive"])
def test_fitted_holds_the_weights_of_the_chosen_epoch(field: str) -> None:
    config = replace(QUICK, epochs=60, lr=0.2, field=field)  # so fast that the last epoch is not the best
    data, split = small_data(), small_split()
    fitted = fit(small_model(), data, split, config)
    losses = [row["val_loss"] for row in fitted.history]
    assert fitted.best_epoch == losses.index(min(losses)) + 1 < 60
    val = part_of(whole_graph(fitted.model, data, config), split.val, fitted.model, field)
    with torch.no_grad():
        again = torch.nn.functional.cross_entropy(val.logits(fitted.model), val.labels)
    assert float(again) == fitted.metrics["val_loss"]


def test_the_receptive_field_gives_the_loss_and_gradient_of_the_whole_graph() -> None:
    data, split, config = small_data(), small_split(), TrainConfig()
    gradients = []
    for field in ("whole", "receptive"):
        model = small_model(dropout=0.0).double().eval()
        data = data.changed(given_x=data.x.double())
        inputs = whole_graph(model, data, config)
        batch = part_of(inputs, split.train, model, field)
        logits, penalty = batch.logits(model).unsqueeze(0), model.penalty(inputs.graph)
        loss = objective(logits, batch.labels, None, penalty, config, epoch=1).total
        loss.backward()
        gradients.append([loss.detach()] + [p.grad for p in model.parameters() if p.grad is not None])
    assert len(gradients[0]) > 4
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_a_model_without_reach_trains_on_the_whole_graph_and_refuses_a_field() -> None:
    model = build_seeded(lambda: WholeModel(12, 5, 3, 60), 0)
    assert len(fit(model, small_data(), small_split(), QUICK).history) == 30
    with pytest.raises(InputError, match=r"field='receptive'.*whole graph"):
        fit(model, small_data(), small_split(), replace(QUICK, field="receptive"))


def test_evaluate_every_looks_less_often_but_always_at_the_last_epoch() -> None:
    fitted = fit(small_model(), small_data(), small_split(), replace(QUICK, epochs=8, evaluate_every=3))
    assert [row["epoch"] for row in fitted.history if "val_loss" in row] == [3, 6, 8]


def test_patience_stops_that_many_epochs_after_the_best() -> None:
    fitted = fit(small_model(), small_data(), small_split(), replace(QUICK, epochs=500, lr=0.2, patience=7))
    assert fitted.stopped == "patience"
    assert len(fitted.history) == fitted.best_epoch + 7


def test_structural_parameters_have_their_own_weight_decay() -> None:
    free, held = (
        fit(
            small_model(),
            small_data(),
            small_split(),
            replace(QUICK, penalty_weight=0, structural_weight_decay=d),
        )
        for d in (0.0, 10.0)
    )
    rows = [fitted.model.state_dict()["rows"] for fitted in (free, held)]
    assert torch.equal(rows[0], small_model().rows)  # no gradient reaches them, no decay moves them
    assert rows[1].abs().sum() < rows[0].abs().sum()
    assert torch.equal(free.model.state_dict()["first.weight"], held.model.state_dict()["first.weight"])


def test_clipping_bounds_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    norms: list[float] = []
    step = torch.optim.Adam.step

    def spy(self: torch.optim.Adam, *rest: Any) -> Any:
        grads = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        norms.append(float(torch.cat([g.flatten() for g in grads]).norm()))
        return step(self, *rest)

    monkeypatch.setattr(torch.optim.Adam, "step", spy)
    for clip in (None, 0.01):
        fit(small_model(), small_data(), small_split(), replace(QUICK, epochs=1, clip=clip))
    assert norms[0] > 0.02 and norms[1] == pytest.approx(0.01, rel=1e-3)


def test_divergence_names_the_epoch_and_the_remedy() -> None:
    class Explosive(WholeModel):
        def penalty(self, graph: Any) -> Tensor:
            return super().penalty(graph).exp().exp().exp()

    model = build_seeded(lambda: Explosive(12, 5, 3, 60), 0)
    with pytest.raises(Diverged, match=r"training loss is inf at epoch \d+ with lr=0.5; try lr=0.05"):
        fit(model, small_data(), small_split(), replace(QUICK, lr=0.5))


def test_batches_are_asked_for_each_epoch() -> None:
    data, split = small_data(), small_split()
    model = small_model()
    inputs = whole_graph(model, data, QUICK)
    asked: list[int] = []

    def halves(epoch: int) -> list[Batch]:
        asked.append(epoch)
        return [part_of(inputs, part, model, "receptive") for part in split.train.chunk(2)]

    fitted = fit(model, data, split, replace(QUICK, epochs=40), batches=halves)
    assert asked == list(range(1, 41))
    assert fitted.history[-1]["prediction_loss"] < fitted.history[0]["prediction_loss"]


def test_progress_sees_each_row_once() -> None:
    rows: list[dict[str, Any]] = []
    fitted = fit(small_model(), small_data(), small_split(), QUICK, progress=rows.append)
    assert rows == fitted.history


def test_unlabelled_or_unknown_classes_are_refused() -> None:
    data, split = small_data(), small_split()
    data.y[split.train[0]] = 5
    with pytest.raises(InputError, match="3 classes but a training node has class 5"):
        fit(small_model(), data, split, QUICK)
    data.y[split.train[0]] = -1
    with pytest.raises(InputError, match="without a label"):
        fit(small_model(), data, split, QUICK)


def test_the_release_rule_marks_every_number() -> None:
    config = replace(QUICK, rule="release", see_test=True)
    fitted = fit(small_model(), small_data(), small_split(), config)
    assert all(row["saw_test"] and row["rule"] == "release" for row in fitted.history)
    result = evaluate(fitted, small_data(), small_split())
    assert result["rule"] == "release" and result["saw_test"] is True
    honest = evaluate(fit(small_model(), small_data(), small_split(), QUICK), small_data(), small_split())
    assert honest["saw_test"] is False and result["test_accuracy"] >= honest["test_accuracy"]


def test_honest_rules_never_open_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    split = small_split()

    def closed(self: object) -> Tensor:
        raise AssertionError("the test nodes were asked for")

    monkeypatch.setattr(type(split), "reveal_test", closed)
    for rule in ("val-loss", "val-accuracy", "gat"):
        fit(small_model(), small_data(), split, replace(QUICK, rule=rule))


def test_all_nodes_are_those_with_a_label_the_first_class_included() -> None:
    data, split = small_data(), small_split()
    fitted = fit(small_model(), data, split, TrainConfig(epochs=1, seed=0))
    y = data.y.cpu().numpy()
    right = np.where(y == 0, 0, (y + 1) % (y.max() + 1))  # right for the first class alone
    row = result_row(fitted, right, data, split)
    assert row["all_accuracy"] == pytest.approx((y == 0).sum() / (y >= 0).sum())


@pytest.mark.parametrize(("every", "last"), [(1, 7), (4, 8)])
def test_a_callback_that_returns_true_ends_training(every: int, last: int) -> None:
    """After the next epoch that is evaluated, with the best weights so far."""
    config = replace(QUICK, evaluate_every=every)
    fitted = fit(small_model(), small_data(), small_split(), config, progress=lambda row: row["epoch"] == 7)
    whole = fit(small_model(), small_data(), small_split(), config, progress=lambda row: row["epoch"])
    assert fitted.stopped == "callback" and len(fitted.history) == last
    assert fitted.history == whole.history[:last] and whole.stopped == "epochs"
    losses = {row["epoch"]: row["val_loss"] for row in fitted.history if "val_loss" in row}
    assert fitted.best_epoch == min(losses, key=lambda epoch: losses[epoch])


def test_each_epoch_draws_from_the_seed_and_its_own_number() -> None:
    drawn: list[float] = []

    class Drawing(WholeModel):
        def forward(self, x: Tensor, graph: Any) -> Tensor:
            if self.training:
                drawn.append(float(torch.rand(1)))
            return super().forward(x, graph)

    model = build_seeded(lambda: Drawing(12, 5, 3, 60), 0)
    fit(model, small_data(), small_split(), replace(QUICK, epochs=3, seed=7))
    wanted = []
    with own_randomness():
        for epoch in (1, 2, 3):
            seed_torch(7, epoch)
            wanted.append(float(torch.rand(1)))
    assert drawn == wanted
