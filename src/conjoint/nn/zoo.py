"""Every model of the paper by name: the baselines, the conjoint attention networks, and their controls."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, make_dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..errors import InputError
from ..graph import embeddings
from ..graph.pruning import alike
from ..graph.sparse import row_normalise
from . import baselines as base
from .baselines import Settings
from .cat import CAT
from .conv import Strategy
from .interventions import Intervention, catalogue
from .model import NodeModel
from .spread import Spread


@dataclass(frozen=True)
class Size:
    """What the graph decides about a model."""

    features: int
    classes: int
    num_nodes: int


@dataclass(frozen=True)
class GATSettings(Settings):
    """Arguments of `CAT` that any attention network can be given."""

    hidden: int = 8
    heads: int = 8
    out_heads: int = 1
    num_layers: int = 2
    dropout: float = 0.6
    attention_dropout: float | None = None
    residual: bool = False
    norm: str = "none"
    bias: str = "none"
    activation: str = "elu"
    propagate: int = 0
    teleport: float = 0.1


@dataclass(frozen=True)
class SelfTermSettings(GATSettings):
    self_dropout: float = 0.0
    per_head: bool = True


@dataclass(frozen=True)
class SpreadSettings(Settings):
    """Arguments of `Spread`."""

    hidden: int = 32
    steps: int = 8
    dropout: float = 0.5
    drop_node: float = 0.5


@dataclass(frozen=True)
class EmbeddingSettings(GATSettings):
    """`dim`, `scale` and `embedding_seed` shape the joined features (`input_features`), the rest the net."""

    dim: int = 64
    scale: float = 0.1  # length of an embedding row against a row of features
    embedding_seed: int = 0


@dataclass(frozen=True)
class GATJaccardSettings(GATSettings, base.Pruning):
    pass


@dataclass(frozen=True)
class Entry:
    about: str
    settings: type[Settings]
    make: Callable[[Size, Any], NodeModel]
    embedding: Callable[..., Tensor] | None = None  # (edge_index, num_nodes, dim, seed=)


def build(
    name: str, *, features: int, classes: int, num_nodes: int, seed: int | None = None, **settings: Any
) -> NodeModel:
    """The model called `name`, with its default settings where none is given.

    Args:
        name: one of `MODELS`, or several interventions joined by a plus: cat-e-smooth+spectral.
        features: columns of the features that it will read (those of `input_features` where that joins some).
        classes: number of classes.
        num_nodes: nodes of the whole graph; interventions with one row per node need it.
        seed: decides the initial weights and leaves torch's own generator alone; None draws from that.
        settings: see `settings_of(name)`.
    """
    entry = _entry(name)
    chosen = _settings(name, entry, settings)
    for word, count in (("features", features), ("classes", classes), ("num_nodes", num_nodes)):
        if count < 1:
            raise InputError(f"{word}: {count}; the graph has none, so there is nothing to build {name} for")
    size = Size(features, classes, num_nodes)
    if seed is None:
        return entry.make(size, chosen)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return entry.make(size, chosen)


def input_features(name: str, data: Data, **settings: Any) -> Tensor:
    """What the model called `name` reads: the graph's features, joined with an embedding where it uses one.

    Joined features have signs, so their rows must not be divided by their sum later; where the graph's own
    ones have none, that is done here, before the embedding is put beside them.
    """
    entry = _entry(name)
    chosen = _settings(name, entry, settings)
    if data.x is None:
        raise InputError("data.x is None: the graph has no features; load it with features='spectral:128'")
    if entry.embedding is None or data.edge_index is None:
        return data.x
    assert isinstance(chosen, EmbeddingSettings)
    values = data.x.values() if data.x.layout == torch.sparse_csr else data.x
    x = data.x if bool((values < 0).any()) else row_normalise(data.x)
    made = entry.embedding(data.edge_index, x.size(0), chosen.dim, seed=chosen.embedding_seed)
    return embeddings.join(x, made, chosen.scale)


def input_graph(name: str, data: Data, **settings: Any) -> Data:
    """The graph as the model called `name` reads it: its `input_features`, and only the edges that it trusts.

    `data` itself where nothing is to be changed, else a copy.
    """
    x = input_features(name, data, **settings)
    chosen = _settings(name, _entry(name), settings)
    if x is data.x and not isinstance(chosen, base.Pruning):
        return data
    made = data.clone()
    made.x = x
    if isinstance(chosen, base.Pruning):
        keep = alike(x, data.edge_index, chosen.threshold)
        made.edge_index = data.edge_index[:, keep]
        if data.edge_weight is not None:
            made.edge_weight = data.edge_weight[keep]
    return made


def settings_of(name: str) -> dict[str, Any]:
    """The settings that `name` knows, with their defaults."""
    return asdict(_entry(name).settings())


def _entry(name: str) -> Entry:
    """Names with a plus, like cat-e-smooth+mf, are too many to list; they are read on the spot."""
    start, _, several = name.rpartition("-")
    if start in _STRATEGIES and "+" in several:
        return _conjoint("conjoint attention, " + _STRATEGIES[start], several, _STRATEGIES[start])
    if name not in _ZOO:
        raise InputError(f"model {name!r} is not known; choose one of {', '.join(_ZOO)}")
    return _ZOO[name]


def _settings(name: str, entry: Entry, given: dict[str, Any]) -> Settings:
    known = [field.name for field in fields(entry.settings)]
    for word in given:
        if word not in known:
            raise InputError(f"{word}={given[word]!r}: {name} has no such setting; it has {', '.join(known)}")
    return entry.settings(**given)


def _attention(size: Size, settings: GATSettings, **fixed: Any) -> CAT:
    options = asdict(settings)
    for not_the_network in _NOT_THE_NETWORK:
        options.pop(not_the_network, None)
    return CAT(size.features, settings.hidden, size.classes, **options, **fixed)


_NOT_THE_NETWORK = (
    "hidden",
    "rank",
    "threshold",
    "temperature",
    "learn_temperature",
    "dim",
    "scale",
    "embedding_seed",
)


def _gat(size: Size, settings: GATSettings) -> CAT:
    return _attention(size, settings, self_term=False)


_STRATEGIES: dict[str, Strategy] = {"cat-i": "implicit", "cat-e": "explicit"}


def _conjoint(about: str, intervention: str, strategy: Strategy) -> Entry:
    """A network of attention around the intervention of that name."""

    def make(size: Size, settings: SelfTermSettings, made: Intervention) -> CAT:
        return _attention(size, settings, intervention=made, strategy=strategy)

    return _around(intervention, about, SelfTermSettings, make)


def _spread(intervention: str, gate: bool = False) -> Entry:
    """Random propagation over edges that weigh as the intervention of that name says."""

    def make(size: Size, settings: SpreadSettings, made: Intervention | None) -> Spread:
        options = {name: getattr(settings, name) for name in ("steps", "dropout", "drop_node")}
        return Spread(size.features, settings.hidden, size.classes, intervention=made, gate=gate, **options)

    about = "random propagation of gated features" if gate else "random propagation"
    return _around(intervention, about, SpreadSettings, make)


def _around(
    intervention: str, about: str, settings: type[Settings], network: Callable[[Size, Any, Any], NodeModel]
) -> Entry:
    """A network around an intervention, whose own choices join the network's settings."""
    kinds = catalogue.kinds(intervention)
    choices = [name for name in ("rank", *catalogue.TEMPERED) if any(name in kind.has for kind in kinds)]

    def make(size: Size, settings: Any) -> NodeModel:
        chosen = {name: getattr(settings, name) for name in choices}
        return network(size, settings, catalogue.make(intervention, size.num_nodes, size.classes, **chosen))

    learns = len(kinds) == 1 and kinds[0].learns  # several are weighed against each other anyway
    known = {
        "rank": (
            "rank",
            int | None,
            None,
        ),  # columns of V, dimensions that are compared; None: the usual number
        "temperature": ("temperature", float, 8.0),  # how sharply attention follows a similarity
        "learn_temperature": ("learn_temperature", bool, learns),
    }
    added = [known[name] for name in choices]
    joined = make_dataclass("ConjointSettings", added, bases=(settings,), frozen=True)
    return Entry(f"{about}, {' and '.join(kind.about for kind in kinds)}", joined, make)


