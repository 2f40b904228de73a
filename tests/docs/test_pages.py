"""What the pages of docs say about the package is complete."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

import conjoint
from topics import topic_graph

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_reference_has_every_public_name() -> None:
    named = re.findall(r"^\.\. auto\w+:: conjoint\.(\w+)$", (DOCS / "reference.md").read_text(), re.M)
    assert sorted(named) == sorted(conjoint.__all__)


def test_links_of_the_readme_lead_somewhere() -> None:
    """The site leaves its last part out, so the site's own check does not see them."""
    links = re.findall(r"\]\(([^)#:]+)\)", (DOCS.parent / "README.md").read_text())
    assert links
    assert [link for link in links if not (DOCS.parent / link).exists()] == []


def python_block(page: str, word: str) -> str:
    (found,) = [b for b in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S) if word in b]
    return found


def test_the_learners_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = topic_graph(60, words=20)
    ends = [(f"n{i}", f"n{j}") for i, j in graph.edge_index.t().tolist()]
    nodes = pd.DataFrame({"id": [f"n{k}" for k in range(60)], "topic": [f"t{k}" for k in graph.y.tolist()]})
    nodes = nodes.join(pd.DataFrame(graph.x.to_dense().numpy()).add_prefix("w"))
    names: dict[str, Any] = {"edges": pd.DataFrame(ends, columns=["source", "target"]), "nodes": nodes}
    code = python_block("learner.md", "load_learned")
    exec(code.replace('label="topic"', 'label="topic", trials=3'), names)
    assert list(names["learned"].predictions) == re.findall(r"a table: (.*)", code)[0].split(", ")


def test_the_example_of_transductive_cross_validation_runs() -> None:
    graph = topic_graph(60, words=20)
    names: dict[str, Any] = {"X": graph.x.to_dense().numpy(), "y": graph.y.numpy(), "A": graph.edge_index}
    names |= {"np": np, "cross_val_score": cross_val_score, "GridSearchCV": GridSearchCV}
    code = python_block("estimators.md", "Transductive").replace("random_state=0", "random_state=0, epochs=2")
    exec(code.replace("CATClassifier(", 'CATClassifier(model="gcn", '), names)
    assert names["search"].best_estimator_.estimator_.transduction_.shape == (60,)
