"""What a leaderboard is made from: our records, results files of lm-eval, submissions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from style_overlap.errors import UsageError
from style_overlap.leaderboard import strict, submission
from style_overlap.leaderboard.strict import Refused
from style_overlap.report import records as report_records
from style_overlap.report.records import Dynamics, Records
from style_overlap.results import RECORD_NAME

Record = dict[str, Any]

_RESULTS = "results_*.json"  # as lm-eval names them: only to find them; what they are is inside


@dataclass(frozen=True)
class Found:
    """Everything usable, by the file that it came from.

    Attributes:
        records: ours.
        harness: parsed results files of lm-eval.
        training: records of checkpoints by the fingerprint of their weights: they say at which
            overlap a model of a results file was trained.
        left_out: files that are not used, and why.
    """

    records: Records
    harness: dict[str, Record] = field(default_factory=dict)
    training: dict[str, Record] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def gather(paths: Iterable[str | os.PathLike[str]]) -> Found:
    """Read everything that some paths hold.

    Args:
        paths: folders at any depth, records, results files, archives made by
            ``style-overlap submit``.

    Raises:
        UsageError: a path that does not exist.
    """
    found = Found(Records())
    plain: list[Path] = []
    for path in map(Path, paths):
        if not path.exists():
            raise UsageError(
                f"{path} does not exist: expected runs, a results file or a submission"
            )
        if path.is_dir():
            plain.append(path)
            for file in sorted(path.rglob(_RESULTS)):
                _add_harness(found, file)
            for file in sorted(path.rglob(RECORD_NAME)):
                _add_training(found, file)
            for file in sorted(path.rglob("*.zip")):
                _add_submission(found, file)
        elif path.suffix == ".zip":
            _add_submission(found, path)
        elif not _add_harness(found, path):
            plain.append(path)
    _add_records(found, report_records.read(plain))
    for record in found.records.runs.values():
        _know(found, record.get("training"))
    return found


def _add_submission(found: Found, path: Path) -> None:
    """Read the records of an archive.

    They are unpacked under names of our own making, into a folder of our own, and read there like
    any other records.
    """
    try:
        files = submission.read(path)
    except Refused as fault:
        found.left_out[str(path)] = str(fault)
        return
    with tempfile.TemporaryDirectory(prefix="style-overlap-") as folder:
        for name, data in files.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        for file in sorted(Path(folder).rglob(RECORD_NAME)):
            _add_training(found, file)
        _add_records(found, report_records.read([folder]), inside=(folder, str(path)))


def _add_records(found: Found, read: Records, inside: tuple[str, str] | None = None) -> None:
    def name(source: str) -> str:
        return source.replace(*inside, 1) if inside else source

    for kind in ("evaluations", "probes", "runs", "dynamics"):
        there: dict[str, Any] = getattr(found.records, kind)
        for source, record in getattr(read, kind).items():
            try:
                if isinstance(record, Dynamics):
                    strict.check(record.config, "trained")
                    for look in record.looks:
                        strict.check(look, "look")
                else:
                    strict.check(_without_credit(record), kind.removesuffix("s"))
            except Refused as fault:
                found.left_out[name(source)] = str(fault)
                continue
            there[name(source)] = record
    for source, reason in read.failed.items():
        found.left_out[name(source)] = reason


def _without_credit(record: Record) -> Record:
    """The record but for the credit of single contents.

    These are thousands of numbers, for which the validator takes most of a second:
    ``own_records`` checks them.
    """
    if isinstance(record.get("evaluation"), dict):
        return {**record, "evaluation": _without_credit(record["evaluation"])}
    tasks = record.get("tasks")
    if not isinstance(tasks, dict):
        return record
    light = {
        name: {k: v for k, v in task.items() if k != "credit"} if isinstance(task, dict) else task
        for name, task in tasks.items()
    }
    return {**record, "tasks": light}


def _add_harness(found: Found, path: Path) -> bool:
    """Whether the file is lm-eval's (or is refused): else it may be one of our records."""
    try:
        if path.stat().st_size > strict.MAX_BYTES:
            raise Refused(f"larger than {strict.MAX_BYTES // 2**20} MB")
        value = strict.parse(path.read_bytes())
        if not isinstance(value, dict) or "lm_eval_version" not in value:
            return False
        strict.check(value, "harness")
    except (Refused, OSError) as fault:
        told = fault if isinstance(fault, Refused) else f"cannot be read: {fault.strerror}"
        found.left_out[str(path)] = str(told)
        return True
    found.harness[str(path)] = value
    return True


def _add_training(found: Found, path: Path) -> None:
    try:
        record = strict.parse(path.read_bytes())
        strict.check(record, "checkpoint")
    except (Refused, OSError):
        return  # it has no figures: whatever needs it will say that it is missing
    _know(found, record)


def _know(found: Found, training: Record | None) -> None:
    weights = (training or {}).get("model_fingerprint")
    if training and isinstance(weights, str):
        found.training.setdefault(weights, training)
