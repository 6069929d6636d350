"""The high-overlap advantage of one matrix: its pairs, the tests over them, and its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from style_overlap import bootstrap, stats
from style_overlap.bootstrap import Interval, Scores
from style_overlap.names import as_alpha
from style_overlap.report.matrix import Matrix
from style_overlap.stats import Alpha, HoaTest, MeanSd


@dataclass(frozen=True)
class Advantage:
    """High-overlap advantage (Eq. 2) of one matrix.

    Attributes:
        pairs: by (low, high): mean and sd over seeds, each seed's advantage taken first.
        test: over the pairs' means.
        interval: bootstrap interval of the mean over pairs, contents drawn with replacement.
    """

    pairs: dict[tuple[str, str], MeanSd]
    test: HoaTest
    interval: Interval

    @property
    def reasons(self) -> list[str]:
        """Why figures are not given."""
        return list(dict.fromkeys(t for t in (self.test.reason, self.interval.reason) if t))


def advantage(matrix: Matrix) -> Advantage:
    """Test the high-overlap advantage of a matrix."""
    return Advantage(matrix.hoa_by_seed(), stats.hoa_test(matrix.hoa()), _interval(matrix))


def _interval(matrix: Matrix) -> Interval:
    """Interval over contents; the passages of all seeds are pooled."""
    cells: dict[tuple[Alpha, Alpha], Scores] = {}
    for row, column in matrix.cells:
        if row == column:
            continue
        # The pair's advantage is made of seeds that have both of its cells, and so is this.
        both = matrix.cells[row, column].keys() & matrix.cells.get((column, row), {}).keys()
        known = [
            matrix.credits[(row, column), seed]
            for seed in sorted(both)
            if ((row, column), seed) in matrix.credits
        ]
        if len(known) < len(both):
            return Interval(None, None, 0.95, 0, "records without the credit of single contents")
        if known:
            scored = [(c, s, int(n)) for credit in known for c, (s, n) in credit.items() if n]
            content, total, number = (np.array(column) for column in zip(*scored, strict=True))
            cells[as_alpha(row), as_alpha(column)] = Scores(
                np.repeat(content, number), np.repeat(total / number, number)
            )
    return bootstrap.hoa_interval(cells)
