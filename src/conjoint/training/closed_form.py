"""Fitting the models of `nn.simple`: no epochs, a choice of strength by validation nodes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.special import log_softmax, softmax

from ..graph.graph import Graph
from ..graph.proximity import one_thread, reducing_basis
from ..graph.sparse import is_sparse, to_scipy
from ..graph.splits import Split
from ..nn.simple import ABSENT, BoostedTrees, HopLinear, LabelPropagation
from .config import TrainConfig
from .loop import Fitted
from .loss import label_weights

Array = npt.NDArray[Any]
Check = Callable[[], None]
STRENGTHS = (0.1, 1.0, 10.0, 100.0)  # of logistic regression, as scikit-learn's C
TELEPORTS = (0.02, 0.1, 0.3)
ITERATIONS = 200
SINGLE_ABOVE = 50_000_000  # numbers of a table that is read in single precision
BOOSTING: dict[str, Any] = {"learning_rate": 0.1, "max_leaf_nodes": 31, "l2_regularization": 1.0}
ROUNDS, BASIS = 200, 64
PLAIN = TrainConfig()


def log_loss(log_p: Array, y: Array, weight: Array | None = None) -> float:
    return float(np.average(-log_p[np.arange(len(y)), y], weights=weight))


def _weights(graph: Graph, split: Split, config: TrainConfig) -> tuple[Array | None, Array | None]:
    """Of the labels that train and of those that validate; None: all alike."""
    found = label_weights(graph, split.train, config)
    if found is None:
        return None, None
    train, val = (found[nodes].double().numpy() for nodes in (split.train, split.val))
    return train, val if val.sum() > 0 else None


def fit_linear(graph: Graph, split: Split, hops: str, config: TrainConfig = PLAIN) -> HopLinear:
    """Logistic regression by L-BFGS."""
    return _linear(graph, split, hops, config, None)[0]


@one_thread
def _linear(
    graph: Graph,
    split: Split,
    hops: str,
    config: TrainConfig,
    given: float | None,
    check: Check | None = None,
) -> tuple[HopLinear, float]:
    """The model and its strength: the given one, or what validation nodes choose."""
    model = HopLinear(graph.num_features, graph.num_classes, hops=hops)
    x: Any = graph.x
    if not is_sparse(x):
        deviation, mean = torch.std_mean(x.double(), dim=0, correction=0)
        model.shift.copy_(mean)
        model.scale.copy_(1.0 / torch.where(deviation > 1e-6, deviation, 1.0))
        x = ((x - model.shift) * model.scale).numpy()
    else:
        x = to_scipy(x).astype(np.float64)
    y, train, val, classes = graph.y.numpy(), split.train.numpy(), split.val.numpy(), graph.num_classes
    target, (weights, of_val) = np.eye(classes)[y[train]], _weights(graph, split, config)
    counts = 1.0 if weights is None else weights[:, None]
    shape = (len(hops), graph.num_features, classes)
    size = int(np.prod(shape))
    project, project_back = _products(graph, x, model.hops, np.concatenate([train, val]))

    def logits(flat: Array) -> Array:
        return project(flat[:size].reshape(shape)) + flat[size:]

    def loss(flat: Array, strength: float) -> tuple[float, Array]:
        z, weight = logits(flat)[: len(train)], flat[:size]
        error = np.zeros((len(train) + len(val), classes))
        error[: len(train)] = counts * (softmax(z, axis=1) - target)
        slopes = np.ravel(project_back(error)) + weight / strength
        value = -(counts * log_softmax(z, axis=1) * target).sum() + 0.5 * (weight @ weight) / strength
        return float(value), np.concatenate([slopes, error.sum(axis=0)])

    def stepped(flat: Array) -> None:
        if check is not None:
            check()

    from scipy.optimize import minimize  # a tenth of a second that no other training waits for

    best, now = (np.inf, np.zeros(size + classes), 0.0), np.zeros(size + classes)
    for strength in STRENGTHS:  # from simple to flexible, each from where the last one ended
        options = {"maxiter": ITERATIONS}
        now = minimize(loss, now, (strength,), "L-BFGS-B", jac=True, options=options, callback=stepped).x
        missed = log_loss(log_softmax(logits(now)[len(train) :], axis=1), y[val], of_val)
        if given is None and missed > best[0]:
            break
        best = missed, now, strength
        if strength == given:
            break
    model.weight.data.copy_(torch.from_numpy(best[1][:size].reshape(shape).transpose(0, 2, 1).copy()))
    model.bias.data.copy_(torch.from_numpy(best[1][size:]))
    return model, best[2]


Products = tuple[Callable[[Array], Array], Callable[[Array], Array]]


def _products(graph: Graph, x: Any, hops: list[int], rows: Array) -> Products:
    """W -> sum over k of (P^k X)[rows] W_k and its transpose, with W of [hops, features, classes].

    Dense features are smoothed once. Sparse ones would fill up, so that their products are smoothed instead.
    """
    walk = _mean_with_self(graph) if hops[-1] else None
    if walk is None or not sp.issparse(x):
        tables, smoothed = [], x
        for k in range(hops[-1] + 1):
            smoothed = walk @ smoothed if k else smoothed
            tables += [smoothed[rows]] if k in hops else []
        double = sp.issparse(x) or len(rows) * x.shape[1] < SINGLE_ABOVE
        table = tables[0] if walk is None else np.concatenate(tables, axis=1)
        table = table.astype(np.float64 if double else np.float32)
        shape = (len(hops), x.shape[1], -1)
        return (
            lambda weight: table @ weight.reshape(table.shape[1], -1).astype(table.dtype),
            lambda error: (table.T @ error.astype(table.dtype)).reshape(shape),
        )
    walk_back, x_back = sp.csr_array(walk.T), x.T

    def project(weight: Array) -> Array:
        out = np.zeros((graph.num_nodes, weight.shape[2]))
        for k in range(hops[-1], -1, -1):
            if k in hops:
                out = out + x @ weight[hops.index(k)]
            out = walk @ out if k else out
        return out[rows]

    def project_back(error: Array) -> Array:
        spread, slopes = np.zeros((graph.num_nodes, error.shape[1])), []
        spread[rows] = error
        for k in range(hops[-1] + 1):
            if k in hops:
                slopes.append(x_back @ spread)
            spread = walk_back @ spread if k < hops[-1] else spread
        return np.stack(slopes)

    return project, project_back


def _mean_with_self(graph: Graph) -> sp.csr_array:
    adj, nodes = graph.adjacency, graph.num_nodes
    entries = (np.ones(adj.num_entries), adj.col.numpy(), adj.rowptr.numpy())
    matrix = sp.csr_array(entries, shape=(nodes, nodes))
    return sp.csr_array(sp.diags_array(1.0 / np.maximum(1.0, matrix.sum(axis=1))) @ matrix)


def fit_propagation(
    graph: Graph, split: Split, given: float | None = None, check: Check | None = None
) -> LabelPropagation:
    """Labels of training nodes; validation nodes choose how far they go, unless the teleport is given.
    Weights of labels play no part."""
    y = graph.y.numpy()
    best: tuple[float, LabelPropagation] | None = None
    for teleport in TELEPORTS if given is None else (given,):
        model = LabelPropagation(graph.num_nodes, graph.num_classes, teleport=teleport)
        model.labels[split.train] = graph.y[split.train]
        share = np.bincount(y[split.train.numpy()], minlength=graph.num_classes) + 1e-3
        model.prior.data.copy_(torch.from_numpy(np.log(share)))
        with torch.no_grad():
            found = model(graph.y, graph.adjacency).log_softmax(dim=1).numpy()[split.val.numpy()]
        missed = log_loss(found, y[split.val.numpy()])
        if best is None or missed < best[0]:
            best = missed, model
        if check is not None:
            check()
    assert best is not None
    return best[1]


@one_thread
def fit_boosting(
    graph: Graph,
    split: Split,
    seed: int,
    rank: int = BASIS,
    config: TrainConfig = PLAIN,
    given: int | None = None,
) -> BoostedTrees:
    """scikit-learn's histogram boosting; validation nodes choose the number of rounds, unless it is given."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # half a second to import

    blank = BoostedTrees(graph.num_features, graph.num_classes, rank=rank, labelled=graph.num_nodes)
    blank.labels[split.train] = graph.y[split.train]
    if blank.basis.numel():
        blank.basis.copy_(torch.from_numpy(reducing_basis(graph.x, rank=rank)))
    with torch.no_grad():
        table = blank.columns(graph.x, graph.adjacency).double().numpy()
    y, train, val = graph.y.numpy(), split.train.numpy(), split.val.numpy()
    if len(np.unique(y[train])) < 2:  # nothing to tell apart
        only = int(y[train[0]])
        blank.baseline.fill_(ABSENT if blank.per_round > 1 or only == 0 else -ABSENT)
        if blank.per_round > 1:
            blank.baseline[only] = 0.0
        return blank
    stop = {"max_iter": given or ROUNDS, "early_stopping": False}
    maker = HistGradientBoostingClassifier(random_state=seed, **stop, **BOOSTING)
    weights, of_val = _weights(graph, split, config)
    maker.fit(table[train], y[train], sample_weight=weights)
    if given:
        return _as_model(maker, given, graph, blank, rank)
    known = [int(c) for c in maker.classes_]
    losses = []
    for shares in maker.staged_predict_proba(table[val]):
        every = np.full((len(val), graph.num_classes), 1e-13)
        every[:, known] = shares
        losses.append(log_loss(np.log(np.maximum(every, 1e-13)), y[val], of_val))
    return _as_model(maker, int(np.argmin(losses)) + 1, graph, blank, rank)


