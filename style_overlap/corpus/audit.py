"""Alignment audit: does every version say the same at the same place?

The report of what ``alignment`` finds, version by version, and the verdict. A version that is
misaligned as a whole spoils a study without a trace: its classifier still learns, from texts of
other contents. It is refused, with passages side by side as evidence. Single strays are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from style_overlap.corpus import evidence
from style_overlap.corpus.alignment import MARGIN, MAX_SHARE, Fit, fits, is_uneven, misaligned
from style_overlap.corpus.evidence import AlignmentReport, Block, Namer, Refusal, VersionReport
from style_overlap.corpus.misnumbered import misaligned_books, other_of_two

LOST = 0.4
"""Share of passages that fit a neighbour better, by however little, from which a version is
misaligned even though the words in common are few. Of texts in a random order it is two thirds."""

FEW = 20
"""Fewer comparisons than this decide nothing."""

NOTHING_IN_COMMON = 0.05
"""Median fit below which versions share too few words to be compared."""


@dataclass
class _Found:
    """Findings in one version, gathered over blocks: one entry a place that has a text."""

    places: list[int] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    neighbour: list[float] = field(default_factory=list)
    beside: list[int] = field(default_factory=list)
    stray: list[bool] = field(default_factory=list)
    uneven: list[bool] = field(default_factory=list)
    texts: int = 0
    empty: int = 0

    def add(self, fit: Fit, numbers: Sequence[int], bad: npt.NDArray[np.bool_]) -> None:
        here = np.flatnonzero(~np.isnan(fit.own))
        self.places += [numbers[place] for place in here.tolist()]
        for mine, values in (
            (self.own, fit.own),
            (self.neighbour, fit.neighbour),
            (self.beside, _beside(numbers, fit)),
            (self.stray, bad),
            (self.uneven, is_uneven(fit)),
        ):
            mine.extend(values[here].tolist())

    def pairs(self) -> list[tuple[int, int | None]]:
        """Misaligned places with the place they fit, see ``evidence.examples``."""
        own, neighbour = np.asarray(self.own), np.asarray(self.neighbour)
        bad, better, clear = np.asarray(self.stray), neighbour > own, neighbour > own + MARGIN
        # those that prove it, if there are any
        chosen = next((mask for mask in (clear, bad, better) if mask.any()), bad)
        return [
            (self.places[place], self.beside[place] if clear[place] else None)
            for place in np.flatnonzero(chosen).tolist()
        ]

    @property
    def stray_share(self) -> float:
        return float(np.mean(self.stray)) if self.stray else 0.0

    @property
    def lost_share(self) -> float | None:
        """Share that fits a neighbour better, of those that share a word with any place."""
        own, neighbour = np.asarray(self.own), np.asarray(self.neighbour)
        told = np.maximum(own, neighbour) > 0
        return float(np.mean((neighbour > own)[told])) if told.sum() >= FEW else None


def _beside(numbers: Sequence[int], fit: Fit) -> npt.NDArray[np.int64]:
    """For every place, the one before or after it: whichever its text fits better."""
    last = len(numbers) - 1
    return np.asarray(numbers)[np.clip(np.arange(len(numbers)) + fit.shift, 0, last)]


def examine(
    blocks: Callable[[], Iterable[Block]],
    name: Namer,
    *,
    places: int,
    book: Callable[[int], str] | None = None,
) -> AlignmentReport:
    """Audit parallel texts.

    Args:
        blocks: gives the texts, any number of times; a block is compared in itself, so that
            memory is bounded. Places are integers; verses are numbered as in ``references``.
        name: what a place is called.
        places: number of places that any version has.
        book: the title of the book that a verse is in; None if places are no verses.

    Returns:
        The report. Versions misaligned as a whole are taken out one by one, the worst first, as
        a bad version makes the others look bad too; reports of the others are without it.
    """
    refused: list[Refusal] = []
    out: set[str] = set()
    reports: dict[str, VersionReport] = {}
    compared = 0
    while True:
        found, looked_at = _compare(blocks, out, verses=book is not None)
        compared = compared or looked_at
        for version, its in found.items():
            reports[version] = _report(its, places)
        worst = max(found, key=lambda version: _badness(found[version], book is not None))
        if len(found) < 2 or _badness(found[worst], book is not None) <= 1:
            break
        share = max(found[worst].stray_share, found[worst].lost_share or 0.0)
        shown = evidence.examples(worst, found[worst].pairs(), blocks, name)
        refused.append(Refusal(worst, None, share, shown, other_of_two(worst, found)))
        out.add(worst)
        if len(found) == 2:
            break
    if book is not None and not out & set(found):
        suspects = sorted(found, key=lambda version: -sum(found[version].stray))
        for version in suspects[:1] if len(found) == 2 else suspects:
            other = other_of_two(version, found)
            refused += _books(version, found[version], blocks, name, book, other)
    return AlignmentReport(
        places=places,
        compared=compared,
        versions=reports,
        strays={version: _names(its, its.stray, name) for version, its in found.items()},
        uneven={version: _names(its, its.uneven, name) for version, its in found.items()},
        refused=tuple(refused),
        notes=_notes(found),
    )


def _compare(
    blocks: Callable[[], Iterable[Block]], out: set[str], verses: bool
) -> tuple[dict[str, _Found], int]:
    found: dict[str, _Found] = {}
    compared = 0
    for block in blocks():
        block = {version: texts for version, texts in block.items() if version not in out}
        numbers = sorted({n for texts in block.values() for n, text in texts.items() if text})
        compared += len(numbers)
        chapters = np.asarray(numbers, dtype=np.int64) // 1000 if verses else None
        for version, fit in fits(block, numbers).items():
            its = found.setdefault(version, _Found())
            its.add(fit, numbers, misaligned(fit, chapters))
            texts = sum(bool(text) for text in block[version].values())
            its.texts += texts
            its.empty += len(block[version]) - texts
    return found, compared


def _badness(its: _Found, verses: bool) -> float:
    """Above 1: misaligned as a whole."""
    if len(its.own) < FEW:
        return 0.0
    lost = 0.0 if verses else its.lost_share or 0.0
    return max(its.stray_share / MAX_SHARE, lost / LOST)


def _report(its: _Found, places: int) -> VersionReport:
    own, neighbour = np.asarray(its.own), np.asarray(its.neighbour)
    return VersionReport(
        texts=its.texts,
        coverage=its.texts / max(places, 1),
        empty=its.empty,
        fit=float(np.median(own)) if len(own) else None,
        neighbour_share=float(np.mean(neighbour > own)) if len(own) else None,
        strays=sum(its.stray),
        uneven=sum(its.uneven),
    )


def _names(its: _Found, mask: Sequence[bool], name: Namer) -> list[str]:
    return [name(place) for place, yes in zip(its.places, mask, strict=True) if yes]


def _books(
    version: str,
    its: _Found,
    blocks: Callable[[], Iterable[Block]],
    name: Namer,
    book: Callable[[int], str],
    other: str | None,
) -> list[Refusal]:
    """Books that are counted differently in one version, such as psalms as in the Vulgate."""
    stray = [place for place, yes in zip(its.places, its.stray, strict=True) if yes]
    refused = []
    for title, share in misaligned_books(stray, its.places, book).items():
        inside = [pair for pair in its.pairs() if book(pair[0]) == title]
        shown = evidence.examples(version, inside, blocks, name)
        refused.append(Refusal(version, title, share, shown, other))
    return refused


def _notes(found: dict[str, _Found]) -> tuple[str, ...]:
    notes = []
    for version, its in found.items():
        best = np.maximum(its.own, its.neighbour)
        if len(best) and float(np.median(best)) < NOTHING_IN_COMMON:
            notes.append(
                f"{version} has too few words in common with the others to tell whether it is "
                "aligned (another language?)"
            )
    return tuple(notes)
