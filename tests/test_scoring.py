"""Scores with fair ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import accuracy_score, f1_score

from style_overlap import scoring

# Whole numbers: ties are frequent.
tables = st.tuples(st.integers(1, 30), st.integers(2, 5)).flatmap(
    lambda shape: st.tuples(
        hnp.arrays(np.int64, shape, elements=st.integers(-3, 3)),
        hnp.arrays(np.int64, shape[0], elements=st.integers(0, shape[1] - 1)),
    )
)


@pytest.mark.case(14)
def test_all_equal_scores_are_chance_and_not_class_0():
    scores, gold = np.zeros((12, 3)), np.zeros(12, dtype=int)
    assert scoring.accuracy(scores, gold) == pytest.approx(1 / 3)
    assert scoring.tie_rate(scores) == 1
    assert scoring.predicts_one_class(scores)


@pytest.mark.case(14)
@given(tables)
def test_credit_is_the_expected_value_of_a_fair_draw(table):
    scores, gold = table
    for row, label, credit in zip(scores, gold, scoring.tie_credit(scores, gold), strict=True):
        winners = np.flatnonzero(row == row.max())
        assert credit == pytest.approx(np.mean(winners == label))


@given(tables, st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_classes(table, random):
    scores, gold = table
    order = list(range(scores.shape[1]))
    random.shuffle(order)
    renamed, moved = np.argsort(order)[gold], scores[:, order]
    assert scoring.accuracy(moved, renamed) == pytest.approx(scoring.accuracy(scores, gold))
    assert scoring.macro_f1(moved, renamed) == pytest.approx(scoring.macro_f1(scores, gold))


@given(tables)
def test_without_ties_the_scores_are_scikit_learns(table):
    scores, gold = table
    k = scores.shape[1]
    # A permutation of 0..k-1 in every row: no ties.
    scores = np.argsort(scores, axis=1, kind="stable")
    predicted = scores.argmax(axis=1)
    assert not scoring.is_tied(scores).any()
    assert scoring.accuracy(scores, gold) == pytest.approx(accuracy_score(gold, predicted))
    assert scoring.macro_f1(scores, gold) == pytest.approx(
        f1_score(gold, predicted, labels=range(k), average="macro", zero_division=0)
    )


def test_a_nan_is_an_error_and_not_a_wrong_answer():
    with pytest.raises(ValueError, match="finite"):
        scoring.accuracy([[0.0, float("nan")]], [0])


@pytest.mark.case(11)
def test_one_class_for_every_text_is_seen():
    assert scoring.predicts_one_class([[1, 0], [3, 2]])
    assert not scoring.predicts_one_class([[1, 0], [2, 3]])
