"""Cells shared out to worker processes, and what becomes of those that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from style_overlap.results import read_json
from style_overlap.sweep import local
from style_overlap.sweep.command import sweep
from style_overlap.sweep.drive import drive
from style_overlap.sweep.faults import SweepStoppedError
from style_overlap.sweep.jobs import Job
from style_overlap.sweep.local import InProcess, Workers, environments_of
from sweep_cells import (
    Silent,
    bare_jobs,
    make_plan,
    serve_without_space,
    without_times,
)


def test_workers_get_a_gpu_each_or_a_share_of_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    on_cpu = environments_of(3, [], 16)
    assert [env["OMP_NUM_THREADS"] for env in on_cpu] == ["5", "5", "5"]
    assert all("CUDA_VISIBLE_DEVICES" not in env for env in on_cpu)
    assert environments_of(4, [], 2)[0]["OMP_NUM_THREADS"] == "1"
    on_gpu = environments_of(3, ["4", "6"], 16)
    assert [env["CUDA_VISIBLE_DEVICES"] for env in on_gpu] == ["4", "6", "4"]
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert environments_of(2, [], 16)[0]["OMP_NUM_THREADS"] == "7"


def test_workers_leave_the_same_records_as_this_process(corpus, encoder, tmp_path):
    plan = make_plan(corpus, [str(encoder), "baseline:tfidf"])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        sweep(plan, tmp_path / "a", lambda _: InProcess())
    finally:
        torch.set_num_threads(threads)
    one_thread = [{**env, "OMP_NUM_THREADS": "1"} for env in environments_of(2, [], 2)]
    summary = sweep(plan, tmp_path / "b", lambda runs: Workers(runs, one_thread))
    assert all(outcome.ran for _, outcome in summary.outcomes)
    for cell in plan.cells:
        a, b = (read_json(tmp_path / r / cell.folder / "run.json") for r in ("a", "b"))
        assert without_times(a) == without_times(b)


def test_a_worker_that_dies_fails_its_cell_and_no_other(corpus, tmp_path):
    plan = make_plan(corpus, ["baseline:tfidf"], alphas=(0, "0.5", 1))
    runs = tmp_path / "runs"
    engine = Workers(runs, environments_of(1, [], 1))
    jobs = [Job(cell, runs, plan.alphas_eval) for cell in plan.cells]
    runs.mkdir()
    start, killed = engine.start, []

    def start_and_kill(job):
        start(job)
        if not killed:
            killed.append(job.cell.id)
            os.kill(engine._workers[0].process.pid, signal.SIGKILL)

    engine.start = start_and_kill
    found = drive(jobs, engine, Silent())
    assert [found[job.cell.id].status for job in jobs] == ["failed", "done", "done"]
    assert found[killed[0]].note == "the process ended with signal 9 (SIGKILL)"
    assert read_json(jobs[0].record)["error"] == found[killed[0]].note


def test_a_worker_that_died_without_a_cell_fails_none(corpus, tmp_path):
    plan = make_plan(corpus, ["baseline:tfidf"])
    engine = Workers(tmp_path, environments_of(1, [], 1))
    first, second = (Job(cell, tmp_path, plan.alphas_eval) for cell in plan.cells)
    try:
        engine.start(first)
        assert engine.finished().status == "done"
        worker = engine._workers[0].process
        worker.kill()
        worker.join()
        engine.start(second)
        assert engine.finished().status == "done"
    finally:
        engine.close()


def test_what_stops_a_sweep_comes_out_of_its_worker(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_serve", serve_without_space)
    engine = Workers(tmp_path, environments_of(1, [], 1))
    with pytest.raises(SweepStoppedError, match=r"^no space is left$"):
        drive(bare_jobs(tmp_path, 1), engine, Silent())


PARENT = """
import sys, time
from pathlib import Path
from style_overlap.sweep import local
from sweep_cells import bare_jobs, serve_for_ever

local._serve, runs = serve_for_ever, Path(sys.argv[1])
engine = local.Workers(runs, local.environments_of(1, [], 1))
engine.start(bare_jobs(runs, 1)[0])
print(engine._workers[0].process.pid, flush=True)
time.sleep(600)
"""


def test_workers_end_in_the_middle_of_a_cell_when_their_parent_is_killed(tmp_path):
    code = f"import sys; sys.path[:] = {sys.path!r}\n{PARENT}"
    words = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        wait_until((tmp_path / "busy").exists)
        parent.kill()
    try:
        wait_until(lambda: not is_running(worker))
    finally:
        if is_running(worker):
            os.kill(worker, signal.SIGKILL)


def wait_until(condition, seconds: float = 60.0) -> None:
    """Wait, but not for ever."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether a process that is not our child has not ended."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return bool(told.stdout.strip()) and not told.stdout.startswith("Z")
