"""The network of the authors' code against the dense oracle: what it does otherwise than the paper says."""

import math

import numpy as np
import pytest
import torch

import oracle
from conjoint.nn.conv import CATConv
from conjoint.nn.interventions import MatrixFactorization
from conjoint.nn.release import GAIN, ReleaseCAT
from conjoint.nn.zoo import build
from graphs import random_features, random_graph

EDGES, N = random_graph(25, 60)
WIDTH, HIDDEN, CLASSES, HEADS = 9, 4, 3, 2


def network() -> ReleaseCAT:
    torch.manual_seed(3)
    made = ReleaseCAT(
        WIDTH, HIDDEN, CLASSES, heads=HEADS, intervention=MatrixFactorization(N, CLASSES), dropout=0.0
    )
    return made.double()


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def dense_layer(conv: CATConv, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    mask = oracle.neighbourhood(EDGES.numpy(), N)
    parts = (conv.lin, conv.att_src, conv.att_dst, conv.mix_logit, conv.eps_logit)
    lin, att_src, att_dst, mix, eps = parts
    assert lin is not None and att_src is not None and att_dst is not None
    assert mix is not None and eps is not None
    heads, out = [], conv.out_channels
    for k in range(conv.heads):
        h = x @ lin.weight.detach().numpy()[k * out : (k + 1) * out].T
        ends = att_src[0, k].detach().numpy(), att_dst[0, k].detach().numpy()
        f = oracle.feature_attention(h, *ends, mask, 0.2)
        s = oracle.structural_attention(v @ v.T, mask)
        alpha = oracle.implicit(f, s, *oracle.mixing(*mix[k].tolist()))
        heads.append(oracle.aggregate(alpha, h, 1 / (1 + math.exp(-eps[k].item())), mask))
    return np.concatenate(heads, axis=1)


def test_the_logits_pass_through_elu_too() -> None:
    model, x = network(), random_features(N, WIDTH)
    assert isinstance(model.intervention, MatrixFactorization)
    v = model.intervention.factors.detach().numpy()
    first, last = (conv for conv in model.convs if isinstance(conv, CATConv))
    wanted = elu(dense_layer(last, elu(dense_layer(first, x.numpy(), v)), v))
    assert wanted.min() < -0.01  # else it would say nothing
    model.eval()
    np.testing.assert_allclose(model(x, EDGES).detach().numpy(), wanted, atol=1e-10)
    (often,), _ = model.predict_often(x, model.prepare(EDGES, N))
    np.testing.assert_allclose(often.detach().numpy(), wanted, atol=1e-10)


def test_v_gets_a_quarter_of_the_losss_gradient() -> None:
    model = network()
    assert isinstance(model.intervention, MatrixFactorization)
    model.penalty(EDGES).backward()
    v, a = model.intervention.factors, oracle.simple_adjacency(EDGES.numpy(), N)
    inner = v.detach().numpy()
    assert v.grad is not None
    np.testing.assert_allclose(v.grad.numpy(), inner @ inner.T @ inner - a @ inner, atol=1e-10)


def test_each_head_begins_as_a_layer_by_itself() -> None:
    torch.manual_seed(0)
    model = ReleaseCAT(300, 40, 200, heads=50, out_heads=2, intervention=MatrixFactorization(500, 60))
    assert isinstance(model.intervention, MatrixFactorization)
    conv = model.convs[0]
    assert isinstance(conv, CATConv) and conv.lin is not None and conv.att_src is not None
    assert conv.mix_logit is not None and conv.eps_logit is not None

    def spread(values: torch.Tensor) -> float:
        return values.detach().std().item()

    assert spread(conv.lin.weight) == pytest.approx(GAIN * math.sqrt(2 / (300 + 40)), rel=0.02)
    assert spread(conv.att_src) == pytest.approx(GAIN * math.sqrt(2 / (40 + 40)), rel=0.06)
    assert spread(model.intervention.factors) == pytest.approx(GAIN * math.sqrt(2 / (500 + 60)), rel=0.03)
    assert spread(conv.eps_logit) == pytest.approx(GAIN, rel=0.35)
    bound = GAIN * math.sqrt(6 / (1 + 2))  # uniform: as far as this and no further
    assert 0.8 * bound < conv.mix_logit.abs().max().item() <= bound


def test_its_name_builds_it_with_the_self_term_dropped() -> None:
    model = build("cat-release-mf", features=WIDTH, classes=CLASSES, num_nodes=N, seed=0)
    assert isinstance(model, ReleaseCAT) and model.reach is None
    assert all(isinstance(conv, CATConv) and conv.self_dropout == 0.9 for conv in model.convs)
    plain = build("cat-i-mf", features=WIDTH, classes=CLASSES, num_nodes=N, seed=0)
    shapes = {name: value.shape for name, value in plain.state_dict().items()}
    assert {name: value.shape for name, value in model.state_dict().items()} == shapes
