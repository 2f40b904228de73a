"""The report in a real browser, opened from a file: it renders, sorts, explores, and fetches nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import opened
from conjoint.experiments.report import build_report
from fake_portrait import portrait
from fake_rows import rows_of_everything

By = pytest.importorskip("selenium.webdriver.common.by", reason="selenium is not installed").By
Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(build_report(rows_of_everything(), portrait()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(page, tmp_path_factory.mktemp("profile")) as running:
        yield running


def first_table(browser: Any) -> Any:
    return browser.find_element(By.CSS_SELECTOR, "#table1 table")


def column(browser: Any, number: int) -> list[str]:
    cells = first_table(browser).find_elements(By.CSS_SELECTOR, f"tbody tr > :nth-child({number})")
    return [cell.text for cell in cells]


def test_it_renders(browser: Any) -> None:
    assert browser.title == "Conjoint attention, re-measured"
    assert "85.38 ± 0.16" in column(browser, 2)
    pictures = browser.find_elements(By.CSS_SELECTOR, "figure img")
    assert len(pictures) >= 7  # at least a figure for each kind of experiment
    assert len(pictures) == len(browser.find_elements(By.CSS_SELECTOR, "figure"))
    for image in pictures:
        assert browser.execute_script("return arguments[0].complete && arguments[0].naturalWidth > 0", image)


def test_significance_is_a_colour(browser: Any) -> None:
    better = browser.find_elements(By.CSS_SELECTOR, "#table1 td.better")
    assert better
    assert better[0].value_of_css_property("background-color") != "rgba(0, 0, 0, 0)"


def test_a_column_sorts_both_ways_by_mouse_and_by_keyboard(browser: Any) -> None:
    before = column(browser, 1)
    button = first_table(browser).find_elements(By.CSS_SELECTOR, "thead button")[2]  # measured
    button.click()
    means = [float(text.split()[0]) for text in column(browser, 3) if text != "-"]
    assert means == sorted(means) and len(set(means)) > 5
    assert column(browser, 3)[-1] == "-"  # what was not run stays last
    assert button.find_element(By.XPATH, "..").get_attribute("aria-sort") == "ascending"
    button.send_keys(Keys.ENTER)
    means = [float(text.split()[0]) for text in column(browser, 3) if text != "-"]
    assert means == sorted(means, reverse=True)
    assert column(browser, 3)[-1] == "-"
    assert sorted(column(browser, 1)) == sorted(before)
    first_table(browser).find_elements(By.CSS_SELECTOR, "thead button")[0].click()
    assert column(browser, 1) == sorted(before)


def neighbours(browser: Any) -> list[list[str]]:
    lines = browser.find_elements(By.CSS_SELECTOR, "#neighbours tbody tr")
    return [[cell.text for cell in line.find_elements(By.TAG_NAME, "td")] for line in lines]


def pick(browser: Any, node: str) -> None:
    box = browser.find_element(By.ID, "node")
    box.clear()
    box.send_keys(node, Keys.ENTER)


def test_a_node_is_picked_by_its_id(browser: Any) -> None:
    pick(browser, "c")
    about = browser.find_element(By.ID, "about").text
    assert "Paper c (test): predicted first, but it is second & third." in about
    assert "It attends to 3 papers, itself included; an even share would be 33.3%." in about
    assert neighbours(browser) == [
        ["a", "first", "20.0", "40.0", "60.0"],
        ["c (itself)", "second & third", "30.0", "20.0", "25.0"],
        ["b", "first", "50.0", "40.0", "15.0"],
    ]


def test_the_layer_can_be_chosen_and_a_neighbour_followed(browser: Any) -> None:
    pick(browser, "c")
    browser.find_element(By.CSS_SELECTOR, "#layer option:nth-child(2)").click()
    assert neighbours(browser)[0] == ["b", "first", "10.0", "40.0", "70.0"]
    browser.find_element(By.CSS_SELECTOR, "#neighbours tbody button").click()
    assert "Paper b (training)" in browser.find_element(By.ID, "about").text
    browser.find_element(By.CSS_SELECTOR, "#layer option:nth-child(1)").click()


def test_the_map_answers_to_arrow_keys_and_to_clicks(browser: Any) -> None:
    pick(browser, "a")
    chart = browser.find_element(By.ID, "map")
    chart.send_keys(Keys.ARROW_RIGHT)
    assert "Paper b" in browser.find_element(By.ID, "about").text
    chart.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)  # before the first comes the last
    assert "Paper <d>" in browser.find_element(By.ID, "about").text
    from selenium.webdriver.common.action_chains import ActionChains

    width, height = chart.size["width"], chart.size["height"]
    corner = ActionChains(browser).move_to_element_with_offset(chart, width // 2 - 12, height // 2 - 12)
    corner.click().perform()
    assert "Paper c" in browser.find_element(By.ID, "about").text  # the one in the lower right corner


def test_an_unknown_id_is_said_to_be_unknown(browser: Any) -> None:
    pick(browser, "<b>nobody</b>")
    assert browser.find_element(By.ID, "about").text == "There is no paper <b>nobody</b>."


def test_words_from_the_data_are_shown_and_not_obeyed(browser: Any) -> None:
    legend = [item.text for item in browser.find_elements(By.CSS_SELECTOR, "#legend li")]
    assert legend == ["first", "second & third", "</script><script>window.caught=1</script>"]
    assert browser.execute_script("return window.caught") is None


def test_a_phone_needs_no_sideways_scrolling(browser: Any) -> None:
    before = browser.get_window_size()
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True},
    )
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.set_window_size(before["width"], before["height"])


def test_everything_that_acts_can_be_reached_by_keyboard(browser: Any) -> None:
    """Nothing that reacts to a click is out of the tab order."""
    unreachable = browser.execute_script(
        "const acting = document.querySelectorAll('button, a, input, select, canvas');"
        "return [...acting].filter(element => element.tabIndex < 0).length"
    )
    assert unreachable == 0


def test_zz_nothing_went_wrong_and_nothing_was_fetched(browser: Any, page: Path) -> None:
    """Last of all, over everything that the tests above did."""
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    asked = set()
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        # The browser's own first tab also asks for things; only what this page asks for counts.
        if (
            message["method"] == "Network.requestWillBeSent"
            and message["params"]["documentURL"] == page.as_uri()
        ):
            asked.add(message["params"]["request"]["url"])
    assert {url for url in asked if not url.startswith("data:")} == {page.as_uri()}
