"""Curves over training: retrieval, accuracy and loss, a column for each alpha_train."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from style_overlap.report.figures import (
    INK,
    MARKS,
    Mark,
    drawing,
    mark,
    percent_axis,
    plain,
    tidy,
)
from style_overlap.report.lineplots import SETS_SHOWN, chance, legend, line, split
from style_overlap.report.retrieval_table import features
from style_overlap.report.trajectories import Measure, Trajectories, of_kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ACCURACY = {"matched": "matched overlap", "fully_shared": "fully shared"}


def dynamics(found: Trajectories) -> Figure:
    """Retrieval, accuracy and loss over training: columns alpha_train, rows what is measured.

    Args:
        found: looks, of which at least one has a figure.
    """
    from matplotlib.figure import Figure

    measures = found.measures()
    kinds = [kind for kind in ("retrieval", "accuracy", "loss") if of_kind(measures, kind)]
    alphas = found.alphas
    with drawing():
        size = (1.1 + 2.5 * len(alphas), 1.2 + 2.1 * len(kinds))
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(kinds), len(alphas), squeeze=False, sharex=True, sharey="row")
        for i, kind in enumerate(kinds):
            for j, alpha in enumerate(alphas):
                _trajectory(panels[i, j], found, alpha, of_kind(measures, kind), first=j == 0)
            if kind == "loss":  # once all of the row is drawn: a limit ends the scaling to the data
                panels[i, 0].set_ylim(bottom=0)
        for axes, alpha in zip(panels[0], alphas, strict=True):
            axes.set_title(rf"$\alpha_\mathrm{{train}}$ = {alpha}")
        for axes in panels[-1]:
            axes.set_xlabel("epoch")
        legend(figure, panels[:, 0])
    return figure


def _trajectory(
    axes: Axes, found: Trajectories, alpha: str, measures: Sequence[Measure], *, first: bool
) -> None:
    kind = measures[0][0]
    for measure, look in zip(measures, _marks(measures), strict=True):
        values = [(epoch, value) for _, epoch, value in found.series(alpha, measure)]
        scale = 1 if kind == "loss" else 100
        line(axes, *split(values), look, _measured(measure), scale=scale)
    if kind == "loss":
        axes.set_ylabel("training loss (nats)" if first else "")
        tidy(axes)
    else:
        percent_axis(axes, f"{'top-1' if kind == 'retrieval' else 'accuracy'} (%)" if first else "")
    if kind == "retrieval":
        chance(axes, [found.chance])


def _marks(measures: Sequence[Measure]) -> list[Mark]:
    """Of retrieval, features share a marker and sets share their dashes; else one of each."""
    if measures[0][0] == "loss":
        return [Mark(INK, "X", "-")]
    if measures[0][0] == "accuracy":
        return [mark(2 + place) for place in range(len(measures))]
    kinds = list(dict.fromkeys(measure[1] for measure in measures))
    sets = list(dict.fromkeys(measure[2] for measure in measures))
    return [
        Mark(
            mark(kinds.index(kind)).color,
            mark(kinds.index(kind) + len(kinds) * sets.index(chosen)).marker,
            MARKS[sets.index(chosen) % len(MARKS)].dashes,
        )
        for _, kind, chosen in measures
    ]


def _measured(measure: Measure) -> str:
    if measure[0] == "retrieval":
        return f"{plain(features(measure[1]))}, {SETS_SHOWN.get(measure[2], plain(measure[2]))}"
    if measure[0] == "accuracy":
        return _ACCURACY.get(measure[1], plain(measure[1]))
    return "training loss"
