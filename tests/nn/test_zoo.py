"""Every name builds, trains a step, and refuses what it does not know."""

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from conjoint.errors import InputError
from conjoint.graph.sparse import to_csr
from conjoint.nn import names, zoo
from conjoint.nn.cat import CAT
from conjoint.nn.interventions import catalogue
from conjoint.nn.random_propagation import RandomPropagation
from conjoint.nn.release import ReleaseCAT
from conjoint.nn.residual import ResidualCAT
from conjoint.nn.simple import BoostedTrees, HopLinear, LabelPropagation

NODES, FEATURES, CLASSES = 40, 12, 3
NAMES = list(names.MODELS)
FITTED = ("logistic", "label-propagation", "boosting")  # in closed form: no step, no random weights
EMBEDDED = ("gat-klap", "gat-netmf", "gat-deepwalk")


def test_every_name_has_its_maker() -> None:
    assert list(zoo.MAKERS) == list(names.BODIES) and list(catalogue.CLASSES) == list(names.KINDS)


@pytest.fixture(scope="module")
def data() -> Data:
    generator = torch.Generator().manual_seed(5)
    ring = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])
    chords = torch.randint(0, NODES, (2, 30), generator=generator)
    one_way = torch.cat([ring, chords[:, chords[0] != chords[1]]], dim=1)
    edges = torch.cat([one_way, one_way.flip(0)], dim=1).unique(dim=1)
    x = (torch.rand(NODES, FEATURES, generator=generator) < 0.4).float()
    return Data(x=x, edge_index=edges, y=torch.arange(NODES) % CLASSES)


def build(name: str, features: int = FEATURES, **settings: Any) -> Any:
    return zoo.build(name, features=features, classes=CLASSES, num_nodes=NODES, seed=7, **settings)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_model_trains_a_step_on_its_input(name: str, sparse: bool, data: Data) -> None:
    if name == "gat-deepwalk":
        pytest.importorskip("gensim")
    assert data.x is not None and data.edge_index is not None and isinstance(data.y, Tensor)
    given = Data(x=to_csr(data.x.numpy()) if sparse else data.x, edge_index=data.edge_index, y=data.y)
    settings = {"dim": 4} if name in EMBEDDED else {}
    x = zoo.input_features(name, given, **settings)
    assert x.layout == (torch.sparse_csr if sparse else torch.strided)
    assert x.size(1) == FEATURES + (4 if name in EMBEDDED else 0)
    model = build(name, x.size(1), **settings)
    graph = model.prepare(data.edge_index, NODES)
    (logits,), penalty = model.predict_often(x, graph)
    if name in FITTED:
        assert logits.shape == (NODES, CLASSES)
        return
    (torch.nn.functional.cross_entropy(logits, data.y) + 0.01 * penalty).backward()
    assert logits.shape == (NODES, CLASSES)
    for key, parameter in model.named_parameters():
        unused = name.endswith("-only") and "att" in key  # features take no part in these controls
        assert unused or (parameter.grad is not None and bool(torch.isfinite(parameter.grad).all())), key


@pytest.mark.parametrize("name", [name for name in NAMES if name not in FITTED])
def test_the_seed_decides_the_weights_and_leaves_torch_alone(name: str) -> None:
    before = torch.get_rng_state()
    one, other = build(name).state_dict(), build(name).state_dict()
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one[key], other[key]) for key in one)
    different = zoo.build(name, features=FEATURES, classes=CLASSES, num_nodes=NODES, seed=8).state_dict()
    assert any(not torch.equal(one[key], different[key]) for key in one)


def test_parameter_counts_are_those_of_the_papers_table_5() -> None:
    cora = {"features": 1433, "classes": 7, "num_nodes": 2708}
    counts = {
        name: _count(zoo.build(name, **cora)) for name in ("cat-i-mf", "cat-i-sc", "cat-e-mf", "cat-e-sc")
    }
    assert counts == {"cat-i-mf": 111285, "cat-i-sc": 111285, "cat-e-mf": 111267, "cat-e-sc": 111267}
    arxiv: dict[str, Any] = {"hidden": 256, "heads": 3, "out_heads": 3, "residual": True, "norm": "batch"}
    model = zoo.build(
        "cat-i-mf", features=128, classes=40, num_nodes=169343, per_head=False, bias="output", **arxiv
    )
    assert _count(model) == 7158006


