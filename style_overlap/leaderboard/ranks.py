"""Ranks that say no more than the scores do.

The rank of an encoder is one more than the number of encoders in the same setting that are better
beyond noise: whose whole interval of the ranking accuracy lies above its own. Encoders whose
intervals overlap that of the best therefore share rank 1. (Overlap is not transitive: A may overlap
B, and B overlap C, while A is above C. Then A and B are first, and C, with one above it, is
second.)
"""

from __future__ import annotations

from collections.abc import Sequence

RANKED_BY = "acc_1_1"
"""Name of the metric that ranks."""

Bounds = tuple[float, float]


def ranks(bounds: Sequence[Bounds | None]) -> list[int | None]:
    """Rank of each encoder of one setting.

    Args:
        bounds: low and high end of each one's interval; None for one that has none and gets no
            rank.
    """
    known = [pair for pair in bounds if pair is not None]
    return [None if mine is None else 1 + sum(low > mine[1] for low, _ in known) for mine in bounds]
