"""An argument parser whose complaints are one line, and whose help teaches."""

import argparse
from typing import NoReturn

from ..errors import InputError


class Parser(argparse.ArgumentParser):
    """Errors are raised, not printed: `main` turns every complaint into one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see `{self.prog} --help`")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Paragraphs and examples stay as they were written; options have room."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress and no hints on stderr")


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """The run folder to work on, and where its graph is now, should it have moved since."""
    parser.add_argument("run", metavar="RUN", help="a folder that `conjoint train` wrote")
    parser.add_argument("--data", metavar="FOLDER", help="where the benchmark's raw files are now")
    parser.add_argument("--edges", metavar="FILE", help="where the edge table is now")
    parser.add_argument("--nodes", metavar="FILE", help="where the node table is now")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1, ...")


def whole_number(text: str) -> int:
    """A whole number, as people write it: 169343, 169_343 or 1e6."""
    try:
        value = float(text) if "e" in text.lower() else int(text)
    except ValueError:
        value = 0.5
    if value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(value)
