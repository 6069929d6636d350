"""Macro-F1 with fair ties, as an ``evaluate`` metric: see :mod:`style_overlap.metrics`."""

from __future__ import annotations

from typing import Any

import evaluate

from style_overlap import scoring
from style_overlap.metrics import base


class MacroF1(base.TableMetric):
    """Unweighted mean over the k classes of F1; an m-way tie is 1/m of a prediction for each."""

    def _info(self) -> evaluate.MetricInfo:
        return base.info("Mean F1 over classes, from class scores; ties are shared.")

    def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
        return {"macro_f1": scoring.macro_f1(*base.arrays(predictions, references))}
