"""From a spec to its row: load, split, build, train, evaluate."""

import resource
import subprocess
import sys
import time
from dataclasses import asdict
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import torch

from .. import kernels
from ..data import load_graph, make_split
from ..errors import ConjointError, InputError
from ..graph.graph import Graph
from ..graph.splits import Split
from ..nn import zoo
from ..nn.model import NodeModel
from ..training import TrainConfig, config_from, evaluate, fit
from ..training.runs import versions
from ..training.steps import part_of, share_right, whole_graph
from ..training.stopping import Seen, watch
from .extension import REMEDY, extension
from .rows import Row, RunSpec


def execute(spec: RunSpec, root: str | None = None) -> Row:
    """Do the run and return its row. A run that fails in a way we know (it diverged) also gives a row.

    Args:
        root: folder with the benchmarks' raw files, see `conjoint.data.load`.
    """
    began = time.perf_counter()
    row: Row = {"key": spec.key, **asdict(spec)}
    data = _inputs(spec, root)
    held = _forget_peak_memory()  # reading the graph is not what the memory of a model means
    try:
        split = make_split(data, spec.split, spec.split_seed, **spec.split_settings)
        row |= extension().learners.get(spec.model, train)(spec, data, split)
    except ConjointError as error:
        row["failed"] = str(error)
    peak = _memory("VmHWM")
    row["seconds"] = round(time.perf_counter() - began, 3)
    row |= {"peak_mib": round(peak, 1), "grown_mib": round(peak - held, 1)}
    row["made_with"] = _made_with()
    return row


def train(spec: RunSpec, data: Graph, split: Split) -> dict[str, Any]:
    """The numbers of a row: those of the network that `spec` names, trained as it says."""
    config = config_of(spec)
    model = zoo.build(
        spec.model,
        features=data.num_features,
        classes=len(data.class_names),
        num_nodes=data.num_nodes,
        seed=spec.seed,
        **spec.model_settings,
    )
    # The authors' rule is watched in runs of the paper's kind alone: it takes a while.
    as_in_the_paper = not spec.variant and "consistency" not in spec.train_settings
    watcher = ReleaseWatcher(model, data, split, config) if as_in_the_paper else None
    began = time.perf_counter()
    fitted = fit(model, data, split, config, progress=watcher)
    seconds = time.perf_counter() - began
    row = evaluate(fitted, data, split)
    row["split_seed"] = spec.split_seed  # evaluate() gives None where the split is a published one
    row["fit_seconds"] = round(seconds, 3)
    row["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    return row if watcher is None else row | {"release": watcher.report()}


def config_of(spec: RunSpec) -> TrainConfig:
    return config_from({**spec.train_settings, "seed": spec.seed, "rule": spec.rule}, spec.label)


class ReleaseWatcher:
    """Pass it to `fit(progress=...)`. It looks at TEST nodes, and never acts on the training.

    The authors' release keeps the best test accuracy among the epochs whose validation loss improved. Both
    rules run out of patience by validation loss, so one training serves both.
    """

    def __init__(self, model: NodeModel, data: Graph, split: Split, config: TrainConfig) -> None:
        self.model, self.seen, self.all_accuracy = model, Seen(), 0.0
        self._inputs = whole_graph(model, data, config)
        self._test = part_of(self._inputs, split.reveal_test(), model, config.field)

    @torch.no_grad()
    def __call__(self, row: dict[str, Any]) -> None:
        if row.get("val_loss", self.seen.val_loss) >= self.seen.val_loss:
            return  # not evaluated in this epoch, or no progress: the rule would not look
        self.model.eval()
        out = self.model(self._test.x, self._test.graph)
        test_accuracy = share_right(self._test.targets(out), self._test.labels)
        self.seen, verdict = watch("release", self.seen, row | {"test_accuracy": test_accuracy})
        if verdict.keep:
            whole = self._test.graph is self._inputs.graph  # then all nodes are there already
            logits = out if whole else self.model(self._inputs.x, self._inputs.graph)
            labelled = self._inputs.labels >= 0
            self.all_accuracy = share_right(logits[labelled], self._inputs.labels[labelled])

    def report(self) -> dict[str, Any]:
        """Marked for what it is: test nodes took part in choosing the epoch."""
        return {
            "rule": "release",
            "reading": 2,  # rows without it were made when the loss was lowered whatever test accuracy did
            "saw_test": True,
            "best_epoch": self.seen.kept_epoch,
            "test_accuracy": self.seen.test_accuracy,
            "all_accuracy": self.all_accuracy,
        }


def _inputs(spec: RunSpec, root: str | None) -> Graph:
    """The graph that the model reads: changed first, so that whatever is made from it sees the change."""
    data, settings = _graph(spec.dataset, spec.source, spec.features, root), spec.model_settings
    if spec.variant:
        change = extension().change
        if change is None:
            raise InputError(f"variant {', '.join(spec.variant)}: the package changes no graphs; {REMEDY}")
        data = change(data, spec.variant, spec.seed)
    if spec.model in extension().learners:
        return data
    read = partial(zoo.input_graph, spec.model, data, **settings)
    # Without a change it is the same for every seed: embeddings are made once per process.
    return read() if spec.variant else data.once((spec.model, *sorted(settings.items())), read)


@lru_cache(maxsize=2)
def _graph(dataset: str, source: str | None, features: str | None, root: str | None) -> Graph:
    return load_graph(dataset, root=root, source=source, features=features)


def _forget_peak_memory() -> float:
    """Count the peak from now on, where the system can (Linux); returns what is held now, in MiB."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _memory("VmHWM")
    return _memory("VmRSS")


def _memory(name: str) -> float:
    """MiB of this process as Linux counts them; elsewhere the peak since its start."""
    try:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name)) / 1024
    except (OSError, StopIteration):
        unit = 1024**2 if sys.platform == "darwin" else 1024  # macOS counts bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


@cache
def _made_with() -> dict[str, Any]:
    status = kernels.status()
    return {
        **versions(),
        "commit": _commit(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "kernels": status["variant"] if status["active"] else None,
    }


def _commit() -> str | None:
    """The commit of the source tree, with a plus where it was changed since; None outside of one."""
    git = ["git", "-C", str(Path(__file__).resolve().parents[1])]

    def ask(*words: str) -> str:
        return subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = "+" if ask("status", "--porcelain", "--", ".") else ""
        return ask("rev-parse", "--short=12", "HEAD") + changed
    except (OSError, subprocess.CalledProcessError):
        return None
