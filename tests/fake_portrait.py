"""A network of four papers for the report's explorer, with names that try to break out of the page."""

from typing import Any


def portrait() -> dict[str, Any]:
    return {
        "key": "k",
        "model": "cat-i-mf",
        "dataset": "cora",
        "test_accuracy": 0.8125,
        "classes": ["first", "second & third", "</script><script>window.caught=1</script>"],
        "ids": ["a", "b", "c", "<d>"],
        "labels": [0, 0, 1, 2],
        "predicted": [0, 0, 0, 2],
        "part": [1, 1, 3, 2],
        "points": [[0, 0], [500, 100], [1000, 1000], [100, 900]],
        "heard": [2, 2, 3, 1],
        "speakers": [0, 2, 1, 2, 0, 1, 2, 3],
        "structural": [500, 500, 600, 400, 400, 400, 200, 1000],
        "layers": [
            {
                "feature": [500, 500, 700, 300, 200, 500, 300, 1000],
                "conjoint": [500, 500, 650, 350, 600, 150, 250, 1000],
                "mix": [[0.5, 0.5]],
            },
            {
                "feature": [400, 600, 700, 300, 800, 100, 100, 1000],
                "conjoint": [450, 550, 650, 350, 200, 700, 100, 1000],
                "mix": [[0.5, 0.5]],
            },
        ],
    }
