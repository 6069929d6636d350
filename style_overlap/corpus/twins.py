"""Near-duplicates among contents of any number.

``groups`` compares all contents at once, in memory that grows with the text. Above a size the same
rule is applied to candidates only: contents that have one of their three smallest run hashes in
common (bottom-3 sketches, as in Broder, "On the resemblance and containment of documents", 1997).
Equal texts are always candidates; of two texts that share half of their runs, five in six are, in
each version. Time and memory are linear: a sketch takes 36 bytes a text, of one version at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from style_overlap.corpus.groups import FEWEST_RUNS, RUN, content_groups, groups_of
from style_overlap.corpus.words import Ints, Vocabulary, split_words, word_ids

if TYPE_CHECKING:
    import pyarrow as pa

IN_MEMORY = 64 * 2**20
"""Bytes of text up to which all contents are compared with each other."""

SKETCH = 3
"""Run hashes that are kept of a text."""

_COMMON = 50  # a run that begins more sketches than this is a formula
_SLICE = 4096  # contents at a time

Hashes = npt.NDArray[np.uint64]


def near_duplicates(texts: pa.Table, styles: Sequence[str]) -> Ints:
    """Group of every content, shape (n,): the row number of the group's first member.

    Args:
        texts: a column for each style, the same contents in the same order.
        styles: the styles.
    """
    size = sum(texts.column(style).nbytes for style in styles)
    if size <= IN_MEMORY:
        return content_groups({style: texts.column(style).to_pylist() for style in styles})
    n = texts.num_rows
    codes = [_candidates(texts.column(style), n) for style in styles]
    pairs = np.unique(np.concatenate(codes))
    first, second = pairs // n, pairs % n
    share = np.fromiter(
        (_share(texts, styles, int(one), int(two)) for one, two in zip(first, second, strict=True)),
        dtype=np.int64,
        count=len(pairs),
    )
    return groups_of(first, second, share, n)


def _candidates(column: pa.ChunkedArray, n: int) -> Ints:
    """Pairs with a common sketch value, as ``first * n + second``, without repeats."""
    hashes, rows = [], []
    for start, texts in _slices(column):
        kept, row = _sketch(texts)
        hashes.append(kept)
        rows.append((row + start).astype(np.uint32))
    values, row = np.concatenate(hashes), np.concatenate(rows)
    order = np.argsort(values, kind="stable")
    values, row = values[order], row[order]
    same = values[1:] == values[:-1]
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    sizes = np.diff(np.append(starts, len(values)))
    # neighbours in a bucket are enough: what they have in common makes them one component
    same &= np.repeat(sizes, sizes)[1:] <= _COMMON
    first, second = row[:-1][same].astype(np.int64), row[1:][same].astype(np.int64)
    return np.unique(np.minimum(first, second) * n + np.maximum(first, second))


def _slices(column: pa.ChunkedArray) -> Iterator[tuple[int, list[str]]]:
    for start in range(0, len(column), _SLICE):
        yield start, column.slice(start, _SLICE).to_pylist()


def _sketch(texts: Sequence[str]) -> tuple[Hashes, Ints]:
    """The smallest run hashes of every text, and the text of each.

    A text of fewer than four words has one hash, of all its words.
    """
    vocabulary = Vocabulary()
    words, starts = word_ids(texts, vocabulary)
    of_word = np.array([_hash(word) for word in vocabulary] or [0], dtype=np.uint64)
    hashed = of_word[words]
    row = np.repeat(np.arange(len(texts)), np.diff(starts))
    if len(hashed) >= RUN:
        runs = np.zeros(len(hashed) - RUN + 1, dtype=np.uint64)
        with np.errstate(over="ignore"):
            for place in range(RUN):
                runs = _mix(runs + hashed[place : place + len(runs)])
        inside = row[: 1 - RUN] == row[RUN - 1 :]
        values, owner = runs[inside], row[: 1 - RUN][inside]
    else:
        values, owner = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    short = np.flatnonzero((np.diff(starts) < RUN) & (np.diff(starts) > 0))
    ends = [_hash(" ".join(texts[text].lower().split())) for text in short.tolist()]
    values = np.concatenate([values, np.array(ends, dtype=np.uint64)])
    owner = np.concatenate([owner, short])
    order = np.lexsort((values, owner))
    values, owner = values[order], owner[order]
    fresh = np.append([True], (np.diff(values) != 0) | (np.diff(owner) != 0))[: len(values)]
    values, owner = values[fresh], owner[fresh]
    firsts = np.searchsorted(owner, owner)
    smallest = np.arange(len(owner)) - firsts < SKETCH
    return values[smallest], owner[smallest]


def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")


def _mix(values: Hashes) -> Hashes:
    """SplitMix64's finaliser: order matters, and every bit of the words counts."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _share(texts: pa.Table, styles: Sequence[str], one: int, two: int) -> int:
    """Shared part of two contents' runs in percent, as in ``groups``."""
    shared = smaller = 0
    for style in styles:
        column = texts.column(style)
        a, b = _runs(column[one].as_py()), _runs(column[two].as_py())
        shared += len(a & b)
        smaller += max(min(len(a), len(b)), FEWEST_RUNS)
    return shared * 100 // smaller


def _runs(text: str) -> set[tuple[str, ...]]:
    words = split_words(text)
    return set(zip(*[words[place:] for place in range(RUN)], strict=False))
