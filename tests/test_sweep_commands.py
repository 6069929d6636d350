"""`style-overlap sweep` as it is typed, in processes of its own, killed and started again."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import hear_interrupts
from style_overlap.results import read_json

pytestmark = pytest.mark.slow

PROGRAM = Path(sys.executable).parent / "style-overlap"
RECIPE = (
    *("--max-length", "32", "--dtype", "fp32", "--no-retrieval"),
    *("--set", "num_train_epochs=2", "learning_rate=5e-3", "per_device_train_batch_size=8"),
)


@pytest.fixture
def words(corpus, encoder, tmp_path) -> list[str]:
    """A sweep of two cells."""
    return [
        *(str(PROGRAM), "sweep", "--model", str(encoder), "--k", "2", "--alphas", "0", "1"),
        *("--seeds", "0", "--corpus", corpus, "--output", str(tmp_path / "runs"), *RECIPE),
    ]


def finish(words: list[str], *more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; never raises."""
    return subprocess.run([*words, *more], capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture
def start():
    """Run a command in the background; what still runs at the end of a test is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(words: list[str], *more: str) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(
            subprocess.Popen([*words, *more], **pipes, text=True, preexec_fn=hear_interrupts)
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def wait_for(path: Path, pattern: str, process: subprocess.Popen[str]) -> None:
    """Wait until a file is there."""
    deadline = time.monotonic() + 600
    while not list(path.glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def states(runs: Path) -> dict[str, tuple[str, int]]:
    """Status and time of every cell's record."""
    return {
        path.parent.name: (read_json(path)["status"], path.stat().st_mtime_ns)
        for path in runs.glob("*/run.json")
    }


@pytest.mark.case(10)
def test_a_sweep_that_was_killed_loses_no_finished_cell_and_repeats_none(words, start, tmp_path):
    runs, undisturbed = tmp_path / "runs", tmp_path / "undisturbed"
    words = [*words, "--set", "num_train_epochs=10"]
    whole, killed = start(words, "--output", str(undisturbed)), start(words)
    wait_for(runs, "*/run.json", killed)  # one is finished,
    wait_for(runs, "*/checkpoint-*", killed)  # the other has come some way
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    before = states(runs)
    assert len(before) == 1
    assert list(runs.glob("*/checkpoint-*"))
    done = finish(words)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 cells done" in done.stdout
    after = states(runs)
    assert len(after) == 2
    assert {name: after[name] for name in before} == before
    _, errors = whole.communicate(timeout=600)
    assert whole.returncode == 0, errors
    for name in after:
        one, other = (folder / name / "model.safetensors" for folder in (runs, undisturbed))
        assert one.read_bytes() == other.read_bytes()


def test_an_interrupt_ends_the_workers_too(words, start, tmp_path):
    runs = tmp_path / "runs"
    running = start(words, "--workers", "2")
    wait_for(runs, "*/style_overlap_plan.json", running)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 130, errors
    assert "Traceback" not in errors
    assert errors.strip().splitlines()[-1].startswith("interrupted")
    before = states(runs)
    # The locks are open: nobody who could hold one is left.
    done = finish(words)
    assert done.returncode == 0, done.stderr
    assert {name: states(runs)[name] for name in before} == before
    assert len(states(runs)) == 2


def test_two_sweeps_at_once_share_the_cells_and_run_none_twice(words, start, tmp_path):
    both = [start(words) for _ in range(2)]
    told = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    lines = [line for _, errors in told for line in errors.splitlines() if ": done in" in line]
    assert len(lines) == len({line.split("] ")[1].split(":")[0] for line in lines}) == 2
    assert [status for status, _ in states(tmp_path / "runs").values()] == ["done", "done"]


def test_a_dry_run_writes_nothing_and_a_saved_plan_is_run_in_parts(words, tmp_path):
    dry = finish(words, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    for told in ("2 cells in", "0.0 1.0", "time: about", "disk:"):
        assert told in dry.stdout
    assert not (tmp_path / "runs").exists()
    saved = finish(words, "--save-plan", str(tmp_path / "runs" / "plan.json"))
    assert saved.returncode == 0, saved.stderr
    plan = str(tmp_path / "runs" / "plan.json")
    part = finish([str(PROGRAM), "sweep", "--plan", plan, "--part", "2/2"])
    assert part.returncode == 0, part.stderr
    assert "1 of 1 cells done" in part.stdout
    (name,) = states(tmp_path / "runs")
    assert "-a1.0-" in name


@pytest.mark.case(12)
def test_a_failing_cell_is_told_in_a_table_and_taken_up_when_asked(words, tmp_path):
    runs = tmp_path / "runs"
    broken = [*words, "--alphas", "0", "--set", "max_grad_norm=0", "learning_rate=1e30"]
    failed = finish(broken, "--model", "baseline:tfidf")
    assert failed.returncode == 1, failed.stderr
    assert "Traceback" not in failed.stdout + failed.stderr
    assert "2 of 4 cells done" in failed.stdout
    told = " ".join(failed.stdout.replace("│", " ").split())
    assert re.search(r"TrainingError: .* step \d+ .*learning rate [\d.]+e\+\d+", told), told
    assert "--retry-failed takes up 2 of 2" in told
    records = [read_json(path) for path in runs.glob("*/run.json")]
    for record in (record for record in records if record["status"] == "failed"):
        assert re.search(r" step \d+ .*learning rate [\d.]+e\+\d+", record["error"])
    # What came of it is no checkpoint.
    assert not list(runs.glob("*/style_overlap.json"))
    counts = sorted(status for status, _ in states(runs).values())
    assert counts == ["done", "done", "failed", "failed"]
    before = states(runs)
    assert finish(broken, "--model", "baseline:tfidf").returncode == 1
    assert states(runs) == before
    assert finish(broken, "--model", "baseline:tfidf", "--retry-failed").returncode == 1
    after = states(runs)
    assert {n for n in after if after[n] != before[n]} == {
        name for name, (status, _) in before.items() if status == "failed"
    }
