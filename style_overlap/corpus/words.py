"""Texts as arrays of word numbers, for comparing many of them at once."""

from __future__ import annotations

import string
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_NO_WORD = str.maketrans(dict.fromkeys(string.punctuation, " "))

Ints = npt.NDArray[np.int64]


class Vocabulary(defaultdict[str, int]):
    """Word -> number, counting up in order of first use."""

    def __missing__(self, word: str) -> int:
        self[word] = len(self)
        return self[word]


def split_words(text: str) -> list[str]:
    """The lower-cased words of a text, without punctuation."""
    return text.lower().translate(_NO_WORD).split()


def word_ids(texts: Sequence[str], vocabulary: Vocabulary) -> tuple[Ints, Ints]:
    """Numbers of the lower-cased words of every text.

    Returns:
        All numbers in one array, and the starts of the texts in it, shape (len(texts) + 1,).
    """
    found: list[int] = []
    starts = [0]
    for text in texts:
        found += map(vocabulary.__getitem__, split_words(text))
        starts.append(len(found))
    return np.asarray(found, dtype=np.int64), np.asarray(starts, dtype=np.int64)
