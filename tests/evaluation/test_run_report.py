"""The report of a run, in a real browser too: it renders, explains, fetches nothing, and stays small."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from browser import opened
from conjoint.cli import main
from conjoint.evaluation.run_report import (
    Judged,
    data_section,
    degrees,
    gather,
    intervals,
    json_in_script,
    label_of,
    mistakes_section,
    table_html,
)
from conjoint.graph.graph import Graph
from conjoint.training.metrics import METRICS
from small_training import CLASSES, small_data

HOSTILE = "</script><script>window.caught=1</script><img src=x onerror=window.caught=1>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on files whose ids, classes and columns all try to run."""
    folder, data = tmp_path_factory.mktemp("report"), small_data()
    with open(folder / "edges.csv", "w", newline="") as file:
        rows = [(f"{i}{HOSTILE}", f"{j}{HOSTILE}") for i, j in data.edge_index.t().tolist() if i < j]
        csv.writer(file).writerows([("source", "target"), *rows])
    with open(folder / "nodes.csv", "w", newline="") as file:
        names = ["id", "topic", *(f"{HOSTILE}f{k}" for k in range(data.num_features))]
        lines = zip(data.y.tolist(), data.x.tolist(), strict=True)
        table = [(f"{k}{HOSTILE}", f"{y}{HOSTILE}", *x) for k, (y, x) in enumerate(lines)]
        csv.writer(file).writerows([names, *table])
    files = ["--edges", str(folder / "edges.csv"), "--nodes", str(folder / "nodes.csv"), "--label", "topic"]
    options = ["--trials", "14", "--epochs", "8", "--no-plots", "--quiet", "--out", str(folder / "run")]
    assert main(["train", *files, *options]) == 0
    return folder / "run" / "report.html"


@pytest.fixture(scope="module")
def browser(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(page, tmp_path_factory.mktemp("profile")) as running:
        yield running


def text_of(browser: Any, place: str) -> str:
    return browser.find_element("css selector", place).text


def test_every_section_is_there_and_names_are_shown_not_run(browser: Any, page: Path) -> None:
    for section in ("data", "tried", "metrics", "mistakes", "explorer", "use", "card"):
        assert len(text_of(browser, f"#{section}")) > 20
    assert "balanced-accuracy" in text_of(browser, "#metrics") and "Confusion" in text_of(browser, "#metrics")
    assert "<script>window" in text_of(browser, "#about")
    assert "taken for" in text_of(browser, "#data") and "Nodes by number of neighbours" in text_of(
        browser, "#data"
    )
    assert browser.execute_script("return window.caught") is None
    assert HOSTILE not in page.read_text()


def test_nodes_are_explored_by_keyboard(browser: Any) -> None:
    before = text_of(browser, "#about")
    browser.find_element("id", "next").send_keys("\n")
    assert text_of(browser, "#about") != before and "Its own features" in text_of(browser, "#why")
    tip = text_of(browser, "#tip")
    browser.find_element("id", "map").send_keys("\ue014")  # the right arrow
    assert text_of(browser, "#tip") != tip
    unreachable = (
        "return [...document.querySelectorAll('button,a,select,canvas')].filter(e => e.tabIndex < 0).length"
    )
    assert browser.execute_script(unreachable) == 0


def test_a_phone_needs_no_sideways_scrolling(browser: Any) -> None:
    phone = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_zz_nothing_went_wrong_and_nothing_was_fetched(browser: Any, page: Path) -> None:
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        one["params"]["request"]["url"]
        for one in sent
        if one["method"] == "Network.requestWillBeSent" and one["params"]["documentURL"] == page.as_uri()
    }
    assert {url for url in asked if not url.startswith("data:")} == {page.as_uri()}


def test_a_million_nodes_with_long_names_stay_small() -> None:
    count, rng = 1_000_000, np.random.default_rng(0)
    y = rng.integers(0, CLASSES, count)
    graph = Graph(
        None, torch.from_numpy(y), torch.zeros(2, 1, dtype=torch.int64), class_names=["x" * 9999] * 3
    )
    shares = rng.dirichlet(np.ones(CLASSES), count).astype(np.float32)
    judged = [Judged("unseen", np.arange(count), y, shares)]
    names = ["n" * 5000] * count
    found = gather(graph, shares, judged, rng.random((count, 3)), graph.class_names, label_of(graph, names))
    assert len(found["points"]) == 2000 and len(found["chosen"]) <= 24
    assert len(json_in_script(found)) < 500_000
    assert len(mistakes_section(judged, graph.class_names, label_of(graph, names))) < 50_000


def test_degrees_are_counted_in_doubling_steps() -> None:
    found = degrees(np.array([0, 1, 1, 2, 3, 4, 5, 8, 9, 1000]))
    shown = {name: times for name, times in found.items() if times}
    assert shown == {"0": 1, "1": 2, "2": 1, "3+": 2, "5+": 2, "9+": 1, "513+": 1}


def test_words_stand_left_numbers_right_and_counts_are_shaded() -> None:
    made = table_html("t", ("name", "n"), [("<b>", 10), ("c", 0)], shades=True)
    assert '<td class="word">&lt;b&gt;</td><td class="shade5">10</td>' in made
    assert '<td class="shade0">0</td>' in made


def test_many_long_columns_stay_small() -> None:
    columns = {f"{k}{HOSTILE}": "x" * 9999 for k in range(5000)}
    graph = Graph(
        None,
        torch.zeros(4, dtype=torch.int64),
        torch.tensor([[0, 1], [1, 0]]),
        class_names=["a"],
        columns=columns,
    )
    made = data_section(graph, "")
    assert len(made) < 50_000 and "4,940 more columns" in made and "<script>" not in made


def test_intervals_hold_the_value_and_narrow_with_nodes() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 6000)
    p = rng.dirichlet(np.ones(3), 6000) + 0.5 * np.eye(3)[y]
    p /= p.sum(axis=1, keepdims=True)
    few, many = intervals(y[:300], p[:300]), intervals(y, p)
    for name, metric in METRICS.items():
        assert few[name][0] == metric(y[:300], p[:300])
        assert few[name] == intervals(y[:300], p[:300])[name]  # seeded
    low, high = few["accuracy"][1:]
    assert low < few["accuracy"][0] < high
    assert many["accuracy"][2] - many["accuracy"][1] < 0.5 * (high - low)
