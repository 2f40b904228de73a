"""A run folder: settings, history, weights, sidecar, node ids, and a checkpoint while training goes on.

`start_run` makes it, `fit(..., run=run)` fills it, `resume_run` opens it again, `load_run` uses it. The
sidecar, model.json, is everything besides the weights that is needed to use them again, and where they come
from. Nothing in a folder is trusted before it was compared.
"""

import contextlib
import glob
import hashlib
import io
import json
import os
import platform
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import numpy as np
import numpy.typing as npt
import torch

import conjoint

from ..data.npz import read_array
from ..errors import InputError, is_whole
from ..graph.graph import Graph, as_graph
from ..graph.splits import Split
from ..nn.model import NodeModel
from ..nn.zoo import build as build_by_name
from ..storage import (
    append_line,
    locked,
    read_file,
    read_text,
    remove_leftovers,
    storage_errors,
    sync_file,
    write_atomically,
)
from .checkpoint import Progress, damaged, decode, encode, encode_checkpoint, restore_checkpoint, shapes_of
from .config import TrainConfig, config_from, config_to, read_toml, write_toml
from .seeding import own_randomness
from .stopping import Snapshot

CONFIG, METRICS, WEIGHTS = "config.toml", "metrics.jsonl", "weights.safetensors"
SIDECAR, CHECKPOINT, IDS, LABELS = "model.json", "checkpoint.safetensors", "node_ids.npy", "labels.npy"
MEBIBYTE, GIBIBYTE, FORMAT = 2**20, 2**30, 1
Row = dict[str, Any]
Builder = Callable[..., NodeModel]


@dataclass(frozen=True)
class ModelSpec:
    """A model by its name in the zoo and its settings: enough to build it again."""

    name: str
    features: int
    classes: int
    num_nodes: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def build(self, seed: int, build: Builder | None = None) -> NodeModel:
        """The model with fresh weights drawn from `seed`. `build` stands in for `conjoint.nn.zoo.build`."""
        sizes = {"features": self.features, "classes": self.classes, "num_nodes": self.num_nodes}
        return (build or build_by_name)(self.name, **sizes, seed=seed, **self.settings)


@dataclass(frozen=True)
class Sidecar:
    """What model.json holds. `result` and `weights_sha256` are there once the run has finished."""

    model: ModelSpec
    class_names: tuple[str, ...]
    data_name: str
    data_fingerprint: str
    split_name: str
    split_seed: int | None
    split_sizes: tuple[int, int, int]
    split_fingerprint: str
    versions: Mapping[str, str]
    result: Mapping[str, Any] | None = None
    weights_sha256: str | None = None
    format: int = FORMAT

    @property
    def finished(self) -> bool:
        return self.weights_sha256 is not None

    def encoded(self) -> bytes:
        return (json.dumps(asdict(self), indent=1, allow_nan=False) + "\n").encode()


