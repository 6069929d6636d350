"""Scores of classifications in which equal scores are a tie, not a win for the first class.

Everything takes ``scores``, shape (n, k): the higher, the likelier the class. A tie among m top
classes counts 1/m for each of them, the expected value of a fair draw, so that a model that says
the same of every class scores chance and not the share of class 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def prediction_shares(scores: npt.ArrayLike) -> FloatArray:
    """Share of the prediction that each class gets, shape (n, k); every row sums to 1.

    Raises:
        ValueError: not a table of finite scores; a NaN has no rank, and would count as wrong.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError(f"expected finite scores of shape (n, k), got shape {table.shape}")
    top = table == table.max(axis=1, keepdims=True)
    return top / top.sum(axis=1, keepdims=True)


def tie_credit(scores: npt.ArrayLike, gold: npt.ArrayLike) -> FloatArray:
    """Credit of each example, shape (n,): 1/m if its label is among the m top classes, else 0."""
    shares = prediction_shares(scores)
    return shares[np.arange(len(shares)), np.asarray(gold, dtype=np.int64)]


def is_tied(scores: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Whether several classes share the top score, shape (n,)."""
    return prediction_shares(scores).max(axis=1) < 1


def accuracy(scores: npt.ArrayLike, gold: npt.ArrayLike) -> float:
    """Mean credit."""
    return float(tie_credit(scores, gold).mean())


def tie_rate(scores: npt.ArrayLike) -> float:
    """Share of examples whose top score is shared."""
    return float(is_tied(scores).mean())


def macro_f1(scores: npt.ArrayLike, gold: npt.ArrayLike) -> float:
    """Unweighted mean over the k classes of F1 = 2 TP / (predicted + actual), ties shared.

    A class that is neither predicted nor present has F1 = 0, as in scikit-learn.
    """
    return macro_f1_of_shares(prediction_shares(scores), gold)


def macro_f1_of_shares(shares: FloatArray, gold: npt.ArrayLike) -> float:
    """Macro-F1 from prediction shares, shape (n, k)."""
    labels = np.asarray(gold, dtype=np.int64)
    k = shares.shape[1]
    actual = np.bincount(labels, minlength=k)
    hits = np.bincount(labels, weights=shares[np.arange(len(shares)), labels], minlength=k)
    total = shares.sum(axis=0) + actual
    return float(np.divide(2 * hits, total, out=np.zeros(k), where=total > 0).mean())


def predicts_one_class(scores: npt.ArrayLike) -> bool:
    """Whether every example gets the same undivided prediction, or none of them any."""
    shares = prediction_shares(scores)
    return bool((shares == shares[0]).all())
