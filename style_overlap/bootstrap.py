"""Bootstrap intervals over content ids.

The texts of one content are not independent: a hard chunk is hard in every version. Whole contents
are therefore drawn with replacement, with all that was scored on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from style_overlap.stats import Alpha, hoa

FloatArray = npt.NDArray[np.float64]

RESAMPLES = 2000
_AT_ONCE = 4_000_000  # weights held at a time: 32 MB


@dataclass(frozen=True)
class Interval:
    """Percentile interval; None if undefined, and ``reason`` says why."""

    low: float | None
    high: float | None
    level: float
    n_contents: int
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class Scores:
    """What was scored, example by example.

    Attributes:
        content: content id or content group of each example, shape (n,), any sortable values.
        credit: 1 for right, 0 for wrong, a share for ties, shape (n,).
    """

    content: npt.NDArray[Any]
    credit: FloatArray


def mean_interval(
    scores: Scores, *, resamples: int = RESAMPLES, level: float = 0.95, seed: int = 0
) -> Interval:
    """Interval of the mean credit: of an accuracy, or of retrieval's top-1."""
    return _interval([scores], lambda means: means[:, 0], resamples, level, seed)


def difference_interval(
    plus: Scores,
    minus: Scores,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Interval of mean(plus) - mean(minus); a content in both is drawn for both at once."""
    return _interval([plus, minus], lambda means: means[:, 0] - means[:, 1], resamples, level, seed)


def hoa_interval(
    cells: Mapping[tuple[Alpha, Alpha], Scores],
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Interval of the mean high-overlap advantage (Eq. 2), in the unit of the credits.

    Args:
        cells: what was scored at (alpha_train, alpha_eval); pairs with one cell missing are left
            out. A content that is in several cells is drawn for all of them at once.
        resamples: bootstrap samples.
        level: coverage.
        seed: of the draws.
    """
    alphas = sorted({alpha for cell in cells for alpha in cell})
    place = {alpha: index for index, alpha in enumerate(alphas)}
    # One matrix of cell numbers tells which two cells each pair subtracts.
    number = np.full((len(alphas), len(alphas)), np.nan)
    for index, (train, evaluated) in enumerate(cells):
        number[place[train], place[evaluated]] = index
    pairs = [(place[pair.low], place[pair.high]) for pair in hoa(number, alphas)]
    if not pairs:
        return Interval(None, None, level, 0, "no pair of overlaps has both of its cells")
    plus = [int(number[high, low]) for low, high in pairs]
    minus = [int(number[low, high]) for low, high in pairs]
    return _interval(
        list(cells.values()),
        lambda means: (means[:, plus] - means[:, minus]).mean(axis=1),
        resamples,
        level,
        seed,
    )


def _interval(
    cells: Sequence[Scores],
    statistic: Callable[[FloatArray], FloatArray],
    resamples: int,
    level: float,
    seed: int,
) -> Interval:
    contents, code = np.unique(np.concatenate([c.content for c in cells]), return_inverse=True)
    n = len(contents)
    if n < 2:
        return Interval(None, None, level, n, f"{n} contents: an interval needs at least two")
    totals = np.zeros((n, 2 * len(cells)))  # credit of each content in each cell, then examples
    parts = np.split(code, np.cumsum([len(c.content) for c in cells])[:-1])
    for index, (part, cell) in enumerate(zip(parts, cells, strict=True)):
        totals[:, index] = np.bincount(part, weights=cell.credit, minlength=n)
        totals[:, len(cells) + index] = np.bincount(part, minlength=n)
    rng = np.random.default_rng(seed)
    drawn: list[FloatArray] = []
    left = resamples
    while left:
        now = min(left, max(1, _AT_ONCE // n))
        weights = rng.multinomial(n, np.full(n, 1 / n), size=now)
        credit, examples = np.split(weights @ totals, 2, axis=1)
        # A small cell may not be drawn at all: such a sample has no value.
        means = np.divide(credit, examples, out=np.full_like(credit, np.nan), where=examples > 0)
        drawn.append(statistic(means))
        left -= now
    values = np.concatenate(drawn)
    values = values[np.isfinite(values)]
    if not len(values):
        return Interval(None, None, level, n, "no bootstrap sample had an example in every cell")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, n)
