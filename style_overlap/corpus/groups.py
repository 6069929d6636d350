"""Contents whose texts are nearly the same as another content's.

Some passages stand in a corpus twice: Ezra 2 and Nehemiah 7, 2 Samuel 22 and Psalm 18. A split
must not separate them, and retrieval must not call the twin a mistake. Two contents are twins
when they share a good part of their runs of four words, added up over all versions v:

    sum_v |A_v & B_v|  >=  1/4  sum_v max(min(|A_v|, |B_v|), 10)

with A_v and B_v the sets of runs in version v. The smaller set is the measure, so that windows
that are offset by a verse or two still find each other. All counts are integers: the groups come
out the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from style_overlap.codes import first_rows
from style_overlap.corpus.words import Ints, Vocabulary, word_ids

RUN = 4
"""Words in a run; two pairs make one."""

PERCENT = 25
"""Share of runs, in percent, from which two contents are twins."""

MAX_GROUP = 20
"""A larger group is a chain of formulas: it is taken apart by asking for a higher share."""

_STEP = 10  # percentage points by which the share rises
FEWEST_RUNS = 10  # three shared words do not make two verses of four words twins
_COMMON = 300  # runs in more contents than this are idiom, and would cost most of the time
_BLOCK = 2048  # rows multiplied at once


def content_groups(texts: Mapping[str, Sequence[str]]) -> npt.NDArray[np.int64]:
    """Group of every content: the row number of the group's first member.

    Args:
        texts: version -> texts of all contents, the same contents in the same order.

    Returns:
        Shape (n,), int64; a content without twin has its own row number.
    """
    n = len(next(iter(texts.values())))
    if n < 2:
        return np.arange(n, dtype=np.int64)
    first, second, share = _pairs(list(texts.values()), n)
    return groups_of(first, second, share, n)


def groups_of(first: Ints, second: Ints, share: Ints, n: int) -> npt.NDArray[np.int64]:
    """Groups from pairs of contents and the shared part of their runs in percent.

    Args:
        first, second: rows of the pairs' contents, shape (pairs,).
        share: percent, shape (pairs,).
        n: number of contents.

    Returns:
        Shape (n,), int64: the row number of the first member of each content's group.
    """
    groups = np.arange(n, dtype=np.int64)
    rows = np.ones(n, dtype=bool)  # those whose group is still to be settled
    for percent in (*range(PERCENT, 100, _STEP), 100):
        close = (share >= percent) & rows[first] & rows[second]
        edges = sp.coo_matrix((np.ones(close.sum()), (first[close], second[close])), shape=(n, n))
        _, labels = sp.csgraph.connected_components(edges, directed=False)
        groups[rows] = first_rows(labels)[rows]
        rows &= np.bincount(labels)[labels] > MAX_GROUP
    return groups


def _pairs(versions: Sequence[Sequence[str]], n: int) -> tuple[Ints, Ints, Ints]:
    """Pairs of contents that share runs.

    Returns:
        Rows of the first and of the second content (first < second), and the shared part of
        their runs in percent, rounded down.
    """
    vocabulary = Vocabulary()
    shared = sp.csr_matrix((n, n), dtype=np.int64)
    sizes = []
    for words, starts in [word_ids(texts, vocabulary) for texts in versions]:
        runs = _runs(words, starts, len(vocabulary))
        sizes.append(np.diff(runs.indptr).astype(np.int64))
        frequency = runs.getnnz(axis=0)
        runs = runs[:, (frequency > 1) & (frequency <= _COMMON)]
        blocks = [
            sp.triu(runs[row : row + _BLOCK] @ runs.T, k=row + 1) for row in range(0, n, _BLOCK)
        ]
        shared = shared + sp.vstack(blocks, format="csr", dtype=np.int64)
    pairs = shared.tocoo()
    first, second = pairs.row.astype(np.int64), pairs.col.astype(np.int64)
    smaller = sum(np.maximum(np.minimum(s[first], s[second]), FEWEST_RUNS) for s in sizes)
    return first, second, pairs.data * 100 // smaller


def _runs(words: Ints, starts: Ints, vocabulary: int) -> sp.csr_matrix:
    """Which runs of four words every text has: a row per text, entries 1.

    Args:
        words, starts: as ``word_ids`` returns them.
        vocabulary: number of different words.
    """
    texts = len(starts) - 1
    rows = np.repeat(np.arange(texts), np.diff(starts))
    inside = rows[: 1 - RUN] == rows[RUN - 1 :]  # the run ends in the text that it begins in
    pairs, base = words[:-1] * vocabulary + words[1:], vocabulary**2
    if base**2 >= 2**63:  # renumber, so that the next product cannot overflow
        pairs = np.unique(pairs, return_inverse=True)[1]
        base = len(pairs)
    codes = (pairs[:-2] * base + pairs[2:])[inside]
    columns = np.unique(codes, return_inverse=True)[1]
    entries = (np.ones(len(codes), dtype=np.int64), (rows[: 1 - RUN][inside], columns))
    shape = (texts, int(columns.max(initial=0)) + 1)
    matrix = sp.csr_matrix(entries, shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
