"""What a run consists of: which graph, which split, which model, which training. Options and TOML meet here.

A plan is what stands in the `[origin]` of a run's config.toml, so a run can be taken up again, and its file
can be given to `--config`.
"""

import argparse
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

from .. import defaults
from ..data import load_graph, read_graph
from ..data.from_tables import READING
from ..errors import InputError
from ..graph.folder import open_folder
from ..graph.graph import Graph
from ..nn.names import ALIASES, MODELS
from ..nn.zoo import input_graph
from ..selection.setting import AUTO, Setting, known_settings, make_setting
from ..training import Run
from ..training.config import BALANCED, TrainConfig, config_to, read_toml
from ..training.ranks import launched
from .options import SECTIONS, check_kinds, sections


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
            **({"members": dict(self.setting.train)} if self.setting.is_ensemble else {}),
            **({"search": dict(self.setting.search)} if self.setting.search else {}),
            **({"batch": dict(self.setting.batch)} if self.setting.batch else {}),
        }


def plan_from(options: argparse.Namespace) -> Plan:
    """The file given with --config, then --variant, the options, --set: each over the one before."""
    path = getattr(options, "config", None)
    file = read_config(path) if path else {name: {} for name in SECTIONS}
    given = {name: value for name, value in vars(options).items() if value is not None}
    typed = sections(given)
    split, train, batch, search = (file[name] | typed[name] for name in ("split", "train", "batch", "search"))
    data = _named_graph(file["data"], given) | typed["data"]
    if "edges" in data:
        data.setdefault("reading", READING)
    if "fanout" in given:
        batch["fanout"] = fanout_of(given["fanout"])
    if "class_weight" in given:
        train["class_weight"] = class_weights(given["class_weight"])
    if "consistency" in given:
        train["consistency"] = consistency_settings(given["consistency"])
    named = given.get("model") or (None if "intervention" in given else file["model"].get("name"))
    model = {key: value for key, value in file["model"].items() if key != "name"} | model_settings(given)
    # Only where a network may be named is there one to recommend: `tune` has its own, and its own --trials.
    in_parts = launched() or not hasattr(options, "model")
    search = search if hasattr(options, "model") else {}

    def setting() -> Setting:
        return make_setting(
            None if named is None else model_name(named),
            intervention=given.get("intervention"),
            strategy=given.get("strategy"),
            settings=model,
            train=train,
            batch=batch,
            search=search,
            in_parts=in_parts,
            typed="--{}",
        )

    for key, value in map(assignment, given.get("set", [])):
        _place(key, value, setting().model, model, train)
    made = setting()
    if split.get("resplit"):  # a seed's validation nodes are another's test nodes: nobody is asked
        if made.undecided == AUTO:
            raise InputError(
                "--resplit: --intervention auto chooses by one split's validation nodes; leave it out"
            )
        made = replace(made, undecided=None)
    seeds = _seeds(given, file.get("seeds"), train, "folder" in data or made.is_ensemble)
    return Plan(made, absolute(data), split, seeds)


def plan_of_run(run: Run, options: argparse.Namespace) -> Plan:
    """The plan that the run was made from, with the files where the options say that they are now."""
    source = f"{run.path / 'config.toml'}: [origin]"
    data = _section(run.origin, "data", source)
    moved = {"folder" if "folder" in data else "root": options.data}
    moved |= {"edges": options.edges, "nodes": options.nodes}
    data |= {key: str(Path(path).absolute()) for key, path in moved.items() if path is not None}
    if "folder" in data:  # a graph inside of the run's own folder
        data["folder"] = str((run.path / str(data["folder"])).absolute())
    if "edges" in data:
        data.setdefault("reading", 1)  # the rules of the time when runs did not name them
    if not isinstance(data.get("edges", data.get("folder", data.get("name"))), str):
        raise InputError(f"{source} names no graph; the run was not made by `conjoint train`")
    seeds = run.origin.get("seeds", [run.config.seed])
    if not is_seeds(seeds):
        raise InputError(f"{source} seeds={seeds!r}: expected a list of whole numbers; restore the file")
    batch, search, split = (_section(run.origin, name, source) for name in ("batch", "search", "split"))
    # What is usual for a graph may change; the run says what it was trained with.
    split.setdefault("name", run.sidecar.split_name)
    setting = Setting(run.spec.name, run.spec.settings, config_to(run.config), batch)
    if setting.is_ensemble:
        asked = {key: one for key, one in _section(run.origin, "model", source).items() if key != "name"}
        members = _section(run.origin, "members", source)
        setting = replace(setting, settings=asked, train=members, search=search)
    return Plan(setting, data, split, tuple(seeds))


def _section(origin: Mapping[str, Any], name: str, source: str) -> dict[str, Any]:
    """A table of plain values: the file may have been edited, or come from elsewhere."""
    section = origin.get(name, {})
    plain = isinstance(section, dict) and all(
        isinstance(value, str | int | float | bool)
        or (isinstance(value, list) and all(isinstance(item, str | int) for item in value))
        or key == "class_weight"  # checked with the settings of training
        for key, value in section.items()
    )
    if not plain:
        raise InputError(f"{source} {name} is not a table of plain values; restore the file from a copy")
    check_kinds(name, section)
    return dict(section)


def graph_of(plan: Plan) -> Graph:
    """The graph of the plan, with the features and edges that its model reads."""
    options = dict(plan.data)
    if "folder" in options:
        graph = open_folder(options["folder"])
    else:
        read: Any = read_graph if "edges" in options else load_graph
        known = signature(read).parameters
        for key in options:
            if key not in known:
                own = "describes your own files" if "edges" not in options else "is not known"
                raise InputError(f"[data] {key}={options[key]!r}: it {own}; see `conjoint train --help`")
        graph = read(options.pop("edges" if "edges" in options else "name"), **options)
    return input_graph(plan.setting.model, graph, **plan.setting.settings)


