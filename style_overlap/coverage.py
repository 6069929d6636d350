"""How much of the passages a model has read, by style: long texts are cut, and that is told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple


class Passage(NamedTuple):
    """A passage that has been scored.

    Attributes:
        text: SHA-256 of its text.
        style: its style.
        cut: whether only a part of it was read.
    """

    text: bytes
    style: str
    cut: bool


class Coverage:
    """The distinct passages that have been scored."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.passages: set[Passage] = set()

    def add(self, texts: Iterable[str], styles: Iterable[str], cut: Iterable[bool]) -> None:
        """Note passages; one that is there already counts once."""
        self.passages |= {
            Passage(hashlib.sha256(text.encode()).digest(), style, bool(short))
            for text, style, short in zip(texts, styles, cut, strict=True)
        }

    @property
    def unique_texts(self) -> int:
        """Texts, each counted once, also where two styles share it."""
        return len({passage.text for passage in self.passages})

    @property
    def truncated(self) -> dict[str, dict[str, int]]:
        """Passages of every style: ``count`` of them cut, ``of`` so many."""
        table = {style: {"count": 0, "of": 0} for style in sorted({p.style for p in self.passages})}
        for passage in self.passages:
            table[passage.style]["count"] += passage.cut
            table[passage.style]["of"] += 1
        return table
