"""The columns of a corpus as its builder gives them: their fingerprint, and their Arrow table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from style_overlap.results import digest

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

Columns: TypeAlias = "Mapping[str, Sequence[Any]] | pa.Table"

_AT_ONCE = 4096  # values of an Arrow column


def fingerprint(columns: Columns, settings: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of a corpus' columns and settings: the same on every machine."""
    sha = hashlib.sha256(digest(settings).encode())
    names = getattr(columns, "column_names", columns)
    for name in names:
        values = columns[name]
        sha.update(digest([name, len(values)]).encode())
        for value in _plain(values):
            data = str(value).encode()
            # its length too: "ab", "c" is not "a", "bc"
            sha.update(len(data).to_bytes(8, "big") + data)
    return sha.hexdigest()


def _plain(values: Any) -> Iterator[Any]:
    """The values of a column, those of an Arrow one a few thousand at a time."""
    if not hasattr(values, "iterchunks"):
        yield from values
        return
    for chunk in values.iterchunks():
        for start in range(0, len(chunk), _AT_ONCE):
            yield from chunk.slice(start, _AT_ONCE).to_pylist()


def data_set(columns: Columns) -> datasets.Dataset:
    """A table of them: ``group`` is a number, all else is text."""
    import datasets

    if not isinstance(columns, Mapping):
        # a fingerprint of its own: `datasets` would pickle and hash the table to make one
        return datasets.Dataset(columns, fingerprint="corpus")
    features = datasets.Features(
        {name: datasets.Value("int64" if name == "group" else "string") for name in columns}
    )
    return datasets.Dataset.from_dict(dict(columns), features=features)
