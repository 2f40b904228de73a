"""model.json: everything besides the weights that is needed to use them again, and where they come from."""

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import torch

import conjoint

from ..errors import InputError
from ..nn.model import NodeModel
from ..nn.zoo import build as build_by_name

FORMAT = 1
Builder = Callable[..., NodeModel]


@dataclass(frozen=True)
class ModelSpec:
    """A model by its name in the zoo and its settings: enough to build it again."""

    name: str
    features: int
    classes: int
    num_nodes: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def build(self, seed: int, build: Builder | None = None) -> NodeModel:
        """The model with fresh weights drawn from `seed`. `build` stands in for `conjoint.nn.zoo.build`."""
        sizes = {"features": self.features, "classes": self.classes, "num_nodes": self.num_nodes}
        return (build or build_by_name)(self.name, **sizes, seed=seed, **self.settings)


@dataclass(frozen=True)
class Sidecar:
    """What model.json holds. `result` and `weights_sha256` are there once the run has finished."""

    model: ModelSpec
    class_names: tuple[str, ...]
    data_name: str
    data_fingerprint: str
    split_name: str
    split_seed: int | None
    split_sizes: tuple[int, int, int]
    split_fingerprint: str
    versions: Mapping[str, str]
    result: Mapping[str, Any] | None = None
    weights_sha256: str | None = None
    format: int = FORMAT

    @property
    def finished(self) -> bool:
        return self.weights_sha256 is not None


def versions() -> dict[str, str]:
    return {
        "conjoint": conjoint.__version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def sidecar_to(sidecar: Sidecar) -> str:
    return json.dumps(asdict(sidecar), indent=1, allow_nan=False) + "\n"


def sidecar_from(text: str, source: str) -> Sidecar:
    """Read model.json, trusting nothing in it."""
    content = json_object(text, source)
    if content.get("format") != FORMAT:
        raise InputError(
            f"{source}: format {content.get('format')!r}, this version reads {FORMAT}; update conjoint"
        )
    _check(content, Sidecar, source)
    _check(content["model"], ModelSpec, f"{source}: model")
    if not all(isinstance(name, str) for name in content["class_names"]):
        raise InputError(f"{source}: class_names must be strings")
    sizes = content["split_sizes"]
    if len(sizes) != 3 or not all(type(size) is int for size in sizes):
        raise InputError(f"{source}: split_sizes must be three whole numbers")
    result = content["result"] or {}
    best, epochs = result.get("best_epoch"), result.get("epochs")
    sound = type(best) is int and type(epochs) is int and 1 <= best <= epochs
    if content["weights_sha256"] is not None and not sound:
        raise InputError(f"{source}: finished without a result that makes sense; the file is damaged")
    spec = ModelSpec(**content.pop("model"))
    for name in ("features", "classes", "num_nodes"):
        if not 0 <= getattr(spec, name) < 2**40:
            raise InputError(f"{source}: model: {name}={getattr(spec, name)} is out of range")
    names, sizes = tuple(content.pop("class_names")), tuple(content.pop("split_sizes"))
    return Sidecar(model=spec, class_names=names, split_sizes=sizes, **content)


def json_object(text: str, source: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{source}: not valid JSON; it is damaged or another file") from None
    if not isinstance(content, dict):
        raise InputError(f"{source}: expected a JSON object; it is damaged or another file")
    return content


# How a field's type is written in JSON.
_IN_JSON: dict[Any, tuple[type, ...]] = {
    str: (str,),
    int: (int,),
    str | None: (str, type(None)),
    int | None: (int, type(None)),
    ModelSpec: (dict,),
    Mapping[str, Any]: (dict,),
    Mapping[str, str]: (dict,),
    Mapping[str, Any] | None: (dict, type(None)),
    tuple[str, ...]: (list,),
    tuple[int, int, int]: (list,),
}


def _check(content: Mapping[str, Any], kind: type, source: str) -> None:
    """Every entry of the dataclass is there, of its type, and nothing else."""
    wanted = {each.name: _IN_JSON[each.type] for each in fields(kind)}
    for name in content:
        if name not in wanted:
            raise InputError(f"{source}: unknown entry {name!r}; the file is foreign or from a newer version")
    for name, kinds in wanted.items():
        value = content.get(name, ...)
        if not isinstance(value, kinds) or isinstance(value, bool):
            found = "missing" if value is ... else type(value).__name__
            raise InputError(
                f"{source}: {name!r} is {found}, expected {kinds[0].__name__}; the file is damaged"
            )
