"""Which content has which style, in data that need not be parallel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from style_overlap.codes import number
from style_overlap.errors import UsageError

Ints = npt.NDArray[np.int64]

MAX_CELLS = 100_000_000
"""Most contents times styles; beyond it a column is no label but free text."""


def check_size(contents: int, styles: int) -> None:
    """Refuse a table that no column of labels makes.

    Raises:
        UsageError: too many contents times styles.
    """
    if contents * styles > MAX_CELLS:
        raise UsageError(
            f"{contents:,} contents and {styles:,} styles: is the column of styles the right one?"
        )


class Incidence:
    """Which content has which style, from two columns of labels.

    Args:
        content: content of each example, shape (m,), any values.
        style: style of each example, shape (m,).
        styles: which styles, in which order; by default all, those with most contents first.
    """

    def __init__(
        self, content: npt.ArrayLike, style: npt.ArrayLike, styles: Sequence[str] | None = None
    ) -> None:
        code, names = number(content)
        label, known = number([str(value) for value in np.asarray(style, dtype=object)])
        if len(code) != len(label):
            raise UsageError(f"{len(code)} contents, but {len(label)} styles: expected one of each")
        check_size(len(names), len(known))
        pairs, rows = np.unique(code * len(known) + label, return_index=True)
        contents, labels = pairs // len(known), pairs % len(known)
        if styles is None:
            counts = np.bincount(labels, minlength=len(known))
            styles = [known[place] for place in np.argsort(-counts, kind="stable")]
        missing = [name for name in styles if name not in known]
        if missing:
            raise UsageError(f"no style {missing[0]!r}: there are {', '.join(known[:20])}")
        if len(styles) < 2:
            raise UsageError(f"expected two or more styles, found {', '.join(styles) or 'none'}")
        place = np.full(len(known), -1)
        place[[known.index(name) for name in styles]] = np.arange(len(styles))
        self.styles = tuple(styles)
        self._rows = np.full((len(names), len(styles)), -1, dtype=np.int64)
        kept = place[labels] >= 0
        self._rows[contents[kept], place[labels[kept]]] = rows[kept]

    def rows(self, k: int) -> Ints:
        """The first example of each content in each of the first k styles, or -1."""
        return self._rows[:, :k]

    def masks(self, k: int) -> Ints:
        """Which of the first k styles each content has, a bit for each."""
        return np.asarray(((self._rows[:, :k] >= 0) << np.arange(k)).sum(axis=1))
