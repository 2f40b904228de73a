"""The command `conjoint`: streams, exit codes, one-line errors. A verb is imported when it is called."""

import argparse
import difflib
import os
import sys
import tomllib
import warnings
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import ConjointError, InputError, InputErrors, Interrupted, spelling
from ..text import clean
from .options import VERBS, HelpFormatter, Parser, add_options, as_typed

OUT_OF_MEMORY = ("allocate memory", "not enough memory", "out of memory", "bad_alloc")  # torch's words


def make_parser() -> Parser:
    told = tomllib.loads((Path(__file__).parent / "help.toml").read_text("utf-8"))

    def about(name: str) -> dict[str, Any]:
        texts = {"description": told[name]["description"], "epilog": told[name]["examples"]}
        return {**texts, "formatter_class": HelpFormatter, "allow_abbrev": False}

    parser = Parser(prog="conjoint", **about("conjoint"))
    parser.add_argument("--version", action="version", version=f"conjoint {__version__}")
    verbs = parser.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)
    for name in VERBS:
        add_options(verbs.add_parser(name, help=told[name]["summary"], **about(name)), name)
    return parser


def read_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of one command. An unknown one is answered with the nearest that exists."""
    options, unknown = make_parser().parse_known_args(argv)
    if unknown:
        known = [*vars(options), "help"]
        word = unknown[0].partition("=")[0].lstrip("-").replace("-", "_")
        near = [f"--{name.replace('_', '-')}" for name in difflib.get_close_matches(word, known, 1)]
        guess = f"; did you mean {near[0]}?" if near and unknown[0].startswith("-") else ""
        raise InputError(f"{unknown[0]!r} is not understood{guess}; see `conjoint {options.verb} --help`")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0: done; 2: a mistake the user can mend, in one line on stderr; 130: interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if stream in (sys.__stdout__, sys.__stderr__) and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a letter that the terminal lacks is no failure
    usual = spelling.set(as_typed)
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        try:
            options = read_arguments(argv)
            import_module(f".{options.verb}", __name__).work(options)
            sys.stdout.flush()
        except Interrupted as stop:
            return _complain(str(stop), 130)
        except InputErrors as error:
            return max(map(_complain, error.faults))
        except ConjointError as error:
            return _complain(str(error))
        except KeyboardInterrupt:
            return _complain("interrupted", 130)
        except BrokenPipeError:  # whoever read our output has gone, as in `conjoint datasets | head -1`
            _close_stdout()
            return 128 + 13
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _close_stdout()
            return _complain(f"{where}{(error.strerror or str(error)).lower()}; nothing more was written")
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and not any(words in str(error) for words in OUT_OF_MEMORY):
                raise
            return _complain("not enough memory; a smaller --hidden, fewer --heads or --batch needs less")
        finally:
            spelling.reset(usual)
    return 0


def _complain(message: str, status: int = 2) -> int:
    print(f"conjoint: {clean(message)}", file=sys.stderr)
    return status


def _close_stdout() -> None:
    """What is still buffered can go nowhere; without this Python would complain once more on its way out."""
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno())
        os.close(nowhere)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    _complain(f"warning: {message}")
