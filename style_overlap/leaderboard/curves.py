"""Line charts as coordinates: the page's template draws them, and the style sheet colours them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Point = tuple[float, float]

WIDTH, HEIGHT = 540, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 130, 12, 44  # room for ticks, labels of lines, the axis' title
_LABEL_GAP = 13  # px between the labels of two lines


@dataclass(frozen=True)
class Line:
    """One line: its points in pixels, and where its label goes."""

    label: str
    points: tuple[Point, ...]
    label_y: float

    @property
    def path(self) -> str:
        """As the attribute ``points`` of a polyline."""
        return " ".join(f"{x:g},{y:g}" for x, y in self.points)


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: its place in pixels and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A chart; ``described`` tells the same in words, for those who cannot see it."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    described: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM


def chart(
    title: str,
    x_title: str,
    y_title: str,
    series: Mapping[str, Sequence[Point]],
    *,
    low: float = 0.0,
    high: float = 100.0,
) -> Chart | None:
    """A chart of some lines, None if none of them has a point.

    Args:
        title, x_title, y_title: with units.
        series: points by label; at most as many as can be told apart by their dashes, six.
        low, high: ends of the y axis.
    """
    lines = {label: sorted(points) for label, points in series.items() if points}
    if not lines:
        return None
    xs = [x for points in lines.values() for x, _ in points]
    x_low, x_high = min(xs), max(xs)
    width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def place(x: float, y: float) -> Point:
        share = (x - x_low) / (x_high - x_low) if x_high > x_low else 0.5
        up = (min(max(y, low), high) - low) / (high - low)
        return round(_LEFT + share * width, 1), round(_TOP + (1 - up) * height, 1)

    drawn = {label: tuple(place(x, y) for x, y in points) for label, points in lines.items()}
    labels = _apart({label: points[-1][1] for label, points in drawn.items()})
    described = "; ".join(
        f"{label}: " + ", ".join(f"{y:.1f} at {x:.3g}" for x, y in _some(points))
        for label, points in lines.items()
    )
    return Chart(
        title,
        x_title,
        y_title,
        tuple(Line(label, points, labels[label]) for label, points in drawn.items()),
        tuple(Tick(place(x, low)[0], f"{x:.3g}") for x in _some_values(xs)),
        tuple(Tick(place(x_low, y)[1], f"{y:g}") for y in _steps(low, high)),
        f"{title}. {y_title} by {x_title}. {described}.",
    )


def _apart(wanted: Mapping[str, float]) -> dict[str, float]:
    """Heights of labels, moved down where they would cover each other, then up into the chart."""
    order = sorted(wanted, key=lambda label: wanted[label])
    placed: dict[str, float] = {}
    last = -math.inf
    for label in order:
        last = placed[label] = max(wanted[label], last + _LABEL_GAP)
    over = last - (HEIGHT - _BOTTOM + 4)
    return {label: round(y - max(over, 0), 1) for label, y in placed.items()}


def _steps(low: float, high: float) -> list[float]:
    step = 10.0 if high - low <= 60 else 20.0
    return [low, *(high - step * index for index in range(int((high - low) / step + 0.5)))]


def _some(points: Sequence[Point], most: int = 8) -> list[Point]:
    step = max(1, math.ceil(len(points) / most))
    return [*points[:-1:step], points[-1]]


def _some_values(xs: Sequence[float], most: int = 7) -> list[float]:
    """The values themselves if they are few, else round ones between them."""
    known = sorted(set(xs))
    if len(known) <= most:
        return known
    width = (known[-1] - known[0]) / (most - 1)
    unit = 10.0 ** math.floor(math.log10(width))
    step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= width)
    first, last = math.ceil(known[0] / step), math.floor(known[-1] / step)
    return [step * index for index in range(first, last + 1)]
