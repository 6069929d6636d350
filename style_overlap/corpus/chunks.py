"""From verses in several versions to contents that every version has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from style_overlap.corpus.alignment import compare
from style_overlap.corpus.groups import content_groups
from style_overlap.corpus.misnumbered import refuse_books
from style_overlap.corpus.references import passage_name, split, verse_name
from style_overlap.errors import UsageError

Verses = Mapping[str, Mapping[int, str]]
"""Version -> verse number -> text."""


def passages(verses: Iterable[int], size: int) -> tuple[list[tuple[int, ...]], list[int]]:
    """Cut sorted verses into passages of consecutive verses within one chapter.

    A verse that is not there ends a passage, so that a passage named ``1:1-5`` holds all of
    verses 1 to 5 and nothing else.

    Returns:
        The passages of exactly ``size`` verses, and the verses left over.
    """
    kept: list[tuple[int, ...]] = []
    left: list[int] = []
    run: list[int] = []
    for verse in verses:
        # the first verse of a chapter or book is never the successor of the last one's number
        if run and verse != run[-1] + 1:
            left += run
            run = []
        run.append(verse)
        if len(run) == size:
            kept.append(tuple(run))
            run = []
    return kept, left + run


def parallel_chunks(
    verses: Verses, size: int, books: Mapping[int, str], excluded: Mapping[str, Iterable[int]]
) -> tuple[dict[str, Sequence[Any]], dict[str, Any]]:
    """Contents that all versions have, one column of texts per version.

    A verse that any version lacks, or that says something else in it, is left out of all.

    Args:
        verses: the texts, cleaned; empty where a version leaves a verse out.
        size: verses in one content.
        books: titles by book number.
        excluded: verses that the source leaves out for reasons of its own, by reason.

    Returns:
        The columns of the corpus' table, and what was dropped: reason -> count, verses, and the
        number of them by version where single versions are the cause.

    Raises:
        UsageError: a version or a book of it is misaligned as a whole, or nothing is left.
    """
    # A number that no version has a text for does not exist; it is not missing.
    every = sorted({number for texts in verses.values() for number in texts if texts[number]})
    fit = compare(verses, books)
    refuse_books(
        fit["misaligned"],
        verses,
        lambda number: books[split(number)[0]],
        lambda number: verse_name(number, books),
    )
    faults: dict[str, Mapping[str, Iterable[int]]] = {
        "missing": {
            version: [number for number in every if not texts.get(number)]
            for version, texts in verses.items()
        },
        **{reason: {"": numbers} for reason, numbers in excluded.items()},
        **fit,
    }
    gone: set[int] = set()
    dropped: dict[str, Any] = {}
    for reason, by_version in faults.items():
        fresh = {version: set(numbers) - gone for version, numbers in by_version.items()}
        found = sorted(set().union(*fresh.values()))
        gone.update(found)
        dropped[reason] = _entry(found, books)
        if "" not in fresh:
            dropped[reason]["by_version"] = {version: len(fresh[version]) for version in fresh}
    kept, left = passages((number for number in every if number not in gone), size)
    dropped["remainder"] = _entry(left, books)
    if not kept:
        raise UsageError(
            f"no {size} consecutive verses stand in every one of {', '.join(verses)}: "
            "ask for shorter chunks"
        )
    columns: dict[str, Sequence[Any]] = {
        version: [" ".join(texts[number] for number in passage) for passage in kept]
        for version, texts in verses.items()
    }
    ids = [passage_name(passage, books) for passage in kept]
    return {"content_id": ids, "group": content_groups(columns).tolist(), **columns}, dropped


def _entry(numbers: Sequence[int], books: Mapping[int, str]) -> dict[str, Any]:
    return {"count": len(numbers), "ids": [verse_name(number, books) for number in numbers]}
