"""Everything that reads a file which a user may have got from elsewhere: sound samples, and how it is read.

A reader gives a value or raises a `ConjointError` in one line; whatever else comes out of it is a find.
"""

import gzip
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from conjoint.data import read_graph
from fuzz.mutation import Damage, in_gzip, in_json, in_place, in_safetensors, in_toml, in_xml, in_zip, mutate

LIMIT = 2**26  # no sample is near it, so whatever is refused for its size lied about it
BETWEEN = b"\n%%%%\n"  # an input for two files at once


@dataclass(frozen=True)
class Reader:
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path, random.Random], object]
    damage: Damage = mutate


EDGES = b"source,target,w\na,b,1\nb,c,2.5\nc,d,3\nd,a,1\n"
NODES = (
    b'id,age,kind,about,label,part\na,1,x,"red, fox",A,train\nb,2,y,blue,B,val\nc,3,x,,,\nd,4,,fox,A,test\n'
)
GRAPHML = (
    b'<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    b'<key id="d0" for="node" attr.name="label" attr.type="string"/><key id="d1" for="edge" attr.name="w"/>'
    b'<graph edgedefault="undirected"><node id="a"><data key="d0">A</data></node><node id="b"/>'
    b'<node id="c"><data key="d0">B</data></node><edge source="a" target="b"><data key="d1">2</data></edge>'
    b'<edge source="b" target="c"/></graph></graphml>'
)
MADE = {"features": "degree:4"}  # for files without features of their own
WITH_NODES: list[dict[str, Any]] = [
    {"weight": "w"},
    {"text": "about", "label": "label"},
    {"categorical": "kind", "ignore": "age"},
    {"split": "part"},
    {"time": "age"},
    {"drop_unknown": True},
    MADE,
]
EDGES_ALONE: list[dict[str, Any]] = [MADE, MADE | {"weight": "w"}, MADE | {"header": False}, {}]


def _graph(path: Path, nodes: Path | None, options: dict[str, Any]) -> object:
    data = read_graph(path, nodes, max_bytes=LIMIT, **options)
    assert data.num_edges > 0 and len(data.node_ids) == data.num_nodes == len(data.y) == data.x.size(0)
    assert bool(data.edge_index.max() < data.num_nodes) and bool(data.edge_index.min() >= 0)
    return data


def _tables(raw: bytes, folder: Path, chance: random.Random, suffix: str = ".csv") -> object:
    edges, found, nodes = raw.partition(BETWEEN)
    (folder / f"edges{suffix}").write_bytes(edges)
    (folder / "nodes.csv").write_bytes(nodes)
    nodes_file = folder / "nodes.csv" if found else None
    options = chance.choice(WITH_NODES if found else EDGES_ALONE)
    return _graph(folder / f"edges{suffix}", nodes_file, options)


def _gzipped(raw: bytes, folder: Path, chance: random.Random) -> object:
    (folder / "edges.csv.gz").write_bytes(raw)
    return _graph(folder / "edges.csv.gz", None, chance.choice(EDGES_ALONE))


def _whole(name: str) -> Callable[[bytes, Path, random.Random], object]:
    def read(raw: bytes, folder: Path, chance: random.Random) -> object:
        (folder / name).write_bytes(raw)
        return _graph(folder / name, None, chance.choice((MADE, MADE, {})))

    return read


def _parquet_seeds() -> list[bytes]:
    import polars as pl

    frame = pl.DataFrame({"source": ["a", "b", "c"], "target": ["b", "c", "d"], "w": [1.0, 2.0, None]})
    numbers = pl.DataFrame({"source": [0, 1, 2] * 5, "target": [1, 2, 0] * 5, "when": [1.5] * 15})
    out = []
    for table in (frame, numbers):
        for plain in (False, True):
            buffer = io.BytesIO()
            table.write_parquet(buffer, compression="uncompressed" if plain else "zstd")
            out.append(buffer.getvalue())
    return out


def _npz_seeds() -> list[bytes]:
    dense: dict[str, Any] = {
        "edges": np.array([[0, 1], [1, 2], [2, 0]]),
        "x": np.eye(3, dtype=np.float32),
        "y": np.array([0, 1, -1]),
        "node_ids": np.array(["a", "b", "c"]),
        "edge_weight": np.array([1.0, 2.0, 3.0]),
        "train": np.array([0]),
        "val": np.array([1]),
        "test": np.array([2]),
    }
    sparse: dict[str, Any] = {"labels": np.array([0, 1, 1])}
    for name in ("adj", "attr"):
        sparse |= {f"{name}_data": np.ones(3), f"{name}_indices": np.array([1, 2, 0])}
        sparse |= {f"{name}_indptr": np.array([0, 1, 2, 3]), f"{name}_shape": np.array([3, 3])}
    out = []
    for arrays, save in ((dense, np.savez), (sparse, np.savez_compressed)):
        buffer = io.BytesIO()
        save(buffer, allow_pickle=False, **arrays)
        out.append(buffer.getvalue())
    return out


