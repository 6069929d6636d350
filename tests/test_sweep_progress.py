"""What a person sees of a sweep while it runs."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from style_overlap.sweep import drive as driving
from style_overlap.sweep import estimate
from style_overlap.sweep.drive import drive
from style_overlap.sweep.progress import Progress, duration, size
from sweep_cells import Pretender, bare_jobs, outcome, write_done


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (300, "5 min"), (9000, "2.5 h"), (260_000, "3.0 days")]
)
def test_durations_are_told_as_people_tell_them(seconds, text):
    assert duration(seconds) == text


def test_sizes_are_told_as_people_tell_them():
    assert [size(n) for n in (12, 5_300, 91_000_000, 100_000_000_000)] == [
        "12 B", "5.3 kB", "91.0 MB", "100.0 GB"
    ]  # fmt: skip


@pytest.fixture
def jobs(tmp_path):
    """Four cells to run."""
    return bare_jobs(tmp_path)


def watched(jobs, pace=None):
    """Progress, and what it prints."""
    progress, shown = Progress(jobs, lambda: 2, pace or estimate.Pace()), io.StringIO()
    progress._console = Console(file=shown, width=200)
    return progress, shown


def test_progress_counts_and_tells_each_end_in_a_line(jobs):
    progress, shown = watched(jobs)
    assert progress.counts() == "0 of 4 done, 4 left, time left not known yet"
    progress.began(jobs[0])
    progress.ended(jobs[0], outcome(jobs[0].cell, "done", seconds=100.0))
    progress.began(jobs[1])
    progress.ended(jobs[1], outcome(jobs[1].cell, "failed", note="ValueError: a [bracket]"))
    assert progress.counts() == "1 of 4 done, 1 failed, 2 left, 2 min to go"
    lines = shown.getvalue().splitlines()
    assert "some-encoder k=2 alpha=0.4 seed=0: done in 2 min" in lines[0]
    assert "failed: ValueError: a [bracket]" in lines[1]


def test_time_left_does_not_count_what_running_cells_have_had_already(jobs, monkeypatch):
    progress, _ = watched(jobs[:3])
    progress.ended(jobs[0], outcome(jobs[0].cell, "done", seconds=1000.0))
    now = 5000.0
    monkeypatch.setattr("style_overlap.sweep.progress.time.monotonic", lambda: now)
    progress.began(jobs[1])
    assert progress.time_left() == "17 min to go"  # two, on two
    now += 600.0
    assert progress.time_left() == "12 min to go"
    now += 6000.0  # one that takes longer than others takes nothing from these
    assert progress.time_left() == "8 min to go"


def test_a_cell_that_is_only_scored_further_tells_nothing_of_trainings(jobs):
    write_done(jobs[0], seconds=7200.0)
    pace = estimate.pace_of(jobs)
    progress, _ = watched(jobs[:2], pace)
    assert progress.time_left() == "more than 60 min to go"  # a training, shared by two
    progress.ended(jobs[0], outcome(jobs[0].cell, "done", seconds=0.1))
    assert pace.of(jobs[1].cell) == 7200.0


def test_waiting_is_told_once_however_often_the_others_are_looked_at(jobs, monkeypatch):
    monkeypatch.setattr(driving, "POLL_SECONDS", 0)
    progress, shown = watched(jobs[:2])
    polls = [[outcome(job.cell, "elsewhere")] * 5 for job in jobs[:2]]
    polls[0][2] = outcome(jobs[0].cell, "done")
    polls[1].append(outcome(jobs[1].cell, "done"))
    answers = {job.cell.id: told for job, told in zip(jobs, polls, strict=False)}
    drive(jobs[:2], Pretender(answers), progress)
    lines = [line for line in shown.getvalue().splitlines() if "waiting for" in line]
    assert ["2 cells" in line for line in lines] == [True, False]


def test_the_live_table_lists_what_runs(jobs):
    progress = Progress(jobs, lambda: 2, estimate.Pace())
    progress.began(jobs[0])
    console = Console(width=100, file=io.StringIO())
    with console.capture() as captured:
        console.print(progress.table())
    assert "0 of 4 done" in captured.get()
    assert "running  some-encoder k=2 alpha=0.4 seed=0" in captured.get()


def test_in_a_terminal_the_table_stays_below_what_cells_print(jobs, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress(jobs, lambda: 2, estimate.Pace())
    with progress.shown():
        progress.began(jobs[0])
        assert not sys.stderr.isatty()  # so that bars of single cells keep away
        print("a warning of a cell", file=sys.stderr)
        progress.ended(jobs[0], outcome(jobs[0].cell, "done", seconds=100.0))
    assert sys.stderr is terminal
    shown = terminal.getvalue()
    places = [
        shown.index("a warning of a cell"), shown.index("alpha=0.4 seed=0: done in 2 min"),
        shown.rindex("1 of 4 done, 3 left, 2 min to go"),
    ]  # fmt: skip
    assert places == sorted(places)
    assert shown.count("a warning of a cell") == 1
