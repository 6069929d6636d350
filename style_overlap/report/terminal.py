"""Matrices on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from style_overlap.report.console import console as make_console
from style_overlap.report.matrix import Matrices, Matrix
from style_overlap.report.matrix_text import advantages, rows
from style_overlap.report.wording import listed, printable

_WIDTH = 120  # of a pipe or a log file, which have none of their own


def show(matrices: Matrices, records: Iterable[str]) -> None:
    """Print every matrix, its high-overlap advantages, and what was left out and why."""
    console = make_console(_WIDTH)
    for matrix in matrices.matrices:
        console.print(_table(matrix))
        if found := advantages(matrix):
            console.print(f"High-overlap advantage, in points: {', '.join(found)}\n")
    for path, reason in matrices.left_out.items():
        told = Text.assemble(("left out", "yellow"), f" {path}: {printable(reason, 300)}")
        console.print(told, soft_wrap=True)
    for path in records:
        console.print(f"record: {path}", soft_wrap=True)


def _table(matrix: Matrix) -> Table:
    seeds = "seed" if len(matrix.seeds) == 1 else "seeds"
    name, styles = printable(matrix.encoder), printable(listed(matrix.styles))
    table = Table(
        title=Text(
            f"{name}, k={matrix.k} ({styles}), {seeds} {listed(matrix.seeds)}: accuracy in %",
            style="table.title",
        ),
        title_justify="left",
    )
    table.add_column("alpha_train", no_wrap=True)
    for alpha in matrix.alphas_eval:
        table.add_column(f"eval {alpha}", justify="right", no_wrap=True)
    for alpha, cells in rows(matrix):
        table.add_row(alpha, *cells)
    return table