PLAN = b"""seeds = [0, 1]
[data]
edges = "edges.csv"
nodes = "nodes.csv"
label = "label"
text = ["about"]
[split]
name = "fraction"
train = 0.5
val = 0.25
[model]
name = "cat-i-mf"
hidden = 4
heads = 2
[train]
epochs = 3
lr = 0.01
consistency = {passes = 2, weight = 1.0}
"""


def _plan(raw: bytes, folder: Path, chance: random.Random) -> object:
    """What `conjoint train --config` does with a file until training would start."""
    from conjoint.cli import read_arguments
    from conjoint.cli.plan import graph_of, plan_from
    from conjoint.selection.learner import spec_of, split_of

    (folder / "plan.toml").write_bytes(raw)
    (folder / "edges.csv").write_bytes(EDGES)
    (folder / "nodes.csv").write_bytes(NODES)
    # A plan may name any file of its owner; here it names those beside it.
    raw_plan = plan_from(read_arguments(["train", "--config", str(folder / "plan.toml")]))
    raw_plan.setting.config(raw_plan.seeds[0])
    if "edges" not in raw_plan.data or chance.random() < 0.7:
        return raw_plan
    data = graph_of(raw_plan)
    split_of(data, raw_plan.split, 0)
    return spec_of(raw_plan.setting, data)


@cache
def _run_files() -> dict[str, bytes]:
    """A small run folder with weights and a checkpoint, as bytes by file name."""
    import tempfile

    import torch

    from conjoint.training import TrainConfig, fit, start_run
    from conjoint.training.checkpoint import Progress, encode_checkpoint
    from conjoint.training.runs import ModelSpec
    from conjoint.training.stopping import Seen
    from small_training import CLASSES, FEATURES, NODES, small_data, small_split

    spec = ModelSpec("cat-i-mf", FEATURES, CLASSES, NODES, {"hidden": 2, "heads": 2})
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run"
        config = TrainConfig(epochs=3, patience=0)
        run = start_run(path, config, model=spec, data=small_data(), split=small_split())
        fit(run.build_model(), small_data(), small_split(), config, run=run)
        model = run.build_model()
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        files = {file.name: file.read_bytes() for file in path.iterdir() if file.name != ".lock"}
        pieces = encode_checkpoint(model, optimizer, Progress(3, Seen(), None))
        files["checkpoint.safetensors"] = b"".join(pieces)
    return files


@cache
def _graph_files(sparse: bool = False) -> dict[str, bytes]:
    """A graph folder as `conjoint ingest` makes it: of numbers, or with categories, weights and times."""
    import tempfile

    from conjoint.data import ingest

    with tempfile.TemporaryDirectory() as scratch:
        edges, nodes, out = (Path(scratch) / name for name in ("edges.csv", "nodes.csv", "graph"))
        edges.write_bytes(EDGES)
        if sparse:
            kinds = [f"{name},{name}{name},A,{k}\n" for k, name in enumerate("abcdefghij")]
            nodes.write_text("id,kind,label,born\n" + "".join(kinds))
            ingest(edges, nodes, out, label="label", weight="w", time="born")
        else:
            nodes.write_bytes(b"id,age,label,part\na,1,A,train\nb,2,B,train\nc,3,A,val\nd,4,B,test\n")
            ingest(edges, nodes, out, label="label", split="part")
        return {file.name: file.read_bytes() for file in out.iterdir() if file.suffix in (".npy", ".json")}


def _in_graph(name: str, sparse: bool = False) -> Callable[[bytes, Path, random.Random], object]:
    """One damaged file in an otherwise sound graph folder, read to the end."""

    def read(raw: bytes, folder: Path, chance: random.Random) -> object:
        from conjoint.graph.folder import open_folder

        graph = folder / "graph"
        if not graph.exists():
            graph.mkdir()
            for other, content in _graph_files(sparse).items():
                (graph / other).write_bytes(content)
        (graph / name).write_bytes(raw)
        try:
            data = open_folder(graph)
            assert bool(data.edge_index.max() < data.num_nodes) and bool(data.edge_index.min() >= 0)
            assert len(data.y) == data.num_nodes == data.x.size(0) and int(data.y.max()) < len(
                data.class_names
            )
            return data
        finally:
            (graph / name).write_bytes(_graph_files(sparse)[name])

    return read


def _graph_part(name: str, damage: Damage, sparse: bool = False) -> Reader:
    return Reader(lambda: [_graph_files(sparse)[name]], _in_graph(name, sparse), damage)


def _in_run(name: str, open_it: Callable[[Path], object]) -> Callable[[bytes, Path, random.Random], object]:
    """One damaged file in an otherwise sound run folder."""

    def read(raw: bytes, folder: Path, chance: random.Random) -> object:
        run = folder / "run"
        if not run.exists():
            run.mkdir()
            for other, content in _run_files().items():
                (run / other).write_bytes(content)
        (run / name).write_bytes(raw)
        try:
            return open_it(run)
        finally:
            (run / name).write_bytes(_run_files()[name])

    return read


def _open_run(run: Path) -> object:
    from conjoint.training import load_run, node_ids

    _, opened = load_run(run)
    return node_ids(opened), opened.history(), opened.notes


