"""One cell from its lock to its record.

Whoever holds the lock of a cell runs it. Its record, ``run.json``, is written at the very end: a
cell with a record is finished or has failed, one without is taken up where it stopped.
"""

from __future__ import annotations

import gc
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from style_overlap.results import SCHEMA, versions, write_json, write_text
from style_overlap.sweep.faults import one_line, stop_if_hopeless
from style_overlap.sweep.jobs import (
    ERROR_NAME,
    Job,
    Outcome,
    done_record,
    prune,
    settle,
)
from style_overlap.sweep.measure import measure, score_more
from style_overlap.sweep.plan import locked
from style_overlap.trainers.folder import LOCK_NAME


def run(job: Job) -> Outcome:
    """Run a cell, unless it is finished or another process has it.

    Raises:
        SweepStoppedError: no cell could be finished in this folder of runs.
    """
    if found := settle(job):
        return found
    try:
        with locked(job.runs, job.cell.folder, wait=False):
            # It may have been finished while we came to it.
            return settle(job) or _run(job)
    except Timeout:
        return Outcome(job.cell.id, "elsewhere")


def record_lost(job: Job, error: str, details: str) -> Outcome:
    """Write down that a cell's process has ended without a word.

    Args:
        job: the cell.
        error: one line.
        details: what is known of the end.
    """
    try:
        with locked(job.runs, job.cell.folder, wait=False):
            return settle(job) or _failed(job, error, details)
    except Timeout:
        return Outcome(job.cell.id, "elsewhere")


def _failed(job: Job, error: str, details: str, seconds: float = 0.0) -> Outcome:
    """Write down that a cell has failed: one line, and a traceback or what else is known.

    The record of a finished cell stands: it is only not scored at further overlaps yet.
    """
    write_text(job.folder / ERROR_NAME, details)
    if done_record(job) is None:
        write_json(job.record, {**_head(job), "status": "failed", "error": error})
    else:
        error += " (scoring a finished cell at further overlaps; the same command tries it again)"
    return Outcome(job.cell.id, "failed", True, seconds, error)


def _run(job: Job) -> Outcome:
    started = time.time()
    done = done_record(job)
    # The trainer takes a folder with other files for somebody else's.
    (job.folder / ERROR_NAME).unlink(missing_ok=True)
    if done is None:
        job.record.unlink(missing_ok=True)
    try:
        parts = score_more(job, done) if done else {**measure(job), "keep": job.keep}
        write_json(job.record, {**_head(job), "status": "done", **parts})
    except Exception as error:
        if _is_training(job.folder):  # by `style-overlap train`, which knows no lock of ours
            return Outcome(job.cell.id, "elsewhere")
        stop_if_hopeless(error, job.runs)
        took = time.time() - started
        return _failed(job, one_line(error), traceback.format_exc(), took)
    finally:
        _free_memory()
    prune(job)
    # A training may have been made in several attempts; what is only scored was not trained now.
    seconds = time.time() - started if done else parts["time"]["seconds"]
    return Outcome(job.cell.id, "done", True, seconds, parts["training"]["degenerate"])


def _head(job: Job) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": "run",
        "cell": job.cell.id,
        "config": job.cell.config,
        "status": "failed",
        "error": None,
        "training": None,
        "evaluation": None,
        "dynamics": [],
        "versions": versions(),
    }


def _is_training(folder: Path) -> bool:
    """Whether another process trains into a folder."""
    path = folder / LOCK_NAME
    if not path.is_file():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True


def _free_memory() -> None:
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
