"""Content retrieval by cosine, as an ``evaluate`` metric: see :mod:`style_overlap.metrics`."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate

from style_overlap.metrics import base

VECTORS = """
Args:
    predictions: vectors of the texts of one version, shape (n, d).
    references: vectors of the other version, shape (n, d); row i says the same content as row i of
        the predictions.
    groups: content group of each row, shape (n,), to ``compute``; a hit on any member counts.
        Default: every row its own.
"""


class RetrievalTop1(base.TableMetric):
    """Share of texts whose nearest text of the other version says the same, both ways averaged.

    As it is in the vectors, without projectors. Texts that are as near as each other share the
    credit, so that constant vectors get chance, 1/n. Fewer than two contents give None, not 1.
    """

    def _info(self) -> evaluate.MetricInfo:
        vector = datasets.Sequence(datasets.Value("float64"))
        return base.info("Top-1 of content retrieval by cosine; ties share.", VECTORS, vector)

    def compute(
        self, *, predictions: Any = None, references: Any = None, **options: Any
    ) -> dict[str, float] | None:
        """The metric of these vectors, or of those added before; see ``evaluate.Metric``."""
        if references is not None:
            references = base.table(references)
        return super().compute(predictions=predictions, references=references, **options)

    def _compute(
        self, predictions: Any, references: Any, groups: Any = None
    ) -> dict[str, float | int | None]:
        from style_overlap.probe.retrieval import retrieve  # it loads torch

        found = retrieve(base.table(predictions), base.table(references), groups=groups)
        names = ("top1", "recall_at_5", "median_rank", "chance")
        if found is None:
            return {**dict.fromkeys(names), "n": len(predictions)}
        summary = found.summary()
        return {**{name: summary[name] for name in names}, "n": found.n}
