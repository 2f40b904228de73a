"""Throw damaged files at one reader, and let those that reach new lines breed further ones.

    python -m fuzz.campaign csv --count 10000 --seed 1      (with src and tests on PYTHONPATH)

Damaged inputs come from the pool: the reader's sound samples, the corpus kept in the repository, and what was
found on the way. Every few inputs run under a tracer; one that reaches a new line of conjoint joins the pool.
The whole run is a function of (reader, count, seed, corpus), and a find is written down as bytes.
"""

import argparse
import ast
import contextlib
import json
import random
import resource
import sys
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import conjoint
from conjoint.errors import ConjointError
from fuzz.guard import end_if_stuck, no_longer_than, no_more_than, nothing_but, scratch_folder
from fuzz.readers import READERS, Reader

CORPUS = Path(__file__).parent / "corpus"
SOURCES = str(Path(conjoint.__file__).parent)
TRACE_EVERY = 20
SECONDS_EACH = 20.0
LARGEST = 3_000  # bytes of an input that may join the pool: small ones are quick, and fit in the corpus
Line = tuple[str, int]


@dataclass
class Tally:
    """What came of a run."""

    reader: str
    seed: int
    inputs: int = 0
    values: int = 0  # inputs that were still read
    refusals: int = 0  # inputs refused in one line
    different_refusals: int = 0
    seconds: float = 0.0
    slowest: float = 0.0  # seconds of processor time
    lines: int = 0  # lines of conjoint that were reached
    bred: int = 0  # inputs that reached a new one
    grown_mib: float = 0.0
    finds: list[dict[str, str]] = field(default_factory=list)


def corpus_file(reader: str) -> Path:
    return CORPUS / f"{reader.replace(' ', '-')}.txt"


def load_corpus(reader: str) -> list[bytes]:
    """One bytes literal a line: readable where the format is text, and text for git where it is not."""
    path = corpus_file(reader)
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return [ast.literal_eval(line) for line in lines]


def save_corpus(reader: str, inputs: list[bytes]) -> None:
    CORPUS.mkdir(exist_ok=True)
    text = "".join(f"{raw!r}\n" for raw in sorted(set(inputs), key=lambda raw: (len(raw), raw)))
    corpus_file(reader).write_text(text, encoding="ascii")


def try_one(reader: Reader, raw: bytes, folder: Path, chance: random.Random) -> str | None:
    """None if the input was read, else the one line it was refused with. Anything else escapes."""
    try:
        with no_longer_than(SECONDS_EACH), nothing_but(folder):
            reader.read(raw, folder, chance)
    except ConjointError as error:
        message = str(error)
        assert message and "\n" not in message, f"not one line: {message!r}"
        return message
    return None


def run(
    name: str, count: int, seed: int, breed: bool = True, keep_going: bool = False
) -> tuple[Tally, list[bytes]]:
    """The tally, and the inputs that reached new lines."""
    reader, tally = READERS[name], Tally(name, seed)
    sound, kept = reader.seeds(), load_corpus(name)
    pool, bred, seen, messages = [*sound, *kept], list[bytes](), set[Line](), Counter[str]()
    began = time.perf_counter()
    with scratch_folder() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for raw in sound:  # also what is imported or compiled on first use, before anything is watched
            for draw in range(8):
                with contextlib.suppress(ConjointError):
                    reader.read(raw, folder, random.Random(draw))
        for raw in [*sound, *kept]:
            seen |= _traced(reader, raw, folder, random.Random(0), tally, messages, keep_going)
        before = _peak()
        with no_more_than(4.0):
            for number in range(count):
                if number % 500 == 0:
                    end_if_stuck(1800.0)
                chance = random.Random(f"{seed}/{number}")
                raw = reader.damage(chance.choice(pool), chance)
                if breed and number % TRACE_EVERY == 0:
                    reached = _traced(reader, raw, folder, chance, tally, messages, keep_going)
                    if reached - seen and len(raw) <= LARGEST:
                        seen |= reached
                        pool.append(raw)
                        bred.append(raw)
                else:
                    _counted(reader, raw, folder, chance, tally, messages, keep_going)
        end_if_stuck(0)
        tally.grown_mib = round(_peak() - before, 1)
    tally.seconds = round(time.perf_counter() - began, 1)
    tally.slowest = round(tally.slowest, 3)
    tally.different_refusals, tally.lines, tally.bred = len(messages), len(seen), len(bred)
    return tally, bred


def _counted(
    reader: Reader,
    raw: bytes,
    folder: Path,
    chance: random.Random,
    tally: Tally,
    messages: Counter[str],
    keep_going: bool,
) -> None:
    began = time.process_time()
    try:
        message = try_one(reader, raw, folder, chance)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if not keep_going:
            error.add_note(f"reader {tally.reader!r}, input {raw!r:.2000}")
            raise
        tally.finds.append({"error": f"{type(error).__name__}: {error!s:.300}", "input": f"{raw!r:.4000}"})
        message = ""
    tally.inputs += 1
    tally.slowest = max(tally.slowest, time.process_time() - began)
    if message is None:
        tally.values += 1
    elif message:
        tally.refusals += 1
        messages["".join(c for c in message if not c.isdigit())[-60:]] += 1


def _traced(
    reader: Reader,
    raw: bytes,
    folder: Path,
    chance: random.Random,
    tally: Tally,
    messages: Counter[str],
    keep_going: bool,
) -> set[Line]:
    """As `_counted`; the lines of conjoint that were run."""
    reached: set[Line] = set()

    def lines(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return lines

    def calls(frame: FrameType, event: str, _: Any) -> Any:
        return lines if frame.f_code.co_filename.startswith(SOURCES) else None

    before = sys.gettrace()
    sys.settrace(calls)
    try:
        _counted(reader, raw, folder, chance, tally, messages, keep_going)
    finally:
        sys.settrace(before)
    return reached


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description="fuzz one reader; prints one JSON line")
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true", help="add what reached new lines to the corpus")
    options = parser.parse_args()
    tally, bred = run(options.reader, options.count, options.seed, keep_going=True)
    if options.save and bred:
        save_corpus(options.reader, [*load_corpus(options.reader), *bred])
    print(json.dumps(asdict(tally)))
    return 1 if tally.finds else 0


if __name__ == "__main__":
    raise SystemExit(main())
