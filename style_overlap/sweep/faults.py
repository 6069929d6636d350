"""Faults of a cell: which ones concern it alone, and which ones all others would meet too."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from style_overlap.errors import UsageError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_LITTLE = 1 << 20  # bytes; with less left nothing can be written


class SweepStoppedError(UsageError):
    """What no other cell can get past: a full disk, or a folder that cannot be written to."""


def stop_if_hopeless(error: BaseException, runs: Path) -> None:
    """Raise for a fault that every other cell would meet too; the cell is left to be gone on with.

    Raises:
        SweepStoppedError: the disk is full, the size of files is limited, or the folder cannot be
            written to.
    """
    again = "the same command goes on where it stopped"
    one: BaseException | None = error
    while one is not None:
        number, where = getattr(one, "errno", None), getattr(one, "filename", None)
        # Writers in other languages hand on the text alone.
        if number in _FULL or "No space left on device" in str(one):
            raise SweepStoppedError(f"no space is left in {runs}: free some; {again}") from error
        if number == errno.EFBIG or f"os error {errno.EFBIG}" in str(one):
            raise SweepStoppedError(
                f"a file in {runs} would be larger than is allowed here: see ulimit -f; {again}"
            ) from error
        if number in _DENIED and Path(str(where)).is_relative_to(runs):
            raise SweepStoppedError(f"cannot write {where}: {one.strerror}; {again}") from error  # type: ignore[attr-defined]
        one = one.__cause__ or one.__context__
    if shutil.disk_usage(runs).free < _LITTLE:
        raise SweepStoppedError(f"no space is left in {runs}: free some; {again}") from error


def one_line(error: BaseException) -> str:
    """An error's type, and the first line of what it says."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
