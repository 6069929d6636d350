"""The high-overlap advantage of one matrix: its pairs, what drives it, the tests, its interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from style_overlap import bootstrap, stats
from style_overlap.bootstrap import Interval, Scores
from style_overlap.names import as_alpha
from style_overlap.report.matrix import Matrix
from style_overlap.stats import Alpha, HoaPair, HoaTest, MeanSd


@dataclass(frozen=True)
class Advantage:
    """High-overlap advantage (Eq. 2) of one matrix; a figure is computed when it is asked for."""

    matrix: Matrix

    @cached_property
    def pairs(self) -> dict[tuple[str, str], MeanSd]:
        """By (low, high): mean and sd over seeds, each seed's advantage taken first."""
        return self.matrix.hoa_by_seed()

    @cached_property
    def test(self) -> HoaTest:
        """Over the pairs' means."""
        return stats.hoa_test(self.matrix.hoa())

    @property
    def mean(self) -> MeanSd:
        """The mean over pairs: its mean and sd over the seeds that have every pair."""
        return self._over_seeds(lambda pair: pair.hoa)

    @property
    def training(self) -> MeanSd:
        """What training at the higher overlap has to do with it, see ``stats.HoaPair``."""
        return self._over_seeds(lambda pair: np.nan if pair.training is None else pair.training)

    @property
    def test_sets(self) -> MeanSd:
        """The rest: by how much the test set at the lower overlap of a pair is the easier one."""
        return self._over_seeds(
            lambda pair: np.nan if pair.training is None else pair.hoa - pair.training
        )

    @cached_property
    def interval(self) -> Interval:
        """Bootstrap interval of the mean over pairs, contents drawn with replacement."""
        return _interval(self.matrix)

    @property
    def reasons(self) -> list[str]:
        """Why figures are not given."""
        return list(dict.fromkeys(t for t in (self.test.reason, self.interval.reason) if t))

    def _over_seeds(self, figure: Callable[[HoaPair], float]) -> MeanSd:
        return stats.mean_sd([np.mean([figure(pair) for pair in found]) for found in self._whole])

    @cached_property
    def _whole(self) -> list[tuple[HoaPair, ...]]:
        """The pairs of each seed that has every pair."""
        of_seeds = self.matrix.hoa_of_seeds().values()
        return [found for found in of_seeds if 0 < len(found) == len(self.pairs)]


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
