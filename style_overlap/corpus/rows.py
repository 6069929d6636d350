"""Rows of any table, in batches that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from style_overlap.corpus.faults import Faults
from style_overlap.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 4096
"""Most rows in a batch."""

_CHARACTERS = 8 * 2**20  # rows of long texts come in smaller batches


@dataclass(frozen=True)
class Batch:
    """Some rows.

    Attributes:
        rows: their numbers, as a person counts: see the reader.
        columns: values by column, each as long as ``rows``; None where a row has none.
    """

    rows: Sequence[int]
    columns: Mapping[str, Sequence[Any]]


class Rows(Protocol):
    """A table that is read from its start."""

    @property
    def file(self) -> str:
        """Its name in messages."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""

    def batches(self, wanted: Sequence[str], faults: Faults) -> Iterator[Batch]:
        """The values of some columns. Rows that cannot be read go to ``faults``."""


class ArrowRows:
    """What comes as Arrow tables: a Parquet file, a data set of the hub. The first row is row 1."""

    def __init__(
        self,
        file: str,
        columns: Sequence[str],
        tables: Callable[[list[str]], Iterator[pa.RecordBatch | pa.Table]],
    ) -> None:
        self.file = file
        self.columns = tuple(columns)
        self._tables = tables

    def batches(self, wanted: Sequence[str], faults: Faults) -> Iterator[Batch]:
        row = 1
        for table in self._tables(list(wanted)):
            columns = {name: table.column(name).to_pylist() for name in wanted}
            yield Batch(range(row, row + table.num_rows), columns)
            row += table.num_rows


def grouped(records: Iterable[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
    """Cut (row, values) records into batches of bounded size."""
    group: list[tuple[int, Any]] = []
    characters = 0
    for record in records:
        group.append(record)
        values = record[1].values() if isinstance(record[1], dict) else record[1]
        characters += sum(len(value) for value in values if isinstance(value, str))
        if len(group) == BATCH or characters > _CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def open_file(path: Path, *, quotes: bool = True) -> Rows:
    """The table in a file, by its ending.

    Args:
        path: a file that exists, with one of ``specs.ENDINGS``.
        quotes: whether double quotes enclose fields of CSV and TSV.

    Raises:
        UsageError: an unknown ending, or the file has no rows or cannot be read.
    """
    from style_overlap.corpus.textrows import CsvRows, JsonRows

    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".csv"):
        return CsvRows(path, ",", quotes)
    if name.endswith(".tsv"):
        return CsvRows(path, "\t", quotes)
    if name.endswith((".jsonl", ".ndjson")):
        return JsonRows(path)
    if name.endswith(".parquet"):
        return _parquet(path)
    raise UsageError(f"{path} is no table: expected .csv, .tsv, .jsonl or .parquet")


def _parquet(path: Path) -> ArrowRows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise UsageError(f"cannot read {path} as Parquet: {error}") from error

    def tables(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        return file.iter_batches(batch_size=BATCH, columns=wanted)

    return ArrowRows(path.name, file.schema_arrow.names, tables)


def open_hub(name: str, revision: str, split: str, config: str | None) -> ArrowRows:
    """A data set of the Hugging Face hub, at one commit.

    Raises:
        UsageError: it cannot be loaded.
    """
    import datasets

    try:
        data = datasets.load_dataset(name, config, revision=revision, split=split)
    except Exception as error:  # the hub's own errors are of many kinds
        raise UsageError(f"cannot load {name} at {revision}, split {split}: {error}") from error

    def tables(wanted: list[str]) -> Iterator[pa.Table]:
        chosen = data.select_columns(wanted).with_format("arrow")
        return chosen.iter(batch_size=BATCH)

    return ArrowRows(name, data.column_names, tables)
