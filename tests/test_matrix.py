"""Evaluation records to matrices: what is averaged, what is left out and said."""

from __future__ import annotations

import pytest

from report_records import config, evaluation
from style_overlap.report.advantage import Advantage
from style_overlap.report.matrix import build
from style_overlap.report.matrix_text import advantages, rows
from style_overlap.report.wording import percent, printable


def record(alpha="0.0", seed=0, accuracies=None, **changes):
    """An evaluation record of k=2 as `style-overlap evaluate` writes it."""
    accuracies = accuracies or {"0.0": 0.9, "1.0": 0.6}
    made = evaluation(config("enc", 2, alpha, seed), columns=tuple(accuracies))
    for column, accuracy in accuracies.items():
        made["tasks"][f"style_overlap_k2_a{column}"]["acc"] = accuracy
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = made
        for key in parents:
            place = place[key]
        place[last] = value
    return made


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
    assert matrix.at(("0.0", "0.0")).mean == pytest.approx(0.92)
    assert matrix.at(("0.0", "0.0")).sd == pytest.approx(0.02 * 2**0.5)
    assert matrix.at(("1.0", "0.0")).sd is None
    assert found.left_out == {}


def test_a_cell_of_fewer_seeds_than_the_matrix_has_says_so():
    (matrix,) = build(named(record(seed=0), record(seed=1), record("1.0"))).matrices
    assert dict(rows(matrix))["1.0"] == ["90.0 (n=1)", "60.0 (n=1)"]


def test_high_overlap_advantage_is_equation_2():
    low, high = record("0.0"), record("1.0", accuracies={"0.0": 0.85, "1.0": 0.84})
    (matrix,) = build(named(low, high)).matrices
    (pair,) = matrix.hoa()
    assert (pair.low, pair.high, pair.hoa) == (0, 1, pytest.approx(0.85 - 0.6))
    assert advantages(matrix) == ["(0.0, 1.0) +25.0"]


def test_the_advantage_is_taken_of_each_seed_before_it_is_averaged():
    seeds = [
        record("0.0", 0, {"0.0": 0.9, "1.0": 0.6}),
        record("1.0", 0, {"0.0": 0.8, "1.0": 0.8}),
        record("0.0", 1, {"0.0": 0.9, "1.0": 0.7}),
        record("1.0", 1, {"0.0": 0.8, "1.0": 0.8}),
        record("1.0", 2, {"0.0": 0.1, "1.0": 0.8}),  # without the other cell: in no pair
    ]
    (matrix,) = build(named(*seeds)).matrices
    value = matrix.hoa_by_seed()["0.0", "1.0"]
    assert (value.mean, value.n) == (pytest.approx(0.15), 2)
    assert value.sd == pytest.approx(0.1 / 2**0.5)


def test_the_parts_of_the_advantage_are_means_over_the_seeds_that_have_every_pair():
    seeds = [
        record("0.0", 0, {"0.0": 0.9, "1.0": 0.6}),
        record("1.0", 0, {"0.0": 0.8, "1.0": 0.8}),
        record("0.0", 1, {"0.0": 0.9, "1.0": 0.6}),
        record("1.0", 1, {"0.0": 0.9, "1.0": 0.6}),  # the same classifier
        record("1.0", 2, {"0.0": 0.1, "1.0": 0.8}),
    ]
    found = Advantage(build(named(*seeds)).matrices[0])
    assert (found.mean.mean, found.mean.n) == (pytest.approx((0.2 + 0.3) / 2), 2)
    assert found.training.mean == pytest.approx((0.05 + 0) / 2)
    assert found.training.sd == pytest.approx(0.05 / 2**0.5)
    assert found.test_sets.mean == pytest.approx((0.15 + 0.3) / 2)


