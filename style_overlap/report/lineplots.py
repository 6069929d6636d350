"""Curves: accuracy against alpha_eval, and content retrieval against alpha_train."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from style_overlap.report.figures import (
    ALPHA_EVAL,
    FINE_TUNED,
    INK,
    Mark,
    alpha_axis,
    drawing,
    heading,
    mark,
    percent_axis,
    plain,
    tidy,
)
from style_overlap.report.matrix import Matrix
from style_overlap.report.retrieval import Curve
from style_overlap.report.retrieval_table import SOURCES, all_alphas, features
from style_overlap.report.wording import listed
from style_overlap.stats import MeanSd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CONTROLS = {"base": (0, (6, 2)), "untrained": (0, (1, 1.5)), "bag of words": (0, (4, 1, 1, 1))}
SETS_SHOWN = {"seen": "seen versions", "unseen": "unseen versions"}


def reliance(title: str, matrix: Matrix, floor: Matrix | None) -> Figure:
    """Accuracy against alpha_eval, fine-tuned at the lowest and at the highest overlap.

    Thin grey lines of the same markers: the bag of words, for scale.
    """
    from matplotlib.figure import Figure

    rows = _measured(matrix)
    ends = list(dict.fromkeys((rows[0], rows[-1])))
    with drawing():
        figure = Figure(figsize=(5.6, 3.7), layout="constrained")
        axes = figure.add_subplot()
        shown: list[MeanSd] = []
        for place, alpha in enumerate(ends):
            shown += _row(matrix, alpha)[1]
            label = rf"$\alpha_\mathrm{{train}}$ = {alpha}"
            line(axes, *_row(matrix, alpha), mark(place), label)
        for place, alpha in enumerate(ends):
            if floor and alpha in _measured(floor):
                shown += _row(floor, alpha)[1]
                grey = Mark("#7f7f7f", mark(place).marker, "--")
                label = rf"bag of words, $\alpha_\mathrm{{train}}$ = {alpha}"
                line(axes, *_row(floor, alpha), grey, label, small=True)
        level = 100 / matrix.k
        axes.axhline(level, color=INK, linewidth=0.8, linestyle=":", label="chance")
        alpha_axis(axes, [float(alpha) for alpha in matrix.alphas_eval], ALPHA_EVAL)
        lowest = min([level, *(100 * v.mean for v in shown if v.mean is not None)])
        percent_axis(axes, "accuracy (%)", low=lowest)
        heading(figure, title)
        figure.legend(loc="outside lower center", ncol=2, frameon=False)
    return figure


def retrieval(curves: Sequence[Curve], matrix: Matrix) -> Figure:
    """Top-1 against alpha_train, a panel for each kind of features, and the loss beside it."""
    from matplotlib.figure import Figure

    tuned = [curve for curve in curves if curve.depends_on_alpha]
    kinds = list(dict.fromkeys(curve.features for curve in tuned))
    sets = list(dict.fromkeys(curve.set for curve in tuned))
    marks = {chosen: mark(place) for place, chosen in enumerate(sets)}
    columns = len(kinds) + bool(matrix.losses)
    rows = all_alphas(tuned, matrix.alphas_train)  # where a curve has no point, its line is broken
    places = [float(alpha) for alpha in rows]
    with drawing():
        figure = Figure(figsize=(1.0 + 3.1 * columns, 3.9), layout="constrained")
        panels = figure.subplots(1, columns, squeeze=False)[0]
        for axes, kind in zip(panels, kinds, strict=False):
            for curve in (c for c in tuned if c.features == kind):
                values = [(float(a), curve.at(a)) for a in rows]
                name = SETS_SHOWN.get(curve.set, plain(curve.set))
                line(axes, *split(values), marks[curve.set], name)
            _levels(axes, curves, kind, marks)
            chance(axes, [curve.chance for curve in tuned if curve.features == kind])
            axes.set_title(f"features: {plain(features(kind))}")
            alpha_axis(axes, places, FINE_TUNED)
            percent_axis(axes, "content retrieval, top-1 (%)")
        if matrix.losses:
            axes = panels[-1]
            losses = [(float(alpha), matrix.loss(alpha)) for alpha in rows]
            line(axes, *split(losses), Mark(INK, "X", "-"), "training loss", scale=1)
            axes.set_title("end of fine-tuning")
            alpha_axis(axes, places, FINE_TUNED)
            axes.set_ylabel("training loss (nats)")
            axes.set_ylim(bottom=0)
            tidy(axes)
        legend(figure, panels)
    return figure


def retrieval_by_k(curves: Sequence[Curve]) -> Figure:
    """Top-1 against alpha_train, a line for each k: rows features, columns seen and unseen."""
    from matplotlib.figure import Figure

    tuned = [curve for curve in curves if curve.depends_on_alpha]
    kinds = list(dict.fromkeys(curve.features for curve in tuned))
    sets = list(dict.fromkeys(curve.set for curve in tuned))
    ks = sorted({curve.key.k for curve in tuned})
    rows = all_alphas(tuned, ())
    places = [float(alpha) for alpha in rows]
    with drawing():
        size = (1.0 + 3.3 * len(sets), 1.0 + 2.7 * len(kinds))
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(kinds), len(sets), squeeze=False, sharex=True, sharey=True)
        for i, kind in enumerate(kinds):
            for j, chosen in enumerate(sets):
                axes = panels[i, j]
                some = [c for c in tuned if (c.features, c.set) == (kind, chosen)]
                for curve in some:
                    values = [(float(a), curve.at(a)) for a in rows]
                    look = mark(ks.index(curve.key.k))
                    line(axes, *split(values), look, f"k = {curve.key.k}")
                chance(axes, [curve.chance for curve in some])
                percent_axis(axes, "top-1 (%)" if j == 0 else "")
                axes.set_title(f"{plain(features(kind))}, {SETS_SHOWN.get(chosen, plain(chosen))}")
                alpha_axis(axes, places, FINE_TUNED if i == len(kinds) - 1 else "")
        legend(figure, panels.ravel())
    return figure


def line(
    axes: Axes,
    x: Sequence[float],
    values: Sequence[MeanSd],
    look: Mark,
    label: str,
    *,
    small: bool = False,
    scale: float = 100,
) -> None:
    """A line of means, shaded by one standard deviation on both sides where there is one.

    Args:
        axes: to draw on.
        x: places, shape (n,).
        values: one a place.
        look: how the line looks.
        label: what the legend says.
        small: a line that stands back.
        scale: factor of the values: 100 makes shares percent.
    """
    y = np.array([np.nan if v.mean is None else scale * v.mean for v in values])
    sd = np.array([np.nan if v.sd is None else scale * v.sd for v in values])
    axes.plot(
        x, y, color=look.color, marker=look.marker, linestyle=look.dashes, label=label,
        markersize=3.5 if small else 5, linewidth=1.0 if small else 1.6,
    )  # fmt: skip
    if np.isfinite(sd).any():
        spread = np.nan_to_num(sd)
        axes.fill_between(x, y - spread, y + spread, color=look.color, alpha=0.18, linewidth=0)


def _levels(axes: Axes, curves: Iterable[Curve], kind: str, marks: dict[str, Mark]) -> None:
    """Controls, which do not depend on alpha_train: thin lines in the colour of their set.

    Controls that nobody could tell apart are one line.
    """
    alike: dict[tuple[int, str], list[Curve]] = {}
    for curve in curves:
        fits = curve.features == kind or curve.source == "bag of words"
        level = curve.level().mean
        if curve.source in _CONTROLS and fits and level is not None and curve.set in marks:
            alike.setdefault((round(100 * level), curve.set), []).append(curve)
    lines: dict[tuple[int, tuple[str, ...]], list[Curve]] = {}
    for (place, _), some in alike.items():
        sources = tuple(dict.fromkeys(curve.source for curve in some))
        lines.setdefault((place, sources), []).extend(some)
    for (_, sources), some in lines.items():
        height = 100 * float(np.mean([curve.level().mean for curve in some]))
        sets = list(dict.fromkeys(curve.set for curve in some))
        axes.plot(
            (0, 1), (height, height), color=marks[sets[0]].color if len(sets) == 1 else INK,
            linewidth=1.0, linestyle=_CONTROLS[sources[0]], marker=marks[sets[0]].marker,
            markersize=3, label=f"{listed(SOURCES[source] for source in sources)}: {listed(sets)}",
        )  # fmt: skip


def chance(axes: Axes, levels: Iterable[float | None]) -> None:
    """Dotted lines at the chance levels."""
    known = {round(level, 6) for level in levels if level}
    for level in sorted(known):
        axes.axhline(100 * level, color=INK, linewidth=0.8, linestyle=":", label="chance")


def _measured(matrix: Matrix) -> list[str]:
    return [row for row in matrix.alphas_train if any(cell[0] == row for cell in matrix.cells)]


def _row(matrix: Matrix, alpha: str) -> tuple[list[float], list[MeanSd]]:
    return split([(float(column), matrix.at((alpha, column))) for column in matrix.alphas_eval])


def split(values: Iterable[tuple[float, MeanSd]]) -> tuple[list[float], list[MeanSd]]:
    """Places and values."""
    values = list(values)
    return [x for x, _ in values], [value for _, value in values]


def legend(figure: Figure, panels: Iterable[Axes]) -> None:
    """One legend for all panels, each entry once."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    widest = 0.6 + 0.075 * max(map(len, found), default=0)  # inches of an entry
    columns = max(1, min(len(found), int(figure.get_size_inches()[0] / widest)))
    figure.legend(
        list(found.values()), list(found), loc="outside lower center", ncol=columns, frameon=False
    )
