"""Tables along an axis: a column for each level, and differences to references and to the base level."""

from conjoint.experiments.tables import tables_of
from fake_rows import line, rows_of


def test_noise_has_a_column_for_each_share_and_a_table_against_each_reference() -> None:
    rows = [row for row in rows_of("robust-edges") if row["dataset"] == "cora"]
    accuracy, gat, control = tables_of("robust-edges", rows)
    assert accuracy.headers == ("model", "+0%", "+25%", "+50%", "+100%", "+200%")
    assert line(accuracy, "gat")["+100%"] == "70.17 ± 0.21"
    assert gat.title.endswith("against gat") and control.title.endswith("against smooth-logistic")
    assert line(gat, "gcn")["+50%"].startswith("+1.00 ± 0.00, p")
    assert "gat" not in {row[0].text for row in gat.rows}
    assert line(control, "gat")["+200%"].startswith("-")


def test_the_recipe_tells_its_time() -> None:
    rows = [row for row in rows_of("recipe") if row["dataset"] == "cora"]
    slow = next(row for row in rows if row["model"] == "gat")
    rows = [row if row is not slow else {**row, "fit_seconds": 99.0} for row in rows]
    accuracy, against, _, times = tables_of("recipe", rows)
    assert times.title.endswith("seconds of a training (median)") and times.headers == accuracy.headers
    # One slow run changes nothing.
    assert line(times, "gat")["S = 2"] == line(times, "gcn")["S = 2"] != "99.0"
    assert len(against.rows) == len(times.rows) - 1


def test_the_recipe_compares_each_model_with_itself() -> None:
    rows = [row for row in rows_of("recipe") if row["dataset"] == "cora"]
    for row in rows:
        gain = {"gcn": 0.01, "gat": -0.02}.get(row["model"], 0.0)
        row["test_accuracy"] += gain * (row["train_settings"]["consistency"]["passes"] > 1)
    *_, itself, _ = tables_of("recipe", rows)
    assert itself.title.endswith("against itself at S = 1")
    assert itself.headers == ("model", "S = 2", "S = 4")
    assert line(itself, "gcn")["S = 2"].startswith("+1.00 ± 0.00, p")
    assert line(itself, "gat")["S = 2"].startswith("-2.00 ± 0.00, p")
    assert line(itself, "gated-trust")["S = 4"].startswith("+0.00 ± 0.00, p")


def test_few_labels_read_the_split() -> None:
    accuracy, *_ = tables_of("few-labels", rows_of("few-labels"))
    assert accuracy.headers[1:] == tuple(f"{k} per class" for k in (1, 3, 5, 10, 20))
