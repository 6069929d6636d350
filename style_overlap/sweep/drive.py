"""Deals the cells of a plan out to an engine, until all of them are finished or have failed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Protocol

from style_overlap.sweep.jobs import Job, Outcome, settle

POLL_SECONDS = 3.0
"""How often cells that another sweep has are looked at, when nothing else is left to do."""


class Engine(Protocol):
    """Something that runs cells.

    Attributes:
        slots: how many it takes on at once.
        parallel: how many of these run at once.
    """

    @property
    def slots(self) -> int: ...

    @property
    def parallel(self) -> int: ...

    def start(self, job: Job) -> None:
        """Take a cell on; there is a free slot."""

    def finished(self) -> Outcome:
        """Wait for one of those that run.

        Raises:
            SweepStoppedError: what no other cell can get past.
        """

    def close(self) -> None:
        """End what still runs, at once."""


class Watcher(Protocol):
    """Somebody who wants to know how a sweep goes."""

    def began(self, job: Job) -> None:
        """A cell was started, as far as is known: one is that an engine has room for."""

    def ended(self, job: Job, outcome: Outcome) -> None:
        """A cell is finished, has failed, or turned out to be running elsewhere."""

    def waits(self, jobs: list[Job]) -> None:
        """All that is left is being run elsewhere."""


def drive(jobs: Iterable[Job], engine: Engine, watcher: Watcher) -> dict[str, Outcome]:
    """Run all cells.

    Cells that another sweep has are waited for: if that one dies, they are run here.

    Returns:
        The outcome of every cell by its id: ``done`` or ``failed``.

    Raises:
        SweepStoppedError: what no other cell can get past.
    """
    pending, running = deque(jobs), dict[str, Job]()
    elsewhere: list[Job] = []
    begun: set[str] = set()
    outcomes: dict[str, Outcome] = {}
    try:
        while pending or running or elsewhere:
            if not pending and not running:
                watcher.waits(elsewhere)
                time.sleep(POLL_SECONDS)
                pending, elsewhere = deque(elsewhere), []
            while pending and len(running) < engine.slots:
                job = pending.popleft()
                if found := settle(job):
                    outcomes[job.cell.id] = found
                    watcher.ended(job, found)
                    continue
                running[job.cell.id] = job
                engine.start(job)
            if not running:
                continue
            # Those that an engine has taken on beyond what it runs at once wait for their turn.
            for job in islice(running.values(), engine.parallel):
                if job.cell.id not in begun:
                    begun.add(job.cell.id)
                    watcher.began(job)
            outcome = engine.finished()
            job = running.pop(outcome.id)
            begun.discard(outcome.id)
            if outcome.status == "elsewhere":
                elsewhere.append(job)
            else:
                outcomes[outcome.id] = outcome
            watcher.ended(job, outcome)
    finally:
        engine.close()
    return outcomes