def _simple(about: str, model: Callable[[int, int, Any], NodeModel], settings: type[Settings]) -> Entry:
    return Entry(about, settings, lambda size, chosen: model(size.features, size.classes, chosen))


def _joined(about: str, embedding: Callable[..., Tensor]) -> Entry:
    return Entry(about, EmbeddingSettings, _gat, embedding)


_ZOO = {
    "gcn": _simple("graph convolutional network", base.GCN, base.GCNSettings),
    "sage": _simple("GraphSAGE, mean of the neighbours", base.SAGE, base.SAGESettings),
    "jknet": _simple("jumping knowledge over GCN layers", base.JKNet, base.JKNetSettings),
    "appnp": _simple("perceptron, then personalised PageRank", base.APPNP, base.APPNPSettings),
    "sgc": _simple("simplified graph convolution, linear", base.SGC, base.SGCSettings),
    "arma": _simple("ARMA filters", base.ARMA, base.ARMASettings),
    "gin": _simple("graph isomorphism network", base.GIN, base.GINSettings),
    "monet": _simple("mixture model network on node degrees", base.MoNet, base.MoNetSettings),
    "gat": Entry("graph attention network", GATSettings, _gat),
    "gat-klap": _joined(
        "GAT on features joined with eigenvectors of the Laplacian",
        embeddings.laplacian_eigenvectors,
    ),
    "gat-netmf": _joined(
        "GAT on features joined with NetMF",
        embeddings.netmf,
    ),
    "gat-deepwalk": _joined(
        "GAT on features joined with DeepWalk",
        embeddings.deepwalk,
    ),
    "cat-i-mf": _conjoint("conjoint attention, implicit", "mf", "implicit"),
    "cat-i-sc": _conjoint("conjoint attention, implicit", "sc", "implicit"),
    "cat-i-fs": _conjoint("conjoint attention, implicit", "fs", "implicit"),
    "cat-i-spectral": _conjoint("conjoint attention, implicit", "spectral", "implicit"),
    "cat-i-smooth": _conjoint("conjoint attention, implicit", "smooth", "implicit"),
    "cat-i-trust": _conjoint("conjoint attention, implicit", "trust", "implicit"),
    "cat-i-ppr": _conjoint("conjoint attention, implicit", "ppr", "implicit"),
    "cat-i-jaccard": _conjoint("conjoint attention, implicit", "jaccard", "implicit"),
    "cat-i-adamic": _conjoint("conjoint attention, implicit", "adamic", "implicit"),
    "cat-i-nmf": _conjoint("conjoint attention, implicit", "nmf", "implicit"),
    "cat-i-nsc": _conjoint("conjoint attention, implicit", "nsc", "implicit"),
    "cat-e-mf": _conjoint("conjoint attention, explicit", "mf", "explicit"),
    "cat-e-sc": _conjoint("conjoint attention, explicit", "sc", "explicit"),
    "cat-e-fs": _conjoint("conjoint attention, explicit", "fs", "explicit"),
    "cat-e-spectral": _conjoint("conjoint attention, explicit", "spectral", "explicit"),
    "cat-e-smooth": _conjoint("conjoint attention, explicit", "smooth", "explicit"),
    "cat-e-trust": _conjoint("conjoint attention, explicit", "trust", "explicit"),
    "cat-e-ppr": _conjoint("conjoint attention, explicit", "ppr", "explicit"),
    "cat-e-jaccard": _conjoint("conjoint attention, explicit", "jaccard", "explicit"),
    "cat-e-adamic": _conjoint("conjoint attention, explicit", "adamic", "explicit"),
    "cat-e-nmf": _conjoint("conjoint attention, explicit", "nmf", "explicit"),
    "cat-e-nsc": _conjoint("conjoint attention, explicit", "nsc", "explicit"),
    "spread-zero": _spread("zero"),
    "spread-trust": _spread("trust"),
    "spread-smooth": _spread("smooth"),
    "spread-mf": _spread("mf"),
    "gated-trust": _spread("trust", gate=True),
    "gat-self": Entry("control: GAT with the self term alone", SelfTermSettings, _attention),
    "cat-i-zero": _conjoint("control: implicit", "zero", "implicit"),
    "cat-i-random": _conjoint("control: implicit", "random", "implicit"),
    "cat-e-random": _conjoint("control: explicit", "random", "explicit"),
    "cat-e-zero": _conjoint("control: explicit", "zero", "explicit"),
    "mf-only": _conjoint("control: structural attention alone", "mf", "structural"),
    "sc-only": _conjoint("control: structural attention alone", "sc", "structural"),
    "gcn-jaccard": _simple(
        "defence: GCN without edges between unlike nodes", base.GCN, base.GCNJaccardSettings
    ),
    "gcn-svd": _simple("defence: GCN on a low-rank adjacency", base.GCNSVD, base.GCNSVDSettings),
    "gat-jaccard": Entry("defence: GAT without edges between unlike nodes", GATJaccardSettings, _gat),
}

MODELS: dict[str, str] = {name: entry.about for name, entry in _ZOO.items()}
"""Names that `build` knows, each with one line on what it is."""
