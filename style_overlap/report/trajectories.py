"""Training dynamics: when in training does content go, and what is won meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from style_overlap import stats
from style_overlap.names import alpha_text, as_alpha
from style_overlap.report.matrix import Key, Training, make_key, recipe_of
from style_overlap.report.records import Dynamics, Records
from style_overlap.report.retrieval import (
    CHECKPOINT,
    ROUNDING,
    gallery_sizes,
    mean_chance,
    order_of,
)
from style_overlap.results import digest
from style_overlap.stats import MeanSd

Look = dict[str, Any]
Measure = tuple[str, ...]
"""``("accuracy", "matched")``, ``("loss",)``, ``("retrieval", "h", "seen")``."""


@dataclass(frozen=True)
class Trajectories:
    """Looks at the fine-tunings of one encoder, k, corpus and recipe, on galleries of one kind.

    Attributes:
        key: that of their matrix.
        recipe: how they were made.
        gallery: what retrieval was measured on.
        runs: the looks of each fine-tuning, in the order of steps.
    """

    key: Key
    recipe: dict[str, Any]
    gallery: dict[str, Any] = field(default_factory=dict)
    runs: dict[Training, tuple[Look, ...]] = field(default_factory=dict)

    @property
    def alphas(self) -> list[str]:
        """Overlaps of fine-tuning, ascending."""
        return sorted({alpha for alpha, _ in self.runs}, key=as_alpha)

    @property
    def seeds(self) -> list[int]:
        """Seeds of fine-tuning."""
        return sorted({seed for _, seed in self.runs})

    def measures(self) -> list[Measure]:
        """All that was measured: retrieval, then accuracies, then the loss."""
        found = {m for looks in self.runs.values() for look in looks for m in _figures(look)}
        return sorted(found, key=_order)

    def series(self, alpha: str, measure: Measure) -> list[tuple[float, float, MeanSd]]:
        """(step, epoch, value over seeds) of one measure, at steps that any seed looked at."""
        by_step: dict[float, list[tuple[float, float]]] = {}
        for (row, _), looks in sorted(self.runs.items()):
            for look in looks if row == alpha else ():
                value = _figures(look).get(measure)
                if value is not None:
                    by_step.setdefault(look["step"], []).append((look["epoch"], value))
        return [
            (step, values[0][0], stats.mean_sd([value for _, value in values]))
            for step, values in sorted(by_step.items())
        ]

    @property
    def n(self) -> str:
        """Contents in the gallery: one number, or the range over seeds; see ``Curve.n``."""
        return gallery_sizes(self._rows())

    @property
    def chance(self) -> float | None:
        """Top-1 of features that say nothing, about 1 / n; mean over fine-tunings."""
        return mean_chance(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        return [row for looks in self.runs.values() for look in looks for row in look["retrieval"]]


def trajectories(records: Records) -> tuple[list[Trajectories], dict[str, str]]:
    """All looks, sorted as matrices are, and those that are left out with the reason.

    Looks at one fine-tuning may come from several records, a step from each. Two looks at one step
    that disagree: the later one is left out and named.
    """
    found: dict[tuple[Key, str], Trajectories] = {}
    left_out: dict[str, str] = {}
    for path, dynamics in sorted(records.dynamics.items()):
        if dynamics.degenerate:
            left_out[path] = f"dynamics: degenerate: {dynamics.degenerate}"
            continue
        key, recipe = key_of_dynamics(dynamics)
        new = Trajectories(key, recipe, dynamics.gallery)
        mine = found.setdefault((key, digest(dynamics.gallery)), new)
        training = (alpha_text(dynamics.config["alpha"]), int(dynamics.config["seed"]))
        known = {look["step"]: look for look in mine.runs.get(training, ())}
        clashing = [
            look["step"]
            for look in dynamics.looks
            if _disagree(look, known.setdefault(look["step"], look))
        ]
        mine.runs[training] = tuple(known[step] for step in sorted(known))
        if clashing:
            left_out[path] = (
                f"dynamics: another record has alpha_train={training[0]}, seed={training[1]}, "
                f"step {clashing[0]} with other figures"
            )
    return [found[key] for key in sorted(found)], left_out


def _disagree(look: Look, other: Look) -> bool:
    """Whether two looks at one step give one measure two values."""
    mine, theirs = _figures(look), _figures(other)
    return any(
        abs(theirs.get(measure, value) - value) > ROUNDING for measure, value in mine.items()
    )


def key_of_dynamics(dynamics: Dynamics) -> tuple[Key, dict[str, Any]]:
    """The key of the matrix that the fine-tuning belongs to, and its recipe."""
    recipe = recipe_of(dynamics.config)
    return make_key(recipe, dynamics.config["k"], dynamics.styles, dynamics.corpus), recipe


def _figures(look: Look) -> dict[Measure, float]:
    figures: dict[Measure, float | None] = {("loss",): look.get("loss")}
    for name, value in look["accuracy"].items():
        figures["accuracy", name] = value
    for row in look["retrieval"]:
        if row["source"] == CHECKPOINT:
            figures["retrieval", row["features"], row["set"]] = row["top1"].get("mean")
    return {measure: float(value) for measure, value in figures.items() if value is not None}


def of_kind(measures: Iterable[Measure], kind: str) -> list[Measure]:
    """The measures of one panel."""
    return [measure for measure in measures if measure[0] == kind]


def _order(measure: Measure) -> tuple[Any, ...]:
    kind = ("retrieval", "accuracy", "loss").index(measure[0])
    if measure[0] == "retrieval":
        return (kind, *order_of(*measure[1:]))
    return (kind, measure[1:] != ("matched",), measure[1:])
