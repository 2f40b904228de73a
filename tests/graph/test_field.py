"""The receptive field: what it holds, and that nothing outside it matters."""

import pytest
import torch

from conjoint import CAT, FeatureSimilarity, MatrixFactorization, adjacency
from conjoint.graph.field import receptive_field
from graphs import KITE, random_features, random_graph


def test_field_of_one_node_grows_ring_by_ring() -> None:
    field = receptive_field(adjacency(*KITE), torch.tensor([3]), 2)
    assert field.n_id.tolist() == [3, 2, 0, 1]
    outer, inner = field.layers
    assert (inner.num_dst, inner.num_src) == (1, 2)
    assert (outer.num_dst, outer.num_src) == (2, 4)
    assert field.layers[-1].num_dst == 1


def test_inner_entries_are_the_first_outer_entries() -> None:
    whole = adjacency(*random_graph(80, 200, undirected=False))
    field = receptive_field(whole, torch.tensor([5, 60, 2]), 3)
    outer, middle, inner = field.layers
    for narrow in (middle, inner):
        assert torch.equal(outer.col[: narrow.num_entries], narrow.col)
        assert torch.equal(outer.rowptr[: narrow.num_dst + 1], narrow.rowptr)
    for local in range(outer.num_dst):
        node = field.n_id[local]
        expected = whole.col[whole.rowptr[node] : whole.rowptr[node + 1]]
        found = field.n_id[outer.col[outer.rowptr[local] : outer.rowptr[local + 1]]]
        assert torch.equal(found, expected)


@pytest.mark.parametrize("strategy", ["implicit", "explicit"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_same_logits_and_same_gradient_as_the_whole_graph(strategy: str, layers: int) -> None:
    edges, n = random_graph(60, 90)
    x = random_features(n, 12)
    torch.manual_seed(0)
    model = CAT(
        12,
        5,
        3,
        heads=2,
        num_layers=layers,
        strategy=strategy,  # type: ignore[arg-type]
        intervention=MatrixFactorization(n, 3),
        dropout=0.0,
        residual=True,
    ).double()
    whole = model.prepare(edges, n)
    targets = torch.tensor([4, 17, 33])
    field = receptive_field(whole, targets, layers)

    def gradients(part: bool) -> tuple[torch.Tensor, list[torch.Tensor]]:
        model.zero_grad()
        if part:
            (logits,), penalty = model.predict_often(x[field.n_id], field, whole)
        else:
            (logits,), penalty = model.predict_often(x, whole)
            logits = logits[targets]
        (logits.square().sum() + 0.1 * penalty).backward()
        return logits.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]

    logits, expected = gradients(part=False)
    narrow, found = gradients(part=True)
    torch.testing.assert_close(narrow, logits, rtol=0, atol=1e-12)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_feature_similarity_reads_the_rows_of_the_field() -> None:
    edges, n = random_graph(40, 60)
    x = random_features(n, 6)
    model = CAT(6, 4, 2, heads=2, intervention=FeatureSimilarity(), dropout=0.0).double()
    whole = model.prepare(edges, n)
    field = receptive_field(whole, torch.tensor([1, 8]), 2)
    torch.testing.assert_close(model(x[field.n_id], field), model(x, whole)[[1, 8]])
