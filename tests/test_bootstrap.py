"""Bootstrap intervals draw whole contents."""

from __future__ import annotations

import numpy as np
import pytest

from style_overlap.bootstrap import Scores, hoa_interval, mean_interval


def test_interval_of_independent_examples_is_the_binomial_one():
    credit = np.repeat([1.0, 0.0], [700, 300])
    interval = mean_interval(Scores(np.arange(1000), credit))
    margin = 1.96 * np.sqrt(0.7 * 0.3 / 1000)
    assert interval.low == pytest.approx(0.7 - margin, abs=0.004)
    assert interval.high == pytest.approx(0.7 + margin, abs=0.004)
    assert interval.n_contents == 1000


def test_copies_of_a_content_do_not_narrow_the_interval():
    rng = np.random.default_rng(0)
    credit = (rng.random(200) < 0.6).astype(float)
    once = mean_interval(Scores(np.arange(200), credit))
    five_times = mean_interval(Scores(np.tile(np.arange(200), 5), np.tile(credit, 5)))
    assert (five_times.low, five_times.high) == pytest.approx((once.low, once.high))
    as_if_independent = mean_interval(Scores(np.arange(1000), np.tile(credit, 5)))
    assert as_if_independent.high - as_if_independent.low < 0.6 * (once.high - once.low)


def test_same_seed_same_interval_other_seed_another():
    scores = Scores(np.arange(50), np.random.default_rng(0).random(50))
    assert mean_interval(scores) == mean_interval(scores)
    assert mean_interval(scores) != mean_interval(scores, seed=1)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        hard = rng.random(80)  # credit of three texts of a content depends on the content
        credit = (rng.random((3, 80)) < hard).astype(float)
        interval = mean_interval(
            Scores(np.tile(np.arange(80), 3), credit.ravel()), resamples=300, level=0.9
        )
        covered += interval.low <= 0.5 <= interval.high
    assert 0.85 <= covered / 300 <= 0.95


def cells_of(accuracy: dict, n: int = 400) -> dict:
    rng = np.random.default_rng(0)
    return {
        cell: Scores(np.arange(n), (rng.random(n) < share).astype(float))
        for cell, share in accuracy.items()
    }


def test_hoa_interval_holds_the_advantage_of_the_cells():
    cells = cells_of({(0, 0): 0.95, (0, 1): 0.55, (1, 0): 0.8, (1, 1): 0.85})
    advantage = cells[1, 0].credit.mean() - cells[0, 1].credit.mean()
    interval = hoa_interval(cells)
    assert 0 < interval.low < advantage < interval.high
    assert interval.high - interval.low < 0.2


def test_hoa_interval_leaves_out_pairs_with_a_missing_cell():
    cells = cells_of({(0, 1): 0.5, (1, 0): 0.7, (0, 2): 0.1, (1, 2): 0.9})
    both = {cell: cells[cell] for cell in [(0, 1), (1, 0)]}
    assert hoa_interval(cells) == hoa_interval(both)


def test_a_content_in_two_cells_is_drawn_for_both_at_once():
    credit = np.random.default_rng(0).random(100).round()
    same = Scores(np.arange(100), credit)
    interval = hoa_interval({(0, 1): same, (1, 0): same})
    assert (interval.low, interval.high) == (0, 0)


@pytest.mark.parametrize(
    ("interval", "reason"),
    [
        (lambda: mean_interval(Scores(np.zeros(9), np.ones(9))), "at least two"),
        (lambda: hoa_interval(cells_of({(0, 0): 0.9, (0, 1): 0.5})), "no pair"),
        (lambda: hoa_interval({}), "no pair"),
    ],
)
def test_degenerate_cases_give_no_interval_but_a_reason(interval, reason):
    result = interval()
    assert result.low is result.high is None
    assert reason in result.reason
