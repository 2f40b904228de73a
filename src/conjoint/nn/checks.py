"""Arguments of layers and settings of networks, checked before any computation."""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.sparse import stored
from ..recording import readable

_KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "choice of true or false"),
    int: ((int,), "whole number"),
    float: ((int, float), "number"),
    str: ((str,), "word"),
}


def settings(of: str, usual: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The usual settings of a network, changed as given, each of its usual kind.

    A type in `usual` stands for None, or a value of that type. A whole number counts something, so it is 1 or
    more; a seed, or what is off by default, may be 0.
    """
    for name, value in given.items():
        if name not in usual:
            raise InputError(f"{name}={value!r}: {of} has no such setting; it has {', '.join(usual)}")
        default = usual[name]
        kind = default if isinstance(default, type) else type(default)
        if value is None and kind is default:
            continue
        fitting, word = _KINDS[kind]
        if not isinstance(value, fitting) or (isinstance(value, bool) and kind is not bool):
            raise InputError(f"{name}: {value!r}; expected a {word}")
        if kind is int:
            at_least(0 if default == 0 else 1, **{name: given[name]})
        elif name.endswith("dropout"):
            share(**{name: given[name]})
    return {**defaults(usual), **given}


def defaults(usual: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, type) else value for name, value in usual.items()}


def at_least(least: int, **values: int) -> None:
    for name, value in values.items():
        if value < least:
            raise InputError(f"{name}: {value}; choose {least} or more")


def share(**values: float) -> None:
    """Dropout rates: at least 0, below 1."""
    for name, value in values.items():
        if not 0.0 <= value < 1.0:
            raise InputError(f"{name}: {value}; choose a share from 0 (none) to below 1")


def multiple(name: str, value: int, of: int) -> None:
    if value % of:
        raise InputError(f"{name}: {value}; choose a multiple of heads={of}")


def one_of(name: str, value: object, known: Collection[str]) -> None:
    if value not in known:
        raise InputError(f"{name}: {value!r} is unknown; choose one of {', '.join(sorted(known))}")


def feature_pair(x: Tensor | tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor | None]:
    """x, or the pair (sources, targets); for one set of nodes both are the same tensor."""
    pair = (x, x) if isinstance(x, Tensor) else x
    for side in pair:
        if side is not None and (not isinstance(side, Tensor) or side.dim() != 2):
            found = f"shape {tuple(side.shape)}" if isinstance(side, Tensor) else type(side).__name__
            raise InputError(f"x: expected node features of shape [nodes, features], got {found}")
        if side is not None and not side.is_floating_point():
            raise InputError(f"x: expected float features, got {side.dtype}; convert them with .float()")
    return pair


def finite(x: Tensor) -> None:
    """Refuse NaN and infinity. The sum is one fast pass; only a suspicious one is looked at closely."""
    values = stored(x)
    if not readable(values):
        return
    if not bool(torch.isfinite(values.sum())) and (bad := int((~torch.isfinite(values)).sum())):
        raise InputError(f"x: {bad} of its values are NaN or infinite; replace them before training")


def width(x: Tensor, expected: int) -> None:
    if expected > 0 and x.size(1) != expected:
        raise InputError(f"x: it has {x.size(1)} features, but the layer was made with {expected}")


def sizes(size: tuple[int, int], rows: tuple[int, int | None]) -> tuple[int, int]:
    """PyG's `size=(sources, targets)` against the rows of x."""
    for name, given, found in zip(("sources", "targets"), size, rows, strict=True):
        if found is not None and given != found:
            raise InputError(f"size: it says {given} {name}, but x has {found} rows for them")
    return (int(size[0]), int(size[1]))


def rows(adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> None:
    """The features of a prepared graph: one row per source, and per target if those are given apart."""
    pairs = (("sources", x_src, adj.num_src), ("targets", x_dst, adj.num_dst))
    for side, given, expected in pairs:
        if given is not None and given.size(0) != expected:
            raise InputError(f"x: it has {given.size(0)} rows for the graph's {expected} {side}")
