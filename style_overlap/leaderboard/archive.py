"""Zip archives of records: written with the same bytes every time, read without trust.

Nothing of an archive is executed or unpacked where it says: members are read in memory, within
bounds, and only under names that are plain relative paths.
"""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

from style_overlap.leaderboard.strict import MAX_BYTES, Refused

_MAX_FILES = 20_000
_MAX_TOTAL = 2**30
_NAME = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that the format has: no clock in the bytes


def pack(files: Mapping[str, bytes]) -> bytes:
    """A zip of files by name; equal files give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is written
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, files[name])
    return buffer.getvalue()


def unpack(path: Path) -> dict[str, bytes]:
    """The files of a zip by name.

    Raises:
        Refused: no zip; a name that leaves the archive (``../``, absolute), a link, a name twice,
            a locked member; too many files or too large ones, whatever their headers claim.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except Refused:
        raise
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, ValueError, EOFError) as error:
        raise Refused(f"no sound zip: {str(error)[:120]}") from None
    except (RuntimeError, NotImplementedError) as error:  # a password, an odd compression
        raise Refused(f"a zip that is not read here: {str(error)[:120]}") from None
    except Exception as error:  # zlib.error and what other decompressors raise
        raise Refused(f"no sound zip: {type(error).__name__}") from None


def _read(archive: zipfile.ZipFile) -> dict[str, bytes]:
    entries = archive.infolist()
    if len(entries) > _MAX_FILES:
        raise Refused(f"{len(entries)} files: at most {_MAX_FILES} are read")
    files: dict[str, bytes] = {}
    total = 0
    for entry in entries:
        _check_name(entry)
        if entry.filename in files:
            raise Refused(f"holds {entry.filename} twice")
        with archive.open(entry) as member:
            # The header may lie about the size: count what comes out.
            data = member.read(MAX_BYTES + 1)
        total += len(data)
        if len(data) > MAX_BYTES or total > _MAX_TOTAL:
            raise Refused(f"{entry.filename} is too large when unpacked")
        files[entry.filename] = data
    return files


def _check_name(entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    parts = name.split("/")
    # orig_filename: what came before a NUL is not all that the archive says.
    plain = _NAME.fullmatch(name) and name == entry.orig_filename and len(name) <= 200
    if not plain or any(not part.strip(".") for part in parts):
        raise Refused(f"holds a file named {name[:80]!r}: only plain relative names are read")
    mode = entry.external_attr >> 16
    if mode and not stat.S_ISREG(mode):
        raise Refused(f"{name} is not a plain file")
