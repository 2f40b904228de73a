"""What re-measures beyond the paper's own tables. It is not in the wheel; `conjoint` finds it in a checkout.

`EXTENSION` is all that the package reads, see `conjoint.experiments.extension`.
"""

from pathlib import Path

from conjoint.experiments.extension import Extension

from .comparisons import comparison_tables
from .damage import changed
from .learners import LEARNERS
from .portrait import make_portrait, portrait_spec

HERE = Path(__file__).resolve().parent

EXTENSION = Extension(
    grids=tuple(HERE / f"{name}.toml" for name in ("controls", "robustness", "recipe")),
    learners=LEARNERS,
    change=changed,
    tables={"comparisons": comparison_tables},
    portrait=lambda: make_portrait(portrait_spec()),
)
