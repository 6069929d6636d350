"""Does every verse say what its number says? Judged by the words of the other versions alone.

Editions number verses differently: a chapter that begins one verse late, two verses that are
swapped, psalms counted as in the Vulgate. A join on verse numbers then pairs texts of different
content. With x the unit vector of a verse's inverse document frequencies, a verse of version v
fits a place as well as the mean cosine to the other versions' verses at that place:

    fit_v(i, j) = mean over u != v of x_v(i) . x_u(j)

A verse is misaligned where it fits the verse before or after its own clearly better than its own,
or stands beside such a verse and is longer or shorter by what moved, or where its whole chapter is
about something else.
It is uneven where it is far longer or shorter than the same verse elsewhere: then a version left
a part of it out, or drew the line between two verses at another word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from style_overlap.corpus.references import verse_name
from style_overlap.corpus.words import Ints, Vocabulary, word_ids
from style_overlap.errors import UsageError

MARGIN = 0.1
"""How much better than its own place a neighbour's has to fit."""

UNRELATED = 0.2
"""A chapter whose verses fit less than this, by the median, is about something else."""

MAX_SHARE = 0.2
"""A version with a larger share of misaligned verses is refused as a whole."""

UNEVEN = 2.5
"""Ratio of word counts, to the median of the other versions, from which a verse is uneven."""

MOVED = 1.5
"""The same ratio for a verse next to a misaligned one: it gave a part away, or took one in."""

_FEW_WORDS = 2  # added to both counts: "Jesus wept." may have three words elsewhere
_STEM = 5  # letters: "believeth", "believes" and "believed" count as one word

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """How well the verses of one version fit, shape (n,) each; NaN where there is no verse.

    Attributes:
        own: fit at the verse's own place.
        neighbour: the better fit of the places before and after.
        shift: -1 or 1, which of the two that is, int64.
        ratio: words in the verse over words in the other versions' (median).
    """

    own: Floats
    neighbour: Floats
    shift: Ints
    ratio: Floats


