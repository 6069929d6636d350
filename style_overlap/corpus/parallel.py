"""The value that every source of texts produces: the same contents in several styles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import datasets


@dataclass(frozen=True, eq=False)
class ParallelCorpus:
    """Texts that say the same contents in several styles.

    Attributes:
        name: what the corpus is called in task records, such as ``bible``.
        styles: classes in label order; a k-way task takes the first k.
        reserved: styles that no classifier is trained on, for the unseen retrieval pair.
        table: one row a content, in canonical order: ``content_id`` (string), ``group`` (int64,
            equal for contents whose texts are nearly the same), then a string column per style.
        fingerprint: SHA-256 (hex) of ids, groups, texts and settings.
        settings: all that it takes to build the corpus again.
        dropped: what was left out, and why.
    """

    name: str
    styles: tuple[str, ...]
    reserved: tuple[str, ...]
    table: datasets.Dataset
    fingerprint: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    dropped: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of contents."""
        return len(self.table)

    @property
    def content_ids(self) -> list[str]:
        """Content ids a person can read, in canonical order."""
        return list(self.table["content_id"])

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """Content group of every content, shape (n,)."""
        return self.table.data.column("group").to_numpy().astype(np.int64)

    def texts(self, style: str) -> list[str]:
        """The texts of one style, in canonical order."""
        return list(self.table[style])
