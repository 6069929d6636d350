"""The engine of a Ray cluster: every cell is a task, ``RUNS`` lies on storage that all nodes share.

A cell whose node is lost is tried again on another: the lock of the lost process is open, and the
training goes on from its last checkpoint.
"""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from typing import Any

from style_overlap.errors import UsageError
from style_overlap.results import SWEEP_PLAN_NAME
from style_overlap.sweep.cell import record_lost, run
from style_overlap.sweep.faults import SweepStoppedError, one_line
from style_overlap.sweep.jobs import Job, Outcome

RETRIES = 3
"""How often a cell is tried again whose node or process was lost, before it has failed."""


class RayEngine:
    """Runs cells on a Ray cluster: the one around this process, or a new one on this machine.

    Attributes:
        parallel: how many cells the cluster has room for now.
    """

    slots = 1_000_000
    """All cells are handed over at once: a cluster that grows by demand has to see it."""

    def __init__(self, gpus: float | None = None, cpus: float | None = None) -> None:
        """Connect.

        Cells wait for a node that has so much: a cluster that grows may get one yet.

        Args:
            gpus: GPUs a cell; by default 1 where there are any.
            cpus: CPU cores a cell; by default 1.

        Raises:
            UsageError: ray is not installed.
        """
        try:
            import ray
        except ImportError:
            raise UsageError("--engine ray needs ray: pip install 'style-overlap[ray]'") from None
        self._ray: Any = ray
        self._mine = not ray.is_initialized()
        if self._mine:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.WARNING)
        if gpus is None:
            gpus = 1.0 if ray.cluster_resources().get("GPU") else 0.0
        self._gpus, self._cpus = gpus, 1.0 if cpus is None else cpus
        self._task = ray.remote(max_retries=RETRIES, num_gpus=self._gpus, num_cpus=self._cpus)(_run)
        self._running: dict[Any, Job] = {}

    @property
    def parallel(self) -> int:
        """How many cells the cluster has room for now, 1 at least."""
        has = self._ray.cluster_resources()
        room = [has.get(name, 0.0) // asked for name, asked in self._asked().items()]
        return max(int(min(room)), 1) if room else self.slots

    def start(self, job: Job) -> None:
        """Hand a cell to the cluster, which runs it when there is room."""
        self._running[self._task.remote(job, os.getcwd())] = job

    def finished(self) -> Outcome:
        """Wait for the first cell that is done."""
        (ready,), _ = self._ray.wait(list(self._running), num_returns=1)
        job = self._running.pop(ready)
        try:
            answer = self._ray.get(ready)
        except self._ray.exceptions.RayError as error:
            # What a task raised comes wrapped, under a heading of ray's.
            return record_lost(job, one_line(getattr(error, "cause", None) or error), str(error))
        if isinstance(answer, str):
            raise SweepStoppedError(answer)
        return answer

    def close(self) -> None:
        """Cancel what still runs, and leave the cluster."""
        for task in self._running:
            self._ray.cancel(task, force=True)
        self._running.clear()
        if self._mine:
            self._ray.shutdown()

    def _asked(self) -> dict[str, float]:
        asked = {"GPU": self._gpus, "CPU": self._cpus}
        return {name: amount for name, amount in asked.items() if amount}


def _run(job: Job, directory: str) -> Outcome | str:
    """Run a cell on a node of the cluster; a reason to stop comes back as a string.

    Args:
        job: the cell.
        directory: where the sweep was started, which relative names of encoders and corpora go by.
    """
    if not (job.runs / SWEEP_PLAN_NAME).is_file():
        return (
            f"node {socket.gethostname()} has no {job.runs}: give an --output on storage that all "
            "nodes of the cluster share"
        )
    if Path(directory).is_dir():
        os.chdir(directory)
    try:
        return run(job)
    except SweepStoppedError as stop:
        return str(stop)
