"""Records to matrices: what is averaged, what is left out and said."""

from __future__ import annotations

import copy

import pytest

from style_overlap.errors import UsageError
from style_overlap.report import figures, markdown
from style_overlap.report.matrix import advantages, build, percent, read_records, rows
from style_overlap.results import write_json


def record(alpha="0.0", seed=0, accuracies=None, **changes):
    """An evaluation record of k=2 as `style-overlap evaluate` writes it."""
    accuracies = accuracies or {"0.0": 0.9, "1.0": 0.6}
    made = {
        "schema": 1,
        "kind": "evaluation",
        "checkpoint": {
            "config": {"model": "enc", "k": 2, "alpha": alpha, "seed": seed, "data_seed": seed},
            "degenerate": None,
        },
        "config": {"k": 2, "limit": None, "assignment": "contiguous"},
        "tasks": {
            f"style_overlap_k2_a{a}": {
                "alpha_eval": a,
                "acc": acc,
                "corpus_fingerprint": "f",
                "styles": ["KJV", "ASV"],
            }
            for a, acc in accuracies.items()
        },
    }
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = made
        for key in parents:
            place = place[key]
        place[last] = value
    return copy.deepcopy(made)


def named(*records):
    return {str(number): made for number, made in enumerate(records)}


def test_seeds_are_averaged_with_their_standard_deviation():
    found = build(
        named(record(seed=0), record(seed=1, accuracies={"0.0": 0.94, "1.0": 0.5}), record("1.0"))
    )
    (matrix,) = found.matrices
    assert (matrix.seeds, matrix.alphas_train, matrix.alphas_eval) == (
        (0, 1),
        ["0.0", "1.0"],
        ["0.0", "1.0"],
    )
    assert matrix.mean(("0.0", "0.0")) == pytest.approx(0.92)
    assert matrix.sd(("0.0", "0.0")) == pytest.approx(0.02 * 2**0.5)
    assert matrix.sd(("1.0", "0.0")) is None
    assert found.left_out == {}


def test_high_overlap_advantage_is_equation_2():
    low, high = record("0.0"), record("1.0", accuracies={"0.0": 0.85, "1.0": 0.84})
    (matrix,) = build(named(low, high)).matrices
    (pair,) = matrix.hoa()
    assert (pair.low, pair.high, pair.hoa) == (0, 1, pytest.approx(0.85 - 0.6))
    assert advantages(matrix) == ["(0.0, 1.0) +25.0"]


def test_a_missing_cell_is_a_dash_and_gives_no_pair():
    low = record("0.0", accuracies={"0.0": 0.9})
    (matrix,) = build(named(low, record("1.0"))).matrices
    assert dict(rows(matrix))["0.0"] == ["90.0", "–"]
    assert matrix.hoa() == ()
    assert advantages(matrix) == []


@pytest.mark.case(11)
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"checkpoint.degenerate": "predicts one class"}, "degenerate: predicts one class"),
        ({"config.limit": 10}, "limited to 10 documents"),
        ({"schema": 99}, "schema 99"),
        ({"checkpoint.config": None}, "not trained by style-overlap"),
    ],
)
def test_what_cannot_be_compared_is_left_out_of_means_and_named(changes, told):
    found = build({"good": record(), "bad": record(seed=1, **changes)})
    (matrix,) = found.matrices
    assert matrix.cells["0.0", "0.0"] == (0.9,)
    assert told in found.left_out["bad"]


@pytest.mark.parametrize(
    "changes",
    [
        {"checkpoint.config.learning_rate": 1},
        {"checkpoint.config.model": "other"},
        {"config.assignment": "random"},
        {"config.k": 3},
    ],
)
def test_other_recipes_and_data_make_another_matrix(changes):
    assert len(build(named(record(), record(seed=1, **changes))).matrices) == 2


@pytest.mark.case(22)
def test_two_records_of_one_cell_that_disagree_are_told():
    found = build(named(record(), record(), record(accuracies={"0.0": 0.8})))
    assert found.matrices[0].cells["0.0", "0.0"] == (0.9,)
    assert list(found.left_out) == ["2"]
    assert "another accuracy" in found.left_out["2"]


def test_records_are_found_at_any_depth_and_other_files_are_not_read(tmp_path):
    write_json(tmp_path / "runs" / "a" / "evaluations" / "k2-1.json", record())
    write_json(tmp_path / "runs" / "a" / "style_overlap.json", {"kind": "checkpoint"})
    assert list(read_records([tmp_path])) == [str(tmp_path / "runs/a/evaluations/k2-1.json")]


def test_no_records_and_a_wrong_path_are_clear_errors(tmp_path):
    with pytest.raises(UsageError, match="style-overlap evaluate DIR"):
        read_records([tmp_path])
    with pytest.raises(UsageError, match="nowhere does not exist"):
        read_records([tmp_path / "nowhere"])


def test_percent_is_written_as_the_paper_does():
    assert [percent(0.9491, 0.0042), percent(0.5), percent(None)] == ["94.9 ± 0.4", "50.0", "–"]


def test_the_report_holds_every_cell_the_figure_and_the_command(tmp_path):
    found = build({**named(record(), record("1.0")), "bad": record(**{"config.limit": 5})})
    path = markdown.write(found, tmp_path, "style-overlap report RUNS")
    text = path.read_text()
    for part in ("| **0.0** | 90.0 | 60.0 |", "matrix_1_k2.svg", "`bad`: limited to 5"):
        assert part in text
    assert "    style-overlap report RUNS" in text
    assert (tmp_path / "matrix_1_k2.svg").read_text().startswith("<?xml")
    assert (tmp_path / "matrix_1_k2.png").read_bytes()[:4] == b"\x89PNG"


def test_figures_have_the_same_bytes_every_time(tmp_path):
    (matrix,) = build(named(record(), record("1.0"))).matrices
    one = figures.save(figures.heat_map(matrix), tmp_path / "one")
    two = figures.save(figures.heat_map(matrix), tmp_path / "two")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
