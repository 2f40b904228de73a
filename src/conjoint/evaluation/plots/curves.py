"""Learning curves: how the losses and the validation accuracy went, and which epoch was kept."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .style import COLOURS, GREY, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def learning_curves(history: Sequence[Mapping[str, Any]], kept_epoch: int) -> "Figure":
    """Losses, validation accuracy and, where the model has one, the structural penalty."""
    penalised = any(row.get("penalty") for row in history)
    figure = new_figure(10.5 if penalised else 7.2, 3.2)
    panels = figure.subplots(1, 3 if penalised else 2)
    _line(panels[0], history, "prediction_loss", COLOURS[0], "training, with dropout")
    _line(panels[0], history, "val_loss", COLOURS[3], "validation")
    tidy(panels[0], "Prediction loss", "epoch").legend(fontsize=8, frameon=False)
    _line(panels[1], history, "val_accuracy", COLOURS[3], scale=100)
    tidy(panels[1], "Validation accuracy, %", "epoch")
    if penalised:
        _line(panels[2], history, "penalty", COLOURS[2])
        tidy(panels[2], "Structural penalty", "epoch")
    for axes in panels:
        axes.axvline(kept_epoch, color=GREY, lw=0.9, ls=":")
    panels[1].annotate(
        f"kept: epoch {kept_epoch}",
        (kept_epoch, 0.03),
        xycoords=("data", "axes fraction"),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        fontsize=8,
        color=GREY,
    )
    return figure


def _line(
    axes: "Axes",
    history: Sequence[Mapping[str, Any]],
    name: str,
    colour: str,
    label: str | None = None,
    scale: float = 1,
) -> None:
    points = [(row["epoch"], scale * row[name]) for row in history if name in row]
    if points:
        axes.plot(*zip(*points, strict=True), color=colour, lw=1.3, label=label)
