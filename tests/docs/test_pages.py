"""What the pages of docs say about the package is complete."""

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import conjoint
from research.any_graph import read_rows

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_reference_has_every_public_name() -> None:
    named = re.findall(r"^\.\. auto\w+:: conjoint\.(\w+)$", (DOCS / "reference.md").read_text(), re.M)
    assert sorted(named) == sorted(conjoint.__all__)


def test_links_of_the_readme_lead_somewhere() -> None:
    """The site leaves its last part out, so the site's own check does not see them."""
    links = re.findall(r"\]\(([^)#:]+)\)", (DOCS.parent / "README.md").read_text())
    assert links
    assert [link for link in links if not (DOCS.parent / link).exists()] == []


def test_the_table_of_the_readme_is_that_of_the_rows() -> None:
    spec = spec_from_file_location("readme", DOCS.parent / "scripts" / "readme.py")
    assert spec is not None and spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    made = script.table(read_rows(), script.measured())
    assert f"-->\n{made}\n<!--" in (DOCS.parent / "README.md").read_text(), "run: python scripts/readme.py"
    assert (DOCS / "img" / "why.svg").stat().st_size < 60_000


def test_every_page_can_be_found() -> None:
    """From the site's contents and from the README's last table, which people on GitHub read."""
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    listed = re.findall(r"^([\w-]+)$", (DOCS / "index.md").read_text(), re.M)
    linked = re.findall(r"\(docs/([\w-]+)\.md\)", (DOCS.parent / "README.md").read_text())
    assert pages <= set(listed) and pages - {"reference", "changelog", "contributing", "security"} <= set(
        linked
    )


def test_the_score_of_mutants_is_the_one_that_is_kept() -> None:
    page = (DOCS / "promises.md").read_text()
    score = json.loads((DOCS.parent / "results" / "mutants" / "score.json").read_text())
    seed, last = list(score["samples"].items())[-1]
    assert (
        f"{last['killed_first']} of {last['tried']} (seed {seed}), {last['percent_first_of_all']} %" in page
    )
    every = score["counts"]["all"]
    judged = every["tried"] - every["equivalent"]
    shares = [f"{100 * every['killed'] / count:.1f} %" for count in (every["tried"], judged)]
    assert f"**{every['killed']} of {every['tried']}, {shares[0]}; {shares[1]} without" in page
    assert f" {score['of']} mutants " in page and every["killed"] >= 0.95 * every["tried"]
