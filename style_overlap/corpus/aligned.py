"""Alignment of tables: their contents compared block by block, so that any size goes through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from style_overlap.corpus.alignment import fits, misaligned
from style_overlap.corpus.audit import examine
from style_overlap.corpus.contents import LISTED
from style_overlap.corpus.evidence import AlignmentReport, Block

if TYPE_CHECKING:
    import pyarrow as pa

CHECKED = 50_000
"""Most contents that are looked at before a table is used; of more, blocks spread evenly."""

BLOCK = 1000
"""Neighbouring contents that are compared with each other."""


def examine_table(texts: pa.Table, styles: Sequence[str]) -> AlignmentReport:
    """Audit the contents of a table, or 50,000 of them where there are more.

    Args:
        texts: ``content_id`` and a column for each style.
        styles: the styles.
    """
    return examine(
        lambda: _blocks(texts, styles, CHECKED),
        lambda row: str(texts.column("content_id")[row].as_py()),
        places=texts.num_rows,
    )


def find_strays(
    texts: pa.Table, styles: Sequence[str]
) -> tuple[npt.NDArray[np.int64], dict[str, Any]]:
    """Contents with a text that fits a neighbour clearly better.

    Returns:
        Their rows, ascending, and the entry for the corpus' list of what was dropped.
    """
    strays: set[int] = set()
    by_version = dict.fromkeys(styles, 0)
    for block in _blocks(texts, styles, texts.num_rows):
        numbers = sorted(block[styles[0]])
        for style, fit in fits(block, numbers).items():
            bad = np.flatnonzero(misaligned(fit, None))
            by_version[style] += len(bad)
            strays.update(numbers[place] for place in bad)
    rows = np.asarray(sorted(strays), dtype=np.int64)
    ids = texts.column("content_id").take(rows[:LISTED]).to_pylist()
    return rows, {"count": len(rows), "ids": ids, "by_version": by_version}


def _blocks(texts: pa.Table, styles: Sequence[str], most: int) -> Iterator[Block]:
    starts = np.arange(0, texts.num_rows, BLOCK)
    if texts.num_rows > most:
        starts = starts[np.linspace(0, len(starts) - 1, most // BLOCK).astype(int)]
    for start in starts:
        piece = texts.slice(int(start), BLOCK)
        yield {
            style: dict(enumerate(piece.column(style).to_pylist(), int(start))) for style in styles
        }
