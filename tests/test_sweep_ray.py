"""A sweep on a real Ray cluster of two nodes, on this machine; one is taken away in the middle."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from style_overlap.errors import UsageError
from style_overlap.results import read_json
from style_overlap.sweep import ray as engine
from style_overlap.sweep.command import sweep
from style_overlap.sweep.engines import choose
from style_overlap.sweep.jobs import Job
from style_overlap.sweep.local import InProcess
from style_overlap.sweep.ray import RayEngine
from sweep_cells import bare_plan, make_plan, write_corpus
from test_sweep_cell import without_times

SMALL = 80_000_000  # bytes of a node's object store


def test_options_of_another_engine_are_refused():
    for given, told in (
        (("local", None, 1.0, None), "--engine ray, or --workers"),
        (("local", 0, None, None), "--workers is 0"),
        (("ray", 2, None, None), "--workers is the local engine's"),
        (("ray", None, -1.0, None), "--gpus-per-run is -1"),
        (("slurm", None, None, None), "expected local or ray"),
    ):
        with pytest.raises(UsageError, match=told):
            choose(*given)


def test_ray_that_is_not_installed_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match="pip install 'style-overlap"):
        RayEngine()


def test_a_node_that_does_not_share_the_folder_stops_the_sweep(tmp_path):
    (cell,) = bare_plan(1).cells
    told = engine._run(Job(cell, tmp_path / "elsewhere", ("0.0",)), ".")
    assert "storage that all nodes of the cluster share" in str(told)
    assert not (tmp_path / "elsewhere").exists()


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
