"""A matrix as text: its rows, and its high-overlap advantage in a few words."""

from __future__ import annotations

from collections.abc import Sequence

from style_overlap import stats
from style_overlap.report.matrix import Cell, Matrix
from style_overlap.report.wording import DASH, p_value, percent, points


def rows(matrix: Matrix) -> Sequence[tuple[str, list[str]]]:
    """The matrix as text: (alpha_train, cells in the order of ``alphas_eval``)."""
    return [(row, [_text(matrix, (row, col)) for col in matrix.alphas_eval])
            for row in matrix.alphas_train]  # fmt: skip


def _text(matrix: Matrix, cell: Cell) -> str:
    value = matrix.at(cell)
    if value.mean is None:
        return matrix.why(cell[0]) or DASH
    few = value.n < len(matrix.seeds)
    return percent(value.mean, value.sd) + (f" (n={value.n})" if few else "")


def advantages(matrix: Matrix) -> list[str]:
    """The high-overlap advantage in words: each pair, and the tests over them if they are many."""
    by_seed = matrix.hoa_by_seed()
    lines = [f"({low}, {high}) {points(value)}" for (low, high), value in by_seed.items()]
    pairs = matrix.hoa()
    test = stats.hoa_test(pairs)
    if test.p_t is None or test.mean is None:
        return lines
    positive = sum(p.hoa > 0 for p in pairs)
    return [
        *lines,
        f"mean {100 * test.mean:+.1f}, {positive} of {len(pairs)} pairs positive, Cohen's d "
        f"{test.cohen_d:.2f}, one-sided p {p_value(test.p_t)} (paired t), "
        f"{p_value(test.p_sign_flip)} (sign flip)",
    ]
