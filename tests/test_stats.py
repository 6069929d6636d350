"""High-overlap advantage, its tests and trends: against scipy, worked examples, simulation."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from style_overlap.names import ALPHAS
from style_overlap.stats import HoaPair, hoa, hoa_test, mean_sd, trend

# TF-IDF unigrams and logistic regression on the default corpus, k=2: rows alpha_train.
TFIDF_K2 = np.array(
    [
        [96.2, 90.5, 82.1, 74.7, 67.0, 59.4],
        [92.8, 93.4, 86.1, 79.2, 71.5, 63.5],
        [91.4, 91.7, 88.0, 83.5, 78.0, 70.8],
        [88.3, 88.6, 86.8, 86.2, 81.3, 76.5],
        [88.2, 88.6, 86.2, 85.4, 83.1, 80.1],
        [85.0, 84.8, 82.3, 83.4, 82.1, 82.0],
    ]
)


def pairs_of(values: list[float]) -> list[HoaPair]:
    return [HoaPair(0.0, float(index + 1), value) for index, value in enumerate(values)]


def test_worked_example_gives_the_published_statistics():
    result = hoa_test(hoa(TFIDF_K2, ALPHAS))
    assert result.n == 15
    assert result.mean == pytest.approx(10.76)
    assert result.cohen_d == pytest.approx(1.43, abs=0.005)
    assert result.p_t == pytest.approx(4e-5, abs=0.5e-5)
    assert result.share_positive == 1
    assert result.p_sign_flip == 2**-15
    assert result.p_relabel == pytest.approx(1 / math.factorial(6))  # no other order does as well


def test_hoa_subtracts_the_low_trained_from_the_high_trained_cell():
    low, high = Decimal("0.2"), Decimal("0.8")
    matrix = [[0.90, 0.55], [0.80, 0.85]]
    (pair,) = hoa(matrix, [low, high])
    assert (pair.low, pair.high, pair.hoa) == (low, high, pytest.approx(0.80 - 0.55))


def test_what_training_does_is_told_from_what_an_easier_test_set_does():
    (pair,) = hoa([[0.90, 0.55], [0.80, 0.85]], [0.2, 0.8])
    assert pair.training == pytest.approx(((0.80 - 0.90) + (0.85 - 0.55)) / 2)
    # Two equal classifiers: the whole advantage is the test set's.
    (pair,) = hoa([[0.90, 0.60], [0.90, 0.60]], [0.2, 0.8])
    assert (pair.hoa, pair.training) == (pytest.approx(0.30), 0)
    # On equally hard test sets the whole of it is training's.
    (pair,) = hoa([[0.60, 0.60], [0.80, 0.80]], [0.2, 0.8])
    assert (pair.hoa, pair.training) == (pytest.approx(0.20), pytest.approx(0.20))
    (pair,) = hoa([[np.nan, 0.55], [0.80, 0.85]], [0.2, 0.8])
    assert (pair.hoa, pair.training) == (pytest.approx(0.25), None)


def test_order_of_the_alphas_does_not_matter():
    shuffle = np.array([3, 0, 5, 1, 4, 2])
    shuffled = hoa(TFIDF_K2[np.ix_(shuffle, shuffle)], [ALPHAS[i] for i in shuffle])
    assert shuffled == hoa(TFIDF_K2, ALPHAS)


def test_missing_cells_give_no_pair():
    partial = TFIDF_K2.copy()
    partial[0, 5] = np.nan
    partial[2, 2] = np.nan  # the diagonal is in no pair
    pairs = hoa(partial, ALPHAS)
    assert len(pairs) == 14
    assert (ALPHAS[0], ALPHAS[5]) not in {(pair.low, pair.high) for pair in pairs}
    result = hoa_test(pairs)
    assert result.p_t is not None
    assert result.p_relabel is None  # orders cannot be compared with a pair missing


@pytest.mark.parametrize(
    ("matrix", "alphas", "message"),
    [
        (np.zeros((2, 3)), [0.0, 1.0], r"shape \(2, 3\): expected \(2, 2\)"),
        (np.zeros((2, 2)), [0.5, 0.5], "there twice: 0.5, 0.5"),
    ],
)
def test_a_matrix_that_does_not_fit_is_an_error(matrix, alphas, message):
    with pytest.raises(ValueError, match=message):
        hoa(matrix, alphas)


@given(st.lists(st.floats(-50, 50).map(lambda x: round(x, 2)), min_size=3, max_size=12))
@settings(max_examples=60, deadline=None)
def test_agrees_with_scipy(values):
    result = hoa_test(pairs_of(values))
    x = np.array(values)
    permutation = scipy_stats.permutation_test(
        (x,), np.mean, permutation_type="samples", alternative="greater", n_resamples=np.inf
    )
    assert result.p_sign_flip == pytest.approx(permutation.pvalue)
    if np.ptp(x) > 0:
        paired = scipy_stats.ttest_rel(x, np.zeros_like(x), alternative="greater")
        assert result.t == pytest.approx(paired.statistic)
        assert result.p_t == pytest.approx(paired.pvalue)
        assert result.cohen_d == pytest.approx(x.mean() / x.std(ddof=1))


def test_relabelling_agrees_with_brute_force():
    from itertools import permutations

    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(5, 5))
    alphas = [0.0, 0.25, 0.5, 0.75, 1.0]
    observed = sum(pair.hoa for pair in hoa(matrix, alphas))
    sums = [
        sum(pair.hoa for pair in hoa(matrix[np.ix_(order, order)], alphas))
        for order in permutations(range(5))
    ]
    expected = np.mean(np.array(sums) >= observed - 1e-12)
    assert hoa_test(hoa(matrix, alphas)).p_relabel == pytest.approx(expected)
    assert 0.01 < expected < 1  # an example that could fail


def test_more_pairs_than_can_be_enumerated_get_a_drawn_p_value():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(11, 11))
    pairs = hoa(matrix, [i / 10 for i in range(11)])
    result = hoa_test(pairs)
    assert result.n == 55
    assert result.p_sign_flip == pytest.approx(result.p_t, abs=0.02)
    assert result == hoa_test(pairs)  # drawn with a seed
    assert hoa_test([HoaPair(p.low, p.high, 1.0 + p.hoa / 9) for p in pairs]).p_sign_flip > 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], "no pair"),
        ([3.0], "one pair"),
        ([2.0, 2.0, 2.0], "same advantage"),
        ([0.0, 0.0], "same advantage"),
    ],
)
def test_degenerate_cases_give_no_p_value_but_a_reason(values, reason):
    result = hoa_test(pairs_of(values))
    assert result.t is result.p_t is result.cohen_d is None
    assert reason in result.reason
    assert result.n == len(values)


def test_mean_and_sd_are_over_the_seeds_that_there_are():
    assert mean_sd([1.0, np.nan, 3.0]).mean == 2
    assert mean_sd([1.0, np.nan, 3.0]).sd == pytest.approx(math.sqrt(2))
    one = mean_sd([0.7])
    assert (one.mean, one.sd, one.n) == (0.7, None, 1)
    none = mean_sd([])
    assert (none.mean, none.sd, none.n) == (None, None, 0)


class TestSimulation:
    """6 x 6 matrices, 15 pairs, seeded; 5 % of true nulls may be called an advantage."""

    alphas = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    runs = 800

    def p_values(self, planted: float, row_effect: float) -> np.ndarray:
        """p_t, p_sign_flip, p_relabel of simulated matrices, shape (runs, 3)."""
        rng = np.random.default_rng(0)
        found = []
        for _ in range(self.runs):
            matrix = rng.normal(size=(6, 6)) + row_effect * rng.normal(size=(6, 1))
            matrix += planted * np.tri(6, k=-1)  # trained at the higher overlap
            result = hoa_test(hoa(matrix, self.alphas))
            found.append((result.p_t, result.p_sign_flip, result.p_relabel))
        return np.array(found)

    def test_type_one_error_is_five_percent(self):
        rejected = (self.p_values(planted=0, row_effect=0) <= 0.05).mean(axis=0)
        assert (np.abs(rejected - 0.05) < 0.02).all(), rejected

    def test_a_planted_advantage_is_found(self):
        rejected = (self.p_values(planted=1.5, row_effect=0) <= 0.05).mean(axis=0)
        assert (rejected > 0.95).all(), rejected

    def test_models_of_unequal_quality_fool_the_t_test_but_not_relabelling(self):
        p_t, p_flip, p_relabel = (self.p_values(planted=0, row_effect=3) <= 0.05).mean(axis=0)
        assert min(p_t, p_flip) > 0.15
        assert abs(p_relabel - 0.05) < 0.02


def test_a_steady_fall_has_rho_minus_one_and_the_least_p_value():
    result = trend(ALPHAS, [0.9, 0.7, 0.6, 0.4, 0.3, 0.1])
    assert result.rho == pytest.approx(-1)
    assert result.p_fall == pytest.approx(1 / math.factorial(6))
    assert result.monotone is True


@given(st.lists(st.integers(0, 4), min_size=4, max_size=5))
@settings(max_examples=30, deadline=None)
def test_trend_agrees_with_scipy(values):
    x = np.linspace(0, 1, len(values))
    result = trend(list(x), values)
    if len(set(values)) == 1:
        assert result.rho is result.p_fall is None
        assert "same at every overlap" in result.reason
        return
    assert result.rho == pytest.approx(scipy_stats.spearmanr(x, values).statistic)
    permutation = scipy_stats.permutation_test(
        (np.array(values),),
        lambda y: np.corrcoef(x, scipy_stats.rankdata(y))[0, 1].round(9),
        permutation_type="pairings",
        alternative="less",
        n_resamples=np.inf,
    )
    assert result.p_fall == pytest.approx(permutation.pvalue)


class TestTrendSimulation:
    """Six overlaps, one figure each, seeded."""

    def rejected(self, planted: float) -> float:
        rng = np.random.default_rng(0)
        steps = np.arange(6)
        found = [trend(ALPHAS, rng.normal(size=6) - planted * steps).p_fall for _ in range(600)]
        return float((np.array(found) <= 0.05).mean())

    def test_type_one_error_is_five_percent(self):
        assert abs(self.rejected(planted=0) - 0.05) < 0.02

    def test_a_planted_fall_is_found_and_a_rise_is_not(self):
        assert self.rejected(planted=1.5) > 0.9
        assert self.rejected(planted=-1) == 0


def test_trend_over_seeds_uses_every_point_and_judges_monotony_by_the_means():
    alphas = [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]
    result = trend(alphas, [0.9, 0.5, 0.6, 0.7, 0.2, 0.4])
    assert result.n == 6
    assert result.monotone is True
    assert -1 < result.rho < 0
    assert trend(alphas, [0.9, 0.5, 0.8, 0.7, 0.2, 0.4]).monotone is False


class TestTrendWithinBlocks:
    """Six overlaps, three seeds that share their level, seeded."""

    SEEDS = tuple(np.tile([0, 1, 2], 6))

    def rejected(self, planted: float) -> float:
        rng = np.random.default_rng(0)
        alphas, steps = np.repeat(ALPHAS, 3), np.repeat(np.arange(6), 3)
        found = [
            trend(
                alphas,
                rng.normal(size=18) + np.tile(5 * rng.normal(size=3), 6) - planted * steps,
                blocks=self.SEEDS,
            ).p_fall
            for _ in range(200)
        ]
        return float((np.array(found) <= 0.05).mean())

    def test_type_one_error_is_five_percent(self):
        assert abs(self.rejected(planted=0) - 0.05) < 0.03

    def test_a_planted_fall_is_found_although_seeds_differ_by_more(self):
        assert self.rejected(planted=0.5) > 0.8

    def test_levels_of_blocks_do_not_count(self):
        rng = np.random.default_rng(3)
        alphas, values = np.repeat(ALPHAS, 3), rng.normal(size=18)
        moved = values + np.tile([0, 100, -100], 6)
        assert trend(alphas, values, blocks=self.SEEDS) == trend(alphas, moved, blocks=self.SEEDS)

    def test_rho_is_the_mean_over_blocks_of_one_size(self):
        rng = np.random.default_rng(4)
        alphas, values = np.repeat(ALPHAS, 3), rng.normal(size=18)
        each = [
            scipy_stats.spearmanr(alphas[seed::3], values[seed::3]).statistic for seed in range(3)
        ]
        assert trend(alphas, values, blocks=self.SEEDS).rho == pytest.approx(np.mean(each))

    def test_one_block_is_as_none(self):
        values = [0.9, 0.7, 0.8, 0.4, 0.3, 0.1]
        assert trend(ALPHAS, values, blocks=[7] * 6) == trend(ALPHAS, values)


def test_differences_that_are_rounding_are_none():
    sums = [0.1 + 0.2, 0.3, 0.3]
    assert "same at every overlap" in trend([0.0, 0.5, 1.0], sums).reason
    assert hoa_test(pairs_of([0.1 + 0.2 - 0.3, 0.5, -0.5])).share_positive == pytest.approx(1 / 3)


def test_a_pair_without_a_value_is_left_out_of_the_tests():
    assert hoa_test(pairs_of([0.2, math.nan, 0.1])) == hoa_test(
        [HoaPair(0.0, 1.0, 0.2), HoaPair(0.0, 3.0, 0.1)]
    )


def test_trend_leaves_out_missing_points_and_needs_three_overlaps():
    assert trend([0, 0.2, 0.4, 0.6], [0.9, math.nan, 0.5, 0.4]).n == 3
    result = trend([0.0, 1.0], [0.9, 0.1])
    assert result.p_fall is None
    assert "at least 3" in result.reason


def test_trend_of_eighteen_points_is_drawn_with_a_seed():
    rng = np.random.default_rng(1)
    alphas = list(np.repeat([0, 0.2, 0.4, 0.6, 0.8, 1], 3))
    noise = rng.normal(size=18)
    p_flat = trend(alphas, noise).p_fall
    exact = scipy_stats.spearmanr(alphas, noise, alternative="less").pvalue
    assert p_flat == pytest.approx(exact, abs=0.02)
    assert trend(alphas, noise).p_fall == p_flat
    assert 0 < trend(alphas, noise - 5 * np.array(alphas)).p_fall < 0.001
