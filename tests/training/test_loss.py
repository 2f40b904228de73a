"""The consistency term against its definition on small dense arrays."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from conjoint import CAT, InputError, MatrixFactorization, adjacency
from conjoint.graph.field import receptive_field
from conjoint.graph.sparse import to_csr
from conjoint.training import TrainConfig, config_from, config_to, fit
from conjoint.training.config import Consistency, read_toml, write_toml
from conjoint.training.loss import disagreement, drop_edges, drop_nodes, objective, perturbation, sharpen
from conjoint.training.steps import whole_graph, with_unlabelled
from graphs import random_features, random_graph
from small_training import same_weights, small_data, small_split

LOGITS = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.double)


def small_cat() -> CAT:
    data = small_data()
    torch.manual_seed(0)
    nodes, classes = int(data.num_nodes or 0), int(data.y.max()) + 1
    return CAT(data.num_features, 4, classes, heads=2, intervention=MatrixFactorization(nodes, 2))


def softmax(logits: np.ndarray) -> np.ndarray:
    weight = np.exp(logits)
    return weight / weight.sum(axis=-1, keepdims=True)


def dense(logits: np.ndarray, settings: Consistency) -> float:
    p = softmax(logits)
    mean = p.mean(axis=0)
    target = mean ** (1 / settings.temperature)
    target /= target.sum(axis=1, keepdims=True)
    sure = target.max(axis=1) >= settings.threshold
    total = 0.0
    for one in p:
        for node in np.nonzero(sure)[0]:
            if settings.distance == "squared":
                total += ((one[node] - target[node]) ** 2).sum()
            else:
                total += (target[node] * np.log(target[node] / one[node])).sum()
    return total / len(p) / max(1, sure.sum())


@pytest.mark.parametrize("distance", ["squared", "kl"])
@pytest.mark.parametrize("temperature", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("threshold", [0.0, 0.6])
def test_disagreement_equals_its_definition(distance: str, temperature: float, threshold: float) -> None:
    settings = Consistency(distance=distance, temperature=temperature, threshold=threshold)
    assert disagreement(LOGITS, settings).item() == pytest.approx(dense(LOGITS.numpy(), settings), rel=1e-10)


def test_passes_that_agree_on_a_sure_answer_cost_nothing() -> None:
    same = torch.tensor([[40.0, 0.0], [0.0, 40.0]]).expand(3, 2, 2)
    assert disagreement(same, Consistency()).item() == pytest.approx(0.0, abs=1e-12)


def test_the_target_takes_no_gradient() -> None:
    logits = LOGITS.clone().requires_grad_()
    settings = Consistency(temperature=0.5)
    (gradient,) = torch.autograd.grad(disagreement(logits, settings), logits)
    target = sharpen(LOGITS.softmax(-1).mean(0), 0.5)

    def with_fixed_target(logits: torch.Tensor) -> torch.Tensor:
        return (logits.softmax(-1) - target).square().sum(-1).mean()

    expected = torch.autograd.functional.jacobian(with_fixed_target, LOGITS)
    torch.testing.assert_close(gradient, expected)


def test_sharpening_is_identity_at_one_and_one_hot_towards_zero() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    torch.testing.assert_close(sharpen(p, 1.0), p)
    torch.testing.assert_close(sharpen(p, 0.01), torch.eye(3)[[0, 2]])


def test_nodes_below_the_threshold_do_not_count() -> None:
    unsure = torch.zeros(2, 3, 4)
    assert disagreement(unsure, Consistency(threshold=0.9)).item() == 0.0


def test_the_weight_climbs_over_the_ramp() -> None:
    settings = Consistency(weight=2.0, ramp=10)
    assert [settings.weight_at(epoch) for epoch in (0, 5, 10, 50)] == [0.0, 1.0, 2.0, 2.0]
    assert Consistency(weight=2.0).weight_at(0) == 2.0


@pytest.mark.parametrize("sparse", [False, True])
def test_hidden_nodes_lose_their_row_and_the_mean_stays(sparse: bool) -> None:
    x = torch.rand(400, 3) + 0.5
    torch.manual_seed(0)
    dropped = drop_nodes(to_csr(x.numpy()) if sparse else x, 0.25).to_dense()
    hidden = (dropped == 0).all(dim=1)
    assert 0.15 < float(hidden.float().mean()) < 0.35
    torch.testing.assert_close(dropped[~hidden], x[~hidden] / 0.75)


@pytest.mark.parametrize("strategy", ["implicit", "explicit", "structural"])
@pytest.mark.parametrize("part", [False, True])
def test_dropped_edges_are_as_good_as_absent(strategy: str, part: bool) -> None:
    edges, n = random_graph(30, 60)
    x = random_features(n, 6)
    torch.manual_seed(0)
    model = CAT(6, 4, 3, heads=2, strategy=strategy, intervention=MatrixFactorization(n, 2), self_term=False)  # type: ignore[arg-type]
    model.double().eval()
    whole = model.prepare(edges, n)
    torch.manual_seed(5)
    thinned = drop_edges(whole, 0.4)
    heard = torch.isfinite(thinned.log_weight)
    assert 0.4 < float(heard[whole.row != whole.col].float().mean()) < 0.8
    assert bool(heard[whole.row == whole.col].all())
    rest = torch.stack([whole.col, whole.row])[:, heard & (whole.row != whole.col)]
    expected = model(x, adjacency(rest, n))
    if part:
        field = receptive_field(thinned, torch.tensor([3, 8]), 2)
        torch.testing.assert_close(model(x[field.n_id], field), expected[[3, 8]])
        fresh = receptive_field(whole, torch.tensor([3, 8]), 2)
        assert model(x[fresh.n_id], drop_edges(fresh, 0.5)).shape == (2, 3)
    else:
        out = model(x, thinned)
        torch.testing.assert_close(out, expected)
        out.sum().backward()
        assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None)


def test_models_without_attention_cannot_leave_edges_out() -> None:
    with pytest.raises(InputError, match="drop_edge"):
        drop_edges(torch.zeros(2, 0, dtype=torch.long), 0.5)


# Temperature 1: sharpening would also reward sure answers, which stand further apart than vague ones.
TERMS = {
    "all nodes": Consistency(passes=2, weight=5.0, temperature=1.0),
    "a sample": Consistency(passes=3, weight=5.0, temperature=1.0, sample=10, ramp=5),
    "perturbed": Consistency(
        passes=2, weight=3.0, drop_node=0.3, drop_edge=0.3, distance="kl", threshold=0.4
    ),
}


@pytest.mark.parametrize("name", TERMS)
def test_training_with_it_repeats_bit_by_bit_and_agrees_more(name: str) -> None:
    config = TrainConfig(epochs=60, patience=0, consistency=TERMS[name])
    one, two = (fit(small_cat(), small_data(), small_split(), config) for _ in range(2))
    assert one.history == two.history and same_weights(one.model, two.model)
    only_watched = replace(config, consistency=replace(TERMS[name], weight=0.0))
    loose = fit(small_cat(), small_data(), small_split(), only_watched)
    assert one.history[-1]["disagreement"] < loose.history[-1]["disagreement"]
    plain = fit(small_cat(), small_data(), small_split(), TrainConfig(epochs=60, patience=0))
    assert "disagreement" not in plain.history[0] and not same_weights(plain.model, one.model)


def test_a_sampled_step_holds_the_labelled_nodes_and_as_many_others() -> None:
    config = TrainConfig(consistency=Consistency(sample=7), field="receptive")
    model, split = small_cat(), small_split()
    inputs = whole_graph(model, small_data(), config)
    batch = with_unlabelled(inputs, split.train, model, config)
    assert batch.graph.layers[-1].num_dst == split.train.numel() + 7
    assert batch.pick is not None
    assert torch.equal(batch.graph.n_id[batch.pick], split.train)
    assert torch.equal(batch.labels, inputs.labels[split.train])


def test_settings_survive_toml() -> None:
    config = TrainConfig(consistency=Consistency(passes=3, sample=512))
    text = write_toml(config_to(config))
    assert config_from(read_toml(text, "here"), "here") == config
    with pytest.raises(InputError, match=r"consistency.pases is unknown"):
        config_from({"consistency": {"pases": 3}}, "here")


@pytest.mark.parametrize(
    "bad",
    [
        {"passes": 0},
        {"weight": -1.0},
        {"weight": float("nan")},
        {"temperature": 0.0},
        {"temperature": 1.5},
        {"distance": "cosine"},
        {"ramp": -1},
        {"threshold": 1.0},
        {"sample": -5},
        {"drop_node": 1.0},
        {"drop_edge": -0.1},
    ],
)
def test_bad_settings_are_named(bad: dict[str, object]) -> None:
    (name,) = bad
    with pytest.raises(InputError, match=f"consistency.{name}="):
        Consistency(**bad)  # type: ignore[arg-type]


def test_without_anything_to_drop_nothing_is_perturbed() -> None:
    assert perturbation(None) is None and perturbation(Consistency()) is None
    for settings in (Consistency(drop_node=0.5), Consistency(drop_edge=0.5)):
        assert perturbation(settings) is not None


def test_the_loss_is_the_sum_of_its_terms_by_their_weights() -> None:
    config = TrainConfig(penalty_weight=3.0, consistency=Consistency(weight=4.0, ramp=10))
    labels, penalty = torch.tensor([0, 1, 2, 3, 0]), torch.tensor(0.5, dtype=torch.double)
    found = objective(LOGITS, labels, None, penalty, config, epoch=5)
    expected = np.mean([-np.log(softmax(one)[np.arange(5), labels]) for one in LOGITS.numpy()])
    apart = dense(LOGITS.numpy(), Consistency())
    assert float(found.prediction) == pytest.approx(expected) and float(found.disagreement) == pytest.approx(
        apart
    )
    assert float(found.total) == pytest.approx(expected + 3.0 * 0.5 + 2.0 * apart)
