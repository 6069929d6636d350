"""Heat maps: the accuracy matrix and the high-overlap advantage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from style_overlap.report.advantage import Advantage
from style_overlap.report.figures import ALPHA_EVAL, ALPHA_TRAIN, INK, drawing, heading
from style_overlap.report.matrix import Matrix
from style_overlap.report.wording import listed
from style_overlap.stats import MeanSd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WORDS = {"degenerate": "degen."}
_SCALE = 10.0  # points: figures of small advantages have one scale of colours, and pale ones


def accuracy(title: str, matrix: Matrix) -> Figure:
    """Accuracy in percent, rows alpha_train, columns alpha_eval.

    The colours (cividis) rise evenly in lightness from chance to 100, and every cell holds its
    number. A cell that nobody has measured is hatched and says why.
    """
    from matplotlib.figure import Figure

    rows, columns = matrix.alphas_train, matrix.alphas_eval
    found = [[matrix.at((row, column)) for column in columns] for row in rows]
    values = _hundredfold(found)
    chance = 100 / matrix.k
    with drawing():
        figure = Figure(
            figsize=(1.9 + 0.8 * len(columns), max(2.7, 1.6 + 0.55 * len(rows))),
            layout="constrained",
        )
        axes = figure.add_subplot()
        image = cells(axes, values, chance, 100)
        ticks(axes, columns, rows)
        axes.set_xlabel(ALPHA_EVAL)
        axes.set_ylabel(ALPHA_TRAIN)
        heading(figure, title, f"accuracy (%): {listed(matrix.styles)}")
        most = len(matrix.seeds)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                value = found[i][j]
                if value.mean is None:
                    why = matrix.why(row) or "none"
                    _blank(axes, i, j, _WORDS.get(why, why))
                    continue
                text = f"{values[i, j]:.1f}"
                text += f"\n±{100 * value.sd:.1f}" if value.sd is not None else ""
                text += f"\n{value.n} of {most} seeds" if value.n < most else ""
                dark = values[i, j] < (chance + 100) / 2
                write_number(axes, i, j, text, dark, bold=row == column)
        bar = figure.colorbar(image, ax=axes)
        bar.set_label("accuracy (%), from chance")
    return figure


def advantages(title: str, matrix: Matrix, found: Advantage) -> Figure:
    """High-overlap advantage of each pair in points; a dashed frame marks a disadvantage."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    alphas = matrix.alphas_both
    lows, highs = alphas[:-1], alphas[1:]
    seeds = len(matrix.seeds)
    none = MeanSd(None, None, 0)
    table = [[found.pairs.get((low, high), none) for high in highs] for low in lows]
    values = _hundredfold(table)
    most = max(_SCALE, float(np.nanmax(np.abs(values))))
    with drawing():
        figure = Figure(
            figsize=(2.2 + 0.8 * len(highs), max(2.7, 1.7 + 0.55 * len(lows))), layout="constrained"
        )
        axes = figure.add_subplot()
        image = cells(axes, values, -most, most)
        ticks(axes, highs, lows)
        axes.set_xlabel(r"higher overlap of the pair, $\alpha_j$")
        axes.set_ylabel(r"lower overlap of the pair, $\alpha_i$")
        heading(figure, title, "high-overlap advantage (points)")
        for i, low in enumerate(lows):
            for j, high in enumerate(highs):
                value = table[i][j]
                if value.mean is None:
                    if float(low) < float(high):
                        why = matrix.why(low, high) or "none"
                        _blank(axes, i, j, _WORDS.get(why, why))
                    continue
                text = f"{values[i, j]:+.1f}"
                text += f"\n±{100 * value.sd:.1f}" if value.sd is not None else ""
                text += f"\n{value.n} of {seeds} seeds" if value.n < seeds else ""
                write_number(axes, i, j, text, values[i, j] < 0.1 * most)
                if value.mean < 0:
                    frame = Rectangle((j - 0.45, i - 0.44), 0.9, 0.88)
                    frame.set(fill=False, edgecolor="white", linestyle="--", linewidth=1)
                    axes.add_patch(frame)
        bar = figure.colorbar(image, ax=axes)
        below = "; dashed: below 0" if np.nanmin(values) < 0 else ""
        bar.set_label(f"points of accuracy{below}")
    return figure


def _hundredfold(table: list[list[MeanSd]]) -> npt.NDArray[np.float64]:
    values = [[np.nan if cell.mean is None else 100 * cell.mean for cell in row] for row in table]
    return np.array(values, dtype=np.float64)


def cells(axes: Axes, values: npt.NDArray[np.float64], low: float, high: float) -> Any:
    """Cells as vectors, sharp at any size; one without a value has no colour."""
    n, m = values.shape
    mesh = axes.pcolormesh(
        np.arange(m + 1) - 0.5, np.arange(n + 1) - 0.5, np.ma.masked_invalid(values),
        cmap="cividis", vmin=low, vmax=high, edgecolors="face", linewidth=0.3,
    )  # fmt: skip
    axes.invert_yaxis()
    return mesh


def ticks(axes: Axes, columns: Sequence[str], rows: Sequence[str]) -> None:
    """The names of columns and rows, and no frame."""
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def write_number(axes: Axes, i: int, j: int, text: str, dark: bool, *, bold: bool = False) -> None:
    """What a cell holds, readable on its dark or light colour."""
    size = 7 if "seeds" in text else 9
    axes.text(
        j, i, text.replace("-", "−"), ha="center", va="center", fontsize=size, linespacing=1.1,
        color="white" if dark else "black", fontweight="bold" if bold else "normal",
    )  # fmt: skip


def _blank(axes: Axes, i: int, j: int, word: str) -> None:
    from matplotlib.patches import Rectangle

    frame = Rectangle((j - 0.5, i - 0.5), 1, 1)
    frame.set(fill=False, edgecolor="#9a9a9a", hatch="////", linewidth=0)
    axes.add_patch(frame)
    axes.text(
        j, i, word, ha="center", va="center", fontsize=8, color=INK, fontstyle="italic",
        bbox={"facecolor": "none", "edgecolor": "none"},
    )  # fmt: skip