def test_gat_is_attention_to_features_alone() -> None:
    model = build("gat")
    assert isinstance(model, CAT) and model.intervention is None
    self_only = _count(build("gat-self")) - _count(model)
    assert self_only == 8 + 1  # one epsilon per head of the two layers


def test_the_rank_of_the_factors_is_the_number_of_classes_unless_given() -> None:
    assert build("cat-e-sc").intervention.factors.shape == (NODES, CLASSES)
    assert build("cat-e-sc", rank=5).intervention.factors.shape == (NODES, 5)


def test_joined_features_keep_rows_that_sum_to_one(data: Data) -> None:
    assert data.x is not None
    x = zoo.input_features("gat-klap", data, dim=4)
    torch.testing.assert_close(x[:, :FEATURES].sum(dim=1), torch.ones(NODES))
    signed = Data(x=data.x - 0.5, edge_index=data.edge_index)
    assert torch.equal(zoo.input_features("gat-klap", signed, dim=4)[:, :FEATURES], data.x - 0.5)


def test_a_model_without_embedding_reads_the_features_as_they_are(data: Data) -> None:
    assert zoo.input_features("cat-i-mf", data) is data.x


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("gat", ("gat", None, ())),
        ("gat-self", ("gat-self", None, ())),
        ("gcn-svd", ("gcn-svd", None, ())),
        ("cat-i-mf", ("cat-i", "implicit", ("mf",))),
        ("cat-e-smooth+spectral", ("cat-e", "explicit", ("smooth", "spectral"))),
        ("mf-only", ("cat-s", "structural", ("mf",))),
        ("cat-s-ppr", ("cat-s", "structural", ("ppr",))),
        ("spread-trust", ("spread", None, ("trust",))),
        ("gated-ppr+mf", ("gated", None, ("ppr", "mf"))),
        ("cat", ("cat-i", "implicit", ("mf",))),
    ],
)
def test_a_name_is_taken_apart(name: str, parts: tuple[str, str | None, tuple[str, ...]]) -> None:
    found = zoo.parse(name)
    assert (found.body, found.strategy, found.interventions) == parts
    assert zoo.parse(str(found)) == found and (name in names.ALIASES or str(found) == name)


def test_an_alias_is_the_same_network() -> None:
    one, other = build("sc-only").state_dict(), build("cat-s-sc").state_dict()
    assert one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("body", [name for name, body in zoo.BODIES.items() if body.scored])
def test_every_body_stands_around_every_intervention(body: str) -> None:
    assert {f"{body}-{name}" for name in catalogue.KINDS} <= set(NAMES)
    assert build(f"{body}-smooth+mf").intervention.names == ["smooth", "mf"]


def test_an_unknown_model_is_met_with_the_known_ones() -> None:
    for name in ("gatt", "spread", "mf", "fs-only", "cat-"):
        with pytest.raises(
            InputError, match=rf"'{name}' is not known; choose one of gcn, sage.*or cat-i-.*mf"
        ):
            build(name)


def test_an_unknown_setting_is_met_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"width=3: gcn has no such setting; it has hidden, num_layers"):
        build("gcn", width=3)
    with pytest.raises(InputError, match=r"heads=0|heads: 0"):
        build("gat", heads=0)
    with pytest.raises(InputError, match="norm"):
        build("gat", norm="layer")


def test_a_graph_without_features_or_classes_is_refused() -> None:
    with pytest.raises(InputError, match="classes: 0"):
        zoo.build("gcn", features=3, classes=0, num_nodes=3)
    with pytest.raises(InputError, match="features"):
        zoo.input_features("gcn", Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=3))


def test_a_plus_joins_interventions(data: Data) -> None:
    assert data.x is not None and data.edge_index is not None
    model = build("cat-e-smooth+mf", rank=3, temperature=2.0)
    assert model.intervention.names == ["smooth", "mf"]
    assert model.intervention.each[1].factors.shape == (NODES, 3)
    graph = model.prepare(data.edge_index, NODES)
    (logits,), penalty = model.predict_often(data.x, graph)
    assert logits.shape == (NODES, CLASSES) and float(penalty.detach()) > 0.0
    assert set(zoo.settings_of("cat-i-fs+zero")) == set(zoo.settings_of("gat-self"))
    with pytest.raises(InputError, match="intervention 'smoth' is not known"):
        build("cat-e-mf+smoth")
    with pytest.raises(InputError, match="names one twice"):
        build("cat-e-mf+mf")


