"""What a run consists of: which graph, which split, which model, which training. Options and TOML meet here.

A plan is what stands in the `[origin]` of a run's config.toml, so a run can be taken up again, and its file
can be given to `--config`.
"""

import argparse
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from .. import defaults
from ..errors import InputError
from ..nn.zoo import settings_of
from ..selection.setting import AUTO, Setting, make_setting
from ..training.config import TrainConfig
from ..training.ranks import launched
from .arguments import KINDS, check_kinds

SECTIONS = ("data", "split", "model", "train", "batch")
MODEL_ALIASES = {"cat": "cat-i-mf", "cat-i": "cat-i-mf", "cat-e": "cat-e-mf"}


@dataclass(frozen=True)
class Plan:
    setting: Setting
    data: Mapping[str, Any] = field(default_factory=dict)
    split: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)

    def origin(self) -> dict[str, Any]:
        """Everything but the settings of training, which the run folder keeps by itself."""
        return {
            "data": dict(self.data),
            "split": dict(self.split),
            "model": {"name": self.setting.model, **self.setting.settings},
            "seeds": list(self.seeds),
            **({"batch": dict(self.setting.batch)} if self.setting.batch else {}),
        }


def plan_from(options: argparse.Namespace) -> Plan:
    """The file given with --config, then --variant, the options, --set: each over the one before."""
    parts = read_config(options.config) if options.config else {name: {} for name in SECTIONS}
    data, split, model, train, batch = (parts[name] for name in SECTIONS)
    given = {name: value for name, value in vars(options).items() if value is not None}
    _name_graph(data, given)
    _take(data, given, DATA_OPTIONS)
    _take(split, given, SPLIT_OPTIONS)
    _take(train, given, TRAIN_OPTIONS)
    _take(batch, given, BATCH_OPTIONS)
    if "fanout" in given:
        batch["fanout"] = fanout_of(given["fanout"])
    if "consistency" in given:
        train["consistency"] = consistency_settings(given["consistency"])
    chosen: dict[str, Any] = {name: given.get(name) for name in ("intervention", "strategy")}
    configured = None if "intervention" in given else model.get("name")
    named = given.get("model") or configured
    model = {key: value for key, value in model.items() if key != "name"} | model_settings(given)
    # Only where a network may be named is there one to recommend: a search has its own.
    in_parts = launched() or "folder" in data or not hasattr(options, "model")

    def setting() -> Setting:
        name = None if named is None else model_name(named)
        parts: dict[str, Any] = {"settings": model, "train": train, "batch": batch, "in_parts": in_parts}
        return make_setting(name, **chosen, **parts, typed="--{}")

    for key, value in map(assignment, given.get("set", [])):
        _place(key, value, setting().model, model, train)
    made = setting()
    seeds = _seeds(given, parts.get("seeds"), train, data)
    if made.undecided == AUTO and split.get("resplit"):
        raise InputError(
            "--resplit: --intervention auto chooses by one split's validation nodes; leave it out"
        )
    if split.get("resplit"):  # a seed's validation nodes are another's test nodes: nobody is asked
        made = replace(made, undecided=None)
    return Plan(made, _absolute(data), split, seeds)


def model_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """What --variant and the options for single settings say about the network."""
    settings = dict(defaults.VARIANTS[given["variant"]]) if "variant" in given else {}
    _take(settings, given, MODEL_OPTIONS)
    return settings


def model_name(text: str) -> str:
    lower = text.lower()
    return MODEL_ALIASES.get(lower, lower)


DATA_OPTIONS = {
    "data": "root",
    "edition": "source",
    "features": "features",
    "nodes": "nodes",
    "id": "id",
    "label": "label",
    "source_column": "source",
    "target_column": "target",
    "weight": "weight",
    "time": "time",
    "split_column": "split",
    "text": "text",
    "categorical": "categorical",
    "ignore": "ignore",
    "drop_unknown": "drop_unknown",
}
SPLIT_OPTIONS = {
    "split": "name",
    "split_seed": "seed",
    "train_per_class": "train_per_class",
    "num_val": "num_val",
    "num_test": "num_test",
    "train_share": "train",
    "val_share": "val",
    "train_until": "train_until",
    "val_until": "val_until",
    "resplit": "resplit",
}
MODEL_OPTIONS = {
    "hidden": "hidden",
    "heads": "heads",
    "out_heads": "out_heads",
    "layers": "num_layers",
    "rank": "rank",
    "dropout": "dropout",
}
TRAIN_OPTIONS = {
    "epochs": "epochs",
    "lr": "lr",
    "weight_decay": "weight_decay",
    "penalty_weight": "penalty_weight",
    "patience": "patience",
    "rule": "rule",
    "see_test": "see_test",
    "seed": "seed",
}


BATCH_OPTIONS = {
    "batch": "kind",
    "batch_size": "size",
    "joined": "joined",
    "batches_per_step": "per_step",
}


