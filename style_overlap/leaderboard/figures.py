"""The figures of a row, each with an interval that says how far it can be trusted.

Accuracies are bootstrapped over contents: whole contents are drawn, with all their passages in all
seeds. The interval tells how much the choice of test texts matters, not how much another training
would: for that, there is the standard deviation over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from style_overlap import stats
from style_overlap.bootstrap import Interval, Scores, difference_interval, hoa_interval
from style_overlap.bootstrap import mean_interval as mean_of
from style_overlap.leaderboard.entries import Cell, Entry
from style_overlap.names import as_alpha

PLAIN: Cell = ("0.0", "0.0")
SHIFTED: Cell = ("0.0", "1.0")
STYLE: Cell = ("1.0", "1.0")

Z_95 = 1.959964  # a normal 95 % interval, where contents are not known


@dataclass(frozen=True)
class Metric:
    """A column.

    Attributes:
        name: in leaderboard.json and for the gate.
        title: over the column.
        short: what it is, in one sentence.
        better: ``higher``, ``lower``, or None for a figure that only describes.
        cells: cells that it is made of.
    """

    name: str
    title: str
    short: str
    better: str | None
    cells: tuple[Cell, ...] = ()


METRICS = (
    Metric(
        "acc_1_1",
        "Style accuracy",
        "Fine-tuned and tested where content says nothing about style (alpha_train 1, alpha_eval "
        "1). Ranks are made of it.",
        "higher",
        (STYLE,),
    ),
    Metric(
        "acc_0_0",
        "Train 0, test 0",
        "Fine-tuned and tested where the content gives the style away (alpha_train 0, alpha_eval "
        "0): style and content together.",
        "higher",
        (PLAIN,),
    ),
    Metric(
        "acc_0_1",
        "Train 0, test 1",
        "Fine-tuned where content gives the style away, tested where it does not (alpha_train 0, "
        "alpha_eval 1): what is left of it.",
        "higher",
        (SHIFTED,),
    ),
    Metric(
        "reliance",
        "Content reliance",
        "Accuracy lost between the two columns before, in points. Read it beside them: who never "
        "scored has nothing to lose.",
        "lower",
        (PLAIN, SHIFTED),
    ),
    Metric(
        "hoa",
        "HOA",
        "High-overlap advantage, mean over pairs of overlaps: Acc(train high, test low) - "
        "Acc(train low, test high), in points.",
        None,
    ),
    *(
        Metric(
            f"retrieval_{where}_{alpha}",
            f"Retrieval, {where}, train {alpha}",
            f"Content that can still be read off h, fine-tuned at overlap {alpha}: top-1 of "
            f"{'pairs of trained versions' if where == 'seen' else 'two versions never trained on'}"
            ", chance is 1/N.",
            None,
        )
        for where in ("seen", "unseen")
        for alpha in (0, 1)
    ),
)
"""Every column, in order."""


@dataclass(frozen=True)
class Figure:
    """One figure of one row; ``value`` is None where cells are missing, and ``note`` says which.

    Attributes:
        value: mean over seeds.
        low, high: 95 % interval.
        sd: over seeds.
        stderr: of the value, where contents are not known.
        seeds: that it is the mean of.
        note: what is missing, or what the interval is made of.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    stderr: float | None = None
    seeds: list[str] = field(default_factory=list)
    note: str | None = None


def figures(entry: Entry) -> dict[str, Figure]:
    """Every figure of a row by the name of its metric."""
    found = {}
    for metric in METRICS:
        if metric.name == "reliance":
            found[metric.name] = _accuracy(entry, metric.cells, lambda m: m[0] - m[1])
        elif metric.cells:
            found[metric.name] = _accuracy(entry, metric.cells, lambda m: m[0])
        elif metric.name == "hoa":
            found[metric.name] = _hoa(entry)
        else:
            _, where, alpha = metric.name.split("_")
            found[metric.name] = _retrieval(entry, where, f"{alpha}.0")
    return found