def _read_sidecar(run: Path) -> object:
    from conjoint.training import resume_run

    opened = resume_run(run)
    return opened.notes, opened.origin, opened.sidecar.finished


def _read_ids(run: Path) -> object:
    from conjoint.training import node_ids, resume_run

    return node_ids(resume_run(run))


def _read_history(run: Path) -> object:
    from conjoint.training import resume_run

    return resume_run(run).history()


def _restore(run: Path) -> object:
    from conjoint.training.checkpoint import restore_checkpoint

    return restore_checkpoint(run / "checkpoint.safetensors", *_model_and_optimizer())


def _decode(run: Path) -> object:
    """The checksum in model.json would stop all but the sound file; this looks behind it."""
    from conjoint.training.checkpoint import decode, shapes_of

    model, _ = _model_and_optimizer()
    return decode(run / "weights.safetensors", shapes_of(model.state_dict()))


@cache
def _model_and_optimizer() -> tuple[Any, Any]:
    import torch

    from conjoint.nn.zoo import build
    from small_training import CLASSES, FEATURES, NODES

    sizes = {"features": FEATURES, "classes": CLASSES, "num_nodes": NODES}
    model = build("cat-i-mf", **sizes, seed=0, hidden=2, heads=2)
    return model, torch.optim.Adam(model.parameters(), fused=True)


@cache
def _row_seeds() -> tuple[bytes, ...]:
    from fake_rows import rows_of

    names = ("random-splits", "lambda", "table5")
    return tuple(
        b"".join(json.dumps(row).encode() + b"\n" for row in rows_of(name, seeds=2)[:4]) for name in names
    )


def _rows(raw: bytes, folder: Path, chance: random.Random) -> object:
    """From a file of rows to the tables made from it."""
    from conjoint.experiments.rows import read_rows
    from conjoint.experiments.tables import tables_of

    (folder / "cora.jsonl").write_bytes(raw)
    rows = read_rows(folder)
    return tables_of(chance.choice(("random-splits", "lambda", "table5", "ablation")), rows)


def _portrait(raw: bytes, folder: Path, chance: random.Random) -> object:
    from conjoint.experiments.report import json_in_script, kept_portrait, portrait_words

    (folder / "report").mkdir(exist_ok=True)
    (folder / "report" / "cora.json").write_bytes(raw)
    found = kept_portrait(folder, print)
    inside = json_in_script(found)
    assert "<" not in inside and ">" not in inside
    return portrait_words(found)


def _portrait_seeds() -> list[bytes]:
    from fake_portrait import portrait

    return [json.dumps(portrait()).encode()]


READERS: dict[str, Reader] = {
    "csv": Reader(lambda: [EDGES, EDGES + BETWEEN + NODES, EDGES.replace(b",", b"\t")], _tables),
    "csv.gz": Reader(lambda: [gzip.compress(EDGES)], _gzipped, in_gzip),
    "parquet": Reader(_parquet_seeds, _whole("edges.parquet")),
    "npz": Reader(_npz_seeds, _whole("graph.npz"), in_zip),
    "graphml": Reader(lambda: [GRAPHML], _whole("graph.graphml"), in_xml),
    "plan.toml": Reader(lambda: [PLAN], _plan, in_toml),
    "run config.toml": Reader(
        lambda: [_run_files()["config.toml"]], _in_run("config.toml", _read_sidecar), in_toml
    ),
    "run model.json": Reader(
        lambda: [_run_files()["model.json"].replace(b"\n", b"")],
        _in_run("model.json", _open_run),
        in_json,
    ),
    "run metrics.jsonl": Reader(
        lambda: [_run_files()["metrics.jsonl"]], _in_run("metrics.jsonl", _read_history), in_json
    ),
    "run node_ids.npy": Reader(lambda: [_run_files()["node_ids.npy"]], _in_run("node_ids.npy", _read_ids)),
    "run weights.safetensors": Reader(
        lambda: [_run_files()["weights.safetensors"]],
        _in_run("weights.safetensors", _decode),
        in_safetensors,
    ),
    "run checkpoint.safetensors": Reader(
        lambda: [_run_files()["checkpoint.safetensors"]],
        _in_run("checkpoint.safetensors", _restore),
        in_safetensors,
    ),
    "rows.jsonl": Reader(lambda: list(_row_seeds()), _rows, in_json),
    "portrait.json": Reader(_portrait_seeds, _portrait, in_json),
    "graph manifest.json": Reader(
        lambda: [_graph_files()["manifest.json"].replace(b"\n", b"")], _in_graph("manifest.json"), in_json
    ),
    "graph rowptr.npy": _graph_part("rowptr.npy", in_place),
    "graph col.npy": _graph_part("col.npy", in_place),
    "graph y.npy": _graph_part("y.npy", in_place),
    "graph ids.npy": _graph_part("ids.npy", in_place),
    **{
        f"graph {name}.npy": _graph_part(f"{name}.npy", in_place, sparse=True)
        for name in ("weight", "time", "x_data", "x_indices", "x_indptr")
    },
}
