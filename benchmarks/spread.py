"""A few measurements of one thing: their median, and how far apart they lie."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Median, least and greatest of some measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Summarise measurements.

        Raises:
            ValueError: there are none.
        """
        found = list(values)
        if not found:
            raise ValueError("no measurements")
        return cls(statistics.median(found), min(found), max(found))

    def text(self, digits: int = 2) -> str:
        """``median (least-greatest)``; the median alone of a single measurement."""
        if self.low == self.high:
            return f"{self.median:.{digits}f}"
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Ours over theirs, round by round.

    The two of a round ran one after the other: what slows the machine for a while slows both.

    Raises:
        ValueError: they did not run the same number of rounds.
    """
    return Spread.of(mine / other for mine, other in zip(ours, theirs, strict=True))
