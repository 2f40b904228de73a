"""conjoint completion: a script that completes verbs, options and values in bash, zsh or fish.

All of it stands in the script, so that pressing Tab starts no Python.
"""

import argparse
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import defaults
from ..benchmark_files import BENCHMARKS
from ..nn.names import KINDS, MODELS
from .options import TABLE, VERBS

NAMES = {  # values that are too many, or too often new, to stand in options.toml
    "dataset": list(BENCHMARKS),
    "model": list(MODELS),
    "--model": list(MODELS),
    "--models": list(MODELS),
    "--intervention": [*KINDS, "auto"],
}
KINDS_OF_VALUE = {
    "FILE": "file",
    "FOLDER": "folder",
    "RUN": "folder",
    "NAME|FOLDER": "folder",
    "NAME|FOLDER|FILE": "file",
}


class Word(NamedTuple):
    """An option, or an argument that is told by its place."""

    name: str
    short: str | None
    help: str
    kind: str  # of its value: file, folder, none of these; flag: it has no value
    values: list[str]


def work(options: argparse.Namespace) -> None:
    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell]())


def words(verb: str) -> list[Word]:
    """What may follow a verb, by options.toml."""
    groups = (TABLE["groups"][group] for group in VERBS[verb])
    found = [_word(name, option) for group in groups for name, option in group.items()]
    return [*found, Word("--help", "-h", "show this help", "flag", [])]


def _word(name: str, option: dict[str, Any]) -> Word:
    values = option.get("choices") or option.get("values") or NAMES.get(name, [])
    kind = "flag" if option.get("kind") == "flag" else KINDS_OF_VALUE.get(option.get("metavar", ""), "none")
    return Word(name, option.get("short"), option["help"].format_map(vars(defaults)), kind, values)


def _verbs() -> dict[str, str]:
    told = tomllib.loads((Path(__file__).parent / "help.toml").read_text("utf-8"))
    return {verb: told[verb]["summary"] for verb in VERBS}


def _options(verb: str) -> list[Word]:
    return [word for word in words(verb) if word.name.startswith("-")]


def _places(verb: str) -> list[Word]:
    return [word for word in words(verb) if not word.name.startswith("-")]


def _filled(script: str, **parts: list[str]) -> str:
    """The script of this folder with lines in place of each @name@."""
    text = Path(__file__).with_name(script).read_text("utf-8").removesuffix("\n")
    for name, lines in parts.items():
        text = text.replace(f"@{name}@", "\n".join(lines))
    return text


def bash() -> str:
    def row(pattern: str, word: Word) -> str:
        return f"        {pattern}) words={shlex.quote(' '.join(word.values))} kind={word.kind} ;;"

    values = [
        row(f"{verb},{one.name}", one) for verb in VERBS for one in _options(verb) if one.kind != "flag"
    ]
    flags = {verb: " ".join(one.name for one in _options(verb)) for verb in VERBS}
    options = [f"        {verb},-*) words={shlex.quote(flags[verb])} kind=none ;;" for verb in VERBS]
    places = [row(f"{verb},*", one) for verb in VERBS for one in _places(verb)[:1]]
    verbs = [shlex.quote(" ".join([*VERBS, "--help", "--version"]))]
    return _filled("completion.bash", verbs=verbs, values=values, options=options, places=places)


def zsh() -> str:
    def safe(text: str) -> str:  # brackets and colons divide what _arguments reads
        return "".join(f"\\{sign}" if sign in "[]:\\" else sign for sign in text)

    def value(word: Word) -> str:
        kinds = {"file": "_files", "folder": "_files -/", "none": " "}
        action = f"({' '.join(map(safe, word.values))})" if word.values else kinds[word.kind]
        return f":{word.name.lstrip('-')}:{action}"

    def rows(verb: str) -> Iterator[str]:
        for one in _options(verb):
            end = "" if one.kind == "flag" else value(one)
            for name in filter(None, (one.name, one.short)):
                yield f"*{name}{'=' if end and name == one.name else ''}[{safe(one.help)}]{end}"
        for place in _places(verb):
            yield f":{value(place)}"

    lines = [f"        {shlex.quote(f'{verb}:{safe(about)}')}" for verb, about in _verbs().items()]
    cases = []
    for verb in VERBS:
        arguments = " \\\n            ".join(map(shlex.quote, rows(verb)))
        cases.append(f"    {verb}) _arguments \\\n            {arguments} ;;")
    return _filled("completion.zsh", verbs=lines, options=cases)


def fish() -> str:
    lines = [
        "# fish completion of conjoint; ~/.config/fish/config.fish: conjoint completion fish | source",
        "complete -c conjoint -f",
    ]
    quoted = {verb: shlex.quote(about) for verb, about in _verbs().items()}
    lines += [f"complete -c conjoint -n __fish_use_subcommand -a {verb} -d {quoted[verb]}" for verb in VERBS]
    for verb in VERBS:
        start = f"complete -c conjoint -n '__fish_seen_subcommand_from {verb}'"
        for one in words(verb):
            flag = f" -l {one.name.removeprefix('--')}" if one.name.startswith("-") else ""
            flag += f" -s {one.short.removeprefix('-')}" if one.short else ""
            takes = {
                "flag": "",
                "file": " -r -F",
                "folder": " -x -a '(__fish_complete_directories)'",
                "none": " -x",
            }
            given = f" -a {shlex.quote(' '.join(one.values))}" if one.values else ""
            if flag:
                lines.append(f"{start}{flag}{takes[one.kind]}{given} -d {shlex.quote(one.help)}")
            elif one.kind == "folder" or given:
                folders = " -a '(__fish_complete_directories)'" if one.kind == "folder" else ""
                lines += [f"{start}{more}" for more in (given, folders) if more]
    return "\n".join(lines)
