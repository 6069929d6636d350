"""Matrices on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from style_overlap.report.matrix import Matrices, Matrix, advantages, rows

_WIDTH = 120  # of a pipe or a log file, which have none of their own


def show(matrices: Matrices, records: Iterable[str]) -> None:
    """Print every matrix, its high-overlap advantages, and what was left out and why."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH)
    for matrix in matrices.matrices:
        console.print(_table(matrix))
        if found := advantages(matrix):
            console.print(f"High-overlap advantage, in points: {', '.join(found)}\n")
    for path, reason in matrices.left_out.items():
        console.print(f"[yellow]left out[/yellow] {path}: {reason}", soft_wrap=True)
    for path in records:
        console.print(f"record: {path}", soft_wrap=True)


def _table(matrix: Matrix) -> Table:
    seeds = "seed" if len(matrix.seeds) == 1 else "seeds"
    table = Table(
        title=f"{matrix.encoder}, k={matrix.k} ({', '.join(matrix.styles)}), "
        f"{seeds} {', '.join(map(str, matrix.seeds))}: accuracy in %",
        title_justify="left",
    )
    table.add_column("alpha_train", no_wrap=True)
    for alpha in matrix.alphas_eval:
        table.add_column(f"eval {alpha}", justify="right", no_wrap=True)
    for alpha, cells in rows(matrix):
        table.add_row(alpha, *cells)
    return table
