"""Defaults of every network: a run folder keeps only what was asked for, so they may not move."""

import inspect
from typing import Any

import pytest

from conjoint.errors import InputError
from conjoint.nn import checks, names
from conjoint.nn.cat import CAT
from conjoint.nn.interventions import catalogue
from conjoint.nn.random_propagation import RandomPropagation
from conjoint.nn.release import ReleaseCAT
from conjoint.nn.residual import ResidualCAT
from conjoint.nn.simple import BoostedTrees, HopLinear, LabelPropagation
from conjoint.nn.zoo import settings_of

GAT = {
    "hidden": 8, "heads": 8, "out_heads": 1, "num_layers": 2, "dropout": 0.6, "attention_dropout": None,
    "residual": False, "norm": "none", "bias": "none", "activation": "elu", "propagate": 0, "teleport": 0.1,
}  # fmt: skip
CONJOINT = {**GAT, "self_dropout": 0.0, "per_head": True}
RESIDUAL = {
    "hidden": 64, "heads": 8, "num_layers": 2, "norm": "layer", "dropout": 0.5, "attention_dropout": 0.0,
    "roles": True, "aggregators": False,
}  # fmt: skip
PROPAGATION = {"hidden": 32, "steps": 8, "dropout": 0.5, "drop_node": 0.5}
EMBEDDED = {**GAT, "dim": 64, "scale": 0.1, "embedding_seed": 0}
GCN = {"hidden": 16, "num_layers": 2, "dropout": 0.5}
ARMA = {"hidden": 16, "num_stacks": 2, "num_layers": 1, "shared_weights": True, "dropout": 0.5}
RANK, SHARP = {"rank": None}, {"temperature": 8.0, "learn_temperature": False}
DEFAULTS: dict[str, dict[str, Any]] = {
    "gcn": GCN,
    "sage": GCN,
    "jknet": {**GCN, "hidden": 32, "mode": "cat"},
    "appnp": {"hidden": 64, "dropout": 0.5, "edge_dropout": 0.5, "steps": 10, "alpha": 0.1},
    "sgc": {"steps": 2},
    "arma": {**ARMA, "skip_dropout": 0.75},
    "gin": {**GCN, "hidden": 64, "mlp_layers": 2, "norm": "batch", "train_eps": False},
    "monet": {"hidden": 16, "kernels": 3, "dropout": 0.5},
    "gat": GAT,
    "gat-klap": EMBEDDED,
    "gat-netmf": EMBEDDED,
    "gat-deepwalk": EMBEDDED,
    "gat-self": CONJOINT,
    "gat-jaccard": {**GAT, "threshold": 0.01},
    "gcn-jaccard": {**GCN, "threshold": 0.01},
    "gcn-svd": {**GCN, "rank": 50},
    "logistic": {"hops": "0"},
    "boosting": {"nodes": 1, "rounds": 1, "rank": 64, "labelled": 0},
    "label-propagation": {"teleport": 0.1, "steps": 50},
    "cat-i-fs": CONJOINT,
    "cat-i-mf": {**CONJOINT, **RANK},
    "cat-e-spectral": {**CONJOINT, **RANK, **SHARP},
    "cat-e-random": {**CONJOINT, **SHARP},
    "cat-s-ppr": {**CONJOINT, **RANK, **SHARP, "learn_temperature": True},
    "cat-i-nmf": {**CONJOINT, **RANK, **SHARP, "learn_temperature": True},
    "cat-i-nsc": {**CONJOINT, **RANK, **SHARP, "learn_temperature": True},
    "cat-i-jaccard": {**CONJOINT, **SHARP, "learn_temperature": True},
    "cat-i-adamic": {**CONJOINT, **SHARP, "learn_temperature": True},
    "cat-i-adamic+jaccard": {**CONJOINT, **SHARP},
    "gat-s-mf": {**GAT, **RANK},
    "cat-release-mf": {**CONJOINT, "self_dropout": 0.9, **RANK},
    "resgat": RESIDUAL,
    "resmlp": RESIDUAL,
    "rescat-i-mf": {**RESIDUAL, "contamination": 0.0, **RANK},
    "rescat-e-zero": {**RESIDUAL, "contamination": 0.0},
    "spread-trust": {**PROPAGATION, **RANK},
    "gated-ppr": {**PROPAGATION, **RANK, **SHARP},
}
ALONE: dict[str, type] = {
    "cat-i-fs": CAT,
    "cat-release-fs": ReleaseCAT,
    "rescat-i-fs": ResidualCAT,
    "spread-fs": RandomPropagation,
    "logistic": HopLinear,
    "boosting": BoostedTrees,
    "label-propagation": LabelPropagation,
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_settings_of_a_network_are_what_they_always_were(name: str) -> None:
    assert settings_of(name) == DEFAULTS[name]


def test_every_body_is_in_the_table() -> None:
    assert {names.parse(name).body for name in DEFAULTS} == set(names.BODIES)


@pytest.mark.parametrize("name", ALONE)
def test_a_network_made_by_its_class_has_the_settings_of_its_name(name: str) -> None:
    parameters, usual = inspect.signature(ALONE[name]).parameters, settings_of(name)
    own = {key: one.default for key, one in parameters.items() if one.default is not one.empty}
    shared = own.keys() & usual.keys()
    assert shared and {key: own[key] for key in shared} == {key: usual[key] for key in shared}


def test_what_an_intervention_is() -> None:
    def those(name: str) -> set[str]:
        return {key for key, kind in names.KINDS.items() if getattr(kind, name)}

    assert those("control") == {"zero", "random"}
    assert those("learns") == {"ppr", "jaccard", "adamic", "nmf", "nsc"}
    assert those("per_node") == {"mf", "sc", "nmf", "nsc"}
    assert names.MODELS["cat-i-zero"].endswith(", every edge scored 0 (a control)")
    assert names.MODELS["cat-i-mf"].endswith(", matrix factorisation")
    with pytest.raises(InputError, match="'mf\\+mf' names one twice"):
        names.parse("cat-i-mf+mf")


def test_a_setting_is_of_its_usual_kind_and_within_its_bounds() -> None:
    usual: dict[str, Any] = {
        "width": 8,
        "off": 0,
        "some_dropout": 0.5,
        "rate": 1.0,
        "flag": True,
        "free": int,
    }
    good: dict[str, list[Any]] = {
        "width": [1, 9],
        "off": [0, 3],
        "some_dropout": [0, 0.0, 0.999],
        "rate": [-1, 2.5],
        "free": [None, 1],
    }
    bad: dict[str, list[Any]] = {
        "width": [0, 1.0, True, None],
        "off": [-1],
        "some_dropout": [1, 1.0, -1e-9],
        "rate": ["1", True],
    }
    bad |= {"flag": [1, 0, None], "free": [0, 1.0]}
    assert checks.settings("it", usual, {}) == {**usual, "free": None}
    for name, values in good.items():
        for value in values:
            assert checks.settings("it", usual, {name: value}) == {**usual, "free": None, name: value}
    for name, values in bad.items():
        for value in values:
            with pytest.raises(InputError, match=name):
                checks.settings("it", usual, {name: value})
    with pytest.raises(InputError, match="depth=3: it has no such setting; it has width, off"):
        checks.settings("it", usual, {"depth": 3})


@pytest.mark.parametrize("name", [name for name, kind in names.KINDS.items() if "temperature" in kind.has])
def test_an_intervention_made_by_its_class_has_the_temperature_of_its_name(name: str) -> None:
    parameters = inspect.signature(catalogue.CLASSES[name]).parameters
    assert parameters["temperature"].default == 8.0
    assert parameters["learn_temperature"].default is names.KINDS[name].learns
