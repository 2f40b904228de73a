"""Tables say what the rows say, and "-" where there are none."""

import re

from conjoint.experiments.grid import experiment_names
from conjoint.experiments.markdown import markdown, markdown_pages
from conjoint.experiments.tables import Cell, Table, tables_of
from fake_rows import line, rows_of


def test_without_rows_only_the_published_numbers_stand() -> None:
    for table in tables_of("table1", []):
        for row in table.rows:
            measured = dict(zip(table.headers, row, strict=True))
            assert measured["measured"].text == "-" and measured["runs"].text == "0"
            assert measured["published"].value is not None


def test_published_stands_beside_measured() -> None:
    [cora, *others] = tables_of("table1", rows_of("table1"))
    assert len(others) == 3
    gcn = line(cora, "gcn")
    assert gcn["published"] == "81.42 ± 0.19"
    assert gcn["measured"] == "71.17 ± 0.21"  # 71.0, 71.1, 71.4
    assert gcn["runs"] == "3"
    assert gcn["release rule"] == "72.17 ± 0.21"
    assert gcn["gap"] == "+1.00"
    assert gcn["against GAT"] == "-"  # only CATs are tested
    assert line(cora, "cat-i-mf")["against GAT"].startswith("+4.00 ± 0.00, p")


def test_table_2_reads_the_other_metric_of_the_same_rows() -> None:
    rows = rows_of("table1")
    one, two = tables_of("table1", rows)[0], tables_of("table2", rows)[0]
    assert line(one, "gat")["measured"] == "78.17 ± 0.21"
    assert line(two, "gat")["measured"] == "77.17 ± 0.21"
    assert line(two, "gat")["published"] == "81.39 ± 0.18"


def test_a_failed_run_is_shown() -> None:
    rows = rows_of("table1", 2)
    rows[0] = {**rows[0], "failed": "diverged"}
    assert line(tables_of("table1", rows)[0], str(rows[0]["model"]))["runs"] == "1 (1 failed)"


def test_lambda_has_a_column_for_each_value() -> None:
    table = tables_of("lambda", rows_of("lambda", 2))[0]
    assert table.headers[1:] == tuple(f"λ = {w:g}" for w in (1e-4, 1e-2, 1e-1, 1, 5, 10, 20, 50, 100))
    assert line(table, "cat-i-mf")["λ = 0.0001"] == "70.05 ± 0.07"


def test_the_ablation_compares_each_cat_with_its_control() -> None:
    *_, controls = tables_of("ablation", rows_of("ablation"))
    assert controls.headers[-1] == "against control"
    assert {row[2].text for row in controls.rows} == {"cat-i-zero", "cat-e-zero"}
    assert controls.rows[0][3].text.startswith("-5.00 ± 0.00, p")


def test_the_released_rows_are_also_compared_by_the_authors_rule() -> None:
    rows = rows_of("released")
    for row in rows:  # GAT best by test nodes, and worst by validation nodes
        row["release"] |= {"reading": 2, "test_accuracy": 0.9 - 0.1 * (row["model"] != "gat")}
    rows[0]["release"] = {**rows[0]["release"], "test_accuracy": 0.1}
    del rows[0]["release"]["reading"]  # an earlier reading of the rule
    *plain, by_rule = tables_of("released", rows)
    [line] = [line for line in by_rule.rows if [cell.text for cell in line[:2]] == ["Cora", "cat-i-mf"]]
    assert line[2].text == "80.00 ± 0.00" and line[3].text.startswith("-10.00 ± 0.00, p")
    [gat] = [line for line in by_rule.rows if [cell.text for cell in line[:2]] == ["Cora", "gat"]]
    assert gat[2].text == "90.00 ± 0.00"  # without the earlier reading
    assert dict(zip(plain[0].headers, plain[0].rows[0], strict=True))["release rule"].text == "90.00 ± 0.00"


def test_table_5_has_parameters_memory_and_time() -> None:
    [table] = tables_of("table5", rows_of("table5", 1))
    first = dict(zip(table.headers, (entry.text for entry in table.rows[0]), strict=True))
    assert first["parameters, published"] == "92430" and first["parameters"] == "1000"
    assert first["memory (CPU)"] == "30 MiB" and first["epoch"] == "10.0 ms"


def test_there_is_a_page_for_every_experiment() -> None:
    pages = markdown_pages([])
    assert list(pages) == ["index.md", *(f"{name}.md" for name in experiment_names())]
    assert re.findall(r"^\| \[(.+)\]\(\1\.md\) ", pages["index.md"].decode(), re.M) == experiment_names()


def test_markdown_marks_what_is_significant_and_escapes_bars() -> None:
    table = Table("t", ("a", "b"), ((Cell("x|y"), Cell("+1", 1.0, "better")),))
    assert markdown(table) == "| a | b |\n| --- | --- |\n| x\\|y | **+1** |\n"