def test_settings_can_be_listed_for_every_name() -> None:
    for name in NAMES:
        defaults = zoo.settings_of(name)
        assert defaults
        assert isinstance(build(name, **defaults), type(build(name)))


def _count(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


CLASS_OF: dict[str, Any] = {
    "gat": CAT, "gat-self": CAT, "cat-i": CAT, "cat-e": CAT, "cat-release": ReleaseCAT, "resgat": ResidualCAT,
    "resmlp": ResidualCAT, "rescat-i": ResidualCAT, "rescat-e": ResidualCAT, "spread": RandomPropagation,
    "gated": RandomPropagation, "label-propagation": LabelPropagation, "boosting": BoostedTrees,
    "logistic": HopLinear,
}  # fmt: skip
PLAIN = {
    "intervention": None, "interventions": (), "strategy": "implicit", "self_term": True, "self_dropout": 0.0,
    "per_head": True, "edges": True, "contamination": 0.0, "gate": False, "attention_dropout": None,
}  # fmt: skip


def defaults(kind: Any) -> dict[str, Any]:
    parameters = inspect.signature(kind.__init__).parameters.items()
    return {name: one.default for name, one in parameters if one.default is not one.empty}


@pytest.mark.parametrize("name", CLASS_OF)
def test_a_class_has_the_defaults_of_its_name(name: str) -> None:
    made, settings = build(f"{name}-mf" if names.BODIES[name].scored else name), names.BODIES[name]
    assert type(made) is CLASS_OF[name]
    known = {key: value for key, value in settings.settings.items() if value is not float}
    found = defaults(CLASS_OF[name])
    assert found == {key: {**PLAIN, **known}[key] for key in found}


SMOOTHED = {
    "rank": 64, "hops": 2, "temperature": 8.0, "learn_temperature": False, "seed": 0, "features": None
}  # fmt: skip
SIMILARITIES: dict[str, dict[str, Any]] = {
    "random": {"temperature": 8.0, "learn_temperature": False, "seed": 0},
    "spectral": {"rank": 64, "temperature": 8.0, "learn_temperature": False, "seed": 0},
    "smooth": SMOOTHED,
    "trust": {**SMOOTHED, "temperature": 1.0, "leak": 0.1},
    "ppr": {"rank": 128, "restart": 0.15, "temperature": 8.0, "learn_temperature": True, "seed": 0},
    "jaccard": {"temperature": 8.0, "learn_temperature": True, "cap": 128},
    "adamic": {"temperature": 8.0, "learn_temperature": True, "cap": 128},
    "nmf": {"temperature": 8.0, "learn_temperature": True},
    "nsc": {"temperature": 8.0, "learn_temperature": True},
    "mf": {}, "sc": {}, "fs": {}, "zero": {"value": 0.0},
}  # fmt: skip


@pytest.mark.parametrize("name", names.KINDS)
def test_defaults_of_interventions(name: str) -> None:
    """A temperature is learnt by default where the list of names says so."""
    made, expected = catalogue.make(name, 9, 2), SIMILARITIES[name]
    assert defaults(type(made)) == expected
    assert expected.get("learn_temperature", False) is names.KINDS[name].learns
    if "temperature" in expected:
        assert made.temperature.start == expected["temperature"]  # type: ignore[union-attr]
        assert (made.temperature.log is not None) is names.KINDS[name].learns


@pytest.mark.parametrize("name", names.MODELS)
def test_all_parameters_are_drawn_anew(name: str) -> None:
    """From the distributions that they were drawn from, those of the intervention included."""
    model = build(name, **({"dim": 4} if name in EMBEDDED else {}))
    if not hasattr(model, "reset_parameters"):
        return
    fresh = {key: part.clone() for key, part in model.state_dict().items()}
    for part in model.parameters():
        part.data.fill_(7.0)
    torch.manual_seed(3)
    model.reset_parameters()
    for key, part in model.named_parameters():
        if part.numel() == 1:  # perhaps drawn, perhaps not
            assert part.item() != 7.0, key
        elif len(fresh[key].unique()) == 1:
            assert torch.equal(part, fresh[key]), key
        else:
            assert not bool((part == 7.0).any()) and not torch.equal(part, fresh[key]), key
            assert part.abs().max().item() < 7.0, key
