"""The predicted memory against a process that really trains, and the manners of the prediction."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conjoint.errors import InputError
from conjoint.nn.zoo import settings_of
from conjoint.training.memory import WITH_KERNELS, Sizes, describe, layers, training_memory

PROBE = Path(__file__).parent.parent / "memory_probe.py"


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells a process its peak")
@pytest.mark.parametrize("model", ["cat-i-mf", "gat"])
def test_prediction_is_near_the_growth_of_a_real_process(model: str) -> None:
    nodes, features, classes, edges, hidden, heads = 30000, 64, 10, 150000, 8, 8
    numbers = [nodes, features, classes, edges, hidden, heads]
    # The C library keeps freed tensors of a few megabytes, more or less of them by chance: a wide margin.
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", PROBE, model, *map(str, numbers)],
        capture_output=True,
        text=True,
        check=True,
    )
    about = describe(
        model,
        nodes=nodes,
        features=features,
        classes=classes,
        edges=edges,
        settings={"hidden": hidden, "heads": heads},
    )
    assert about["memory"]["training_bytes"] == pytest.approx(int(ran.stdout), rel=0.4)


def test_prediction_grows_with_what_it_counts() -> None:
    small, large = Sizes(100, 1000, 500, 50), Sizes(200, 2000, 1000, 100)
    one, two = (training_memory(size, [64, 7], [8, 1], WITH_KERNELS)["parts"] for size in (small, large))
    assert all(two[name] == pytest.approx(2 * one[name], abs=1) for name in one if name != "overhead")


def test_sparse_features_cost_what_is_graph_folder() -> None:
    sizes: dict[str, Any] = {"nodes": 1000, "features": 5000, "classes": 3, "edges": 4000}
    dense = describe("gat", **sizes)["memory"]["training_bytes"]
    sparse = describe("gat", **sizes, nonzeros=50_000)["memory"]["training_bytes"]
    assert sparse < dense / 3
    assert describe("gat", nodes=1000, features=5000, classes=3)["memory"] is None
    with pytest.raises(InputError, match="nonzeros=-1"):
        describe("gat", **sizes, nonzeros=-1)


def test_layers_follow_the_settings() -> None:
    assert layers({**settings_of("cat-i-mf"), "num_layers": 3}, 7) == ([64, 64, 7], [8, 8, 1])
    units, heads = layers(settings_of("gcn"), 7)
    assert units[-1] == 7 and set(heads) == {1}


def test_a_huge_graph_is_described_without_being_built() -> None:
    about = describe("cat-i-mf", nodes=10**9, features=100, classes=50, edges=10**10)
    assert about["parameters"] > 5 * 10**10
