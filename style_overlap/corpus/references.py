"""Verse numbers and the references that people read.

A verse is one integer, as in pythonbible: ``book * 1_000_000 + chapter * 1000 + verse``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def number_of(book: int, chapter: int, verse: int) -> int:
    """The verse number."""
    return book * 1_000_000 + chapter * 1000 + verse


def split(verse: int) -> tuple[int, int, int]:
    """(book, chapter, verse) of a verse number."""
    return verse // 1_000_000, verse // 1000 % 1000, verse % 1000


def verse_name(verse: int, books: Mapping[int, str]) -> str:
    """``Genesis 1:1`` for 1001001."""
    book, chapter, number = split(verse)
    return f"{books[book]} {chapter}:{number}"


def passage_name(passage: Sequence[int], books: Mapping[int, str]) -> str:
    """``Genesis 1:1-5`` for the consecutive verses 1001001 to 1001005."""
    first = verse_name(passage[0], books)
    return first if len(passage) == 1 else f"{first}-{passage[-1] % 1000}"
