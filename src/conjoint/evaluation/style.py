"""How all pictures look: colours that colour-blind readers tell apart, few lines, no global settings."""

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from ..storage import write_atomically
from ..text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, the pale yellow left out; shapes tell further classes apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#5D5D5D")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FEATURE, STRUCTURAL, CONJOINT = COLOURS[:3]
PARTS = {"feature": FEATURE, "structural": STRUCTURAL, "conjoint": CONJOINT}
GREY = "#777777"
DOTS_PER_INCH = 130


def new_figure(width: float, height: float) -> "Figure":
    """A figure of its own: pyplot, which keeps figures in a global list, is not used."""
    # A training without pictures does without matplotlib.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=DOTS_PER_INCH)


def tidy(axes: "Axes", title: str = "", x: str = "", y: str = "") -> "Axes":
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    return axes


def look(k: int) -> tuple[str, str]:
    """Colour and marker of class k: 49 pairs before one comes again. -1 (unlabelled) is a pale dot."""
    if k < 0:
        return "#CCCCCC", "o"
    return COLOURS[k % len(COLOURS)], MARKERS[k // len(COLOURS) % len(MARKERS)]


def label(text: object, limit: int = 24) -> str:
    """A user's word as a label: no formulas from dollar signs, and a leading underscore does not hide it."""
    plain = shorten(text, limit).replace("$", r"\$")
    return " " + plain if plain.startswith("_") else plain


def write_picture(path: str, figure: "Figure") -> None:
    """Into a file whose ending says its kind."""
    write_atomically(Path(path), picture(figure, Path(path).suffix[1:].lower()))


def picture(figure: "Figure", kind: str = "png") -> bytes:
    """The figure as a file's content, the same bytes for the same numbers."""
    from matplotlib import rc_context

    out = io.BytesIO()
    stamps = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with warnings.catch_warnings(), rc_context({"svg.hashsalt": "conjoint"}):
        # A class name may use letters that the font lacks; they become boxes, which is no reason to stop.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing", category=UserWarning)
        figure.savefig(out, format=kind, metadata=stamps.get(kind))
    return out.getvalue()
