"""Lines of a UTF-8 file, one at a time and none of them without bound."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from style_overlap.errors import UsageError

MAX_LINE = 16 * 2**20
"""Bytes in the longest line. Far beyond any text that a model reads, and small in memory: a file
without line ends, or with a quotation mark that is never closed, must not fill the machine."""

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class LineTooLongError(Exception):
    """A line of more than ``MAX_LINE`` bytes; holds the first of them as text."""

    def __init__(self, start: str) -> None:
        super().__init__(start)
        self.start = start


class Lines:
    """Iterate over a file's lines, with their ends, whatever the platform.

    Attributes:
        undecodable: whether a line since this was last reset was not UTF-8; such a line is given
            with replacement characters, so that a reader can still say which row it was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.undecodable = False

    def __iter__(self) -> Iterator[str]:
        """The lines.

        Raises:
            LineTooLongError: a line of more than ``MAX_LINE`` bytes.
            UsageError: the file cannot be read, or is UTF-16.
        """
        try:
            with self._open() as file:
                start = file.read(3)
                if start[:2] in _UTF16:
                    raise UsageError(f"{self.path} is UTF-16: save it as UTF-8")
                rest = b"" if start == _BOM else start
                while True:
                    # the three bytes may hold line ends themselves
                    end = rest.find(b"\n") + 1
                    if end:
                        line, rest = rest[:end], rest[end:]
                    else:
                        line, rest = rest + file.readline(MAX_LINE + 1), b""
                    if not line:
                        return
                    if len(line) > MAX_LINE:
                        raise LineTooLongError(line.decode("utf-8", "replace"))
                    yield self._decode(line)
        except (OSError, EOFError) as error:  # gzip raises both for damaged files
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot read {self.path}: {reason}") from error

    def _open(self) -> BinaryIO:
        if self.path.suffix.lower() == ".gz":
            return cast(BinaryIO, gzip.open(self.path, "rb"))
        return self.path.open("rb")

    def _decode(self, line: bytes) -> str:
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            self.undecodable = True
            return line.decode("utf-8", "replace")
