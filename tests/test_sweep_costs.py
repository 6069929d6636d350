"""What a sweep will cost, and what a dry run says of it; nothing is trained."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from style_overlap.sweep import estimate
from style_overlap.sweep.command import costs, jobs_of, show_plan
from style_overlap.sweep.grid import Probes
from style_overlap.sweep.plan import Cell, Plan, extend_plan
from sweep_cells import QUICK, bare_cell, bare_jobs, bare_plan, make_plan, write_done


def test_time_left_goes_by_finished_cells_of_the_same_recipe_and_their_texts():
    pace = estimate.Pace()
    small, large = bare_cell(seed=1), Cell.of({**bare_cell().config, "k": 4}, "data", 200)
    assert pace.of(small) is None
    pace.add(small, 30.0)
    assert pace.of(large) == pytest.approx(60.0)
    other = bare_cell(model="another")
    assert pace.of(other) is None
    assert pace.total([bare_cell(seed=2), large, other]) == (pytest.approx(90.0), 1)


def test_disk_goes_by_the_encoders_parameters_and_the_policy(encoder):
    count = estimate.parameters(str(encoder))
    assert count is not None
    from safetensors.torch import load_file

    weights = load_file(encoder / "model.safetensors")
    assert count == sum(tensor.numel() for tensor in weights.values())
    arguments = {"num_train_epochs": 3.0, "save_total_limit": 2}
    cells = [bare_cell(model=str(encoder), arguments=arguments, seed=s) for s in range(5)]
    assert estimate.disk(cells, "none", 1)[0] == 0
    assert estimate.disk(cells, "last", 1)[0] == 5 * 4 * count
    assert estimate.disk(cells, "all", 1)[0] == 5 * (4 + 2 * 12) * count
    assert estimate.disk(cells, "last", 2)[1] == 2 * estimate.disk(cells, "last", 1)[1]
    assert estimate.disk([bare_cell()], "last", 1) == (None, None)


def test_a_baselines_size_needs_no_torch():
    code = (
        "import sys; from style_overlap.sweep.estimate import parameters; "
        "print(parameters('baseline:tfidf'), 'torch' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["0", "False"]


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


def shown(plan: Plan, runs, capsys) -> str:
    """What a dry run prints."""
    show_plan(plan, runs, keep="last", parallel=1, retry_failed=False)
    return " ".join(capsys.readouterr().out.split())


def test_a_dry_run_changes_nothing_of_what_is_finished(tmp_path, capsys):
    (job,) = bare_jobs(tmp_path, 1)
    write_done(job, keep="none")
    (job.folder / "model.safetensors").touch()
    assert "nothing is left to do" in shown(bare_plan(1), tmp_path, capsys)
    assert (job.folder / "model.safetensors").is_file()


def test_a_dry_run_counts_no_training_for_cells_that_are_only_scored_further(tmp_path, capsys):
    jobs = bare_jobs(tmp_path, 3)
    for job in jobs[:2]:
        write_done(job, seconds=600.0)
        (job.folder / "model.safetensors").touch()
    more = Plan(bare_plan(3).cells, ("0.0", "0.5", "1.0"))
    told = shown(more, tmp_path, capsys)
    assert "2 of those left are finished and only scored at further overlaps" in told
    assert "time: about 10 min with 1 at once" in told
    told = shown(Plan(more.cells[:2], more.alphas_eval), tmp_path, capsys)
    assert "2 of those left" in told
    assert "time:" not in told
    assert "nothing is left" not in told


def test_a_dry_run_scores_at_the_overlaps_of_the_whole_folder_as_a_sweep_would(tmp_path, capsys):
    extend_plan(tmp_path, Plan(bare_plan(2).cells, ("0.0", "0.5", "1.0")))
    before = (tmp_path / "plan.json").read_bytes()
    assert "scored at alpha_eval 0.0, 0.5, 1.0" in shown(bare_plan(3), tmp_path, capsys)
    assert (tmp_path / "plan.json").read_bytes() == before


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
