"""Rows of text files: CSV, TSV and JSON lines, with the number of each row.

In CSV and TSV rows are counted as a spreadsheet does, the header being row 1; in JSON lines the
first line is row 1.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from style_overlap.corpus.faults import Faults
from style_overlap.corpus.lines import MAX_LINE, Lines, LineTooLongError
from style_overlap.corpus.rows import Batch, grouped
from style_overlap.errors import UsageError

_LAST_KEY = re.compile(r'"([^"\\]{1,100})"\s*:')
_MIB = f"{MAX_LINE // 2**20} MiB"


class CsvRows:
    """CSV and TSV: quoted fields may hold line ends; every row has as many fields as the header."""

    def __init__(self, path: Path, delimiter: str, quotes: bool) -> None:
        self.file = path.name
        self.columns: tuple[str, ...] = ()
        self._path = path
        self._delimiter = delimiter
        self._quoting: Any = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
        header = next(self._records(None), None)
        if header is None:
            raise UsageError(f"{path} is empty: expected a header and rows")
        self.columns = tuple(name.strip() for name in header[1])
        twice = sorted({name for name in self.columns if name and self.columns.count(name) > 1})
        if twice:
            raise UsageError(f"{path.name}: the header has column {twice[0]!r} twice")

    def batches(self, wanted: Sequence[str], faults: Faults) -> Iterator[Batch]:
        places = [self.columns.index(name) for name in wanted]
        records = self._records(faults)
        next(records, None)  # the header
        for group in grouped(records):
            columns = {
                name: [record[place] for _, record in group]
                for name, place in zip(wanted, places, strict=True)
            }
            yield Batch([row for row, _ in group], columns)

    def _records(self, faults: Faults | None) -> Iterator[tuple[int, list[str]]]:
        """(row, fields) of every row that is as wide as the first one; faults None: all rows."""
        lines = Lines(self._path)
        # strict: a quotation mark that is never closed must not swallow the rest of the file
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True, quoting=self._quoting)
        width, row = 0, 0
        limit = csv.field_size_limit(MAX_LINE)
        try:
            while True:
                row += 1
                try:
                    record = next(reader)
                except StopIteration:
                    return
                except LineTooLongError as error:
                    raise UsageError(self._too_long(row, error.start)) from None
                except csv.Error as error:
                    raise UsageError(self._broken(row, error)) from None
                if not record:  # an empty line
                    continue
                width = width or len(record)
                if lines.undecodable and faults is not None:
                    lines.undecodable = False
                    faults.add(*_not_utf8(row, self._spoilt(record)))
                elif len(record) != width and faults is not None:
                    what = f"{len(record)} fields, the header has {width}"
                    column = self.columns[min(len(record), width) - 1]
                    faults.add("rows of another width", row, column, what)
                else:
                    yield row, record
        finally:
            csv.field_size_limit(limit)

    def _spoilt(self, record: Sequence[str]) -> str:
        for name, value in zip(self.columns, record, strict=False):
            if "\ufffd" in value:
                return name
        return self.columns[-1]

    def _too_long(self, row: int, start: str) -> str:
        # less than all of it: a field as long as the limit would be an error of its own
        begun = csv.reader([start[: MAX_LINE // 2]], delimiter=self._delimiter)
        place = len(next(begun)) - 1
        column = f", column {self.columns[place]!r}" if place < len(self.columns) else ""
        return (
            f"{self.file}: row {row}{column}: a line of more than {_MIB}; is it one text, and are "
            "the line ends LF or CRLF?"
        )

    def _broken(self, row: int, error: csv.Error) -> str:
        columns = f" (columns {', '.join(self.columns)})" if self.columns else ""
        said = str(error)
        if "new-line character" in said:
            reason = "a lone carriage return: save the file with LF or CRLF line ends"
        elif "field larger" in said or "unexpected end" in said:
            reason = "a quotation mark is opened and never closed"
        else:
            reason = said
        return (
            f"{self.file}: row {row}{columns}: {reason}. If quotation marks are part of the texts "
            "and enclose no fields, add quotes=no"
        )


class JsonRows:
    """JSON lines: an object a line; the columns are those of the first one."""

    def __init__(self, path: Path) -> None:
        self.file = path.name
        self._path = path
        faults = Faults(path.name)
        first = next(self._objects(faults), None)
        faults.stop()
        if first is None:
            raise UsageError(f"{path} is empty: expected a JSON object a line")
        self.columns = tuple(first[1])

    def batches(self, wanted: Sequence[str], faults: Faults) -> Iterator[Batch]:
        for group in grouped(self._objects(faults)):
            columns = {name: [values.get(name) for _, values in group] for name in wanted}
            yield Batch([row for row, _ in group], columns)

    def _objects(self, faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
        lines = Lines(self._path)
        row = 0
        try:
            for row, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                if lines.undecodable:
                    lines.undecodable = False
                    faults.add(*_not_utf8(row, _last_key(line[: line.find("\ufffd")])))
                    continue
                try:
                    values = json.loads(line)
                except (ValueError, RecursionError) as error:
                    faults.add("rows that are not JSON", row, _last_key(line), str(error))
                    continue
                if isinstance(values, dict):
                    yield row, values
                else:
                    what = f"a {type(values).__name__}, expected an object such as {{...}}"
                    faults.add("rows that are not JSON", row, "", what)
        except LineTooLongError as error:
            raise UsageError(
                f"{self.file}: row {row + 1}, column {_last_key(error.start)!r}: a line of more "
                f"than {_MIB}: expected an object a line"
            ) from None


def _not_utf8(row: int, column: str) -> tuple[str, int, str, str, str]:
    return "rows that are not UTF-8", row, column, "other bytes", "Save the file as UTF-8."


def _last_key(start: str) -> str:
    keys = _LAST_KEY.findall(start)
    return keys[-1] if keys else ""
