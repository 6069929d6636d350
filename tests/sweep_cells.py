"""A corpus in a file, plans of tiny cells, and engines that only pretend, for tests of sweeps."""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from conftest import RESERVED, make_corpus
from style_overlap.corpus import load_corpus
from style_overlap.results import SCHEMA, write_json
from style_overlap.sweep import local
from style_overlap.sweep.faults import SweepStoppedError
from style_overlap.sweep.grid import Probes, grid
from style_overlap.sweep.jobs import Job, Outcome, Status
from style_overlap.sweep.plan import Cell, Plan
from style_overlap.trainers.settings import TrainSettings

QUICK = {"num_train_epochs": 1.0, "learning_rate": 5e-3, "per_device_train_batch_size": 8}


def write_corpus(folder: Path, contents: int = 120) -> str:
    """Invented parallel texts in a file; returns its spec, from which every process can load it."""
    corpus = make_corpus(contents)
    path = folder / "texts.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["content_id", "style", "text"])
        for row in corpus.table:
            for style in (*corpus.styles, *corpus.reserved):
                writer.writerow([row["content_id"], style, row[style]])
    return f"table:{path},reserved={','.join(RESERVED)}"


def make_plan(
    corpus: str,
    models: Sequence[str],
    *,
    ks: Sequence[int] = (2,),
    alphas: Sequence[Any] = (0, 1),
    seeds: Sequence[int] = (0,),
    probes: Probes | None = None,
    **recipe: Any,
) -> Plan:
    """The plan of a grid of quick cells."""
    settings: dict[str, Any] = {
        "corpus": corpus, "max_length": 32, "dtype": "fp32", "arguments": QUICK, **recipe
    }  # fmt: skip
    template = TrainSettings(model="", k=2, alpha=0, output=Path("unused"), **settings)
    probes = probes or Probes(retrieval=False)
    return grid(load_corpus(corpus), models, ks, alphas, seeds, template, probes)


def bare_cell(**config: Any) -> Cell:
    """A cell that nobody can run, for tests of what is done with cells."""
    settings = {"model": "org/some-encoder", "k": 2, "alpha": "0.4", "seed": 0, **config}
    return Cell.of(settings, "data", 100)


def bare_plan(count: int = 3) -> Plan:
    """A plan of such cells."""
    return Plan(tuple(bare_cell(seed=seed) for seed in range(count)), ("0.0", "1.0"))


def bare_jobs(runs: Path, count: int = 4) -> list[Job]:
    """Such cells as they are to be run."""
    return [Job(cell, runs, ("0.0", "1.0")) for cell in bare_plan(count).cells]


def outcome(cell: Cell, status: Status, **more: Any) -> Outcome:
    """How it went with a cell that was run here, unless it was elsewhere."""
    return Outcome(cell.id, status, ran=status != "elsewhere", **more)


def write_failed(job: Job, error: str = "x") -> None:
    """The record of a failed cell."""
    write_json(
        job.record,
        {"schema": SCHEMA, "kind": "run", "cell": job.cell.id, "status": "failed", "error": error},
    )


def write_done(job: Job, seconds: float = 10.0, keep: str = "last") -> None:
    """The record of a finished cell, without what it measured."""
    write_json(
        job.record,
        {
            "schema": SCHEMA,
            "kind": "run",
            "cell": job.cell.id,
            "status": "done",
            "error": None,
            "keep": keep,
            "training": {"degenerate": None},
            "evaluation": {
                "tasks": {f"style_overlap_k2_a{a}": {"alpha_eval": a} for a in job.alphas_eval}
            },
            "time": {"seconds": seconds},
        },
    )


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    """A record without what the clock said."""
    training = {name: value for name, value in record["training"].items() if name != "time"}
    return {**record, "training": training, "time": None}


def serve_without_space(pipe: Connection, log: Path) -> None:
    """What a worker does on a full disk; the worker itself has to import it from here."""

    def run(job: Job) -> Outcome:
        raise SweepStoppedError("no space is left")

    local.run = run
    local._serve(pipe, log)


def serve_for_ever(pipe: Connection, log: Path) -> None:
    """What a worker does with a cell that takes very long."""

    def run(job: Job) -> Outcome:
        (job.runs / "busy").touch()
        time.sleep(600)
        raise AssertionError

    local.run = run
    local._serve(pipe, log)


class Pretender:
    """An engine that answers as it is told to."""

    def __init__(self, answers: dict[str, list[Outcome]], slots: int = 2) -> None:
        """Take the answers to every cell's starts, in order."""
        self.slots = self.parallel = slots
        self.answers, self.started, self.running = answers, [], []
        self.closed = False

    def start(self, job: Job) -> None:
        """Take a cell on."""
        assert len(self.running) < self.slots
        self.started.append(job.cell.id)
        self.running.append(job)

    def finished(self) -> Outcome:
        """The next answer to the oldest cell."""
        return self.answers[self.running.pop(0).cell.id].pop(0)

    def close(self) -> None:
        """Remember it."""
        self.closed = True


class Silent:
    """A watcher that only counts."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.began_ids: list[str] = []
        self.ended_outcomes: list[Outcome] = []
        self.waited = 0

    def began(self, job: Job) -> None:
        """Note it."""
        self.began_ids.append(job.cell.id)

    def ended(self, job: Job, outcome: Outcome) -> None:
        """Note it."""
        self.ended_outcomes.append(outcome)

    def waits(self, jobs: list[Job]) -> None:
        """Count it."""
        self.waited += 1
