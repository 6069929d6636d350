"""Texts as arrays of word numbers, for comparing many of them at once."""

from __future__ import annotations

import string
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_NO_WORD = dict.fromkeys(map(ord, string.punctuation), " ")
_NO_WORD_BYTES = bytes.maketrans(string.punctuation.encode(), b" " * len(string.punctuation))

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
    import pyarrow as pa
    import pyarrow.compute as pc

    # As `split_words`, but on all texts at once: Python takes more than twice as long.
    lowered = pa.array(map(str.lower, texts), pa.large_string())
    _, starts, letters = lowered.buffers()
    spaced = pa.py_buffer(letters.to_pybytes().translate(_NO_WORD_BYTES))
    trimmed = pc.utf8_trim_whitespace(
        pa.LargeStringArray.from_buffers(len(lowered), starts, spaced)
    )
    trimmed = pc.if_else(pc.equal(trimmed, ""), None, trimmed)  # an empty text has no words
    split = pc.utf8_split_whitespace(trimmed)
    words = split.values.dictionary_encode()
    numbers = np.fromiter(map(vocabulary.__getitem__, words.dictionary.to_pylist()), np.int64)
    return numbers[words.indices.to_numpy()], split.offsets.to_numpy().astype(np.int64)
