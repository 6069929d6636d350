"""Books whose verses one version counts differently, such as the psalms of the Vulgate.

Verse by verse they would be left out of all versions, and a good part of the corpus with them; so
the user decides between the version and the book.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from style_overlap.corpus import evidence
from style_overlap.corpus.evidence import Block, Namer, Refusal
from style_overlap.errors import UsageError

MAX_SHARE = 0.5
"""A book with a larger share of misaligned verses is counted differently in that version."""

MIN_VERSES = 100
"""A book that would lose fewer verses than this is no matter of decision: they are left out."""


def misaligned_books(
    stray: Iterable[int], places: Iterable[int], book: Callable[[int], str]
) -> dict[str, float]:
    """Books of a version that are misaligned as a whole, and the share of each.

    Args:
        stray: its misaligned verses.
        places: all of its verses.
        book: the title of the book that a verse is in.
    """
    bad, every = Counter(map(book, stray)), Counter(map(book, places))
    return {
        title: count / every[title]
        for title, count in bad.items()
        if count >= MIN_VERSES and count > MAX_SHARE * every[title]
    }


def refuse_books(
    strays: Mapping[str, Sequence[int]], verses: Block, book: Callable[[int], str], name: Namer
) -> None:
    """Refuse verses of which a whole book is counted differently in one version.

    Args:
        strays: misaligned verses by version, as ``alignment.compare`` finds them.
        verses: all verses.
        book: the title of the book that a verse is in.
        name: what a verse is called.

    Raises:
        UsageError: with three places side by side.
    """
    found = [
        (share, version, title)
        for version, numbers in strays.items()
        for title, share in misaligned_books(numbers, verses[version], book).items()
    ]
    if not found:
        return
    # A bad version makes the others look bad too: the worst one is the one to name.
    share, version, title = max(found, key=lambda entry: entry[0])
    inside = [(number, None) for number in strays[version] if book(number) == title]
    shown = evidence.examples(version, inside, lambda: [verses], name)
    refusal = Refusal(version, title, share, shown, other_of_two(version, verses))
    raise UsageError(evidence.refusal_text(refusal))


def other_of_two(version: str, versions: Iterable[str]) -> str | None:
    """The other one of two versions."""
    others = [name for name in versions if name != version]
    return others[0] if len(others) == 1 else None
