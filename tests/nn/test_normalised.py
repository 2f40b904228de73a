"""MF and SC on the normalised adjacency against their dense definitions."""

import copy

import numpy as np
import pytest
import torch

import oracle
from conjoint import InputError, adjacency
from conjoint.graph.field import receptive_field
from conjoint.nn.interventions import NormalisedExpression, NormalisedFactorization
from graphs import ALL, random_graph

KINDS = {"nmf": NormalisedFactorization, "nsc": NormalisedExpression}
LOSS = {"nmf": (oracle.mf_loss, oracle.mf_gradient), "nsc": (oracle.sc_loss, oracle.sc_gradient)}


def dense(edges: torch.Tensor, n: int) -> np.ndarray:
    a = oracle.simple_adjacency(edges.numpy(), n) + np.eye(n)
    return a / np.sqrt(np.outer(a.sum(axis=1), a.sum(axis=0)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*ALL, "random"])
def test_penalty_and_gradient_equal_the_frobenius_definition(kind: str, name: str) -> None:
    edges, n = ALL[name] if name in ALL else random_graph(40, 150)
    intervention = KINDS[kind](n, 3).double()
    penalty = intervention.penalty(adjacency(edges, n))
    penalty.backward()
    s, v = dense(edges, n), intervention.factors.detach().numpy()
    loss, gradient = LOSS[kind]
    assert penalty.item() == pytest.approx(loss(s, v), rel=1e-10)
    assert intervention.factors.grad is not None
    np.testing.assert_allclose(intervention.factors.grad.numpy(), gradient(s, v), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_score_is_a_tempered_cosine_also_of_a_part(kind: str) -> None:
    edges, n = random_graph(50, 100)
    whole = adjacency(edges, n)
    intervention = KINDS[kind](n, 4, temperature=3.0).double()
    c = 3.0 * oracle.cosine(intervention.factors.detach().numpy())
    found = intervention(whole).detach().numpy()
    np.testing.assert_allclose(found, c[whole.row, whole.col], atol=1e-6)
    field = receptive_field(whole, torch.tensor([7, 3]), 2)
    part, ids = field.layers[0], field.n_id
    found = intervention(part, None, ids).detach().numpy()
    np.testing.assert_allclose(found, c[ids[part.row], ids[part.col]], atol=1e-6)


def test_its_minimum_is_the_leading_eigenspace() -> None:
    edges, n = random_graph(30, 90)
    intervention = NormalisedFactorization(n, 3).double()
    adj = adjacency(edges, n)
    optimiser = torch.optim.LBFGS(intervention.parameters(), max_iter=300, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = intervention.penalty(adj)
        loss.backward()
        return loss

    optimiser.step(closure)
    values, vectors = np.linalg.eigh(dense(edges, n))
    best = (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T
    v = intervention.factors.detach().numpy()
    np.testing.assert_allclose(v @ v.T, best, atol=1e-4)


def test_what_is_kept_and_what_is_refused() -> None:
    edges, n = random_graph(20, 40)
    intervention = NormalisedFactorization(n, 2, learn_temperature=False)
    adj = adjacency(edges, n)
    intervention.penalty(adj)
    assert "_memo" in vars(adj) and "_memo" not in vars(copy.deepcopy(adj))
    assert [name for name, _ in intervention.named_parameters()] == ["factors"]
    with pytest.raises(InputError, match=r"temperature: -1\.0"):
        NormalisedExpression(n, 2, temperature=-1.0)
