"""The statistics of the report: high-overlap advantage (Eq. 2), its tests, and trends.

numpy and scipy only. Where a figure is undefined (one pair, no variance) it is None and ``reason``
says why: a report must never show a p-value that was made of nothing.

The pairs of one accuracy matrix share its rows and columns. The paired t-test, which the paper
reports, and the sign-flip test both take pairs for independent; if models differ in how good they
are everywhere, both find an advantage too often. ``p_relabel`` does not: it asks how often another
order of the same overlaps would have given as large an advantage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

from style_overlap.codes import number

FloatArray = npt.NDArray[np.float64]
Alpha: TypeAlias = Decimal | float

EXACT_PAIRS = 20  # 2^20 sign patterns: 8 MB
EXACT_ORDERS = 8  # 8! orders: 40,320
DRAWS = 20_000  # where enumerating is out of reach
_ROUNDING = 1e-12  # differences of figures of order 1 that are none


@dataclass(frozen=True)
class MeanSd:
    """Mean and sample standard deviation (n - 1) of n values, say seeds; None if undefined."""

    mean: float | None
    sd: float | None
    n: int


@dataclass(frozen=True)
class HoaPair:
    """High-overlap advantage of one pair of overlaps, low < high.

    Attributes:
        low: the lower overlap.
        high: the higher one.
        hoa: Acc(train=high, eval=low) - Acc(train=low, eval=high) (Eq. 2).
        training: what training at the higher overlap has to do with it: by how much that classifier
            is the better one on the same test set, mean over the two. The rest is the difference of
            the two test sets, which equal classifiers show too. None without both matched cells.
    """

    low: Alpha
    high: Alpha
    hoa: float
    training: float | None = None


@dataclass(frozen=True)
class HoaTest:
    """One-sided tests of "training at the higher overlap carries over better" over pairs.

    Attributes:
        n: pairs.
        mean: mean advantage, in the unit of the accuracies.
        sd: sample standard deviation over pairs.
        share_positive: share of pairs with an advantage above 0.
        t: paired t statistic, n - 1 degrees of freedom.
        p_t: its one-sided p-value.
        cohen_d: mean / sd of the differences.
        p_sign_flip: share of sign patterns with at least this mean; exact up to 20 pairs.
        p_relabel: share of orders of the overlaps with at least this mean; needs every pair.
        reason: why figures are None.
    """

    n: int
    mean: float | None = None
    sd: float | None = None
    share_positive: float | None = None
    t: float | None = None
    p_t: float | None = None
    cohen_d: float | None = None
    p_sign_flip: float | None = None
    p_relabel: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Trend:
    """Spearman's rank correlation of a figure with the overlap, and whether it falls.

    Attributes:
        n: points.
        rho: from -1, falls all the way, to 1.
        p_fall: one-sided permutation p-value of a fall; exact up to 8 points.
        monotone: whether the mean figure falls with every step of the overlap.
        reason: why figures are None.
    """

    n: int
    rho: float | None = None
    p_fall: float | None = None
    monotone: bool | None = None
    reason: str | None = None


def mean_sd(values: npt.ArrayLike) -> MeanSd:
    """Mean and sample standard deviation; missing values (NaN) are left out."""
    x = np.asarray(values, dtype=np.float64).ravel()
    x = x[np.isfinite(x)]
    return MeanSd(
        mean=float(x.mean()) if len(x) else None,
        sd=float(x.std(ddof=1)) if len(x) > 1 else None,
        n=len(x),
    )


def hoa(matrix: npt.ArrayLike, alphas: Sequence[Alpha]) -> tuple[HoaPair, ...]:
    """HOA(a_i, a_j) = Acc(train=a_j, eval=a_i) - Acc(train=a_i, eval=a_j), a_i < a_j (Eq. 2).

    Args:
        matrix: accuracy, shape (m, m): rows are alpha_train, columns alpha_eval. NaN: no such run.
        alphas: the overlaps of rows and columns, shape (m,), in any order, each once.

    Returns:
        One entry for each pair of which both cells are there, in ascending order.

    Raises:
        ValueError: the matrix is not (m, m), or an overlap is there twice.
    """
    table = np.asarray(matrix, dtype=np.float64)
    m = len(alphas)
    if table.shape != (m, m):
        raise ValueError(f"the matrix has shape {table.shape}: expected ({m}, {m}) for {m} alphas")
    if len(set(alphas)) != m:
        raise ValueError(f"an overlap is there twice: {', '.join(map(str, alphas))}")
    order = sorted(range(m), key=lambda index: alphas[index])
    found = []
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            value, better = table[j, i] - table[i, j], (table[j] - table[i])[[i, j]].mean()
            if np.isfinite(value):
                training = float(better) if np.isfinite(better) else None
                found.append(HoaPair(alphas[i], alphas[j], float(value), training))
    return tuple(found)


def hoa_test(pairs: Sequence[HoaPair], *, seed: int = 0) -> HoaTest:
    """Test the advantage over pairs: paired t, Cohen's d, sign flips, orders.

    Args:
        pairs: what ``hoa`` gave; a pair without a value (NaN) is left out.
        seed: of the draws, where there are too many patterns or orders to enumerate.
    """
    pairs = [pair for pair in pairs if np.isfinite(pair.hoa)]
    x = np.array([pair.hoa for pair in pairs], dtype=np.float64)
    n = len(x)
    if n == 0:
        return HoaTest(n=0, reason="no pair of overlaps has both of its cells")
    mean, share = float(x.mean()), float((x > _ROUNDING).mean())
    if n == 1:
        return HoaTest(n=1, mean=mean, share_positive=share, reason="one pair has no variance")
    sd = float(x.std(ddof=1))
    p_flip, p_relabel = _p_sign_flip(x, seed), _p_relabel(pairs, seed)
    if sd <= _ROUNDING * float(np.abs(x).max()):
        return HoaTest(
            n, mean, sd, share, p_sign_flip=p_flip, p_relabel=p_relabel,
            reason="all pairs have the same advantage: t and d are undefined",
        )  # fmt: skip
    t_test = stats.ttest_1samp(x, 0.0, alternative="greater")
    t, p_t = float(t_test.statistic), float(t_test.pvalue)
    return HoaTest(n, mean, sd, share, t, p_t, mean / sd, p_flip, p_relabel)


def _p_sign_flip(x: FloatArray, seed: int) -> float:
    """Share of sign patterns whose sum is at least that of x."""
    if len(x) <= EXACT_PAIRS:
        sums = np.zeros(1)
        for value in np.abs(x):
            sums = np.concatenate([sums + value, sums - value])
        return _share_at_least(sums, x)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(DRAWS, len(x)))
    return _share_at_least(np.append(signs @ x, x.sum()), x)


def _p_relabel(pairs: Sequence[HoaPair], seed: int) -> float | None:
    """Share of orders of the overlaps whose summed advantage is at least the observed one."""
    alphas = sorted({alpha for pair in pairs for alpha in (pair.low, pair.high)})
    m = len(alphas)
    if len(pairs) != m * (m - 1) // 2 or m < 3:
        return None
    place = {alpha: index for index, alpha in enumerate(alphas)}
    signed = np.zeros((m, m))
    for pair in pairs:
        signed[place[pair.low], place[pair.high]] = pair.hoa
        signed[place[pair.high], place[pair.low]] = -pair.hoa
    orders, exact = _orders(m, seed)
    low, high = np.triu_indices(m, k=1)
    sums = signed[orders[:, low], orders[:, high]].sum(axis=1)
    observed = np.array([pair.hoa for pair in pairs])
    return _share_at_least(sums if exact else np.append(sums, observed.sum()), observed)


def _share_at_least(sums: FloatArray, observed: FloatArray) -> float:
    # The observed pattern is one of them: rounding must not count it out.
    slack = _ROUNDING * float(np.abs(observed).sum())
    return float((sums >= observed.sum() - slack).mean())


def _orders(n: int, seed: int) -> tuple[npt.NDArray[np.int64], bool]:
    """All orders of n things, or draws of them: shape (orders, n), and whether they are all."""
    if n <= EXACT_ORDERS:
        return np.array(list(permutations(range(n)))), True
    return _drawn_orders(n, np.random.default_rng(seed)), False


def _drawn_orders(n: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    return random.random((DRAWS, n)).argsort(axis=1)


def trend(
    alphas: Sequence[Alpha],
    values: npt.ArrayLike,
    *,
    blocks: Sequence[object] | None = None,
    seed: int = 0,
) -> Trend:
    """Does a figure fall as the overlap grows? Spearman's rho and a permutation test.

    Args:
        alphas: overlap of each point, shape (n,).
        values: the figure, shape (n,); missing values (NaN) are left out.
        blocks: what each point shares with others, say the seed of its data, shape (n,): ranks are
            taken, and orders drawn, within blocks, so that no difference between blocks counts.
            One block if None.
        seed: of the draws, where there are too many orders to enumerate.

    Raises:
        ValueError: lengths differ.
    """
    x = np.array([float(alpha) for alpha in alphas])
    y = np.asarray(values, dtype=np.float64).round(12)
    if x.shape != y.shape or (blocks is not None and len(blocks) != len(x)):
        raise ValueError(f"{len(x)} overlaps, but values of shape {y.shape} or other blocks")
    block, _ = number([None] * len(x) if blocks is None else blocks)
    x, y, block = (array[np.isfinite(y)] for array in (x, y, block))
    n = len(x)
    levels = np.unique(x)
    if len(levels) < 3:
        return Trend(n, reason=f"a trend needs at least 3 overlaps, not {len(levels)}")
    means = np.array([y[x == level].mean() for level in levels])
    monotone = bool((np.diff(means) < 0).all())
    members = [np.flatnonzero(block == one) for one in np.unique(block)]
    rank_x, rank_y = np.zeros(n), np.zeros(n)
    for rows in members:
        for rank, of in ((rank_x, x), (rank_y, y)):
            rank[rows] = stats.rankdata(of[rows]) - (len(rows) + 1) / 2
    length = float((rank_x @ rank_x) * (rank_y @ rank_y))
    if not length:
        return Trend(n, monotone=monotone, reason="the figure is the same at every overlap")
    observed = float(rank_x @ rank_y)
    # Ranks are multiples of 1/2: products of them are exact, and equal ones compare equal.
    if len(members) == 1:
        orders, exact = _orders(n, seed)
        products = rank_y[orders] @ rank_x
    else:
        exact, products = False, np.zeros(DRAWS)
        random = np.random.default_rng(seed)
        for rows in members:
            products += rank_y[rows][_drawn_orders(len(rows), random)] @ rank_x[rows]
    if not exact:
        products = np.append(products, observed)
    return Trend(n, observed / length**0.5, float((products <= observed).mean()), monotone)
