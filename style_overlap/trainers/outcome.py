"""What a classifier scores, and whether its training came to anything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from style_overlap import scoring
from style_overlap.errors import UsageError
from style_overlap.metrics import MacroF1, StyleAccuracy

Scored = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]
"""Logits of shape (n, k) and labels of shape (n,)."""


class TrainingError(UsageError):
    """Training cannot go on with these settings."""


def metrics_of(logits: Any, labels: Any) -> dict[str, float]:
    """Accuracy, tie rate and macro-F1.

    Raises:
        TrainingError: logits that are not finite.
    """
    if not np.isfinite(logits).all():
        raise TrainingError(
            "the model's logits are not finite: give a lower --set learning_rate, or --dtype fp32"
        )
    found: dict[str, float] = {}
    for metric in (StyleAccuracy(), MacroF1()):
        found |= metric.compute(predictions=logits, references=labels) or {}
    return found


def degenerate(scored: list[Scored]) -> str | None:
    """Why a run counts for nothing, None if it does count.

    It predicts one class, or its accuracy is not above chance 1/k by more than two standard
    errors sqrt(p (1 - p) / n), p = 1/k, of chance itself.

    Args:
        scored: the matched splits that no weight was fitted to; they are taken together.
    """
    logits = np.concatenate([one for one, _ in scored])
    labels = np.concatenate([one for _, one in scored])
    if scoring.predicts_one_class(logits):
        return "predicts one class only"
    n, k = logits.shape
    accuracy, chance = scoring.accuracy(logits, labels), 1 / k
    bound = chance + 2 * math.sqrt(chance * (1 - chance) / n)
    if accuracy <= bound:
        return (
            f"at chance: accuracy {accuracy:.3f} on {n} matched validation and test texts, "
            f"above chance counts from {bound:.3f} on"
        )
    return None


def losses(history: list[dict[str, float]]) -> list[dict[str, float]]:
    """The training curve: mean loss since the point before, and what was measured on the way."""
    kept = ("step", "epoch", "loss", "learning_rate", "grad_norm", "eval_loss", "eval_accuracy")
    rows = [{key: row[key] for key in kept if key in row} for row in history]
    return [row for row in rows if "loss" in row or "eval_loss" in row]


def last_epoch_loss(history: list[dict[str, float]]) -> float | None:
    """Mean training loss over the last epoch, from the windows that end in it."""
    rows = [row for row in history if "loss" in row]
    if not rows:
        return None
    begins = math.ceil(rows[-1]["epoch"]) - 1
    widths = np.diff([0, *(row["step"] for row in rows)])
    inside = [
        (row["loss"], width)
        for row, width in zip(rows, widths, strict=True)
        if row["epoch"] > begins
    ]
    values, weights = zip(*inside, strict=True)
    return float(np.average(values, weights=weights))
