"""Cells that are really run, in this process: tiny encoders, an invented corpus."""

from __future__ import annotations

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from style_overlap import evaluation
from style_overlap.errors import UsageError
from style_overlap.results import read_json, write_json
from style_overlap.sweep import cell as cells
from style_overlap.sweep.cell import record_lost, run
from style_overlap.sweep.faults import SweepStoppedError
from style_overlap.sweep.grid import Probes, settings_of
from style_overlap.sweep.jobs import Job, failure_of
from style_overlap.trainers.classifier import TrainingError, train
from sweep_cells import make_plan


@pytest.fixture
def job(corpus, encoder, tmp_path) -> Job:
    """A quick cell without retrieval."""
    plan = make_plan(corpus, [str(encoder)], alphas=(0,))
    return Job(plan.cells[0], tmp_path / "runs", plan.alphas_eval)


def test_a_finished_cell_leaves_one_whole_record_and_an_ordinary_checkpoint(
    corpus, encoder, tmp_path
):
    probes = Probes(retrieval=True, contents=80, seeds=1, every=0.5)
    plan = make_plan(corpus, [str(encoder)], alphas=("0.40",), probes=probes)
    job = Job(plan.cells[0], tmp_path / "runs", ("0.0", "0.4", "1.0"))
    outcome = run(job)
    assert (outcome.status, outcome.ran, outcome.id) == ("done", True, job.cell.id)
    record = read_json(job.folder / "run.json")
    assert (record["kind"], record["status"], record["error"]) == ("run", "done", None)
    assert record["cell"] == job.cell.id
    assert record["config"] == job.cell.config
    assert record["training"] == read_json(job.folder / "style_overlap.json")
    assert record["training"]["config"] == {
        name: value for name, value in job.cell.config.items() if name != "probe"
    }
    evaluation = record["evaluation"]
    assert list(evaluation["tasks"]) == [f"style_overlap_k2_a{a}" for a in ("0.0", "0.4", "1.0")]
    assert evaluation["checkpoint"]["name"] == job.cell.folder
    assert evaluation["checkpoint"]["config"] == record["training"]["config"]
    # Seen and unseen pairs, h and the encoder's own vector, from the one pass over the texts.
    rows = [row for task in evaluation["retrieval"].values() for row in task["summary"]]
    assert {row["set"] for row in rows} == {"seen", "unseen"}
    assert {row["features"] for row in rows} >= {"h"}
    lines = (job.folder / "dynamics.jsonl").read_text().splitlines()
    assert record["dynamics"] == [json.loads(line) for line in lines]
    assert [line["epoch"] for line in record["dynamics"]] == [0, 0.5, 1]
    assert (job.folder / "model.safetensors").is_file()
    assert not list(job.folder.glob("checkpoint-*"))


def test_a_finished_cell_is_not_run_again(job):
    run(job)
    before = {path.name: path.stat().st_mtime_ns for path in job.folder.iterdir()}
    assert not run(job).ran
    assert {path.name: path.stat().st_mtime_ns for path in job.folder.iterdir()} == before


def test_a_training_that_was_finished_by_hand_is_only_measured(job):
    train(settings_of(job.cell, job.folder))
    weights = (job.folder / "model.safetensors").stat().st_mtime_ns
    record = read_json(job.folder / "style_overlap.json")
    write_json(job.folder / "style_overlap.json", {**record, "time": {"seconds": 5000.0}})
    outcome = run(job)
    assert outcome.status == "done"
    assert (job.folder / "model.safetensors").stat().st_mtime_ns == weights
    # What such a cell takes is told by both.
    assert read_json(job.record)["time"]["seconds"] == outcome.seconds >= 5000


@pytest.mark.parametrize(
    ("keep", "weights", "checkpoints"), [("none", 0, 0), ("last", 1, 0), ("all", 1, 1)]
)
def test_weights_are_kept_by_the_policy(job, keep, weights, checkpoints):
    run(replace(job, keep=keep))
    assert len(list(job.folder.glob("*.safetensors"))) == weights
    assert len(list(job.folder.glob("checkpoint-*"))) == checkpoints
    assert read_json(job.record)["status"] == "done"