def _as_model(maker: Any, rounds: int, graph: Graph, blank: BoostedTrees, rank: int) -> BoostedTrees:
    """The first rounds as arrays, children behind their parents."""
    known = [int(c) for c in maker.classes_]
    columns = [0] if blank.per_round == 1 else known[-maker.n_trees_per_iteration_ :]  # of two, the second
    names = ("column", "threshold", "left", "right", "value")
    parts: list[tuple[Any, ...]] = [
        ([0], [0.0], [0], [0], [0.0])
    ]  # a leaf of 0: classes without training nodes
    root, size = np.zeros((rounds, blank.per_round), dtype=np.int64), 1
    for k, trees in enumerate(maker._predictors[:rounds]):
        for place, tree in zip(columns, trees, strict=True):
            nodes, here = tree.nodes, size + np.arange(len(tree.nodes))
            leaf = nodes["is_leaf"].astype(bool)
            below = [np.where(leaf, here, size + nodes[side].astype(np.int64)) for side in ("left", "right")]
            split = (np.where(leaf, 0, nodes[name]) for name in ("feature_idx", "num_threshold"))
            parts.append((*split, *below, np.where(leaf, nodes["value"], 0.0)))
            root[k, place] = size
            size += len(nodes)
    sizes = {"nodes": size, "rounds": rounds, "rank": rank, "labelled": graph.num_nodes}
    model = BoostedTrees(graph.num_features, graph.num_classes, **sizes)
    model.labels.copy_(blank.labels)
    for name, arrays in zip(names, zip(*parts, strict=True), strict=True):
        getattr(model, name).copy_(torch.from_numpy(np.concatenate(arrays)))
    model.basis.copy_(blank.basis)
    model.root.copy_(torch.from_numpy(root))
    model.baseline.fill_(ABSENT if blank.per_round > 1 else 0.0)
    model.baseline[known if blank.per_round > 1 else 0] = 0.0
    start = np.asarray(maker._baseline_prediction, dtype=np.float64).ravel()
    model.baseline[columns] = torch.from_numpy(start)
    return model


