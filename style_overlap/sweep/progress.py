"""What a person sees of a sweep: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from style_overlap.sweep.estimate import Pace
from style_overlap.sweep.jobs import Job, Outcome

_SHOWN = 8  # cells that run


class Progress:
    """Counts cells, and says how long the rest will take.

    Attributes:
        done: finished cells, those from before included.
        failed: failed cells.
        total: cells of the sweep.
    """

    def __init__(self, jobs: Sequence[Job], parallel: Callable[[], int], pace: Pace) -> None:
        """Watch the cells of a sweep.

        Args:
            jobs: all of them.
            parallel: says how many run at once.
            pace: seconds of cells that were finished before.
        """
        self.total, self.done, self.failed = len(jobs), 0, 0
        self._left = {job.cell.id: job.cell for job in jobs}
        self._parallel, self._pace = parallel, pace
        self._running: dict[str, tuple[str, float]] = {}
        self._waiting = 0
        # The stream itself: what stands in sys.stderr while the table is shown writes to us.
        self._console = Console(file=sys.stderr, highlight=False)
        self._live: Live | None = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the table while cells are run, if this is a terminal."""
        if not self._console.is_terminal:
            yield
            return
        with Live(
            get_renderable=self.table, console=self._console, refresh_per_second=2
        ) as self._live:
            ours = sys.stderr
            # Bars of single cells would run over the table.
            sys.stderr = _NoTerminal(ours)
            try:
                yield
            finally:
                sys.stderr = ours

    def began(self, job: Job) -> None:
        """A cell was started."""
        self._running[job.cell.id] = job.cell.title, time.monotonic()

    def ended(self, job: Job, outcome: Outcome) -> None:
        """A cell is finished, has failed, or turned out to be running elsewhere."""
        self._running.pop(job.cell.id, None)
        if outcome.status == "elsewhere":
            return
        self._left.pop(job.cell.id, None)
        self.done += outcome.status == "done"
        self.failed += outcome.status == "failed"
        if not outcome.ran:
            return
        if outcome.status == "done":
            self._pace.add(job.cell, outcome.seconds)
        self._say(f"{job.cell.title}: {_how(outcome)}")

    def waits(self, jobs: list[Job]) -> None:
        """All that is left is being run elsewhere."""
        if self._waiting != len(jobs):
            self._waiting = len(jobs)
            self._say(f"waiting for {len(jobs)} cells that another sweep is running")

    def time_left(self) -> str:
        """The time until all is done, as far as finished cells tell."""
        now, seconds, unknown = time.monotonic(), 0.0, 0
        for cell in self._left.values():
            expected = self._pace.of(cell)
            if expected is None:
                unknown += 1
                continue
            _, begin = self._running.get(cell.id, ("", now))
            seconds += max(expected - (now - begin), 0.0)
        if unknown == len(self._left):
            return "time left not known yet"
        at_once = max(min(self._parallel(), len(self._left)), 1)
        return f"{'more than ' if unknown else ''}{duration(seconds / at_once)} to go"

    def counts(self) -> str:
        """Counts and time left in one line."""
        left = self.total - self.done - self.failed
        parts = [f"{self.done} of {self.total} done"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if left:
            parts += [f"{left} left", self.time_left()]
        return ", ".join(parts)

    def table(self) -> Table:
        """The live table."""
        table = Table.grid(padding=(0, 2))
        table.add_row(Text(self.counts(), style="bold"))
        now = time.monotonic()
        running = list(self._running.values())
        for title, begin in running[:_SHOWN]:
            table.add_row(Text(f"running  {title}  {duration(now - begin)}"))
        if len(running) > _SHOWN:
            table.add_row(Text(f"and {len(running) - _SHOWN} more"))
        return table

    def _say(self, line: str) -> None:
        # Text, not markup: a path may hold square brackets.
        if self._live is not None:
            self._live.console.print(Text(line), soft_wrap=True)
        else:
            self._console.print(Text(f"[{self.counts()}] {line}"), soft_wrap=True)


def duration(seconds: float) -> str:
    """A length of time as a person says it: ``45 s``, ``12 min``, ``3.5 h``, ``2.1 days``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


def size(count: int) -> str:
    """A number of bytes as a person says it."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _how(outcome: Outcome) -> str:
    if outcome.status == "failed":
        return f"failed: {outcome.note}"
    told = f", degenerate: {outcome.note}" if outcome.note else ""
    return f"done in {duration(outcome.seconds)}{told}"


class _NoTerminal(io.TextIOBase):
    """A stream's lines without its terminal."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return int(self._stream.write(text) or 0)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return False
