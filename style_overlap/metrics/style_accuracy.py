"""Accuracy with fair ties, as an ``evaluate`` metric: see :mod:`style_overlap.metrics`."""

from __future__ import annotations

from typing import Any

import evaluate

from style_overlap import scoring
from style_overlap.metrics import base


class StyleAccuracy(base.TableMetric):
    """Share of examples whose label has the top score; an m-way tie counts 1/m.

    A model that scores all classes alike gets 1/k, not the share of class 0.
    """

    def _info(self) -> evaluate.MetricInfo:
        return base.info("Accuracy from class scores; a tie among m classes counts 1/m.")

    def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
        scores, labels = base.arrays(predictions, references)
        return {
            "accuracy": scoring.accuracy(scores, labels),
            "tie_rate": scoring.tie_rate(scores),
        }