def test_pruning_that_was_cut_short_is_finished(job, monkeypatch):
    monkeypatch.setattr(cells, "prune", lambda *_: None)
    run(replace(job, keep="none"))
    monkeypatch.undo()
    assert (job.folder / "model.safetensors").is_file()
    # Whoever comes next, with whatever policy of its own.
    assert not run(replace(job, keep="last")).ran
    assert not (job.folder / "model.safetensors").is_file()


def test_weights_that_cannot_be_removed_now_are_removed_later(job, monkeypatch):
    unlink = Path.unlink

    def busy(self, **options):
        if self.suffix == ".safetensors":
            raise OSError(errno.EBUSY, "Device or resource busy")
        unlink(self, **options)

    monkeypatch.setattr(Path, "unlink", busy)
    assert run(replace(job, keep="none")).status == "done"
    assert read_json(job.record)["status"] == "done"
    assert (job.folder / "model.safetensors").is_file()
    monkeypatch.undo()
    assert not run(job).ran
    assert not (job.folder / "model.safetensors").is_file()


def test_overlaps_that_are_asked_for_later_are_scored_without_training_again(job):
    run(replace(job, alphas_eval=("0.0", "1.0")))
    before = read_json(job.record)
    weights = (job.folder / "model.safetensors").stat().st_mtime_ns
    write_json(job.record, {**before, "time": {"seconds": 7200.0}})
    more = replace(job, alphas_eval=("0.0", "0.35", "1.0"))
    outcome = run(more)
    assert outcome.ran
    assert outcome.seconds < 600  # what was done now, while the record has what the training took
    after = read_json(job.record)
    assert after["time"] == {"seconds": 7200.0}
    after["time"] = before["time"]
    assert [t["alpha_eval"] for t in after["evaluation"]["tasks"].values()] == [
        "0.0", "0.35", "1.0"
    ]  # fmt: skip
    del after["evaluation"]["tasks"]["style_overlap_k2_a0.35"]
    assert after == before
    assert (job.folder / "model.safetensors").stat().st_mtime_ns == weights
    (job.folder / "model.safetensors").unlink()
    gone = run(replace(job, alphas_eval=("0.0", "0.35", "0.5")))
    assert (gone.status, gone.ran, gone.lacks) == ("done", False, ("0.5",))


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_further_overlaps_are_scored_in_the_number_format_of_the_record(job, monkeypatch, name):
    run(job)
    record = read_json(job.record)
    record["evaluation"]["model"]["model_dtype"] = name
    write_json(job.record, record)
    scored, evaluate = [], evaluation.evaluate

    def noted(*words, **options):
        scored.append(evaluate(*words, **options))
        return scored[-1]

    monkeypatch.setattr(evaluation, "evaluate", noted)
    assert run(replace(job, alphas_eval=("0.35",))).status == "done"
    assert [one["model"]["model_dtype"] for one in scored] == [name]


@pytest.mark.parametrize("by", ["an error", "the end of its process"])
def test_scoring_that_fails_leaves_a_traceback_and_the_record_and_is_tried_again(
    job, monkeypatch, by
):
    def broken(*_, **__):
        raise ValueError("no such overlap")

    run(job)
    before = job.record.read_bytes()
    more = replace(job, alphas_eval=("0.35",))
    if by == "an error":
        monkeypatch.setattr(evaluation, "evaluate", broken)
        failed, details = run(more), "Traceback"
        monkeypatch.undo()
    else:
        failed, details = record_lost(more, "signal 9", "the log's end"), "the log's end"
    assert failed.status == "failed"
    assert failed.note.endswith("the same command tries it again)")
    assert details in (job.folder / "error.txt").read_text()
    assert job.record.read_bytes() == before
    again = run(more)
    assert (again.status, again.ran) == ("done", True)
    assert not (job.folder / "error.txt").exists()


