"""The documentation's site: `sphinx-build -E -W docs build/site`, then open build/site/index.html.

Broken links and anchors between pages, names that are not there and pages that nobody can reach are
errors. Nothing is fetched, neither to build the pages nor to show them.
"""

import re

from sphinx.application import Sphinx

project = "Conjoint"
author = "The Conjoint contributors"
copyright = author
html_title = "Conjoint"
html_theme = "furo"
html_show_sphinx = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["img"]

myst_heading_anchors = 4  # links to headings, as GitHub names them
nb_execution_mode = "off"  # tests/docs/test_tutorials.py executes them; the site shows what is kept
default_role = "code"  # `name` in a docstring is code, as in Markdown
autodoc_member_order = "bysource"
# scikit-learn writes the excluded ones, with links into its own pages.
autodoc_default_options = {
    "members": True,
    "exclude-members": "set_fit_request, set_predict_request, "
    "set_predict_proba_request, set_score_request, set_transform_request",
}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_use_rtype = False


def setup(app: Sphinx) -> None:
    app.connect("source-read", list_results)


def list_results(app: Sphinx, name: str, source: list[str]) -> None:
    """The pages of results belong below their index, which is made of rows and read on GitHub too."""
    if name == "results/index":
        pages = "\n".join(f"{one} <{one}>" for one in re.findall(r"^\| \[([\w-]+)\]", source[0], re.M))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
