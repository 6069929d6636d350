"""A sweep from its plan to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table

from style_overlap.names import is_baseline
from style_overlap.report.console import console
from style_overlap.sweep import estimate
from style_overlap.sweep.checks import check_weights
from style_overlap.sweep.drive import Engine, drive
from style_overlap.sweep.jobs import ERROR_NAME, Job, Outcome, done_record, failure_of, look
from style_overlap.sweep.plan import Cell, Plan, as_scored_in, extend_plan
from style_overlap.sweep.progress import Progress, duration, size

_WIDTH = 120  # of a pipe or a log file, which have none of their own


@dataclass(frozen=True)
class Summary:
    """How a sweep ended.

    Attributes:
        outcomes: of every cell, in the order of the plan.
    """

    outcomes: tuple[tuple[Cell, Outcome], ...]

    @property
    def failures(self) -> list[tuple[Cell, Outcome]]:
        """Cells that have failed."""
        return [(cell, outcome) for cell, outcome in self.outcomes if outcome.status == "failed"]


def jobs_of(plan: Plan, runs: Path, *, keep: str, retry_failed: bool) -> list[Job]:
    """The cells of a plan as they are to be run."""
    jobs = [Job(cell, runs, plan.alphas_eval, keep) for cell in plan.cells]
    if not retry_failed:
        return jobs
    return [Job(job.cell, runs, plan.alphas_eval, keep, retry=failure_of(job)) for job in jobs]


def sweep(
    plan: Plan,
    runs: Path,
    engine: Callable[[Path], Engine],
    *,
    part: str | None = None,
    keep: str = "last",
    retry_failed: bool = False,
) -> Summary:
    """Run a plan.

    Args:
        plan: what to do; it is added to the plan of the folder.
        runs: folder of runs.
        engine: makes the engine for a folder of runs.
        part: which share of the plan, such as ``2/8``.
        keep: weights to keep: ``none``, ``last`` or ``all``.
        retry_failed: try cells again that have failed before.

    Raises:
        UsageError: what cannot be used.
        SweepStoppedError: a full disk, or a folder that cannot be written to.
    """
    runs = runs.expanduser().resolve()
    mine = plan.part(part)  # before anything is written
    check_weights(runs, plan)
    mine = replace(mine, alphas_eval=extend_plan(runs, plan).alphas_eval)
    jobs = jobs_of(mine, runs, keep=keep, retry_failed=retry_failed)
    pace = estimate.pace_of(jobs)
    running = engine(runs)  # from here on to be closed, which ``drive`` does
    progress = Progress(jobs, lambda: running.parallel, pace)
    with progress.shown():
        outcomes = drive(jobs, running, progress)
    return Summary(tuple((cell, outcomes[cell.id]) for cell in mine.cells))


def show_plan(
    plan: Plan,
    runs: Path,
    *,
    keep: str,
    parallel: int | None,
    retry_failed: bool,
    timed: bool = False,
) -> None:
    """Print a plan, how far it has come, and what the rest will take; ``timed`` as in ``costs``."""
    terminal = console(_WIDTH)
    plan = as_scored_in(runs, plan)
    jobs = jobs_of(plan, runs, keep=keep, retry_failed=retry_failed)
    state = {job.cell.id: found.status if (found := look(job)) else "left" for job in jobs}
    table = Table(title=f"{len(plan.cells)} cells in {runs}", title_justify="left")
    for name in ("encoder", "k", "alpha_train", "seeds", "cells", "done", "failed", "left"):
        table.add_column(name, justify="left" if name == "encoder" else "right")
    groups: dict[tuple[str, int], list[Cell]] = {}
    for cell in plan.cells:
        groups.setdefault((str(cell.config["model"]), int(cell.config["k"])), []).append(cell)
    for (model, k), cells in groups.items():
        counts = Counter(state[cell.id] for cell in cells)
        alphas, seeds = (
            " ".join(dict.fromkeys(str(cell.config[name]) for cell in cells))
            for name in ("alpha", "seed")
        )
        numbers = (len(cells), *(counts[status] for status in ("done", "failed", "left")))
        table.add_row(model, str(k), alphas, seeds, *map(str, numbers))
    terminal.print(table)
    terminal.print(f"every cell is scored at alpha_eval {', '.join(plan.alphas_eval)}")
    left = [job for job in jobs if state[job.cell.id] == "left"]
    new = [job.cell for job in left if done_record(job) is None]
    if len(new) < len(left):
        terminal.print(
            f"{len(left) - len(new)} of those left are finished and only scored at further "
            "overlaps, without training: what that takes is not in the estimate"
        )
    if new or not left:
        for line in costs(plan, new, runs, keep=keep, parallel=parallel, timed=timed):
            terminal.print(line)


def costs(
    plan: Plan,
    left: list[Cell],
    runs: Path,
    *,
    keep: str,
    parallel: int | None,
    timed: bool = False,
) -> list[str]:
    """Time and disk in words.

    Args:
        plan: the whole plan.
        left: its cells that are still to be trained.
        runs: folder of runs.
        keep: weights that are kept.
        parallel: cells at once; None where that is not known.
        timed: time a step of every encoder of which no cell is finished.
    """
    if not left:
        return ["nothing is left to do"]
    at_once = min(parallel or 1, len(left))
    pace = estimate.pace_of(jobs_of(plan, runs, keep=keep, retry_failed=False))
    time = _time(left, plan.alphas_eval, pace, at_once, timed)
    stays, needed = estimate.disk(left, keep, at_once)
    if stays is None or needed is None:
        return [time, "disk: not known, an encoder is not on this machine yet"]
    return [
        time,
        f"disk: {size(stays)} of weights stay (--keep {keep}), and at most {size(needed)} more "
        "while cells are trained; records are a few hundred kB a cell",
    ]


def _time(
    left: list[Cell], alphas: tuple[str, ...], pace: estimate.Pace, at_once: int, timed: bool
) -> str:
    seconds, unknown = pace.total(left)
    sources = ["the cells that are finished here"] if unknown < len(left) else []
    new = [c for c in left if pace.of(c) is None and not is_baseline(str(c.config["model"]))]
    reasons: list[str] = []
    if timed and new:
        from style_overlap.sweep.trial import expect  # loads torch

        more, known, reasons = expect(new, alphas, at_once)
        seconds, unknown = seconds + more, unknown - known
        if known:
            sources.append(
                f"one training step and one forward batch of each encoder, timed on this machine "
                f"just now, times the texts of {known} cells; fitting projectors, loading and "
                "saving are not in it"
            )
    why = f" ({'; '.join(reasons)})" if reasons else ""
    if not sources:
        texts = sum(cell.texts for cell in left)
        return (
            "time: not known before a first cell is finished; an epoch of all is "
            f"{texts:,} texts{why}"
        )
    told = f"time: about {duration(seconds / at_once)} with {at_once} at once"
    if at_once > 1:
        told += ", which share this machine"
    told += f", an estimate by {', and by '.join(sources)}"
    if unknown:
        told += f"; and {unknown} cells of encoders of which none is finished yet{why}"
    return told


def show_end(summary: Summary, runs: Path) -> None:
    """Print how a sweep ended, with a table of failures."""
    terminal = console(_WIDTH)
    if not summary.outcomes:
        terminal.print("no cell is in this share: the plan has fewer cells than shares")
        return
    done = [outcome for _, outcome in summary.outcomes if outcome.status == "done"]
    degenerate = sum(1 for outcome in done if outcome.note)
    told = f", {degenerate} of them degenerate" if degenerate else ""
    terminal.print(f"{len(done)} of {len(summary.outcomes)} cells done{told}: {runs}")
    lacking = [outcome.lacks for outcome in done if outcome.lacks]
    if lacking:
        alphas = ", ".join(sorted({alpha for lacks in lacking for alpha in lacks}))
        terminal.print(
            f"{len(lacking)} finished cells are not scored at alpha_eval {alphas}: these were "
            "asked for later, and their weights were not kept"
        )
    if not summary.failures:
        return
    table = Table(title="failed", title_justify="left")
    table.add_column("cell", no_wrap=True)
    table.add_column("error", overflow="fold")
    for cell, outcome in summary.failures:
        table.add_row(cell.folder, outcome.note)
    terminal.print(table)
    failed = [Job(cell, runs, ()) for cell, _ in summary.failures]
    if any((job.folder / ERROR_NAME).is_file() for job in failed):
        terminal.print("tracebacks: error.txt in their folders")
    if recorded := [job for job in failed if failure_of(job)]:
        terminal.print(f"--retry-failed takes up {len(recorded)} of {len(failed)}")