def compare(
    verses: Mapping[str, Mapping[int, str]], books: Mapping[int, str]
) -> dict[str, dict[str, list[int]]]:
    """Verses that do not say what the same verse says in the other versions.

    Args:
        verses: version -> verse number -> text.
        books: titles by book number, for messages.

    Returns:
        ``misaligned`` and ``uneven``: version -> verse numbers, sorted.

    Raises:
        UsageError: more than 20 % of a version's verses are misaligned.
    """
    numbers = sorted(set().union(*verses.values()))
    strays, uneven, shares = {}, {}, {}
    for version, fit in fits(verses, numbers).items():
        bad = misaligned(fit, np.asarray(numbers, dtype=np.int64) // 1000)
        shares[version] = bad.sum() / max((~np.isnan(fit.own)).sum(), 1)
        strays[version] = [numbers[place] for place in np.flatnonzero(bad)]
        uneven[version] = [numbers[place] for place in np.flatnonzero(is_uneven(fit))]
    # A bad version makes the others fit less well: the worst one is the one to name.
    worst = max(shares, key=lambda version: float(shares[version]))
    if shares[worst] > MAX_SHARE:
        example = strays[worst][len(strays[worst]) // 2]
        raise UsageError(_refusal(worst, shares[worst], verses, example, books))
    return {"misaligned": strays, "uneven": uneven}


def misaligned(fit: Fit, chapters: Ints | None) -> npt.NDArray[np.bool_]:
    """Which verses of a version say what another verse says there, shape (n,).

    Args:
        fit: of the version.
        chapters: chapter of every verse, shape (n,); None where few words in common are no fault.
    """
    bad = fit.neighbour > fit.own + MARGIN
    if chapters is not None:
        compared = ~np.isnan(fit.own)
        for chapter in np.unique(chapters[compared & (fit.own < UNRELATED)]):
            inside = compared & (chapters == chapter)
            if np.median(fit.own[inside]) < UNRELATED:
                bad = bad | inside
    beside = np.zeros_like(bad)
    beside[1:] |= bad[:-1]
    beside[:-1] |= bad[1:]
    return np.asarray(bad | (beside & _outside(fit.ratio, MOVED)))


def is_uneven(fit: Fit) -> npt.NDArray[np.bool_]:
    """Which verses are far longer or shorter than elsewhere, shape (n,)."""
    return _outside(fit.ratio, UNEVEN)


def _outside(ratio: Floats, limit: float) -> npt.NDArray[np.bool_]:
    return np.asarray((ratio > limit) | (ratio < 1 / limit))


def fits(verses: Mapping[str, Mapping[int, str]], numbers: list[int]) -> dict[str, Fit]:
    """How well every version's verses fit, in the order of ``numbers``."""
    vectors, lengths = _vectors(verses, numbers)
    total = sum(vectors.values())
    present = {version: count > 0 for version, count in lengths.items()}
    present_in = np.sum(list(present.values()), axis=0)
    # A number that few versions have is a slip itself, and no place for others to fit.
    is_place = present_in * 2 > len(verses)
    stacked = np.stack([np.where(count > 0, count, np.nan) for count in lengths.values()])
    result = {}
    for row, (version, matrix) in enumerate(vectors.items()):
        peers = total - matrix
        others = np.asarray(present_in - present[version])
        own = _mean_cosine(matrix, peers, others)
        before, after = np.full((2, len(numbers)), -np.inf)
        fit = _mean_cosine(matrix[1:], peers[:-1], others[:-1])
        before[1:] = np.where(is_place[:-1], fit, -np.inf)
        fit = _mean_cosine(matrix[:-1], peers[1:], others[1:])
        after[:-1] = np.where(is_place[1:], fit, -np.inf)
        comparable = present[version] & (others > 0)
        ratio = np.full(len(numbers), np.nan)
        rest = np.delete(stacked, row, axis=0)[:, comparable]
        median = np.nanmedian(rest, axis=0)
        ratio[comparable] = (lengths[version][comparable] + _FEW_WORDS) / (median + _FEW_WORDS)
        neighbour = np.maximum(before, after)
        result[version] = Fit(
            own=np.where(comparable, own, np.nan),
            neighbour=np.where(comparable, neighbour, np.nan),
            shift=np.where(after > before, 1, -1),
            ratio=ratio,
        )
    return result


def _mean_cosine(matrix: sp.csr_matrix, peers: sp.csr_matrix, others: Ints) -> Floats:
    """Row-wise mean cosine, shape (rows,); ``peers`` has the sums of ``others`` unit vectors."""
    products = np.asarray(matrix.multiply(peers).sum(axis=1), dtype=np.float64).ravel()
    return products / np.maximum(others, 1)


def _vectors(
    verses: Mapping[str, Mapping[int, str]], numbers: list[int]
) -> tuple[dict[str, sp.csr_matrix], dict[str, Ints]]:
    """Unit vectors, a row per verse number (no verse: no entries), and the verses' word counts."""
    vocabulary, stems = Vocabulary(), Vocabulary()
    found = {
        version: word_ids([texts.get(number, "") for number in numbers], vocabulary)
        for version, texts in verses.items()
    }
    stem_of = np.asarray([stems[word[:_STEM]] for word in list(vocabulary)], dtype=np.int64)
    vectors = {}
    for version, (words, starts) in found.items():
        entries = (np.ones(len(words)), stem_of[words], starts)
        matrix = sp.csr_matrix(entries, shape=(len(numbers), len(stems)))
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        vectors[version] = matrix
    frequency = np.sum([matrix.getnnz(axis=0) for matrix in vectors.values()], axis=0)
    lengths = {version: np.diff(starts) for version, (_, starts) in found.items()}
    texts = sum(int((count > 0).sum()) for count in lengths.values())
    weights = sp.diags(np.log1p(texts / np.maximum(frequency, 1)))
    for version, matrix in vectors.items():
        weighted = matrix @ weights
        norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
        vectors[version] = sp.csr_matrix(sp.diags(1 / np.maximum(norms, 1e-12)) @ weighted)
    return vectors, lengths


def _refusal(
    version: str,
    share: float,
    verses: Mapping[str, Mapping[int, str]],
    number: int,
    books: Mapping[int, str],
) -> str:
    peer = next(name for name in verses if name != version and verses[name].get(number))
    return (
        f"{version} is not aligned with the other versions: {share:.0%} of its verses say what "
        f"another verse says there (up to {MAX_SHARE:.0%} would be left out). For example "
        f"{verse_name(number, books)} is {verses[version][number][:60]!r} in {version} and "
        f"{verses[peer][number][:60]!r} in {peer}. Leave {version} out, or give a text of it with "
        "the same verse numbers"
    )