def versions() -> dict[str, str]:
    return {
        "conjoint": conjoint.__version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


@dataclass(eq=False)
class Run:
    """An open run folder. `origin` is whatever the caller needs to load the same graph and split again."""

    path: Path
    config: TrainConfig
    sidecar: Sidecar
    origin: Mapping[str, Any]
    every_seconds: float = 10.0
    every_epochs: int | None = None
    _saved_at: float = field(default_factory=time.monotonic)

    @property
    def spec(self) -> ModelSpec:
        return self.sidecar.model

    def build_model(self, build: Builder | None = None) -> NodeModel:
        """The run's model with its initial weights."""
        return self.spec.build(self.config.seed, build)

    @property
    def notes(self) -> list[str]:
        """What a user should know before going on with a run that was started elsewhere."""
        now = versions()
        changed = [
            f"{name} {old} then, {now.get(name, 'none')} now"
            for name, old in self.sidecar.versions.items()
            if now.get(name) != old
        ]
        return [f"started with other versions ({'; '.join(changed)}): bits may differ"] if changed else []

    def check(self, config: TrainConfig, data: Graph, split: Split) -> None:
        """A run goes on only with exactly the settings, the graph and the split that it was started with."""
        then = self.sidecar
        if config != self.config:
            raise InputError(f"{self.path}: started with other settings; resume with those of its {CONFIG}")
        if data.fingerprint != then.data_fingerprint:
            raise InputError(f"{self.path}: started on another graph ({then.data_name}); load that one")
        if split_fingerprint(split) != then.split_fingerprint:
            raise InputError(f"{self.path}: started with another split ({then.split_name}); use that one")

    @contextlib.contextmanager
    def training(self) -> Iterator[None]:
        """While this process trains in the folder, no other may."""
        with locked(self.path):
            remove_leftovers(self.path)
            self._saved_at = time.monotonic()
            yield

    def restore(self, model: NodeModel, optimizer: torch.optim.Adam) -> tuple[Progress, list[Row]] | None:
        """The last checkpoint put into model and optimiser, and the history up to it. None: from the start.

        Rows written after the checkpoint are cut off: they will be computed again.
        """
        saved = self.path / CHECKPOINT
        if not saved.exists():
            self._write_history([])
            return None
        progress = restore_checkpoint(saved, model, optimizer)
        history = self.history(progress.epoch)
        self._write_history(history)
        return progress, history

    def history(self, rows: int | None = None) -> list[Row]:
        """The rows of metrics.jsonl, or the first so many of them."""
        source = self.path / METRICS
        lines = read_text(source, 1024 * MEBIBYTE, "the history").split("\n")[:-1] if source.exists() else []
        history = []
        for number, line in enumerate(lines[:rows], start=1):
            row = json_object(line, f"{source} line {number}")
            if row.get("epoch") != number:
                raise damaged(f"{source} line {number}", f"not the row of epoch {number}")
            history.append(row)
        if rows is not None and len(history) < rows:
            raise damaged(source, f"{len(history)} rows, the checkpoint counts {rows}")
        return history

    def append(self, row: Mapping[str, Any]) -> None:
        append_line(self.path / METRICS, json.dumps(row, allow_nan=False))

    def due(self, epoch: int) -> bool:
        """Whether it is time for a checkpoint."""
        counted = self.every_epochs is not None and epoch % self.every_epochs == 0
        return counted or time.monotonic() - self._saved_at >= self.every_seconds

    def save(self, model: NodeModel, optimizer: torch.optim.Adam, progress: Progress) -> None:
        if (self.path / METRICS).exists():
            sync_file(self.path / METRICS)  # the checkpoint counts on these rows
        write_atomically(self.path / CHECKPOINT, encode_checkpoint(model, optimizer, progress))
        self._saved_at = time.monotonic()

    def finish(self, best: Snapshot, result: Mapping[str, Any]) -> None:
        """Weights first, then the sidecar that vouches for them, then the checkpoint goes."""
        digest = hashlib.sha256()
        write_atomically(self.path / WEIGHTS, _digested(encode(best), digest))
        self.sidecar = replace(self.sidecar, result=result, weights_sha256=digest.hexdigest())
        write_atomically(self.path / SIDECAR, self.sidecar.encoded())
        self.tidy()

    def adopt(self, history: list[dict[str, Any]], best: Snapshot, result: Mapping[str, Any]) -> None:
        """Keep a training that was finished elsewhere with these settings, as if it had been done here."""
        with self.training():
            self.keep(history, best, result)

    def keep(self, history: list[Row], best: Snapshot, result: Mapping[str, Any]) -> None:
        """History, weights and result of a training that is over; for who holds the folder."""
        self._write_history(history)
        self.finish(best, result)

    def tidy(self) -> None:
        """A finished run needs its checkpoint no more, nor what a killed process left."""
        remove_leftovers(self.path)
        with contextlib.suppress(OSError):
            (self.path / CHECKPOINT).unlink()

    def write(self, name: str, content: bytes) -> None:
        """Any further file of the run (predictions, a plot), written atomically."""
        write_atomically(self.path / name, content)

    def _write_history(self, history: list[Row]) -> None:
        lines = (json.dumps(row, allow_nan=False) + "\n" for row in history)
        write_atomically(self.path / METRICS, "".join(lines).encode())


def start_run(
    path: str | Path,
    config: TrainConfig,
    *,
    model: ModelSpec,
    data: Graph,
    split: Split,
    origin: Mapping[str, Any] | None = None,
) -> Run:
    """A new run folder, complete from its first moment: it is filled elsewhere and moved into place."""
    path, data = Path(path), as_graph(data)
    exists = InputError(
        f"{path}: already there and never overwritten; resume it with --resume or choose another --out"
    )
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise exists
    sidecar = Sidecar(
        model=model,
        class_names=tuple(data.class_names or map(str, range(model.classes))),
        data_name=data.name,
        data_fingerprint=data.fingerprint,
        split_name=split.name,
        split_seed=split.seed,
        split_sizes=split.sizes,
        split_fingerprint=split_fingerprint(split),
        versions=versions(),
    )
    sections = {"train": config_to(config), "origin": dict(origin or {})}
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.starting")
    try:
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(path)
            beside.mkdir()
        write_atomically(beside / CONFIG, write_toml(sections).encode())
        write_atomically(beside / SIDECAR, sidecar.encoded())
        # Array files: a million ids do not belong into JSON.
        ids = np.asarray(data.node_ids)
        ids = ids if ids.dtype.kind in "iuUS" else ids.astype(np.str_)
        for name, array in ((IDS, ids), (LABELS, data.y.cpu().numpy().astype(np.int32))):
            file = io.BytesIO()
            np.save(file, array, allow_pickle=False)
            write_atomically(beside / name, file.getvalue())
        with storage_errors(path):
            try:
                os.rename(beside, path)
            except OSError:
                if path.exists():
                    raise exists from None
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return Run(path, config, sidecar, dict(origin or {}))


def take_up(path: Path, config: TrainConfig, *, model: ModelSpec, data: Graph, split: Split) -> Run:
    """The run in this folder, if it is of these settings, graph and split; a new one if there is none."""
    if not path.exists():
        return start_run(path, config, model=model, data=data, split=split)
    run = resume_run(path)
    run.check(config, data, split)
    return run


def resume_run(path: str | Path) -> Run:
    """Open a run folder that exists, to go on with it or to use it."""
    path = Path(path)
    if not path.is_dir():
        raise InputError(f"{path}: no such run folder; start one without --resume")
    sections = read_toml(read_text(path / CONFIG, MEBIBYTE, "the run's settings"), str(path / CONFIG))
    train, origin = sections.get("train"), sections.get("origin")
    if not isinstance(train, dict) or not isinstance(origin, dict):
        raise InputError(f"{path / CONFIG}: sections [train] and [origin] are missing; not a run of conjoint")
    config = config_from(train, str(path / CONFIG))
    sidecar = sidecar_from(read_text(path / SIDECAR, 16 * MEBIBYTE, "the sidecar"), str(path / SIDECAR))
    return Run(path, config, sidecar, origin)


def load_run(path: str | Path, build: Builder | None = None) -> tuple[NodeModel, Run]:
    """The trained model (in evaluation mode) and its run, whose `sidecar`, `config` and `origin` describe it.

    Order matters: checksum, then names and shapes against a model that owns no memory, then the real one.
    """
    run = resume_run(path)
    if not run.sidecar.finished:
        go_on = f"go on with it first: conjoint train --resume {path}"
        raise InputError(f"{path}: training has not finished; {go_on}")
    weights = run.path / WEIGHTS
    if not weights.is_file():
        raise InputError(f"{weights}: no such file; the run folder is incomplete")
    with open(weights, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != run.sidecar.weights_sha256:
        raise InputError(f"{weights}: not the weights that model.json vouches for; restore both from a copy")
    try:
        with own_randomness(), torch.device("meta"):
            empty = run.spec.build(0, build)
    except (TypeError, RuntimeError, OverflowError, MemoryError) as error:
        raise InputError(f"{run.path}: its model cannot be built ({error}); model.json is damaged") from None
    tensors, _ = decode(weights, shapes_of(empty.state_dict()))
    for name, value in tensors.items():
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise InputError(
                f"{weights}: {name!r} holds NaN or infinite values; train again with a smaller lr"
            )
    model = run.spec.build(run.config.seed, build)
    model.load_state_dict(tensors)
    return model.eval(), run


def node_ids(run: Run) -> npt.NDArray[Any]:
    """The user's own ids of the nodes, in the order of the graph."""
    path = run.path / IDS
    ids = read_array(read_file(path, 8 * GIBIBYTE, "the list of node ids"), path)
    if ids.shape != (run.spec.num_nodes,):
        raise damaged(path, f"expected {run.spec.num_nodes} ids")
    return ids


def as_started(run: Run, graph: Graph) -> Graph:
    """The graph with the labels that the run was started with: labels that came later are not the graph.

    Another graph is refused.
    """
    then, path = run.sidecar, run.path / LABELS
    if graph.fingerprint == then.data_fingerprint:
        return graph
    if path.is_file() and graph.num_nodes == run.spec.num_nodes:
        labels = read_array(read_file(path, 8 * GIBIBYTE, "the labels"), path)
        if labels.shape != (run.spec.num_nodes,) or labels.dtype.kind != "i":
            raise damaged(path, f"expected {run.spec.num_nodes} numbers of classes")
        if labels.min() < -1 or labels.max() >= len(then.class_names):
            raise damaged(path, f"expected classes from -1 to {len(then.class_names) - 1}")
        known = torch.from_numpy(labels.astype(np.int64))
        graph = graph.changed(y=known, class_names=list(then.class_names) if graph.class_names else [])
    if graph.fingerprint != then.data_fingerprint:
        raise InputError(
            f"{run.path}: trained on another graph ({then.data_name}) than the one found now; "
            "name the original files with --data, or --edges and --nodes"
        )
    return graph


def split_fingerprint(split: Split) -> str:
    """Of the training and validation nodes alone: training must not see the others, even as a checksum."""
    digest = hashlib.sha256()
    for part in (split.train, split.val):
        digest.update(f"{part.numel()}\n".encode())
        digest.update(part.cpu().to(torch.int64).numpy().tobytes())
    return digest.hexdigest()


def _digested(pieces: Iterable[memoryview], digest: "hashlib._Hash") -> Iterator[memoryview]:
    for piece in pieces:
        digest.update(piece)
        yield piece


def _remove_abandoned(path: Path) -> None:
    """Folders of processes that were killed while they started this run; a living one needs no minute."""
    for folder in path.parent.glob(f".{glob.escape(path.name)}.*.starting"):
        if time.time() - folder.stat().st_mtime > 60:
            shutil.rmtree(folder, ignore_errors=True)


def sidecar_from(text: str, source: str) -> Sidecar:
    """Read model.json, trusting nothing in it."""
    content = json_object(text, source)
    if content.get("format") != FORMAT:
        raise InputError(
            f"{source}: format {content.get('format')!r}, this version reads {FORMAT}; update conjoint"
        )
    _check(content, Sidecar, source)
    _check(content["model"], ModelSpec, f"{source}: model")
    if not all(isinstance(name, str) for name in content["class_names"]):
        raise InputError(f"{source}: class_names must be strings")
    sizes = content["split_sizes"]
    if len(sizes) != 3 or not all(type(size) is int for size in sizes):
        raise InputError(f"{source}: split_sizes must be three whole numbers")
    result = content["result"] or {}
    epochs: Any = result.get("epochs")
    sound = is_whole(epochs, 1) and is_whole(result.get("best_epoch"), 1, epochs)
    if content["weights_sha256"] is not None and not sound:
        raise InputError(f"{source}: finished without a result that makes sense; the file is damaged")
    spec = ModelSpec(**content.pop("model"))
    for name in ("features", "classes", "num_nodes"):
        if not is_whole(getattr(spec, name), 0, 2**40 - 1):
            raise InputError(f"{source}: model: {name}={getattr(spec, name)} is out of range")
    names, sizes = tuple(content.pop("class_names")), tuple(content.pop("split_sizes"))
    return Sidecar(model=spec, class_names=names, split_sizes=sizes, **content)


def json_object(text: str, source: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{source}: not valid JSON; it is damaged or another file") from None
    if not isinstance(content, dict):
        raise InputError(f"{source}: expected a JSON object; it is damaged or another file")
    return content


_IN_JSON: dict[Any, type] = {ModelSpec: dict, Mapping: dict, tuple: list}


def _kinds(declared: Any) -> tuple[type, ...]:
    """How values of a field's type are written in JSON."""
    if isinstance(declared, UnionType):
        return tuple(kind for part in get_args(declared) for kind in _kinds(part))
    plain = get_origin(declared) or declared
    return (_IN_JSON.get(plain, plain),)


def _check(content: Mapping[str, Any], kind: type, source: str) -> None:
    """Every entry of the dataclass is there, of its type, and nothing else."""
    wanted = {each.name: _kinds(each.type) for each in fields(kind)}
    for name in content:
        if name not in wanted:
            raise InputError(f"{source}: unknown entry {name!r}; the file is foreign or from a newer version")
    for name, kinds in wanted.items():
        value = content.get(name, ...)
        if not isinstance(value, kinds) or isinstance(value, bool):
            found = "missing" if value is ... else type(value).__name__
            raise InputError(
                f"{source}: {name!r} is {found}, expected {kinds[0].__name__}; the file is damaged"
            )