def fanout_of(text: str) -> list[int]:
    """10,5 -> [10, 5]"""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(f"--fanout {text}: write whole numbers, for example 10,5") from None


def read_config(path: str) -> dict[str, Any]:
    """A TOML file with sections [data], [split], [model], [train]; or the config.toml of a run."""
    try:
        document = tomllib.loads(Path(path).read_bytes().decode())
    except OSError as error:
        raise InputError(f"--config {path}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"--config {path}: not valid TOML ({error}); mend that line") from None
    origin = document.pop("origin", {})
    if isinstance(origin, dict):
        document = {**origin, **document}
    for name in document:
        if name not in (*SECTIONS, "seeds"):
            raise InputError(f"--config {path}: unknown section {name!r}; there are {', '.join(SECTIONS)}")
    parts: dict[str, Any] = {name: document.get(name, {}) for name in SECTIONS}
    for name, part in parts.items():
        if not isinstance(part, dict):
            raise InputError(f"--config {path}: {name} must be a section: [{name}]")
        if name in KINDS:
            check_kinds(name, part)
    if "seeds" in document:
        parts["seeds"] = document["seeds"]
    return parts


def assignment(text: str) -> tuple[str, Any]:
    """key=value, the value as TOML writes it, or else a plain word."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set {text}: write key=value, for example --set clip=1.0")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return key.strip(), value.strip()


def consistency_settings(text: str) -> dict[str, Any]:
    """key=value,key=value as TOML's inline table reads it; nothing at all means the defaults."""
    try:
        return tomllib.loads(f"value = {{{text}}}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        raise InputError(
            f"--consistency {text}: write key=value,key=value, for example passes=4,weight=1.0"
        ) from None


def _place(key: str, value: Any, name: str, model: dict[str, Any], train: dict[str, Any]) -> None:
    if key in settings_of(name):
        model[key] = value
    elif key in (known := [entry.name for entry in fields(TrainConfig)]):
        train[key] = value
    else:
        choices = ", ".join([*settings_of(name), *known])
        raise InputError(f"--set {key}: neither {name} nor training has such a setting; there are {choices}")


def _take(into: dict[str, Any], given: Mapping[str, Any], names: Mapping[str, str]) -> None:
    into.update({name: given[option] for option, name in names.items() if option in given})


def _name_graph(data: dict[str, Any], given: Mapping[str, Any]) -> None:
    """A benchmark's name or the user's own files, not both; nothing at all means the embedded Cora."""
    if "dataset" in given and "edges" in given:
        raise InputError(f"{given['dataset']} and --edges: name a benchmark or your own files, not both")
    if "edges" in given and "edition" in given:
        raise InputError("--edition chooses among copies of a benchmark; leave it out for your own files")
    if "dataset" in given:
        for own in [key for key in data if key not in ("root", "features")]:
            del data[own]
        folder = Path(given["dataset"]).expanduser()
        if (folder / "manifest.json").exists():
            data["folder"] = str(folder)
        else:
            data["name"] = given["dataset"].lower()
    elif "edges" in given:
        data.pop("name", None)
        data["edges"] = given["edges"]
    elif "name" not in data and "edges" not in data and "folder" not in data:
        if "nodes" in given or "label" in given:
            raise InputError("--nodes and --label describe your own graph; name its edge table with --edges")
        data["name"] = "cora"
        if "data" not in given:
            data["source"] = "embedded"


def _absolute(data: dict[str, Any]) -> dict[str, Any]:
    """Paths that still lead to the same files when a run is used from another folder or environment."""
    named = os.environ.get("CONJOINT_DATA")
    if named and "name" in data and data.get("source") != "embedded":
        data.setdefault("root", named)
    for key in ("root", "edges", "nodes", "folder"):
        if key in data:
            data[key] = str(Path(data[key]).expanduser().absolute())
    return data


def _seeds(
    given: Mapping[str, Any], configured: Any, train: dict[str, Any], data: Mapping[str, Any]
) -> tuple[int, ...]:
    """--seed S --seeds N trains with seeds S, S+1, ..., S+N-1. A file may list them.

    A graph from a folder is trained on once unless more is asked for: it may be very large.
    """
    if "seed" not in given and "seeds" not in given and configured is not None:
        if (
            not isinstance(configured, list)
            or not all(type(seed) is int for seed in configured)
            or not configured
        ):
            raise InputError(f"seeds = {configured!r}: write a list of whole numbers, for example [0, 1, 2]")
        return tuple(configured)
    usual = 1 if "seed" in given or "folder" in data else defaults.SEEDS
    first, count = train.get("seed", 0), given.get("seeds", usual)
    if count < 1:
        raise InputError(f"--seeds {count}: train with 1 seed or more")
    if type(first) is not int:
        raise InputError(f"seed = {first!r}: a seed is a whole number, 0 or more")
    return tuple(range(first, first + count))