def model_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """What --variant and the options for single settings say about the network."""
    return {**defaults.VARIANTS.get(given.get("variant", ""), {}), **sections(given)["model"]}


def model_name(text: str) -> str:
    name = text.lower()
    return name if name in MODELS else ALIASES.get(name, name)


def fanout_of(text: str) -> list[int]:
    """10,5 -> [10, 5]"""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(f"--fanout {text}: write whole numbers, for example 10,5") from None


def read_config(path: str) -> dict[str, Any]:
    """A TOML file with sections [data], [split], [model], [train]; or the config.toml of a run."""
    try:
        document = read_toml(Path(path).read_bytes().decode(), f"--config {path}")
    except OSError as error:
        raise InputError(f"--config {path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"--config {path}: not valid TOML ({error}); mend that line") from None
    origin = document.pop("origin", {})
    if isinstance(origin, dict):
        document = {**origin, **document}
        data = origin.get("data")
        if isinstance(data, dict) and "edges" in data:
            data.setdefault("reading", 1)
        if isinstance(data, dict) and isinstance(data.get("folder"), str):
            data["folder"] = str(Path(path).parent / data["folder"])
    if "members" in document:  # of an ensemble's run: what was asked of all, in place of the run's own
        document["train"] = document.pop("members")
    for name in document:
        if name not in (*SECTIONS, "seeds"):
            raise InputError(f"--config {path}: unknown section {name!r}; there are {', '.join(SECTIONS)}")
    parts: dict[str, Any] = {name: document.get(name, {}) for name in SECTIONS}
    for name, part in parts.items():
        if not isinstance(part, dict):
            raise InputError(f"--config {path}: {name} must be a section: [{name}]")
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


def class_weights(text: str) -> str | dict[str, float]:
    """balanced, or spam=5,ham=1"""
    if text == BALANCED:
        return text
    try:
        pairs = [word.rpartition("=") for word in text.split(",")]
        return {name.strip(): float(weight) for name, _, weight in pairs}
    except ValueError:
        raise InputError(
            f"--class-weight {text}: write {BALANCED}, or CLASS=WEIGHT,CLASS=WEIGHT, for example spam=5,ham=1"
        ) from None


def _place(key: str, value: Any, name: str, model: dict[str, Any], train: dict[str, Any]) -> None:
    if key in known_settings(name):
        model[key] = value
    elif key in (known := [entry.name for entry in fields(TrainConfig)]):
        train[key] = value
    else:
        choices = ", ".join([*known_settings(name), *known])
        raise InputError(f"--set {key}: neither {name} nor training has such a setting; there are {choices}")


def _named_graph(data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A benchmark's name or the user's own files, not both; nothing at all means the embedded Cora."""
    if "dataset" in given and "edges" in given:
        raise InputError(f"{given['dataset']} and --edges: name a benchmark or your own files, not both")
    if "edges" in given and "edition" in given:
        raise InputError("--edition chooses among copies of a benchmark; leave it out for your own files")
    if "dataset" in given:
        kept = {key: data[key] for key in ("root", "features") if key in data}
        folder = Path(given["dataset"]).expanduser()
        if (folder / "manifest.json").exists():
            return {**kept, "folder": str(folder)}
        if folder.is_file():  # as with --edges
            return {**{key: value for key, value in data.items() if key != "name"}, "edges": str(folder)}
        return {**kept, "name": given["dataset"].lower()}
    if "edges" in given:
        return {key: value for key, value in data.items() if key != "name"}
    if "name" in data or "edges" in data or "folder" in data:
        return dict(data)
    if "nodes" in given or "label" in given:
        raise InputError("--nodes and --label describe your own graph; name its edge table with --edges")
    return {**data, "name": "cora", **({} if "data" in given else {"source": "embedded"})}


def absolute(data: dict[str, Any]) -> dict[str, Any]:
    """Paths that still lead to the same files when a run is used from another folder or environment."""
    named = os.environ.get("CONJOINT_DATA")
    if named and "name" in data and data.get("source") != "embedded":
        data.setdefault("root", named)
    if "text_model" in data and Path(data["text_model"]).expanduser().is_dir():
        data["text_model"] = str(Path(data["text_model"]).expanduser().absolute())
    for key in ("root", "edges", "nodes", "folder"):
        if key in data:
            data[key] = str(Path(data[key]).expanduser().absolute())
    return data


def _seeds(given: Mapping[str, Any], configured: Any, train: dict[str, Any], once: bool) -> tuple[int, ...]:
    """--seed S --seeds N trains with seeds S, S+1, ..., S+N-1. A file may list them.

    An ensemble is learnt once unless more is asked for, and so is what trains on a folder, which may be very
    large.
    """
    if configured is not None and not given.keys() & {"seed", "seeds"}:
        if not is_seeds(configured):
            raise InputError(f"seeds = {configured!r}: write a list of whole numbers, for example [0, 1, 2]")
        return tuple(configured)
    usual = 1 if "seed" in given or once else defaults.SEEDS
    first, count = train.get("seed", 0), given.get("seeds", usual)
    if count < 1:
        raise InputError(f"--seeds {count}: train with 1 seed or more")
    if type(first) is not int:
        raise InputError(f"seed = {first!r}: a seed is a whole number, 0 or more")
    return tuple(range(first, first + count))


def is_seeds(value: object) -> bool:
    return isinstance(value, list) and value != [] and all(type(seed) is int and seed >= 0 for seed in value)