def _accuracy(
    entry: Entry, cells: tuple[Cell, ...], value_of: Callable[[Sequence[float]], float]
) -> Figure:
    seeds = entry.seeds_of(cells)
    if not seeds:
        return Figure(note=_missing(entry, cells))
    values = [value_of([entry.cells[cell][seed].acc for cell in cells]) for seed in seeds]
    told = stats.mean_sd(values)
    pooled = [scores(entry, cell, seeds) for cell in cells]
    known = [one for one in pooled if one is not None]
    value = told.mean
    assert value is not None
    if len(known) == len(cells):
        interval = mean_of(known[0]) if len(cells) == 1 else difference_interval(*known)
        return Figure(value, interval.low, interval.high, told.sd, None, seeds, interval.reason)
    errors = [entry.cells[cell][seed].stderr for cell in cells for seed in seeds]
    if any(error is None for error in errors):
        return Figure(value, sd=told.sd, seeds=seeds, note="no interval: no standard error is told")
    error = math.sqrt(sum(e * e for e in errors if e is not None)) / len(seeds)
    return Figure(
        value,
        max(value - Z_95 * error, -1 if len(cells) > 1 else 0),
        min(value + Z_95 * error, 1),
        told.sd,
        error,
        seeds,
        "interval from lm-eval's standard error, which takes passages for independent",
    )


def scores(entry: Entry, cell: Cell, seeds: Sequence[str]) -> Scores | None:
    """What was scored in a cell, all seeds together; None where contents are not known."""
    contents: list[str] = []
    credit: list[float] = []
    for seed in seeds:
        told = entry.cells[cell][seed].credit
        if told is None:
            return None
        for content, (total, count) in told.items():
            contents += [content] * count
            credit += [total / count] * count
    return Scores(np.array(contents), np.array(credit))


def _hoa(entry: Entry) -> Figure:
    alphas = [alpha for alpha in entry.alphas_train if alpha in entry.alphas_eval]
    if len(alphas) < 2:
        return Figure(note="needs trainings at two overlaps at least, scored at both")
    square = [(row, column) for row in alphas for column in alphas]
    seeds = entry.seeds_of(square)
    if not seeds:
        missing = sorted(cell for cell in square if cell not in entry.cells)
        lacks = f"no score at {_cells(missing)}" if missing else "no seed has every cell"
        return Figure(note=lacks)
    exact = [as_alpha(alpha) for alpha in alphas]
    by_seed = [
        stats.hoa([[entry.cells[row, col][seed].acc for col in alphas] for row in alphas], exact)
        for seed in seeds
    ]
    told = stats.mean_sd([float(np.mean([pair.hoa for pair in pairs])) for pairs in by_seed])
    pooled = {
        (as_alpha(row), as_alpha(column)): scores(entry, (row, column), seeds)
        for row, column in square
        if row != column
    }
    known: dict[tuple[stats.Alpha, stats.Alpha], Scores] = {
        cell: one for cell, one in pooled.items() if one is not None
    }
    interval = Interval(None, None, 0.95, 0, "no interval: credit by content is not known")
    if len(known) == len(pooled):
        interval = hoa_interval(known)
    pairs = len(by_seed[0])
    note = f"{pairs} pair{'s' if pairs > 1 else ''} of overlaps"
    if interval.reason:
        note += f"; {interval.reason}"
    return Figure(told.mean, interval.low, interval.high, told.sd, None, seeds, note)


def _retrieval(entry: Entry, where: str, alpha: str) -> Figure:
    rows = {
        seed: row
        for (trained, seed), found in entry.retrieval.items()
        for row in found
        if trained == alpha
        and (row["source"], row["features"], row["set"]) == ("checkpoint", "h", where)
    }
    if not rows:
        return Figure(note=f"not probed: h, {where} pairs, alpha_train {alpha}")
    told = stats.mean_sd([row["top1"]["mean"] for row in rows.values()])
    galleries = sorted({int(row["n"]) for row in rows.values()})
    note = f"N = {', '.join(map(str, galleries))}"
    low = high = None
    if len(rows) == 1:
        interval = next(iter(rows.values())).get("interval") or {}
        low, high = interval.get("low"), interval.get("high")
    else:
        note += "; no interval over several seeds: see the standard deviation"
    return Figure(told.mean, low, high, told.sd, None, sorted(rows), note)


def _missing(entry: Entry, cells: tuple[Cell, ...]) -> str:
    absent = [cell for cell in cells if cell not in entry.cells]
    return f"no score at {_cells(absent)}" if absent else "no seed has both scores"


def _cells(cells: Sequence[Cell]) -> str:
    shown = [f"alpha_train {row}, alpha_eval {column}" for row, column in cells[:3]]
    return "; ".join(shown) + (f"; and {len(cells) - 3} more" if len(cells) > 3 else "")
