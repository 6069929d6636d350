"""Cells of the baseline: records of the same shape as an encoder's."""

from __future__ import annotations

import pytest

from style_overlap.corpus import load_corpus
from style_overlap.corpus.floor import cross_overlap
from style_overlap.names import as_alpha
from style_overlap.report.matrix import build
from style_overlap.results import read_json
from style_overlap.sweep.cell import run
from style_overlap.sweep.command import sweep
from style_overlap.sweep.jobs import Job
from style_overlap.sweep.local import InProcess
from sweep_cells import make_plan


def test_the_baseline_scores_what_the_floor_of_the_corpus_audit_scores(corpus, tmp_path):
    alphas = tuple(map(as_alpha, ("0.0", "0.4", "1.0")))
    plan = make_plan(corpus, ["baseline:tfidf"], ks=(3,), alphas=alphas, seeds=(1,))
    summary = sweep(plan, tmp_path / "runs", lambda _: InProcess())
    assert [outcome.status for _, outcome in summary.outcomes] == ["done"] * 3
    floor = cross_overlap(load_corpus(corpus), 3, 1, alphas)
    for cell, _ in summary.outcomes:
        tasks = read_json(tmp_path / "runs" / cell.folder / "run.json")["evaluation"]["tasks"]
        scored = {task["alpha_eval"]: task["acc"] for task in tasks.values()}
        expected = floor.accuracy[cell.config["alpha"]]
        assert {alpha: scored[alpha] for alpha in expected} == pytest.approx(expected)


def test_a_baselines_record_has_the_shape_of_an_encoders(corpus, encoder, tmp_path):
    plan = make_plan(corpus, [str(encoder), "baseline:tfidf"], alphas=("0.4",), contents=80)
    runs = tmp_path / "runs"
    sweep(plan, runs, lambda _: InProcess())
    ours, theirs = (read_json(runs / cell.folder / "run.json") for cell in plan.cells)
    assert ours.keys() == theirs.keys()
    assert ours["training"]["data"] == theirs["training"]["data"]
    assert ours["training"]["config"].keys() == theirs["training"]["config"].keys()
    assert ours["evaluation"]["config"] == theirs["evaluation"]["config"]
    for name, task in theirs["evaluation"]["tasks"].items():
        same = ours["evaluation"]["tasks"][name]
        assert task.keys() == same.keys()
        for key in ("alpha_eval", "realised_alpha", "corpus_fingerprint", "data_fingerprint",
                    "styles", "documents"):  # fmt: skip
            assert task[key] == same[key]
        assert {c: n for c, (_, n) in task["credit"].items()} == {
            c: n for c, (_, n) in same["credit"].items()
        }
        sums = [sum(column) for column in zip(*task["credit"].values(), strict=True)]
        assert sums[0] / sums[1] == pytest.approx(task["acc"])
        credit = [got / n for got, n in task["credit"].values() for _ in range(int(n))]
        assert len(credit) == task["documents"]
    matrices = build({"x": theirs["evaluation"]})
    assert [matrix.encoder for matrix in matrices.matrices] == ["baseline:tfidf"]


def test_overlaps_that_are_asked_for_later_are_added_to_those_before(corpus, tmp_path):
    plan = make_plan(corpus, ["baseline:tfidf"], alphas=("0.4",))
    before, after = (Job(plan.cells[0], tmp_path, alphas) for alphas in (("0.0", "0.4"), ("0.2",)))
    run(before)
    first = read_json(before.record)
    assert run(after).ran
    second = read_json(before.record)
    tasks = second["evaluation"]["tasks"]
    assert [task["alpha_eval"] for task in tasks.values()] == ["0.0", "0.2", "0.4"]
    del tasks["style_overlap_k2_a0.2"]
    assert second == first
