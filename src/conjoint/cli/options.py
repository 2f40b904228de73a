"""The options of options.toml: as argparse takes them, and as the settings of a plan that they stand for.

Nothing heavy is imported here: help and mistakes in options must be answered at once.
"""

import argparse
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from .. import defaults
from ..errors import InputError

TABLE = tomllib.loads(Path(__file__).with_name("options.toml").read_text("utf-8"))
VERBS: dict[str, list[str]] = TABLE["verbs"]  # and the groups of options that each has
SECTIONS = ("data", "split", "model", "train", "batch", "search")  # of a plan, and of a run's config.toml


class Parser(argparse.ArgumentParser):
    """Errors are raised, not printed: `main` turns every complaint into one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see `{self.prog} --help`")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Paragraphs and examples stay as they were written; options have room."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)


def whole_number(text: str) -> int:
    """A whole number, as people write it: 169343, 169_343 or 1e6."""
    try:
        value = float(text) if "e" in text.lower() else int(text)
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):  # no number, or 1e400
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")


# Kind of an option -> what a file must give in its place, in words; arguments of argparse.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("text", {}),
    "texts": ("text or a list of texts", {"nargs": "+", "action": "extend"}),
    "flag": ("true or false", {"action": "store_true"}),
    "whole": ("a whole number", {"type": whole_number, "metavar": "N"}),
    "number": ("a number", {"type": float, "metavar": "X"}),
}


def add_options(parser: argparse.ArgumentParser, verb: str) -> None:
    places: dict[str, Any] = {"": parser}
    for group in VERBS[verb]:
        title = TABLE["titles"].get(group, "")
        if title not in places:
            places[title] = parser.add_argument_group(title)
        for flag, option in TABLE["groups"][group].items():
            names = [flag, *filter(None, [option.get("short")])]
            told = {
                key: value for key, value in option.items() if key not in ("kind", "at", "short", "values")
            }
            if option.get("kind") == "flag" and "at" in option:
                told["default"] = None  # not typed: the file of --config decides
            told["help"] = option["help"].format_map(vars(defaults))
            places[title].add_argument(*names, **KINDS[option.get("kind", "text")][1] | told)


def _planned() -> dict[str, tuple[str, str, str]]:
    """The options that are settings of a plan: section, name in it, and kind."""
    found = {}
    for group in TABLE["groups"].values():
        for flag, option in group.items():
            if "at" in option:
                section, _, key = option["at"].partition(".")
                name = option.get("dest", flag.lstrip("-").replace("-", "_"))
                found[name] = (section, key, option.get("kind", "text"))
    return found


PLANNED = _planned()
# Settings of the network, of training and of batches are checked by those who take them.
CHECKED = {
    (section, key): kind for section, key, kind in PLANNED.values() if section in ("data", "split", "search")
}
# What only a file can say.
CHECKED |= dict.fromkeys((("data", "name"), ("data", "folder")), "text")
CHECKED |= {("model", "name"): "text", ("data", "standardise"): "flag", ("data", "header"): "flag"}
CHECKED |= {("data", "seed"): "whole", ("data", "max_bytes"): "whole"}


# Arguments of `read_graph`, as they are typed here.
TYPED = {
    option["at"].partition(".")[2]: flag
    for group in ("graph", "columns")
    for flag, option in TABLE["groups"][group].items()
    if option["at"] not in ("data.source", "data.split") or flag.endswith("-column")
}


def as_typed(name: str, value: str) -> str:
    """How errors name an argument, see `conjoint.errors.argument`."""
    flag = TYPED.get(name, f"--{name.replace('_', '-')}")
    return flag if value in ("", "True") else f"{flag} {value}"


def sections(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The given options that are settings of a plan, as a file of --config would have them."""
    found: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    for name, (section, key, _) in PLANNED.items():
        if name in given:
            found[section][key] = given[name]
    return found


def check_kinds(section: str, values: Mapping[str, Any]) -> None:
    """Settings that are not listed are left to whoever takes them: unknown ones are refused there."""
    for name, value in values.items():
        kind = CHECKED.get((section, name))
        if kind is not None and not _is(value, kind):
            raise InputError(f"[{section}] {name} = {value!r}: expected {KINDS[kind][0]}")


def _is(value: object, kind: str) -> bool:
    if kind == "flag":
        return isinstance(value, bool)
    if kind in ("whole", "number"):
        number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63
        return number and (kind == "number" or isinstance(value, int))
    if kind == "texts" and isinstance(value, list):
        return all(_is(item, "text") for item in value)
    return isinstance(value, str) and "\0" not in value
