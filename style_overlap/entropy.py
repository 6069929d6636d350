"""Content overlap of a labelled sample, from entropies.

``alpha = 1 - I(C;S) / H(S) = H(S|C) / H(S)`` (Eq. 1) is the part of the style label's entropy that
the content id leaves open: 0 when the content alone gives the style away, 1 when it says nothing
about it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from style_overlap.codes import IntArray, codes


@dataclass(frozen=True, eq=False)
class Counts:
    """What Eq. 1 needs of a sample; those of samples without a common content add up.

    Attributes:
        per_style: examples of every style, n_s, shape (k,).
        conditional: n H(S|C) in nats, for n examples.
    """

    per_style: IntArray
    conditional: float

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.per_style + other.per_style, self.conditional + other.conditional)

    @property
    def alpha(self) -> float | None:
        """Eq. 1 in [0, 1]; None for fewer than two styles, as H(S) = 0 leaves it undefined."""
        if np.count_nonzero(self.per_style) < 2:
            return None
        n = int(self.per_style.sum())
        entropy = n * np.log(n) - _n_log_n(self.per_style)  # n H(S)
        # Beyond twelve decimals stands only the rounding of logarithms.
        return round(float(np.clip(self.conditional / entropy, 0, 1)), 12)


def measure(content: npt.ArrayLike, style: npt.ArrayLike) -> float:
    """Content overlap alpha of a labelled sample (Eq. 1).

    Args:
        content: content id of each example, shape (n,), any hashable values.
        style: style label of each example, shape (n,), any hashable values.

    Returns:
        alpha in [0, 1]: 0 when content determines style, 1 when it says nothing about it.

    Raises:
        ValueError: fewer than two styles (H(S) = 0 leaves alpha undefined), or lengths differ.
    """
    contents, styles = codes(content), codes(style)
    if len(contents) != len(styles):
        raise ValueError(f"{len(contents)} content ids, but {len(styles)} style labels")
    alpha = count(contents, styles).alpha
    if alpha is None:
        raise ValueError("alpha is undefined for fewer than two styles: H(S) = 0")
    return alpha


def count(contents: IntArray, styles: IntArray, k: int = 0) -> Counts:
    """Counts of a sample, n H(S|C) = sum_c n_c log n_c - sum_cs n_cs log n_cs.

    Args:
        contents, styles: of each example, shape (n,), as ``codes`` gives them.
        k: least number of styles that are counted.
    """
    per_style = np.bincount(styles, minlength=k)
    # Sorted, and not counted into one cell per possible pair: those are k times as many.
    cells = contents * len(per_style) + styles
    cells.sort()
    of_pairs = _n_log_n(_runs(cells))
    cells //= len(per_style)
    return Counts(per_style, _n_log_n(_runs(cells)) - of_pairs)


def _runs(values: IntArray) -> IntArray:
    """Lengths of the runs of equal values."""
    begins = np.ones(len(values) + 1, np.bool_)
    np.not_equal(values[1:], values[:-1], out=begins[1:-1])
    return np.diff(np.flatnonzero(begins))


def _n_log_n(counts: IntArray) -> float:
    """The sum of n log n over cells of n examples; cells are many, different counts are few."""
    cells = np.bincount(counts)
    n = 1 + np.flatnonzero(cells[1:])
    return float((cells[n] * n * np.log(n)).sum())
