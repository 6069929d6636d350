"""Second pass over a table: which rows are one content, in which order, written as a corpus.

All decisions are taken on small integers, one or two a row: the number of the content (by order
of first appearance) and of the style. Then the texts are copied content by content from one mapped
Arrow file into another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from style_overlap.codes import first_rows
from style_overlap.corpus import contents
from style_overlap.corpus.contents import Coded, Ints
from style_overlap.corpus.faults import Faults
from style_overlap.corpus.layout import Layout
from style_overlap.corpus.staging import CONTENT_COLUMN, Staged, read_back
from style_overlap.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_SLICE = 2048  # contents copied at a time


@dataclass(frozen=True, eq=False)
class Index:
    """Where the texts of every content are.

    Attributes:
        rows: row of the staged file that has the text of content i in style s, shape (n, styles).
        groups: group of every content by a column of the table, shape (n,); None without one.
        dropped: contents left out, as the corpus lists them.
    """

    rows: Ints
    groups: Ints | None
    dropped: dict[str, Any]


def index(staged: Staged, layout: Layout, file: str, drop: bool) -> Index:
    """Find every content's texts, and put the contents into order.

    Args:
        staged: the first pass.
        layout: the table's columns.
        file: the table's name, for messages.
        drop: whether contents that lack a style are left out; else they are a fault.

    Raises:
        UsageError: a text given twice, a content that lacks a style or has two regions, all of
            them in one message; or no content that every style has.
    """
    batches = read_back(staged.path)
    if not batches or not staged.rows:
        raise UsageError(f"{file} has no rows with texts of {', '.join(staged.styles) or 'styles'}")
    content, names = _encode(batches, CONTENT_COLUMN)
    k = 1 if layout.wide else len(staged.styles)
    label = np.asarray(staged.labels, dtype=np.int64) if staged.labels else np.zeros_like(content)
    order = np.argsort(content * k + label, kind="stable")
    numbers = np.asarray(staged.rows, dtype=np.int64)
    coded = Coded(content, label, order, numbers, names, staged.styles, layout)
    faults = Faults(file)
    contents.find_repeated(coded, faults)
    whole = np.bincount(content, minlength=len(names)) == k
    if not drop and not faults.counts:  # a style given twice hides one that is missing
        contents.find_incomplete(coded, whole, faults)
    places = {}
    for option in layout.places:
        places[option] = _encode(batches, option)
        contents.find_differing(coded, option, *places[option], faults)
    faults.stop()
    rows = order[whole[content[order]]].reshape(-1, k)
    # whole contents by order of first appearance, which is the order of their numbers
    rows = rows[_arrange(rows[:, 0], places)]
    if not len(rows):
        raise UsageError(f"{file} has no content that every one of {', '.join(staged.styles)} has")
    groups = places["group"][0][rows[:, 0]] if "group" in places else None
    if layout.wide:
        rows = np.repeat(rows, len(staged.styles), axis=1)
    dropped = {"missing": contents.missing(coded, whole, staged)}
    return Index(rows, None if groups is None else first_rows(groups), dropped)


def write(staged: Staged, layout: Layout, rows: Ints, path: Path) -> pa.Table:
    """Copy the texts into a corpus' columns, without groups; returns them mapped from disk."""
    import pyarrow as pa

    batches = read_back(staged.path)
    ends = np.cumsum([batch.num_rows for batch in batches])
    schema = pa.schema([(name, pa.string()) for name in ("content_id", *staged.styles)])
    columns = staged.styles if layout.wide else [str(layout.text)] * len(staged.styles)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for start in range(0, len(rows), _SLICE):
            here = rows[start : start + _SLICE]
            arrays = [_gather(batches, ends, CONTENT_COLUMN, here[:, 0])]
            for style, column in enumerate(columns):
                arrays.append(_gather(batches, ends, column, here[:, style]))
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    return pa.Table.from_batches(read_back(path), schema=schema)


def _gather(batches: Sequence[pa.RecordBatch], ends: Ints, column: str, rows: Ints) -> pa.Array:
    """Values of some rows, in their order; only the batches that hold them are touched."""
    import pyarrow as pa

    home = np.searchsorted(ends, rows, side="right")
    by_home = np.argsort(home, kind="stable")
    parts = []
    for number in np.unique(home):
        batch = batches[number]
        offsets = rows[home == number] - (ends[number] - batch.num_rows)
        parts.append(batch.column(column).take(pa.array(offsets)))
    return pa.concat_arrays(parts).take(pa.array(np.argsort(by_home)))


def _encode(batches: Sequence[pa.RecordBatch], column: str) -> tuple[Ints, pa.Array]:
    """Numbers of a column's values by first appearance, shape (rows,), and the values."""
    import pyarrow as pa

    encoded = pa.chunked_array([batch.column(column) for batch in batches]).dictionary_encode()
    # encoded as a whole: all chunks refer to one dictionary
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    return codes.astype(np.int64), encoded.chunk(0).dictionary


def _arrange(first: Ints, places: Mapping[str, tuple[Ints, pa.Array]]) -> Ints:
    """The order of the contents: by the order column, then by region; ties as in the file.

    Args:
        first: one staged row of every content, in order of first appearance.
        places: values by option.
    """
    arranged = np.arange(len(first))
    if "order" in places:
        codes, values = places["order"]
        arranged = arranged[np.argsort(_ranks(values)[codes[first]], kind="stable")]
    if "region" in places:
        regions = places["region"][0][first[arranged]]
        arranged = arranged[np.argsort(first_rows(regions), kind="stable")]
    return arranged


def _ranks(values: pa.Array) -> npt.NDArray[Any]:
    """Sortable numbers for the values of an order column: numbers if all are, else their text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(values, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return np.argsort(pc.sort_indices(values).to_numpy())


def slices(table: pa.Table, size: int) -> Iterator[pa.Table]:
    """A table in pieces of ``size`` rows, the last one shorter."""
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size)
