"""The command `conjoint`: one module per verb, nothing heavy imported before a verb runs."""

import argparse
import difflib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from .. import __version__
from ..errors import ConjointError, InputError, Interrupted
from ..printable import clean
from . import (
    cluster,
    datasets,
    describe,
    diagnose,
    doctor,
    embed,
    explain,
    ingest,
    plot,
    predict,
    report,
    reproduce,
    train,
    tune,
)
from .parser import HelpFormatter, Parser

VERBS = {
    "train": train,
    "tune": tune,
    "predict": predict,
    "embed": embed,
    "cluster": cluster,
    "explain": explain,
    "plot": plot,
    "ingest": ingest,
    "describe": describe,
    "diagnose": diagnose,
    "datasets": datasets,
    "doctor": doctor,
    "reproduce": reproduce,
    "report": report,
}

DESCRIPTION = """\
Attention on graphs that listens to structure as well as features.

Train a network on a graph whose nodes are partly labelled, then ask it for the
classes of the others, for embeddings, clusters, and for its reasons."""

EXAMPLES = """\
start here:
  conjoint train                        train on Cora, which comes with the package
  conjoint train --edges e.csv --nodes n.csv --label topic
                                        train on your own graph
  conjoint predict runs/cora-gated-trust-1
                                        classes of all nodes
  conjoint VERB --help                  options and examples of one verb
"""


def make_parser() -> Parser:
    parser = Parser(
        prog="conjoint",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"conjoint {__version__}")
    verbs = parser.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)
    for name, module in VERBS.items():
        verb = verbs.add_parser(
            name,
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            epilog=module.EXAMPLES,
            formatter_class=HelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(verb)
        verb.set_defaults(work=module.work)
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
        _never_fail_on_a_letter(stream)
    with warnings.catch_warnings():
        warnings.showwarning = _one_line_warning
        try:
            options = read_arguments(argv)
            options.work(options)
            sys.stdout.flush()
        except Interrupted as stop:
            return _complain(str(stop), 130)
        except ConjointError as error:
            return _complain(str(error), 2)
        except KeyboardInterrupt:
            return _complain("interrupted", 130)
        except BrokenPipeError:
            return _leave_quietly()
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _close_stdout()
            return _complain(f"{where}{(error.strerror or str(error)).lower()}; nothing more was written", 2)
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            return _complain("not enough memory; a smaller --hidden, fewer --heads or --batch needs less", 2)
    return 0


def _is_out_of_memory(error: Exception) -> bool:
    """torch says so in a RuntimeError."""
    said = ("allocate memory", "not enough memory", "out of memory", "bad_alloc")
    return isinstance(error, MemoryError) or any(words in str(error) for words in said)


def _complain(message: str, status: int) -> int:
    print(f"conjoint: {clean(message)}", file=sys.stderr)
    return status


def _leave_quietly() -> int:
    """Whoever read our output has gone, as in `conjoint datasets | head -1`."""
    _close_stdout()
    return 128 + 13


def _close_stdout() -> None:
    """What is still buffered can go nowhere; without this Python would complain once more on its way out."""
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno())
        os.close(nowhere)


def _never_fail_on_a_letter(stream: TextIO) -> None:
    if stream in (sys.__stdout__, sys.__stderr__) and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")


def _one_line_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"conjoint: warning: {clean(message)}", file=sys.stderr)
