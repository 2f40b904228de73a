"""Make the run folders in `runs/` and the answers in `expected/` anew, with the conjoint that is installed:

    cd tests && python -m golden.record [SCRATCH]

They are kept so that later versions can show that they open, use and go on with what this one wrote.
Recording them again gives that up: do it only for a format that was changed on purpose.
"""

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from golden.bits import digest_of_run, machine
from golden.commands import EXPECTED, INGEST, KEPT, RUNS, TUNING, Kept, answer_name, tables

TEAMS = ("red team", "green", "blue, deep")
WORDS = (
    ["harbour", "boat", "rope", "tide", "sail", "crane"],
    ["forest", "moss", "fern", "trail", "oak", "owl"],
    ["kitchen", "bread", "salt", "oven", "knife", "soup"],
)
ALL_WORDS = [word for words in WORDS for word in words]
COMMON = ["work", "day", "old", "new", "small"]
UNITS = ("north", "south", "east")
NODES, NEW = 60, 4


def main() -> None:
    if sys.argv[1:2] == ["--stop"]:
        stopped(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
        return
    scratch = Path(sys.argv[1] if sys.argv[1:] else "/tmp/conjoint-golden")
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "runs").mkdir(parents=True)
    (scratch / "expected").mkdir()
    write_tables(scratch)
    conjoint("ingest", *tables(scratch), *INGEST, "--out", str(scratch / "graph"), "--quiet")
    found: dict[str, Any] = {"made_with": machine(), "runs": {}}
    for name, kept in KEPT.items():
        found["runs"][name] = record(name, kept, scratch)
        print(name, found["runs"][name])
    conjoint("tune", *tables(scratch), *TUNING, "--trials", "4", "--out", str(scratch / "runs" / "tuning"))
    (scratch / "expected" / "runs.json").write_text(json.dumps(found, indent=1) + "\n")
    for made, place in ((scratch / "runs", RUNS), (scratch / "expected", EXPECTED)):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(made, place)
    for file in scratch.glob("*.csv"):
        shutil.copy(file, RUNS)
    shutil.copytree(scratch / "graph", RUNS / "graph")


def record(name: str, kept: Kept, scratch: Path) -> dict[str, Any]:
    """Train it, stop it if it is to be stopped, and ask the run that was not stopped."""
    folder = whole = scratch / "runs" / name
    if kept.stop is not None:
        whole = scratch / f"{name}-whole"
        conjoint(*kept.train(scratch), "--out", str(folder), stop=kept.stop)
    conjoint(*kept.train(scratch), "--out", str(whole))
    for verb in ("predict", *kept.also):
        answer = scratch / "expected" / answer_name(name, verb)
        printed = conjoint(*kept.use(verb, whole, answer, scratch))
        if answer.suffix == ".json":
            answer.write_text(json.dumps(without_paths(json.loads(printed)), indent=1) + "\n")
    if name == "cora":  # the table of all nodes is large, and nothing reads it
        (folder / "predictions.csv").unlink()
    sidecar = json.loads(next(whole.rglob("model.json")).read_text())
    weights = {
        path.parent.relative_to(whole).as_posix(): digest_of_run(path.parent) for path in weights_in(whole)
    }
    return {"fingerprint": sidecar["data_fingerprint"], "weights": weights}


def weights_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("weights.safetensors"))


def without_paths(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key not in ("run", "out", "plot")}


def conjoint(*arguments: str, stop: tuple[str, int, int] | None = None) -> str:
    command = [sys.executable, "-m", "conjoint"]
    if stop is not None:
        command = [sys.executable, "-m", "golden.record", "--stop", *map(str, stop)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    expected = {None: 0, "INT": 130, "KILL": -signal.SIGKILL}[stop[0] if stop else None]
    if done.returncode != expected:
        raise SystemExit(f"{' '.join(arguments)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def stopped(kind: str, seed: int, last: int, arguments: list[str]) -> None:
    """`conjoint` with these arguments, in a process that gets a signal at an epoch of one seed's training."""
    from conjoint.cli import main as command_line
    from conjoint.training import Run

    append = Run.append

    def append_and_stop(run: Run, row: Mapping[str, Any]) -> None:
        append(run, row)
        if run.config.seed == seed and row["epoch"] == last:
            os.kill(os.getpid(), getattr(signal, f"SIG{kind}"))

    stops = {"append": append_and_stop, "due": lambda run, epoch: kind == "KILL" and epoch == last - 3}
    for name, function in stops.items():
        setattr(Run, name, function)
    raise SystemExit(command_line(arguments))


def write_tables(folder: Path) -> None:
    """Sixty people in three teams, each with numbers, a unit, words, a date, a year, a part; four more."""
    draw = random.Random(7)
    teams = [k % 3 for k in range(NODES + NEW)]
    people = [person(k, team, draw) for k, team in enumerate(teams)]
    pairs = set[tuple[int, int]]()
    while len(pairs) < 150:
        i, j = draw.randrange(NODES), draw.randrange(NODES)
        if i < j and (teams[i] == teams[j] or draw.random() < 0.25):
            pairs.add((i, j))
    pairs |= {(0, k) for k in range(NODES) if not any(k in pair for pair in pairs)}
    links = [(f"n{i:02}", f"n{j:02}", f"{draw.uniform(0.2, 3):.2f}") for i, j in sorted(pairs)]
    fresh = [(f"n{NODES + k}", f"n{draw.randrange(NODES):02}", "1.0") for k in range(NEW) for _ in range(3)]
    ends = ("source", "target", "strength")
    write(folder / "edges.csv", [ends, *links])
    write(folder / "new-edges.csv", [ends, *fresh])
    columns = ("id", "team", "age", "score", "unit", "bio", "born", "year", "use")
    write(folder / "nodes.csv", [columns, *people[:NODES]])
    write(folder / "new-nodes.csv", [columns, *people[NODES:]])


def person(k: int, team: int, draw: random.Random) -> tuple[str, ...]:
    words = [*draw.choices(WORDS[team], k=3), *draw.choices(ALL_WORDS, k=2), draw.choice(COMMON)]
    return (
        f"n{k:02}",
        "" if k % 10 == 9 or k >= NODES else TEAMS[team],
        str(20 + 10 * team + draw.randrange(30)),
        f"{draw.gauss(team - 1, 1.5):.3f}",
        UNITS[(team + (draw.random() < 0.4)) % 3],
        " ".join(words),
        f"19{50 + k % 50}-0{1 + k % 9}-1{k % 10}",
        str(2000 + (7 * k) % 20),
        "" if k % 10 == 9 else ("train", "train", "train", "val", "test")[k % 5],
    )


def write(path: Path, rows: list[tuple[str, ...]]) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
