"""Labels as integers: which of them are equal, and where each stands first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


def codes(values: npt.ArrayLike | Iterable[Any]) -> IntArray:
    """Small non-negative integers for any values, equal for equal values."""
    array = np.asarray(values)
    if array.dtype.kind in "iu" and array.size:
        low, high = int(array.min()), int(array.max())
        if low >= 0 and high < 16 * array.size + 1024:  # small enough as they are
            return array.astype(np.int64, copy=False)
        return np.unique(array, return_inverse=True)[1].astype(np.int64)
    return number(array)[0]


def number(values: Any) -> tuple[IntArray, list[Any]]:
    """Numbers of values by first appearance, shape (n,), and the values by number."""
    index: dict[Any, int] = {}
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    # not numpy's unique: an array of strings is as wide as the longest of them
    numbers = np.fromiter((index.setdefault(v, len(index)) for v in listed), np.int64, len(listed))
    return numbers, list(index)


def first_rows(values: npt.ArrayLike) -> IntArray:
    """For every row, the first row with an equal value, shape (n,)."""
    code = codes(values)
    first = np.empty(code.max(initial=-1) + 1, np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]  # of equal rows the first is written last
    return first[code]
