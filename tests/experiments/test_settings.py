"""The settings file says what the paper's table says, and every entry builds."""

import pytest

from conjoint.errors import InputError
from conjoint.experiments.settings import paper_settings
from conjoint.nn import zoo
from conjoint.training import config_from

DATASETS = ("cora", "citeseer", "pubmed", "coauthor-cs", "ogbn-arxiv")


@pytest.mark.parametrize("name", zoo.MODELS)
def test_every_model_has_settings_that_build_it(name: str) -> None:
    for dataset in DATASETS:
        settings = paper_settings(name, dataset)
        assert config_from(settings.train).lr == settings.train["lr"]
        zoo.build(name, features=4, classes=3, num_nodes=5, **settings.model)


@pytest.mark.parametrize(
    ("name", "dataset", "dropout", "lr", "hidden"),
    [
        ("monet", "coauthor-cs", 0.75, 0.005, 32),
        ("gcn", "pubmed", 0.5, 0.01, 32),
        ("gcn", "ogbn-arxiv", 0.5, 0.005, 256),
        ("sage", "cora", 0.5, 0.01, 16),
        ("jknet", "citeseer", 0.5, 0.005, 32),
        ("gat", "coauthor-cs", 0.6, 0.005, 32),
        ("gat-netmf", "ogbn-arxiv", 0.75, 0.002, 256),
        ("appnp", "coauthor-cs", 0.6, 0.01, 64),
        ("arma", "citeseer", 0.25, 0.01, 64),
        ("gin", "ogbn-arxiv", 0.75, 0.01, 256),
        ("cat-e-sc", "cora", 0.6, 0.01, 8),
        ("cat-i-fs", "ogbn-arxiv", 0.75, 0.002, 256),
    ],
)
def test_cells_of_the_papers_table(name: str, dataset: str, dropout: float, lr: float, hidden: int) -> None:
    settings = paper_settings(name, dataset)
    found = (settings.model["dropout"], settings.train["lr"], settings.model["hidden"])
    assert found == (dropout, lr, hidden)


def test_heads_and_the_arxiv_variant() -> None:
    cora, arxiv = (paper_settings("cat-i-mf", name).model for name in ("cora", "ogbn-arxiv"))
    assert (cora["heads"], cora["out_heads"]) == (8, 1)
    assert (arxiv["heads"], arxiv["out_heads"], arxiv["residual"], arxiv["per_head"]) == (3, 3, True, False)


def test_released_data_share_the_settings_and_unknown_data_get_the_common_ones() -> None:
    assert paper_settings("arma", "citeseer-release") == paper_settings("arma", "citeseer")
    assert paper_settings("gcn", "my-graph").model["hidden"] == 32


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(InputError, match="'gcnn' has no settings"):
        paper_settings("gcnn", "cora")
