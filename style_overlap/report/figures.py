"""Figures: vector and bitmap, readable in grey and by colour-blind people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from style_overlap.report.matrix import Matrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def heat_map(matrix: Matrix) -> Figure:
    """Accuracy in percent, rows alpha_train, columns alpha_eval; a missing cell stays blank.

    The colour map (cividis) has one hue and rises evenly in lightness, and every cell holds its
    number, so nothing depends on telling colours apart.
    """
    from matplotlib.figure import Figure

    rows, columns = matrix.alphas_train, matrix.alphas_eval
    values = np.array(
        [
            [
                np.nan if (mean := matrix.mean((row, column))) is None else 100 * mean
                for column in columns
            ]
            for row in rows
        ]
    )
    chance = 100 / matrix.k
    figure = Figure(
        figsize=(1.6 + 0.85 * len(columns), 1.9 + 0.55 * len(rows)), layout="constrained"
    )
    axes = figure.add_subplot()
    image = axes.imshow(values, cmap="cividis", vmin=chance, vmax=100, aspect="auto")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlabel(r"evaluated at content overlap $\alpha_\mathrm{eval}$")
    axes.set_ylabel(r"fine-tuned at $\alpha_\mathrm{train}$")
    axes.set_title(f"Accuracy (%), {', '.join(matrix.styles)}", fontsize=11)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            if np.isnan(values[i, j]):
                continue
            sd = matrix.sd((row, column))
            text = f"{values[i, j]:.1f}" + (f"\n±{100 * sd:.1f}" if sd is not None else "")
            dark = values[i, j] < (chance + 100) / 2
            weight = "bold" if row == column else "normal"
            color = "white" if dark else "black"
            axes.text(
                j, i, text, ha="center", va="center", fontsize=9, color=color, fontweight=weight
            )
    bar = figure.colorbar(image, ax=axes)
    bar.set_label("accuracy (%)")  # the scale begins at chance
    return figure


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as SVG and PNG beside each other, with the same bytes every time."""
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_name(f"{path.name}.{kind}") for kind in ("svg", "png")]
    with rc_context({"svg.hashsalt": "style-overlap", "svg.fonttype": "none"}):
        figure.savefig(files[0], metadata={"Date": None})
        figure.savefig(files[1], dpi=150, metadata={"Software": None})
    return files
