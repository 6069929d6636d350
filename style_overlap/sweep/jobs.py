"""A cell to run, how it stands, and how it went; nothing here trains."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from style_overlap.errors import UsageError
from style_overlap.names import is_baseline
from style_overlap.results import RUN_NAME, SCHEMA, read_json
from style_overlap.sweep.plan import Cell

logger = logging.getLogger(__name__)

ERROR_NAME = "error.txt"
"""The traceback of a cell that failed, beside its record."""

KEEP = ("none", "last", "all")
"""Which weights of a finished cell may be kept."""

_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "*.bin")

Status = Literal["done", "failed", "elsewhere"]


@dataclass(frozen=True)
class Job:
    """A cell to run, and how.

    Attributes:
        cell: the cell.
        runs: folder of runs.
        alphas_eval: overlaps to score at.
        keep: weights to keep of a finished cell: ``none``, ``last`` (the final ones), or ``all``
            (the trainer's checkpoints too).
        retry: the failure that is to be tried again, by the time of its record in nanoseconds;
            of two sweeps that retry, the second then lets the first one's new failure stand.
    """

    cell: Cell
    runs: Path
    alphas_eval: tuple[str, ...]
    keep: str = "last"
    retry: int | None = None

    @property
    def folder(self) -> Path:
        """Folder of the cell."""
        return self.runs / self.cell.folder

    @property
    def record(self) -> Path:
        """The cell's record."""
        return self.folder / RUN_NAME


@dataclass(frozen=True)
class Outcome:
    """How it went with a cell.

    Attributes:
        id: of the cell.
        status: ``elsewhere`` while another process has it.
        ran: whether it was run here and now, and not found finished.
        seconds: that it took.
        note: the error of a failed cell, the reason of a degenerate one.
        lacks: overlaps that a finished cell was not scored at, and cannot be: they were asked for
            later, and its weights were not kept.
    """

    id: str
    status: Status
    ran: bool = False
    seconds: float = 0.0
    note: str | None = None
    lacks: tuple[str, ...] = ()


def look(job: Job) -> Outcome | None:
    """How a cell stands that has a record; None for one that is to be run."""
    record, written = _read(job)
    if record is None:
        return None
    if record["status"] == "done":
        lacks = lacks_of(job, record)
        if lacks and can_score(job):
            return None
        return Outcome(job.cell.id, "done", note=record["training"]["degenerate"], lacks=lacks)
    if written == job.retry:
        return None
    return Outcome(job.cell.id, "failed", note=record["error"])


def settle(job: Job) -> Outcome | None:
    """As ``look``; of a finished cell, weights go that an end which was cut short has left."""
    found = look(job)
    if found and found.status == "done":
        prune(job)
    return found


def failure_of(job: Job) -> int | None:
    """The time of a failed cell's record in nanoseconds, None for any other cell."""
    record, written = _read(job)
    return written if record and record["status"] == "failed" else None


def done_record(job: Job) -> dict[str, Any] | None:
    """The record of a finished cell, None for any other cell."""
    record, _ = _read(job)
    return record if record and record["status"] == "done" else None


def _read(job: Job) -> tuple[dict[str, Any] | None, int]:
    """A cell's record, None if there is none, and its time in nanoseconds.

    One that cannot be used has a status of its own, so that nobody runs the cell and writes over
    it. Another sweep that tries a failed cell again may remove its record at any moment.
    """
    why, written = f"{job.record} is no record of this cell that this version reads", 0
    try:
        written = job.record.stat().st_mtime_ns
        record = read_json(job.record)
        if _is_of(job.cell, record):
            return record, written
    except FileNotFoundError:
        return None, 0
    except NotADirectoryError:
        why = f"{job.folder} is a file"
    except OSError as error:
        why = f"cannot read {job.record}: {error.strerror}"
    except UsageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None, 0
        why = str(error)
    advice = "mend it, or move it away to have the cell run again"
    return {"status": "unusable", "error": f"{why}; {advice}"}, written


def _is_of(cell: Cell, record: Any) -> bool:
    """Whether this is a cell's record, with all that is read of it here."""
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        return False
    match record:
        case {"kind": "run", "cell": cell.id, "status": "failed", "error": str()}:
            return True
        case {
            "kind": "run",
            "cell": cell.id,
            "status": "done",
            "training": {"degenerate": _},
            "evaluation": {"tasks": dict()},
            "time": {"seconds": int() | float()},
        }:
            return True
    return False


def lacks_of(job: Job, record: Mapping[str, Any]) -> tuple[str, ...]:
    """Overlaps that a finished cell has not been scored at."""
    scored = {task["alpha_eval"] for task in record["evaluation"]["tasks"].values()}
    return tuple(alpha for alpha in job.alphas_eval if alpha not in scored)


def can_score(job: Job) -> bool:
    """Whether a finished cell can still be scored."""
    if is_baseline(str(job.cell.config["model"])):
        return True
    return any(job.folder.glob("*.safetensors"))


def prune(job: Job) -> None:
    """Remove the weights of a finished cell whose record says that none are kept.

    What the system does not let go is removed by whoever runs a sweep next: the cell is finished
    all the same.
    """
    found = [path for pattern in _WEIGHTS for path in job.folder.glob(pattern)]
    record = done_record(job) if found else None
    if record and record.get("keep") == "none":
        for weights in found:
            _remove(weights)


def _remove(weights: Path) -> None:
    try:
        weights.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("cannot remove %s: %s", weights, error.strerror)
