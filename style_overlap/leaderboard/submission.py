"""Submissions: the records of some runs in one archive, for a pull request to a leaderboard.

No weights and no texts: records, looks of the training, and a manifest that holds every file's
SHA-256. Names inside the archive come from the files' own hashes, so the same records give the
same bytes wherever they lay.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from style_overlap import __version__
from style_overlap.errors import UsageError
from style_overlap.leaderboard import archive, strict
from style_overlap.leaderboard.strict import Refused
from style_overlap.report import records as report_records
from style_overlap.report.records import Record, Records
from style_overlap.results import (
    DYNAMICS_NAME,
    RECORD_NAME,
    RUN_NAME,
    SCHEMA,
    dumps,
    to_json,
    write_bytes,
)

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Packed:
    """What went into a submission.

    Attributes:
        files: names in the archive.
        left_out: files that were found and are not in it, and why.
        size: bytes of the archive.
    """

    files: tuple[str, ...]
    left_out: dict[str, str]
    size: int


def pack(paths: Iterable[str | os.PathLike[str]], output: Path) -> Packed:
    """Write the records of runs into one archive.

    Args:
        paths: folders of runs or of checkpoints, or single records.
        output: the archive; written whole or not at all.

    Raises:
        UsageError: no record that can be submitted, or a path that does not exist.
    """
    given = [Path(path) for path in paths]
    read = report_records.read(given)
    left_out, files = dict(read.failed), {}
    for source, name, value in [*_members(read), *_checkpoints(given)]:
        try:
            data = _bytes(value)
            _check(name, data)
        except Refused as fault:
            left_out[source] = str(fault)
            continue
        files[name] = data
    if not files:
        told = "".join(f"\n  {source}: {reason}" for source, reason in sorted(left_out.items()))
        raise UsageError(
            "nothing to submit: expected folders with records of `style-overlap sweep` or "
            f"`style-overlap evaluate`{told}"
        )
    manifest = {
        "schema": SCHEMA,
        "kind": "submission",
        "made_by": f"style-overlap {__version__}",
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    strict.check(manifest, "submission")
    data = archive.pack({MANIFEST: _bytes(manifest), **files})
    write_bytes(output, data)
    return Packed(tuple(sorted(files)), left_out, len(data))


def read(path: Path) -> dict[str, bytes]:
    """The records of a submission by their names in the archive, each checked.

    Raises:
        Refused: not a sound archive, a file that the manifest does not name or whose hash is
            another, or a record that does not fit the schema.
    """
    files = archive.unpack(path)
    if MANIFEST not in files:
        raise Refused(f"no {MANIFEST} in it: make submissions with `style-overlap submit`")
    manifest = strict.parse(files.pop(MANIFEST))
    strict.check(manifest, "submission")
    named: dict[str, str] = manifest["files"]
    if named.keys() != files.keys():
        odd = sorted(named.keys() ^ files.keys())[0]
        where = "the manifest" if odd in named else "the archive"
        raise Refused(f"{odd[:80]} is in {where} only")
    for name, data in files.items():
        if hashlib.sha256(data).hexdigest() != named[name]:
            raise Refused(f"{name} was changed after it was packed: its hash is another")
        try:
            _check(name, data)
        except Refused as fault:
            raise Refused(f"{name}: {fault}") from None
    return files


def _members(read: Records) -> Iterable[tuple[str, str, Any]]:
    """(source, name in the archive, value) of all that is submitted."""
    for source, record in read.runs.items():
        yield source, f"runs/{_hash(record)}/{RUN_NAME}", record
    for folder, found in (("evaluations", read.evaluations), ("probes", read.probes)):
        for source, record in found.items():
            if source not in read.runs:  # a run holds its own evaluation
                yield source, f"{folder}/{_hash(record)}.json", record
    for source, dynamics in read.dynamics.items():
        # What a run or a probe has looked at is in its own record.
        if source not in read.runs and not dynamics.afterwards:
            training = _training(source, dynamics)
            name = f"trained/{_hash(training)}"
            yield source, f"{name}/{RECORD_NAME}", training
            yield source, f"{name}/{DYNAMICS_NAME}", list(dynamics.looks)


def _checkpoints(given: list[Path]) -> Iterable[tuple[str, str, Any]]:
    """Records of checkpoints: they tell whose weights a record or a results file is about."""
    for folder in given:
        for file in sorted(folder.rglob(RECORD_NAME)) if folder.is_dir() else ():
            record = _parsed(file)
            if record is not None:
                yield str(file), f"trained/{_hash(record)}/{RECORD_NAME}", record


def _training(source: str, dynamics: report_records.Dynamics) -> Record:
    """The checkpoint's record, which says whose looks these are."""
    return _parsed(Path(source).with_name(RECORD_NAME)) or {
        "schema": SCHEMA,
        "kind": "checkpoint",
        "config": dynamics.config,
        "data": {"corpus_fingerprint": dynamics.corpus} if dynamics.corpus else {},
        "degenerate": dynamics.degenerate,
        "looks": dynamics.gallery,
    }


def _parsed(file: Path) -> Record | None:
    """A checkpoint's record, None for a file that is none."""
    try:
        record = strict.parse(file.read_bytes())
        strict.check(record, "checkpoint")
    except (OSError, Refused):
        return None
    return record


def _hash(value: Any) -> str:
    return hashlib.sha256(_bytes(value)).hexdigest()[:12]


def _bytes(value: Any) -> bytes:
    if isinstance(value, list):  # looks: one line each, as in dynamics.jsonl
        return b"".join(
            json.dumps(to_json(look), sort_keys=True, allow_nan=False).encode() + b"\n"
            for look in value
        )
    return (dumps(value) + "\n").encode("utf-8", "surrogatepass")


def _check(name: str, data: bytes) -> None:
    """Check one file against the schema of its kind."""
    folder = name.partition("/")[0]
    if name.endswith(DYNAMICS_NAME):
        for line in data.splitlines():
            strict.check(strict.parse(line), "look")
        return
    kinds = {"runs": "run", "evaluations": "evaluation", "probes": "probe"}
    kind = kinds.get(folder, "checkpoint")
    value = strict.parse(data)
    if not isinstance(value, dict) or value.get("kind") != kind:
        raise Refused(f"expected a record of the kind {kind}")
    strict.check(value, kind)
