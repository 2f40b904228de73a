"""Weights as one short string, the machine that they depend on, and the networks whose weights are kept."""

import hashlib
import platform
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import conjoint

EPOCHS = 50
# name -> settings of training, beside seed 0 and the number of epochs
MODELS: dict[str, dict[str, Any]] = {
    "gat": {},
    "gcn": {},
    "appnp": {},
    "sage": {},
    "cat-i-mf": {},
    "cat-e-sc": {},
    "cat-i-fs": {},
    "cat-e-trust": {},
    "spread-trust": {"consistency": {"passes": 2}},
    "gated-trust": {"lr": 0.05, "rule": "val-accuracy"},
    "cat-i-smooth+spectral": {},
    "gcn-svd": {},
}
CHEAP = ("gcn", "cat-i-mf", "spread-trust")  # a test trains these; `scripts/bits.py` all


def train(name: str) -> dict[str, Any]:
    """Train the network of that name on the embedded Cora; its weights and how the last epoch did."""
    data = conjoint.load("cora", source="embedded")
    split = conjoint.make_split(data, "per-class", seed=0)
    settings = dict(MODELS[name])
    if "consistency" in settings:
        settings["consistency"] = conjoint.Consistency(**settings["consistency"])
    sizes = {"features": 1433, "classes": 7, "num_nodes": 2708}
    model = networks().build(name, **sizes, seed=0)
    config = conjoint.TrainConfig(epochs=EPOCHS, patience=0, seed=0, **settings)
    fitted = conjoint.fit(model, data, split, config)
    last = fitted.history[-1]
    return {"weights": digest(fitted.model.state_dict()), "loss": last["loss"], "val_loss": last["val_loss"]}


def networks() -> Any:
    """The module that builds a network by its name."""
    try:
        return import_module("conjoint.nn.models")
    except ModuleNotFoundError:  # its name before
        return import_module("conjoint.nn.zoo")


def digest(tensors: Mapping[str, Any]) -> str:
    """SHA-256 over names, kinds, shapes and values, in the order of the names."""
    found = hashlib.sha256()
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def digest_of_run(folder: Path) -> str:
    return digest(load_file(folder / "weights.safetensors"))


def machine() -> dict[str, str]:
    """What decides how numbers are rounded. The number of threads does not."""
    return {
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "processor": processor(),
        "kernels": "compiled" if import_module("conjoint.kernels").status()["active"] else "none",
    }


def processor() -> str:
    """Which processor: libraries of linear algebra choose their loops, and so the order of sums, by it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    told = dict(line.replace("\t", "").split(":", 1) for line in reversed(lines) if ":" in line)
    return " ".join(told.get(key, "").strip() for key in ("vendor_id", "cpu family", "model"))


def differences(made_with: Mapping[str, str]) -> list[str]:
    return [
        f"{key} {made_with.get(key)} then, {now} now"
        for key, now in machine().items()
        if made_with.get(key) != now
    ]


def skip_unless_made_here(made_with: Mapping[str, str]) -> None:
    other = differences(made_with)
    if other:
        pytest.skip(f"bits depend on the machine: {'; '.join(other)}")
