"""A sweep on a real Ray cluster of two nodes, on this machine; one is taken away in the middle."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from style_overlap.errors import UsageError
from style_overlap.results import read_json
from style_overlap.sweep import ray as engine
from style_overlap.sweep.command import sweep
from style_overlap.sweep.jobs import Job
from style_overlap.sweep.local import InProcess
from style_overlap.sweep.ray import RayEngine
from sweep_cells import bare_jobs, bare_plan, make_plan, without_times, write_corpus

SMALL = 80_000_000  # bytes of a node's object store


def test_ray_that_is_not_installed_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match="pip install 'style-overlap"):
        RayEngine()


def test_a_node_that_does_not_share_the_folder_stops_the_sweep(tmp_path):
    (cell,) = bare_plan(1).cells
    told = engine._run(Job(cell, tmp_path / "elsewhere", ("0.0",)), ".")
    assert "storage that all nodes of the cluster share" in str(told)
    assert not (tmp_path / "elsewhere").exists()


def test_an_error_of_a_task_is_told_by_its_cause(tmp_path):
    errors = pytest.importorskip("ray.exceptions", reason="ray is not installed")
    place = {"proctitle": "p", "pid": 1, "ip": "127.0.0.1"}
    cause = ValueError("the corpus is gone\nfrom here")
    for error, told in (
        (errors.RayTaskError("_run", "heading", cause, **place), "ValueError: the corpus is gone"),
        (errors.WorkerCrashedError(), "WorkerCrashedError: The worker died"),
    ):

        def get(_, error=error):
            raise error

        (job,) = bare_jobs(tmp_path, 1)
        running = RayEngine.__new__(RayEngine)
        running._running = {"task": job}
        running._ray = SimpleNamespace(
            wait=lambda tasks, num_returns: (tasks, []), get=get, exceptions=errors
        )
        assert running.finished().note.startswith(told)
        assert read_json(job.record)["error"].startswith(told)
        job.record.unlink()


@pytest.fixture
def nodes(monkeypatch):
    """A head without room and two nodes of one core."""
    pytest.importorskip("ray", reason="ray is not installed")
    from ray.cluster_utils import Cluster

    # Both as on a laptop: every address is the loopback one, so no network is needed.
    monkeypatch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    here = {"node_ip_address": "127.0.0.1", "object_store_memory": SMALL}
    cluster = Cluster(
        initialize_head=True, head_node_args={**here, "num_cpus": 0, "include_dashboard": False}
    )
    try:
        added = [cluster.add_node(**here, num_cpus=1) for _ in range(2)]
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        yield cluster, added
    finally:
        cluster.shutdown()


@pytest.mark.slow
def test_a_lost_node_loses_nothing_and_the_records_are_those_of_the_local_engine(
    nodes, encoder, tmp_path
):
    cluster, (_, lost) = nodes
    corpus = write_corpus(tmp_path)
    arguments = {"num_train_epochs": 20.0, "learning_rate": 5e-3}
    plan = make_plan(corpus, [str(encoder)], alphas=(0, 0.5, 1), arguments=arguments)
    runs = tmp_path / "runs"
    threading.Thread(target=remove_when_both_train, args=(cluster, lost, runs), daemon=True).start()
    summary = sweep(plan, runs, lambda _: RayEngine(cpus=1))
    assert len(cluster.list_all_nodes()) == 2  # the head, and one that is left
    assert [(outcome.status, outcome.ran) for _, outcome in summary.outcomes] == [
        ("done", True)
    ] * 3
    local = tmp_path / "local"
    alone(plan, local)
    for cell in plan.cells:
        here, there = (read_json(r / cell.folder / "run.json") for r in (local, runs))
        assert without_times(here) == without_times(there)


def remove_when_both_train(cluster, node, runs: Path) -> None:
    """Take a node away as soon as two cells are being trained."""
    while len(list(runs.glob("*/style_overlap_plan.json"))) < 2:
        time.sleep(0.02)
    cluster.remove_node(node, allow_graceful=False)


def alone(plan, runs: Path) -> None:
    """The same plan by the local engine, on one thread, as a node has it."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        sweep(plan, runs, lambda _: InProcess())
    finally:
        torch.set_num_threads(threads)


def test_the_command_line_does_not_load_ray():
    code = "import style_overlap.cli, style_overlap.sweep.engines, sys; print('ray' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
