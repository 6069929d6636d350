"""Two measurements of one figure, paired by content: how much it fell, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from style_overlap.bootstrap import Interval, Scores, difference_interval, mean_interval
from style_overlap.leaderboard.figures import Z_95, Metric
from style_overlap.leaderboard.observations import MOST_PASSAGES

Row = Mapping[str, Any]
Tests = Mapping[str, Any]


class NotComparable(ValueError):  # noqa: N818
    """Two rows whose figures cannot be compared, and why."""


@dataclass(frozen=True)
class Fall:
    """How much worse a figure got: positive is worse, whichever way the figure counts.

    Attributes:
        old, new: means over the seeds that both have.
        drop: old - new, or new - old of a figure that is better when lower.
        low, high: 95 % interval of the drop.
        how: ``paired by content``, or what else the interval is made of.
        worse, better: contents whose credit fell or rose; empty where they are not known.
    """

    old: float
    new: float
    drop: float
    low: float
    high: float
    how: str
    worse: tuple[str, ...] = ()
    better: tuple[str, ...] = ()


def fall(metric: Metric, old: Row, new: Row, old_tests: Tests, new_tests: Tests) -> Fall | None:
    """How far a figure fell, None if the old row does not have it.

    Raises:
        NotComparable: the new row lacks the figure, or it is of other seeds or test texts.
    """
    was, now = old["figures"].get(metric.name) or {}, new["figures"].get(metric.name) or {}
    if was.get("value") is None:
        return None
    if now.get("value") is None:
        raise NotComparable(f"is missing now: {now.get('note') or 'no such figure'}")
    sign = -1 if metric.better == "lower" else 1
    pairs = [_differences(cell, old, new, old_tests, new_tests) for cell in metric.cells]
    known = [one for one in pairs if one is not None]
    if len(known) < len(pairs):
        return _unpaired(was, now, sign)
    told = [mean_interval(known[0].drop)] if len(known) == 1 else []
    interval = told[0] if told else difference_interval(known[0].drop, known[1].drop)
    means = [(one.old, one.new) for one in known]
    before, after = (means[0][i] - (means[1][i] if len(means) > 1 else 0) for i in (0, 1))
    low, high = _ends(interval, sign)
    first = known[0] if metric.better == "higher" else known[-1]
    return Fall(
        before, after, sign * (before - after), low, high,
        f"paired by content, {interval.n_contents} contents", first.worse, first.better,
    )  # fmt: skip


def _ends(interval: Interval, sign: int) -> tuple[float, float]:
    if interval.low is None or interval.high is None:
        raise NotComparable(f"has no interval: {interval.reason}")
    ends = sorted((sign * interval.low, sign * interval.high))
    return ends[0], ends[1]


@dataclass(frozen=True, eq=False)
class _Paired:
    """Of one cell: what every passage lost, and the means."""

    drop: Scores
    old: float
    new: float
    worse: tuple[str, ...]
    better: tuple[str, ...]


def _differences(
    cell: tuple[str, str], old: Row, new: Row, old_tests: Tests, new_tests: Tests
) -> _Paired | None:
    """All seeds that both rows have; None if one of the rows knows no credit by content."""
    name = " ".join(cell)
    was, now = old["credit"].get(name) or {}, new["credit"].get(name) or {}
    if not was or not now:
        return None
    if missing := sorted(was.keys() - now.keys()):
        raise NotComparable(
            f"was measured with seed {', '.join(missing)}, which the new leaderboard lacks at "
            f"alpha_train {cell[0]}, alpha_eval {cell[1]}"
        )
    contents: list[npt.NDArray[Any]] = []
    sums: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]] = []
    counts: list[npt.NDArray[np.int64]] = []
    for seed in sorted(was):
        if was[seed]["test"] != now[seed]["test"]:
            raise NotComparable(f"was measured on other test texts, seed {seed}")
        test, same = old_tests.get(was[seed]["test"]), new_tests.get(now[seed]["test"])
        if test is None or test != same:
            raise NotComparable(f"has other contents under one fingerprint, seed {seed}")
        count = np.array(test["passages"].split(), dtype=np.int64)
        pair = _sums(was[seed]["sums"]), _sums(now[seed]["sums"])
        if not len(test["contents"]) == len(count) == len(pair[0]) == len(pair[1]):
            raise NotComparable(f"has a broken record of credits, seed {seed}")
        if (count < 1).any() or count.sum() > MOST_PASSAGES:
            raise NotComparable(f"has no numbers of passages that can be, seed {seed}")
        contents.append(np.array(test["contents"]))
        sums.append(pair)
        counts.append(count)
    ids, count = np.concatenate(contents), np.concatenate(counts)
    before, after = (np.concatenate([pair[side] for pair in sums]) for side in (0, 1))
    lost = before - after
    return _Paired(
        Scores(np.repeat(ids, count), np.repeat(lost / count, count)),
        float(before.sum() / count.sum()),
        float(after.sum() / count.sum()),
        tuple(dict.fromkeys(ids[lost > 0].tolist())),
        tuple(dict.fromkeys(ids[lost < 0].tolist())),
    )


def _sums(text: str) -> npt.NDArray[np.float64]:
    return np.array(text.split(), dtype=np.float64)


def _unpaired(was: Mapping[str, Any], now: Mapping[str, Any], sign: int) -> Fall:
    """From the two intervals, as if the two runs had nothing to do with each other."""
    errors = [_stderr(figure) for figure in (was, now)]
    if sorted(was.get("seeds", [])) != sorted(now.get("seeds", [])):
        raise NotComparable(f"was measured with seeds {', '.join(was.get('seeds', []))}, not "
                            f"{', '.join(now.get('seeds', []))}")  # fmt: skip
    drop = sign * (was["value"] - now["value"])
    error = Z_95 * math.hypot(*errors)
    how = "not paired: one side has no credit by content"
    return Fall(was["value"], now["value"], drop, drop - error, drop + error, how)


def _stderr(figure: Mapping[str, Any]) -> float:
    if figure.get("stderr") is not None:
        return float(figure["stderr"])
    if figure.get("low") is None or figure.get("high") is None:
        raise NotComparable("has no interval on one side")
    return float(figure["high"] - figure["low"]) / (2 * Z_95)
