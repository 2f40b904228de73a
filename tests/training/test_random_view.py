"""A view that knows nothing is turned down by training, and the row says so."""

import pytest

from conjoint.data import load_graph, make_split
from conjoint.nn import zoo
from conjoint.training import TrainConfig, evaluate, fit


@pytest.mark.parametrize("model", ["cat-i-spectral+random", "cat-e-spectral+random"])
def test_random_scores_end_with_little_weight(model: str) -> None:
    data = load_graph("cora", source="embedded")
    split = make_split(data, "per-class", 0)
    sizes = {"features": data.x.size(1), "classes": 7, "num_nodes": data.num_nodes}
    made = zoo.build(model, **sizes, seed=0)
    config = TrainConfig(epochs=120, patience=0, evaluate_every=10, lr=0.01, weight_decay=5e-4)
    row = evaluate(fit(made, data, split, config), data, split)
    for layer in row["intervention_weights"]:
        assert layer["random"] < 0.3 and layer["random"] < 0.4 * layer["spectral"], row[
            "intervention_weights"
        ]
    assert row["test_accuracy"] > 0.74
