"""Metrics of style classifiers, and of their features, as ``evaluate`` modules.

They need none of this package's trainer or tasks.

    from style_overlap.metrics import StyleAccuracy
    StyleAccuracy().compute(predictions=scores, references=labels)

or by the path of a metric's file, which is how ``evaluate`` loads a metric that is not on the hub:

    import evaluate, style_overlap.metrics.style_accuracy as module
    evaluate.load(module.__file__)

Created directly they touch neither the network nor the disk. ``evaluate.load`` copies the file into
``$HF_MODULES_CACHE`` first.
"""

from __future__ import annotations

from style_overlap.metrics.macro_f1 import MacroF1
from style_overlap.metrics.retrieval_top1 import RetrievalTop1
from style_overlap.metrics.style_accuracy import StyleAccuracy

__all__ = ["MacroF1", "RetrievalTop1", "StyleAccuracy"]
