"""Similarity of fixed vectors as an intervention."""

import copy
import weakref

import pytest
import torch

from conjoint import CAT, InputError, adjacency
from conjoint.graph.field import receptive_field
from conjoint.nn.interventions import EmbeddingSimilarity
from graphs import random_features, random_graph

EDGES, N = random_graph(40, 100)
Z = random_features(N, 6, dtype=torch.float32)


def test_score_is_temperature_times_cosine() -> None:
    adj = adjacency(EDGES, N)
    expected = 3.0 * torch.nn.functional.cosine_similarity(Z[adj.row], Z[adj.col])
    torch.testing.assert_close(EmbeddingSimilarity(Z, temperature=3.0)(adj), expected)


def test_a_part_of_the_graph_reads_its_own_vectors() -> None:
    whole = adjacency(EDGES, N)
    field = receptive_field(whole, torch.tensor([3, 9]), 2)
    part = field.layers[0]
    rows = field.n_id
    expected = 8.0 * torch.nn.functional.cosine_similarity(Z[rows[part.row]], Z[rows[part.col]])
    torch.testing.assert_close(EmbeddingSimilarity(Z)(part, None, rows), expected)


def test_temperature_is_learnt_only_on_request() -> None:
    x = random_features(N, 5, dtype=torch.float32)
    for learn in (True, False):
        intervention = EmbeddingSimilarity(Z, learn_temperature=learn)
        model = CAT(5, 4, 3, heads=2, strategy="explicit", intervention=intervention)
        model(x, EDGES).sum().backward()
        log = intervention.temperature.log
        assert (log is not None) == learn and (log is None or log.grad is not None)


@pytest.mark.parametrize("learn", [True, False])
def test_weights_of_before_keep_their_temperature(learn: bool) -> None:
    """They held log_temperature, learnt or not."""
    intervention = EmbeddingSimilarity(Z, learn_temperature=learn)
    intervention.load_state_dict(
        {"vectors": intervention.vectors, "log_temperature": torch.tensor(3.0).log()}
    )
    adj = adjacency(EDGES, N)
    expected = EmbeddingSimilarity(Z, temperature=3.0)(adj)
    torch.testing.assert_close(intervention(adj).detach(), expected)


def test_cosines_are_kept_per_graph_and_not_copied() -> None:
    intervention = EmbeddingSimilarity(Z)
    adj, other = adjacency(EDGES, N), adjacency(EDGES[:, :50], N)
    twin = EmbeddingSimilarity(Z, temperature=1.0)
    assert twin(adj) is twin(adj) and twin(other).numel() == other.num_entries
    kept = weakref.ref(adj)
    assert copy.deepcopy(intervention)(adj).shape == (adj.num_entries,)
    del adj, other
    assert kept() is None  # the graph holds its scores, nothing holds the graph


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: EmbeddingSimilarity(torch.full((3, 2), torch.nan)), "vectors"),
        (lambda: EmbeddingSimilarity(Z, temperature=0.0), "temperature: 0.0"),
        (lambda: EmbeddingSimilarity(Z[:7])(adjacency(EDGES, N)), "for 7 nodes, but this graph has 40"),
    ],
)
def test_bad_arguments_are_named(make: object, words: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=words):
        make()
