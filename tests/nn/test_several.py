"""Several interventions at once: dense definitions, one of them is as before, weights can be read."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

import oracle
from conjoint import CAT, CATConv, Constant, FeatureSimilarity, InputError, MatrixFactorization, adjacency
from conjoint.graph.field import receptive_field
from conjoint.nn.interventions import Several, SmoothedSimilarity, SpectralSimilarity
from conjoint.nn.names import Strategy
from graphs import random_features, random_graph

EDGES, N = random_graph(30, 80)
X = random_features(N, 6)


def pair() -> list[MatrixFactorization | FeatureSimilarity | Tensor]:
    return [MatrixFactorization(N, 3).double(), FeatureSimilarity()]


@pytest.mark.parametrize("per_head", [True, False])
@pytest.mark.parametrize("strategy", ["implicit", "explicit", "structural"])
def test_attention_is_that_of_the_dense_definition(strategy: Strategy, per_head: bool) -> None:
    several = Several(pair())
    conv = CATConv(6, 5, heads=2, strategy=strategy, intervention=several, per_head=per_head).double()
    assert conv.views is not None
    torch.nn.init.normal_(conv.views.logit)
    if conv.mix_logit is not None:
        torch.nn.init.normal_(conv.mix_logit)
    _, attention = conv(X, EDGES, return_attention_weights=True)
    mask = oracle.neighbourhood(EDGES.numpy(), N)
    adj = adjacency(EDGES, N)
    scores = np.zeros((2, N, N))
    scores[:, adj.row, adj.col] = several(adj, X).detach().numpy().T
    assert conv.lin is not None
    h = conv.lin(X).view(N, 2, 5).detach().numpy()
    weight = conv.views.weight.expand(2, 2).detach().numpy()
    for head in range(2):
        parts = [oracle.structural_attention(c, mask) for c in scores]
        mixed = weight[head, 0] * parts[0] + weight[head, 1] * parts[1]
        if strategy == "structural":
            expected = mixed
        else:
            assert conv.att_src is not None and conv.att_dst is not None
            a_src, a_dst = (att[0, head].detach().numpy() for att in (conv.att_src, conv.att_dst))
            f = oracle.feature_attention(h[:, head], a_src, a_dst, mask, 0.2)
            if strategy == "implicit":
                assert conv.mix is not None
                expected = oracle.implicit(f, mixed, *conv.mix[head].tolist())
            else:
                summed = weight[head, 0] * scores[0] + weight[head, 1] * scores[1]
                expected = oracle.explicit(f, oracle.structural_attention(summed, mask))
        src, dst = attention.edge_index
        np.testing.assert_allclose(attention.conjoint[:, head].detach(), expected[dst, src], atol=1e-10)


@pytest.mark.parametrize("strategy", ["implicit", "explicit", "structural"])
def test_a_list_of_one_is_that_one(strategy: Strategy) -> None:
    one = CAT(6, 4, 3, heads=2, strategy=strategy, intervention=FeatureSimilarity())
    listed = CAT(6, 4, 3, heads=2, strategy=strategy, interventions=[FeatureSimilarity()])
    assert one.state_dict().keys() == listed.state_dict().keys()
    listed.load_state_dict(one.state_dict())
    x = X.float()
    assert torch.equal(one.eval()(x, EDGES), listed.eval()(x, EDGES))


@pytest.mark.parametrize("strategy", ["implicit", "explicit"])
def test_a_second_view_with_no_weight_changes_nothing(strategy: Strategy) -> None:
    alone = CAT(6, 4, 3, heads=2, strategy=strategy, intervention=FeatureSimilarity()).eval()
    both = CAT(
        6, 4, 3, heads=2, strategy=strategy, interventions=[FeatureSimilarity(), torch.randn(EDGES.size(1))]
    )
    both.load_state_dict(alone.state_dict(), strict=False)
    for conv in both.convs:
        assert isinstance(conv, CATConv) and conv.views is not None
        with torch.no_grad():
            conv.views.logit[:, 1] = -60.0
            conv.views.logit[:, 0] = 0.0
    x = X.float()
    torch.testing.assert_close(both.eval()(x, EDGES), alone(x, EDGES))


@pytest.mark.parametrize("strategy", ["implicit", "explicit", "structural"])
def test_everything_gets_a_gradient_and_a_field_equals_the_whole(strategy: Strategy) -> None:
    members = [MatrixFactorization(N, 3), SmoothedSimilarity(rank=4), SpectralSimilarity(rank=4)]
    model = CAT(6, 4, 3, heads=2, strategy=strategy, interventions=members, dropout=0.0)
    x = X.float()
    whole = model.prepare(EDGES, N)
    model.observe(x, whole)
    (logits,), penalty = model.predict_often(x, whole)
    (logits.square().sum() + penalty).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and bool(parameter.grad.abs().sum() > 0), name
    nodes = torch.tensor([3, 8])
    field = receptive_field(whole, nodes, 2)
    torch.testing.assert_close(model(x[field.n_id], field), logits[nodes])


def test_weighted_edges_count_in_every_column() -> None:
    adj = adjacency(EDGES, N).with_weights(torch.rand(EDGES.size(1)) + 0.5)
    for strategy in ("implicit", "explicit", "structural"):
        conv = CATConv(
            6, 5, heads=2, strategy=strategy, intervention=Several([FeatureSimilarity(), Constant()])
        )
        _, attention = conv.double()(X, adj, return_attention_weights=True)
        torch.testing.assert_close(attention.sums(), torch.ones(N, 2, dtype=torch.float64))


def test_weights_start_even_and_can_be_read() -> None:
    implicit = CAT(6, 4, 3, heads=2, interventions=pair()).intervention_weights()
    assert [list(layer) for layer in implicit] == [
        ["features", "MatrixFactorization", "FeatureSimilarity"]
    ] * 2
    assert implicit[0]["features"].tolist() == [0.5, 0.5]
    assert implicit[0]["FeatureSimilarity"].tolist() == [0.25, 0.25]
    explicit = CAT(6, 4, 3, heads=2, strategy="explicit", interventions=pair()).intervention_weights()
    assert explicit[0]["MatrixFactorization"].tolist() == [1.0, 1.0] and "features" not in explicit[0]
    assert CAT(6, 4, 3).intervention_weights() == []


def test_two_of_a_kind_are_told_apart() -> None:
    assert Several([Constant(), FeatureSimilarity(), Constant(1.0)]).names == [
        "Constant 1",
        "FeatureSimilarity",
        "Constant 2",
    ]


def test_the_penalty_is_the_sum() -> None:
    one, other = MatrixFactorization(N, 3), MatrixFactorization(N, 2)
    adj = adjacency(EDGES, N)
    both = Several([one, other])
    expected = (one.penalty(adj) + other.penalty(adj)).detach()
    torch.testing.assert_close(both.penalty(adj).detach(), expected)
    torch.testing.assert_close(both.penalty(adj, None, both(adj)).detach(), expected)


def test_members_that_need_the_whole_graph_say_so_for_all() -> None:
    assert not Several([FeatureSimilarity(), torch.zeros(3)]).serves_parts
    assert CAT(6, 4, 3, interventions=[FeatureSimilarity(), torch.zeros(3)]).reach is None
    assert copy.deepcopy(Several(pair())).count == 2


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="the list is empty"):
        Several([])
    with pytest.raises(InputError, match="itself several"):
        Several([Several(pair()), Constant()])
    with pytest.raises(InputError, match="intervention= is given too"):
        CAT(6, 4, 3, intervention=Constant(), interventions=[Constant()])


def test_a_score_that_was_joined_outside_is_taken_as_it_is() -> None:
    conv = CATConv(6, 5, heads=2, strategy="explicit", intervention=Several(pair())).double()
    score = torch.linspace(-1, 1, EDGES.size(1), dtype=torch.float64)
    plain = CATConv(6, 5, heads=2, strategy="explicit", intervention=Constant()).double()
    plain.load_state_dict(
        {k: v for k, v in conv.state_dict().items() if "intervention" not in k and "views" not in k},
        strict=False,
    )
    torch.testing.assert_close(conv(X, EDGES, score=score), plain(X, EDGES, score=score))