CLOSED_FORMS = ("logistic", "label-propagation", "boosting")


def as_they_are(name: str, config: TrainConfig) -> TrainConfig:
    """The settings of the model called `name`: a closed form brings features to one scale by itself."""
    return replace(config, row_normalise="never") if name in CLOSED_FORMS else config


def fit_closed_form(
    name: str,
    settings: dict[str, Any],
    graph: Graph,
    split: Split,
    config: TrainConfig,
    like: Fitted | None = None,
    check: Check | None = None,
) -> tuple[Fitted, dict[str, Any]]:
    """The model called `name`, as `fit` would give it, and the settings that build it again.

    Args:
        like: an earlier one, whose strength, teleport or rounds it has; validation nodes of that chose them.
        check: called now and then, so that it may end the work by an error; not while trees are boosted.
    """
    model: Any
    given = None if like is None else like.metrics["chosen"]
    chosen: float
    if name == "logistic":
        model, chosen = _linear(graph, split, settings.get("hops", "0"), config, given, check)
    elif name == "label-propagation":
        model = fit_propagation(graph, split, given, check)
        settings, chosen = {"teleport": model.teleport, "steps": model.steps}, model.teleport
    else:
        model = fit_boosting(graph, split, config.seed, config=config, given=given)
        chosen = model.rounds
        sizes = {"nodes": model.left.numel(), "rounds": model.rounds, "labelled": graph.num_nodes}
        settings = {"rank": BASIS, **sizes}
    config = as_they_are(name, replace(config, epochs=1))
    with torch.no_grad():
        found = model(graph.x, graph.adjacency).log_softmax(dim=1).numpy()[split.val.numpy()]
    truth, of_val = graph.y.numpy()[split.val.numpy()], _weights(graph, split, config)[1]
    row = {
        "epoch": 1,
        "val_loss": log_loss(found, truth, None if name == "label-propagation" else of_val),
        "val_accuracy": float((found.argmax(1) == truth).mean()),
        "chosen": chosen,
    }
    return Fitted(model.eval(), config, [row], 1, "epochs"), settings