def test_a_failure_is_recorded_and_only_tried_again_when_asked_to(job, monkeypatch):
    def broken(*_, **__):
        raise TrainingError("the loss is nan at step 3 of 9, learning rate 1e+06: give a lower one")

    monkeypatch.setattr("style_overlap.trainers.classifier.train", broken)
    outcome = run(job)
    assert outcome.status == "failed"
    record = read_json(job.record)
    assert record["error"] == outcome.note
    assert outcome.note.startswith("TrainingError: the loss is nan at step 3")
    assert (record["status"], record["training"], record["evaluation"]) == ("failed", None, None)
    assert "Traceback" in (job.folder / "error.txt").read_text()
    monkeypatch.undo()
    assert (run(job).status, run(job).ran) == ("failed", False)
    again = replace(job, retry=failure_of(job))
    assert (run(again).status, run(again).ran) == ("done", False)
    assert not (job.folder / "error.txt").exists()


@pytest.mark.case(11)
def test_a_degenerate_cell_is_finished_and_says_so(corpus, tmp_path):
    from tiny_models import make_encoder

    encoder = make_encoder(tmp_path / "random", initializer_range=0.0)
    plan = make_plan(corpus, [str(encoder)], alphas=(1,), arguments={"max_steps": 1})
    outcome = run(Job(plan.cells[0], tmp_path / "runs", ("1.0",)))
    assert outcome.status == "done"
    assert (
        outcome.note
        == read_json(tmp_path / "runs" / plan.cells[0].folder / "run.json")["training"][
            "degenerate"
        ]
    )
    assert outcome.note is not None


def test_a_cell_that_another_process_has_is_left_to_it(job):
    (job.runs / ".locks").mkdir(parents=True)
    with FileLock(job.runs / ".locks" / f"{job.cell.folder}.lock"):
        assert run(job).status == "elsewhere"
    assert not job.folder.exists()
    # A lock file without a holder, as a killed process leaves it, is no obstacle.
    assert run(job).status == "done"


def test_a_folder_that_is_trained_into_by_hand_is_left_alone(job):
    job.folder.mkdir(parents=True)
    with FileLock(job.folder / ".style_overlap.lock"):
        assert run(job).status == "elsewhere"
    assert not job.record.exists()


@pytest.mark.parametrize(
    "fault",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("I/O error: No space left on device (os error 28)"),
        UsageError("cannot write x: Disk quota exceeded"),
    ],
)
def test_a_full_disk_stops_the_sweep_and_marks_no_cell_as_failed(job, monkeypatch, fault):
    def full(*_, **__):
        if isinstance(fault, UsageError):
            raise fault from OSError(errno.EDQUOT, "Disk quota exceeded")
        raise fault

    monkeypatch.setattr(evaluation, "evaluate", full)
    with pytest.raises(SweepStoppedError, match=r"no space is left in .*; the same command"):
        run(job)
    assert not job.record.exists()
    monkeypatch.undo()
    weights = (job.folder / "model.safetensors").stat().st_mtime_ns
    assert run(job).status == "done"
    assert (job.folder / "model.safetensors").stat().st_mtime_ns == weights


@pytest.mark.parametrize(
    "fault", [OSError(errno.EFBIG, "File too large"), RuntimeError("too large (os error 27)")]
)
def test_a_limit_on_the_size_of_files_stops_the_sweep(job, monkeypatch, fault):
    def limited(*_, **__):
        raise fault

    monkeypatch.setattr("style_overlap.trainers.classifier.train", limited)
    with pytest.raises(SweepStoppedError, match=r"see ulimit -f; the same command goes on"):
        run(job)
    assert not job.record.exists()


def test_a_folder_that_cannot_be_written_to_stops_the_sweep(job, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(job.folder / "x"))

    monkeypatch.setattr("style_overlap.trainers.classifier.train", denied)
    with pytest.raises(SweepStoppedError, match="Permission denied"):
        run(job)


def test_a_disk_that_is_found_full_afterwards_stops_the_sweep_whatever_the_error(job, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a writer that says nothing of space")

    monkeypatch.setattr("style_overlap.trainers.classifier.train", broken)
    usage = shutil.disk_usage(job.runs.parent)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(SweepStoppedError, match="no space is left"):
        run(job)
    assert not job.record.exists()


@pytest.mark.parametrize("folder", ["models", "runs-models"])
def test_a_file_of_the_encoder_that_may_not_be_read_fails_its_cells_only(job, monkeypatch, folder):
    def denied(*_, **__):
        path = job.runs.parent / folder / "model.safetensors"
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("style_overlap.trainers.classifier.train", denied)
    assert run(job).status == "failed"