def test_a_missing_cell_is_a_dash_and_gives_no_pair():
    low = record("0.0", accuracies={"0.0": 0.9})
    (matrix,) = build(named(low, record("1.0"))).matrices
    assert dict(rows(matrix))["0.0"] == ["90.0", "–"]
    assert matrix.hoa() == ()
    assert advantages(matrix) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        pytest.param(
            {"checkpoint.degenerate": "predicts one class"},
            "degenerate: predicts one class",
            marks=pytest.mark.case(11),
        ),
        ({"config.limit": 10}, "limited to 10 documents"),
        ({"checkpoint.config": None}, "not trained by style-overlap"),
    ],
)
def test_what_cannot_be_compared_is_left_out_of_means_and_named(changes, told):
    found = build({"good": record(), "bad": record(seed=1, **changes)})
    (matrix,) = found.matrices
    assert matrix.cells["0.0", "0.0"] == {0: 0.9}
    assert told in found.left_out["bad"]


@pytest.mark.case(11)
def test_a_row_of_degenerate_runs_is_shown_as_such():
    bad = record("1.0", **{"checkpoint.degenerate": "predicts one class"})
    (matrix,) = build(named(record(), bad)).matrices
    assert dict(rows(matrix))["1.0"] == ["degenerate", "degenerate"]


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
    assert found.matrices[0].cells["0.0", "0.0"] == {0: 0.9}
    assert list(found.left_out) == ["2"]
    assert "another accuracy" in found.left_out["2"]


def test_a_second_data_seed_of_one_seed_is_in_no_cell_and_in_no_pair():
    other = {"checkpoint.config.data_seed": 1}
    found = build(named(record(), record(**other), record("1.0", **other), record("1.0", seed=1)))
    (matrix,) = found.matrices
    assert matrix.cells["0.0", "0.0"] == {0: 0.9}
    assert matrix.cells["1.0", "0.0"] == {1: 0.9}
    assert list(found.left_out) == ["1", "2"]
    assert "seed=0 with data_seed=0, this one with data_seed=1" in found.left_out["2"]


def test_a_record_that_does_not_say_whether_it_is_degenerate_is_taken_at_its_word():
    made = record()
    del made["checkpoint"]["degenerate"]
    assert build(named(made)).matrices[0].cells["0.0", "0.0"] == {0: 0.9}


def test_a_record_that_disagrees_adds_none_of_its_other_cells():
    other = record(accuracies={"0.0": 0.8, "0.4": 0.7})
    found = build(named(record(), other))
    assert ("0.0", "0.4") not in found.matrices[0].cells


def with_credit(alpha, seed, by_column):
    """Accuracies that are the means of the credit of 40 contents."""
    made = record(alpha, seed, {c: sum(credit) / len(credit) for c, credit in by_column.items()})
    for column, credit in by_column.items():
        made["tasks"][f"style_overlap_k2_a{column}"]["credit"] = {
            f"Book {number}:1": [float(got), 1] for number, got in enumerate(credit)
        }
    return made


def test_the_interval_draws_contents_of_exactly_the_cells_that_the_mean_is_of():
    low = [1] * 30 + [0] * 10
    records = [
        with_credit(alpha, seed, {"0.0": low, "1.0": low}) for alpha in ("0.0", "1.0")
        for seed in (0, 1)
    ]  # fmt: skip
    # A seed without its counterpart would pull the interval away from 0.
    records.append(with_credit("1.0", 2, {"0.0": [1] * 40, "1.0": [1] * 40}))
    found = Advantage(build(named(*records)).matrices[0])
    assert found.test.mean == 0
    assert (found.interval.low, found.interval.high, found.interval.n_contents) == (0, 0, 40)


def test_without_the_credit_of_contents_there_is_no_interval_and_a_reason():
    made = [record(alpha) for alpha in ("0.0", "1.0")]
    del made[0]["tasks"]["style_overlap_k2_a1.0"]["credit"]
    found = Advantage(build(named(*made)).matrices[0])
    assert found.interval.low is None
    assert "without the credit" in found.interval.reason
    assert "one pair" in found.test.reason


def test_percent_is_written_as_the_paper_does():
    assert [percent(0.9491, 0.0042), percent(0.5), percent(None)] == ["94.9 ± 0.4", "50.0", "–"]


def test_a_name_is_shown_on_one_line_without_what_cannot_be_seen():
    assert printable("a\nb\x00\u202ec\t d") == "a b c d"
    assert printable("x" * 500, 10) == "x" * 9 + "…"
