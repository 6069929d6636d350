"""Time and memory by amount of data, and whether they grow as they may."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.runner import Run
from benchmarks.section import verdict
from benchmarks.spread import Spread

SLACK = 0.15
"""How far above its power a measured one may lie: caches end somewhere between two sizes."""

NOISE_MB = 32
"""A difference of memory that says nothing: allocators keep as much."""

GROWTH = {1: "linear", 2: "quadratic"}


@dataclass(frozen=True)
class Work:
    """What grows.

    Attributes:
        label: in the figure.
        what: is done, exactly, with the unit of its data.
        power: of the data that its time may grow by.
        copied: bytes a datum that its memory may grow by; None if it may grow in proportion.
    """

    label: str
    what: str
    power: int = 1
    copied: int | None = None


@dataclass(frozen=True)
class Curve:
    """Time and memory by amount of data.

    Attributes:
        amounts: of data.
        seconds: median of each.
        peak_mb: of each in the first round, where amounts ascend: what a process has kept from a
            larger one would count for a smaller one after it.
    """

    amounts: tuple[int, ...]
    seconds: tuple[float, ...]
    peak_mb: tuple[float, ...]

    @property
    def power(self) -> float:
        """p of time ~ data^p, from the larger half of the sizes: fixed costs hide it before."""
        middle = len(self.amounts) // 2
        return math.log(self.seconds[-1] / self.seconds[middle]) / math.log(
            self.amounts[-1] / self.amounts[middle]
        )

    @property
    def grown_mb(self) -> float:
        """Memory at the largest amount above that at the smallest."""
        return self.peak_mb[-1] - self.peak_mb[0]

    @property
    def steps_mb(self) -> tuple[float, float]:
        """Memory that the last doubling of the data adds, and the one before it."""
        *_, before, middle, last = self.peak_mb
        return last - middle, middle - before


def curve(runs: Mapping[int, Sequence[Run]]) -> Curve:
    """Of all runs of a work, by amount of data."""
    return Curve(
        amounts=tuple(runs),
        seconds=tuple(Spread.of(r.seconds for r in some).median for some in runs.values()),
        peak_mb=tuple(some[0].peak_mb for some in runs.values()),
    )


def judge_time(work: Work, found: Curve) -> str:
    """Whether time grows as it may."""
    shape = GROWTH[work.power]
    if found.power > work.power + SLACK:
        return f"faster than {shape} growth"
    return f"{shape}, {work.power + SLACK:g} at most: met"


def judge_memory(work: Work, found: Curve) -> str:
    """Whether memory grows as it may."""
    if work.copied is not None:
        copies = work.copied * (found.amounts[-1] - found.amounts[0]) / 2**20
        goal = f"flat but for one copy of the features, {copies:,.0f} MB"
        return f"{goal}: {verdict(found.grown_mb <= copies + NOISE_MB)}"
    # m + c data^p: a doubling adds 2^p times what the one before it added.
    last, before = found.steps_mb
    if last > 2 ** (1 + SLACK) * max(before, 0.0) + NOISE_MB:
        return f"faster than linear growth: {last:,.0f} MB after {before:,.0f} MB"
    return f"linear, {1 + SLACK:g} at most: met"
