"""A matrix as text: its rows, and its high-overlap advantage in a few words."""

from __future__ import annotations

from collections.abc import Sequence

from style_overlap.report.advantage import Advantage
from style_overlap.report.matrix import Cell, Matrix
from style_overlap.report.wording import DASH, few, number, p_value, percent, points
from style_overlap.stats import HoaTest, MeanSd


def rows(matrix: Matrix) -> Sequence[tuple[str, list[str]]]:
    """The matrix as text: (alpha_train, cells in the order of ``alphas_eval``)."""
    return [(row, [_text(matrix, (row, col)) for col in matrix.alphas_eval])
            for row in matrix.alphas_train]  # fmt: skip


def _text(matrix: Matrix, cell: Cell) -> str:
    value = matrix.at(cell)
    if value.mean is None:
        return matrix.why(cell[0]) or DASH
    return percent(value.mean, value.sd) + few(value, matrix.seeds)


def advantages(matrix: Matrix) -> list[str]:
    """The high-overlap advantage in words: each pair, and the tests over them if they are many."""
    found = Advantage(matrix)
    lines = [f"({low}, {high}) {points(value)}" for (low, high), value in found.pairs.items()]
    test = found.test
    if test.p_t is None or test.mean is None:
        return lines
    return [
        *lines,
        f"mean {points(MeanSd(test.mean, None, test.n))}, by training {points(found.training)}, "
        f"{positive(test)} pairs positive, Cohen's d {number(test.cohen_d)}, one-sided p "
        f"{p_value(test.p_t)} (paired t), {p_value(test.p_relabel)} (overlaps relabelled)",
    ]


def positive(test: HoaTest) -> str:
    """How many of the pairs have an advantage above 0: ``14 of 15``."""
    share = test.share_positive
    return DASH if share is None else f"{round(share * test.n)} of {test.n}"
