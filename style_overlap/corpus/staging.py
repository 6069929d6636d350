"""First pass over a table: every value checked, the texts put on disk as Arrow.

What stays in memory is a few bytes a row: its number and its style. Texts are only ever held a
batch at a time, so that a table of any size goes through.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from style_overlap.corpus.faults import Faults
from style_overlap.corpus.layout import Layout, check_styles
from style_overlap.corpus.lines import MAX_LINE
from style_overlap.corpus.rows import Batch, Rows
from style_overlap.corpus.specs import did_you_mean
from style_overlap.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

MAX_STYLES = 1000
"""More styles than this are no styles: the wrong column is named."""

CONTENT_COLUMN = "content"
_EMPTY = "empty texts"
_LEAVE_OUT = "Add missing=drop to leave such contents out of all styles."


@dataclass
class Staged:
    """What the first pass leaves behind.

    Attributes:
        path: Arrow file with columns ``content``, one per place, and ``text`` (long) or one per
            style (wide); a row per good row of the table.
        rows: number of each of its rows in the table.
        labels: style of each row, an index into ``styles``; empty for a wide table.
        styles: styles in label order.
        other: rows of styles that were not asked for, by style.
        incomplete: empty texts that were left out, by style.
        left_out: contents of the rows of a wide table that were left out for them.
    """

    path: Path
    rows: array[int] = field(default_factory=lambda: array("I"))
    labels: array[int] = field(default_factory=lambda: array("h"))
    styles: list[str] = field(default_factory=list)
    other: Counter[str] = field(default_factory=Counter)
    incomplete: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)


def stage(
    source: Rows, layout: Layout, path: Path, policy: Callable[[str], str], drop: bool
) -> Staged:
    """Read a table to its end.

    Args:
        source: the table.
        layout: its columns.
        path: the Arrow file to write.
        policy: what is done to every text.
        drop: whether a row with an empty text is left out; else it is a fault.

    Raises:
        UsageError: bad rows, all kinds of them in one message.
    """
    import pyarrow as pa

    faults = Faults(source.file)
    staged = Staged(path, styles=list(layout.styles or ()))
    texts = list(layout.styles or ()) if layout.wide else [str(layout.text)]
    columns = [CONTENT_COLUMN, *layout.places, *texts]
    schema = pa.schema([(name, pa.string()) for name in columns])
    named = [layout.content, layout.style, *layout.places.values(), *texts]
    wanted = list(dict.fromkeys(name for name in named if name))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in source.batches(wanted, faults):
            good = _Batch(batch, layout, staged, faults, policy, drop)
            writer.write_batch(pa.record_batch(good.columns(texts), schema=schema))
    faults.stop()
    if not staged.rows and not staged.other:
        raise UsageError(f"{source.file} has no rows with texts")
    seen = {staged.styles[label] for label in set(staged.labels)}
    asked = () if layout.wide else layout.styles or layout.reserved
    unknown = [name for name in asked if name not in seen]
    if unknown:
        there = sorted({*staged.other, *seen})
        raise UsageError(
            f"{source.file}: no style {unknown[0]!r} in column {layout.style!r}"
            f"{did_you_mean(unknown[0], there)}; there are {', '.join(there[:20])}"
        )
    if layout.styles is None and layout.reserved:
        _classes_first(staged, layout.reserved)
    check_styles(staged.styles, layout.reserved, source.file)
    return staged


def _classes_first(staged: Staged, reserved: Sequence[str]) -> None:
    """Renumber the styles of a long table: classes by first appearance, then the reserved ones."""
    styles = [name for name in staged.styles if name not in reserved]
    styles += reserved
    new = np.array([styles.index(name) for name in staged.styles], dtype=np.int16)
    labels = np.frombuffer(staged.labels, dtype=np.int16)
    labels[:] = new[labels]
    staged.styles = styles


class _Batch:
    """One batch on its way through the checks."""

    def __init__(
        self,
        batch: Batch,
        layout: Layout,
        staged: Staged,
        faults: Faults,
        policy: Callable[[str], str],
        drop: bool,
    ) -> None:
        self._batch = batch
        self._layout = layout
        self._staged = staged
        self._faults = faults
        self._policy = policy
        self._drop = drop

    def columns(self, texts: Sequence[str]) -> list[list[str]]:
        """The good rows' values: contents, places, then ``texts``."""
        layout, columns = self._layout, self._batch.columns
        rows = list(range(len(self._batch.rows)))
        labels: list[int] = []
        if layout.style is not None:
            rows, labels = self._labelled(rows, columns[layout.style])
        contents = self._names(rows, layout.content, layout.content or "row")
        places = [self._names(rows, column, option) for option, column in layout.places.items()]
        values = [self._texts(rows, name, labels) for name in texts]
        good = [
            place
            for place in range(len(rows))
            if contents[place] and all(v[place] for v in values) and all(p[place] for p in places)
        ]
        self._staged.rows.extend(self._batch.rows[rows[place]] for place in good)
        if labels:
            self._staged.labels.extend(labels[place] for place in good)
        elif self._drop and len(good) < len(rows):
            kept = set(good)
            self._staged.left_out += [
                name for place, name in enumerate(contents) if name and place not in kept
            ]
        return [[column[place] for place in good] for column in (contents, *places, *values)]

    def _labelled(self, rows: list[int], values: Sequence[Any]) -> tuple[list[int], list[int]]:
        """The rows whose style is asked for, and their labels."""
        staged, fixed = self._staged, self._layout.styles is not None
        index = {style: label for label, style in enumerate(staged.styles)}
        kept, labels = [], []
        names = self._names(rows, self._layout.style, "style")
        for row, name in zip(rows, names, strict=True):
            if not name:
                continue
            if name not in index and not fixed:
                index[name] = len(index)
                staged.styles.append(name)
                if len(index) > MAX_STYLES:
                    raise UsageError(
                        f"{self._faults.file}: column {self._layout.style!r} has more than "
                        f"{MAX_STYLES} styles by row {self._batch.rows[row]}: is it the right one? "
                        "Choose styles by classes="
                    )
            if name in index:
                kept.append(row)
                labels.append(index[name])
            elif name in staged.other or len(staged.other) < MAX_STYLES:
                staged.other[name] += 1
        return kept, labels

    def _names(self, rows: list[int], column: str | None, what: str) -> list[str]:
        """Ids, styles and the like; an empty one is a fault."""
        if column is None:
            return [str(self._batch.rows[row]) for row in rows]
        values = self._batch.columns[column]
        found = []
        for row in rows:
            value = values[row]
            name = "" if value is None else str(value).strip()
            if not name or not _encodable(name):
                number = self._batch.rows[row]
                self._faults.add(f"rows without {what}", number, column, "empty")
                name = ""
            found.append(name)
        return found

    def _texts(self, rows: list[int], column: str, labels: list[int]) -> list[str]:
        """Texts as the corpus has them; empty where there is none."""
        values = self._batch.columns[column]
        found = []
        for place, row in enumerate(rows):
            value = values[row]
            text = ""
            if isinstance(value, str):
                text = unicodedata.normalize("NFC", value).replace("\r\n", "\n").strip()
                text = self._policy(text) if text else text
            number = self._batch.rows[row]
            if value is not None and not isinstance(value, str):
                self._faults.add("values that are no text", number, column, f"{value!r:.40}")
            elif len(text) > MAX_LINE or not _encodable(text):
                self._faults.add("texts that cannot be kept", number, column, f"{text[:40]!r}")
                text = ""
            elif not text and self._drop:
                style = self._staged.styles[labels[place]] if labels else column
                self._staged.incomplete[style] += 1
            elif not text:
                self._faults.add(_EMPTY, number, column, "empty", _LEAVE_OUT)
            found.append(text)
        return found


def _encodable(text: str) -> bool:
    """False for half a surrogate pair, which JSON can spell and no file can hold."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_back(path: Path) -> list[pa.RecordBatch]:
    """The batches of an Arrow file, mapped into memory: pages that the system can let go of."""
    import pyarrow as pa

    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    return [reader.get_batch(number) for number in range(reader.num_record_batches)]
