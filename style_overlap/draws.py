"""Draws that are the same in ten years: a fixed integer hash, and the order of what it gives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from style_overlap.codes import IntArray
from style_overlap.results import digest


def order_of(draws: npt.NDArray[np.uint64]) -> IntArray:
    """The places of draws, no two of them equal, from the least to the greatest."""
    # Numbers are sorted in half of the time that sorting their places takes, so every place goes
    # into the last bits of its draw.
    bits = np.uint64(len(draws).bit_length())
    packed = draws >> bits << bits
    packed |= np.arange(len(draws), dtype=np.uint64)
    packed.sort()
    kept = packed >> bits
    if (kept[1:] == kept[:-1]).any():  # the bits that had to go told some draws apart
        return np.argsort(draws)
    packed &= (np.uint64(1) << bits) - np.uint64(1)
    return packed.view(np.int64)


def draw(values: IntArray, seed: int, purpose: str) -> npt.NDArray[np.uint64]:
    """A pseudo-random 64-bit number for every value, by SplitMix64; one stream per purpose.

    Different values have different numbers, so no order by them depends on the way of sorting.
    """
    stream = int(digest([purpose, seed])[:16], 16)
    z = values.astype(np.uint64)
    with np.errstate(over="ignore"):
        z += np.uint64(1)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(stream)
        z ^= z >> np.uint64(30)
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(27)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return z
