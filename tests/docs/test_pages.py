"""What the pages of docs say about the package is complete."""

import re
from pathlib import Path

import conjoint

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_reference_has_every_public_name() -> None:
    named = re.findall(r"^\.\. auto\w+:: conjoint\.(\w+)$", (DOCS / "reference.md").read_text(), re.M)
    assert sorted(named) == sorted(conjoint.__all__)


def test_links_of_the_readme_lead_somewhere() -> None:
    """The site leaves its last part out, so the site's own check does not see them."""
    links = re.findall(r"\]\(([^)#:]+)\)", (DOCS.parent / "README.md").read_text())
    assert links
    assert [link for link in links if not (DOCS.parent / link).exists()] == []
