"""The picture of seconds against accuracy shows what the rows say."""

import pytest

from research.time_to_accuracy import figure_of, kind_of, points

ROW = {
    "graph": "g",
    "setting": "60/20/20",
    "seconds": 12.0,
    "member_seconds": {"CAT, mf": 2.0, "logistic": 0.5},
    "test": {
        name: {"accuracy": accuracy}
        for name, accuracy in (("ensemble", 0.9), ("CAT, mf", 0.8), ("logistic", 0.7), ("tuned gcn", 0.6))
    },
}


def test_points_are_means_over_the_splits_of_lines_that_all_rows_have() -> None:
    other = {**ROW, "seconds": 14.0, "member_seconds": {"CAT, mf": 4.0}, "peer_seconds": {"tuned gcn": 3.0}}
    found = points([ROW, other])
    assert found == {"ensemble": (13.0, pytest.approx(90.0)), "CAT, mf": (3.0, pytest.approx(80.0))}
    assert points([other])["tuned gcn"] == (3.0, pytest.approx(60.0))


def test_every_line_has_a_kind_and_every_graph_a_panel() -> None:
    assert kind_of("ensemble") == "conjoint train" and kind_of("tuned gat").startswith("tuned")
    assert kind_of("deep residual CAT, mf") == "conjoint attention alone"
    assert kind_of("boosting") == "other members alone"
    figure = figure_of([ROW, {**ROW, "graph": "h"}, {**ROW, "setting": "20 a class"}])
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes if axes.axison] == [
        "g",
        "h",
    ]
