"""Throw damaged files at the readers: each must give a graph or one line, never a traceback, hang or blow-up.

    python tests/fuzz/fuzz_readers.py --seconds 60 --seed 1

Every case is a pure function of (seed, number), so a failure is reproduced by the two numbers it prints.
"""

import argparse
import gzip
import io
import random
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from conjoint.data import read_graph
from conjoint.errors import InputError

EDGES = b"source,target,w\na,b,1\nb,c,2.5\nc,d,3\nd,a,1\n"
NODES = b'id,age,kind,about,label\na,1,x,"red, fox",A\nb,2,y,blue,B\nc,3,x,,\nd,4,,fox,A\n'
GRAPHML = (
    b'<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    b'<key id="d0" for="node" attr.name="label" attr.type="string"/><graph edgedefault="undirected">'
    b'<node id="a"><data key="d0">A</data></node><node id="b"/><edge source="a" target="b"/></graph>'
    b"</graphml>"
)
# Pieces that files break on: bounds of numbers, quotes, delimiters, markup, magic bytes.
TOKENS = [
    b"",
    b",",
    b"\n",
    b"\r\n",
    b'"',
    b"\t",
    b";",
    b"\x00",
    b"\xff",
    b"-1",
    b"nan",
    b"inf",
    b"1e999",
    b"'",
]
TOKENS += [
    b"9" * 30,
    b"0x10",
    b"<!DOCTYPE a [",
    b"&amp;",
    b"]]>",
    b"<node/>",
    b"PK\x03\x04",
    b"\x80\x04",
    b"\x1f\x8b",
]
TOKENS += ["é".encode(), "\u202e".encode(), b"a" * 5000, b"{'descr': '|O'", b"#", b"," * 3000, b"\n" * 3000]


def archive() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        edges=np.array([[0, 1], [1, 2], [2, 0]]),
        x=np.eye(3, dtype=np.float32),
        y=np.array([0, 1, -1]),
        node_ids=np.array(["a", "b", "c"]),
        edge_weight=np.array([1.0, 2.0, 3.0]),
    )
    return buffer.getvalue()


def parquet() -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame({"source": ["a", "b", "c"], "target": ["b", "c", "d"], "w": [1.0, 2.0, 3.0]}).write_parquet(
        buffer
    )
    return buffer.getvalue()


def mutate(raw: bytes, chance: random.Random) -> bytes:
    """A few random cuts, copies, flips and insertions."""
    out = bytearray(raw)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(out) + 1)
        end = min(len(out), at + chance.randint(1, 20))
        choice = chance.randrange(6)
        if choice == 0:
            del out[at:end]
        elif choice == 1:
            out[at:at] = chance.choice(TOKENS)
        elif choice == 2:
            out[at:end] = chance.choice(TOKENS)
        elif choice == 3:
            out[at:at] = out[at:end] * chance.randint(1, 50)
        elif choice == 4 and at < len(out):
            out[at] = chance.randrange(256)
        elif choice == 5:
            del out[at:]
    return bytes(out)


def rezip(raw: bytes, chance: random.Random) -> bytes:
    """A sound archive with damaged members: random bytes rarely get past the checksum."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            if chance.random() < 0.9:
                member = old.read(name)
                new.writestr(name, mutate(member, chance) if chance.random() < 0.5 else member)
    return buffer.getvalue()


def one_case(seed: int, number: int, folder: Path) -> str:
    """Read one damaged input; the outcome is "graph" or the message. Anything else escapes."""
    chance = random.Random(f"{seed}/{number}")
    kind = chance.choice(("csv", "csv", "gz", "npz", "npz-members", "graphml", "parquet"))
    edges, nodes = EDGES, NODES
    name = "edges.csv"
    damage: Callable[[bytes], bytes] = lambda raw: mutate(raw, chance)  # noqa: E731
    if kind in ("csv", "gz"):
        edges = damage(edges) if chance.random() < 0.6 else edges
        nodes = damage(nodes) if chance.random() < 0.6 else nodes
        if kind == "gz":
            edges = damage(gzip.compress(edges)) if chance.random() < 0.7 else gzip.compress(edges)
            name = "edges.csv.gz"
    elif kind == "parquet":
        edges, name = damage(parquet()), "edges.parquet"
    elif kind == "graphml":
        edges, name = damage(GRAPHML), "graph.graphml"
    else:
        edges, name = rezip(archive(), chance) if kind == "npz-members" else damage(archive()), "graph.npz"
    (folder / name).write_bytes(edges)
    (folder / "nodes.csv").write_bytes(nodes)
    alone = kind in ("npz", "npz-members", "graphml")
    options: dict[str, Any] = chance.choice(
        ({}, {"weight": "w"}, {"text": "about"}, {"label": "label"}, {"features": "degree:4"})
    )
    try:
        data = read_graph(folder / name, None if alone else folder / "nodes.csv", max_bytes=2**26, **options)
    except InputError as error:
        message = str(error)
        assert "\n" not in message and message, f"not one line: {message!r}"
        return message
    assert data.num_edges > 0 and len(data.node_ids) == data.num_nodes == len(data.y) == data.x.size(0)
    return "graph"


def run(seconds: float, seed: int, most: int | None = None) -> tuple[int, int]:
    """How many cases were tried, and how many of them still gave a graph."""
    stop, tried, graphs = time.monotonic() + seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < stop and tried != most:
            try:
                graphs += one_case(seed, tried, Path(folder)) == "graph"
            except BaseException as error:
                error.add_note(f"reproduce with one_case({seed}, {tried}, folder)")
                raise
            tried += 1
    return tried, graphs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tried, graphs = run(options.seconds, options.seed)
    print(f"{tried} cases, {graphs} of them still a graph")
