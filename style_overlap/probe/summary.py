"""Several pairs of versions as one row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from style_overlap.bootstrap import Scores, mean_interval
from style_overlap.passes import Feature
from style_overlap.probe.run import PairResult
from style_overlap.stats import mean_sd


def feature_name(feature: Feature) -> str:
    """``h``, or layer and pooling: ``last/cls``, ``3/mean``, ``last`` for the encoder's own."""
    if feature.layer == "h":
        return "h"
    return f"{feature.layer}/{feature.pooling}" if feature.pooling else str(feature.layer)


def summarise(results: Sequence[PairResult]) -> dict[str, Any]:
    """Mean over pairs; its sd is over probe seeds, its interval over content groups.

    Args:
        results: one entry a pair, all of one set of features and one gallery.

    Returns:
        ``pairs``, ``n``, ``chance``, ``top1`` (mean, sd, n), ``recall_at_5``, ``median_rank``,
        ``interval``; None where no pair has the figure.
    """
    by_seed = np.array([r.top1_by_seed for r in results if r.top1_by_seed])
    scores = [r.scores for r in results if len(r.scores.credit)]
    none = Scores(np.zeros(0, dtype=np.int64), np.zeros(0))
    pooled = Scores(
        np.concatenate([s.content for s in scores] or [none.content]),
        np.concatenate([s.credit for s in scores] or [none.credit]),
    )
    return {
        "pairs": len(results),
        "n": results[0].n if results else 0,
        "chance": results[0].chance if results else None,
        "top1": asdict(mean_sd(by_seed.mean(axis=0) if len(by_seed) else [])),
        "recall_at_5": _mean([r.recall_at_5 for r in results]),
        "median_rank": _mean([r.median_rank for r in results]),
        "interval": asdict(mean_interval(pooled)),
    }


def report(
    results: Sequence[PairResult], *, source: str, features: str, chosen: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows, one a pair, and their summary, as records hold them.

    Args:
        results: of one set of pairs.
        source: whose features: ``checkpoint``, ``base``, ``untrained``, ``bag of words``.
        features: which, see ``feature_name``.
        chosen: which pairs: ``seen``, ``unseen`` or ``chosen``.
    """
    told = {"source": source, "features": features, "set": chosen}
    return [{**told, **r.record()} for r in results], {**told, **summarise(results)}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
