"""Two columns of labels of any table: the content and the style of each row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np

from style_overlap.corpus.faults import Faults
from style_overlap.corpus.layout import need
from style_overlap.corpus.rows import Rows
from style_overlap.corpus.specs import Spec
from style_overlap.corpus.table import find
from style_overlap.errors import UsageError


def open_labelled(spec: Spec) -> Rows:
    """The table that a spec names.

    Raises:
        UsageError: the spec names no table.
    """
    if spec.kind not in ("table", "hub"):
        raise UsageError(f"{spec.text} is no table: expected a .csv, .tsv, .jsonl or .parquet file")
    return find(spec).open()


def read_labels(rows: Rows, content: str, style: str) -> tuple[list[str], list[str]]:
    """Content and style of each row.

    Args:
        rows: the table.
        content: column of contents.
        style: column of styles.

    Raises:
        UsageError: a column is missing, or rows lack a label.
    """
    columns = [need(content, rows.columns, rows.file, "--content")]
    columns.append(need(style, rows.columns, rows.file, "--style"))
    faults = Faults(rows.file)
    found: tuple[list[str], list[str]] = ([], [])
    seen: dict[str, str] = {}  # one object for equal labels: there are few, and many rows
    for batch in rows.batches(list(dict.fromkeys(columns)), faults):
        for column, labels in zip(columns, found, strict=True):
            for row, value in zip(batch.rows, batch.columns[column], strict=True):
                label = "" if value is None else str(value).strip()
                if not label:
                    faults.add("rows without a label", row, column, "empty")
                labels.append(seen.setdefault(label, label))
    faults.stop()
    if not found[0]:
        raise UsageError(f"{rows.file} has no rows")
    return found


def csv_of(rows: Rows, chosen: np.ndarray, shared: np.ndarray) -> Iterator[str]:
    """Some rows of a table as lines of CSV, with a column ``shared`` more.

    Args:
        rows: the table.
        chosen: places of the rows among those that ``read_labels`` gave, ascending.
        shared: for each of them, whether its content is shared by all styles.
    """
    names = [name for name in rows.columns if name]
    if "shared" in names:
        raise UsageError(f"{rows.file} has a column 'shared', which is to be added: rename it")
    yield _line([*names, "shared"])
    start = done = 0
    for batch in rows.batches(names, Faults(rows.file)):
        while done < len(chosen) and chosen[done] < start + len(batch.rows):
            values = [batch.columns[name][int(chosen[done]) - start] for name in names]
            yield _line([*("" if value is None else value for value in values), int(shared[done])])
            done += 1
        start += len(batch.rows)


def _line(values: list[object]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(values)
    return buffer.getvalue()
