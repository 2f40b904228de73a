import pytest
import torch

from conjoint import CAT, Constant, MatrixFactorization
from conjoint.errors import InputError
from conjoint.graph.adjacency import adjacency
from conjoint.graph.field import receptive_field
from conjoint.nn.random_propagation import propagate, propagation_weights

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 3], [1, 0, 2, 1, 3, 2, 3, 0]])
ADJ = adjacency(EDGES, 5)  # node 4 has nobody but itself


def _dense(score: torch.Tensor) -> torch.Tensor:
    weight = torch.zeros(5, 5)
    weight[ADJ.row, ADJ.col] = score.exp()
    degree = weight.sum(1)
    return weight / (degree.unsqueeze(1) * degree.unsqueeze(0)).sqrt()


def test_without_scores_it_is_the_normalised_adjacency() -> None:
    found = propagation_weights(ADJ, None)
    torch.testing.assert_close(found.squeeze(1), _dense(torch.zeros(ADJ.num_entries))[ADJ.row, ADJ.col])
    torch.testing.assert_close(found, propagation_weights(ADJ, torch.full((ADJ.num_entries,), 3.0)))


def test_scores_weigh_the_edges() -> None:
    generator = torch.Generator().manual_seed(0)
    score = torch.randn(ADJ.num_entries, generator=generator)
    weights = propagation_weights(ADJ, score)
    matrix = _dense(score)
    torch.testing.assert_close(weights.squeeze(1), matrix[ADJ.row, ADJ.col])
    logits = torch.randn(5, 3, generator=generator)
    expected = logits
    for _ in range(4):
        expected = 0.8 * matrix @ expected + 0.2 * logits
    torch.testing.assert_close(propagate(ADJ, weights, logits, 4, 0.2), expected)


def test_large_scores_and_dropped_edges_stay_finite() -> None:
    score = torch.linspace(-1e4, 1e4, ADJ.num_entries)
    assert propagation_weights(ADJ, score).isfinite().all()
    thinned = ADJ.without(ADJ.row != ADJ.col)
    weights = propagation_weights(thinned, None).squeeze(1)
    torch.testing.assert_close(weights, (ADJ.row == ADJ.col).float())


def test_a_network_spreads_what_it_predicts() -> None:
    torch.manual_seed(0)
    x = torch.rand(5, 4)
    model = CAT(4, 3, 2, heads=2, intervention=Constant(), propagate=3, teleport=0.2).eval()
    plain = CAT(4, 3, 2, heads=2, intervention=Constant()).eval()
    plain.load_state_dict(model.state_dict())
    expected = propagate(ADJ, propagation_weights(ADJ, None), plain(x, EDGES), 3, 0.2)
    torch.testing.assert_close(model(x, EDGES), expected)
    assert model.reach is None  # three hops further than a receptive field of two
    with pytest.raises(InputError, match="whole graph"):
        model(x, receptive_field(ADJ, torch.tensor([0]), 2))


def test_passes_side_by_side_are_passes_one_by_one() -> None:
    x = torch.rand(5, 4)
    model = CAT(4, 3, 2, heads=2, intervention=MatrixFactorization(5, 2), propagate=2)
    torch.manual_seed(1)
    together, penalty = model.predict_often(x, ADJ, passes=3)
    torch.manual_seed(1)
    one_by_one = torch.stack([model(x, ADJ) for _ in range(3)])
    torch.testing.assert_close(together, one_by_one)
    assert penalty.requires_grad


def test_wrong_values_are_named() -> None:
    with pytest.raises(InputError, match="propagate: -1"):
        CAT(4, 3, 2, propagate=-1)
    with pytest.raises(InputError, match="teleport"):
        CAT(4, 3, 2, teleport=1.0)
