"""The gate of a CI: did an encoder get worse by more than noise?

An encoder fails where its figure fell by more than it may, and the whole 95 % interval of the
fall, paired by content, lies above 0. A fall that the choice of test texts explains is no failure,
however large; a sure one is none either while it is as small as was allowed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from style_overlap.errors import UsageError
from style_overlap.leaderboard.board import Board, Row, printable
from style_overlap.leaderboard.figures import METRICS, Metric
from style_overlap.leaderboard.pairing import Fall, NotComparable, fall
from style_overlap.leaderboard.tables import escape

GATED = {metric.name: metric for metric in METRICS if metric.better is not None}
"""Figures that have a better and a worse."""

_GROUPS = {"acc": [name for name in GATED if name.startswith("acc_")]}
_SHOWN = 5  # contents named for each failure

_EXACT = 1e-12  # of the arithmetic


@dataclass(frozen=True)
class Verdict:
    """One figure of one row.

    Attributes:
        row: who, for people.
        metric: the figure.
        allowed: how far it may fall.
        fall: how far it fell; None if the two cannot be compared.
        why: why not.
    """

    row: str
    metric: str
    allowed: float
    fall: Fall | None = None
    why: str = ""

    @property
    def failed(self) -> bool:
        """Whether it got worse by more than noise, and by more than it may."""
        return (
            self.fall is not None
            and self.fall.drop > self.allowed + _EXACT
            and self.fall.low > _EXACT
        )

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        if self.fall is None:
            return "not comparable"
        if self.failed:
            return "WORSE"
        return "within noise" if self.fall.drop > self.allowed + _EXACT else "ok"


@dataclass(frozen=True)
class Gate:
    """All verdicts, and rows that are new."""

    verdicts: tuple[Verdict, ...]
    added: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if anything got worse, else 2 if anything could not be compared, else 0."""
        if any(verdict.failed for verdict in self.verdicts):
            return 1
        return 2 if any(verdict.fall is None for verdict in self.verdicts) else 0


def parse_drops(given: Iterable[str]) -> dict[str, float]:
    """``acc=0.01`` -> how far each figure may fall, from 0 to 1; ``acc`` is every accuracy.

    Raises:
        UsageError: no such figure, or not a number from 0 to 1.
    """
    found: dict[str, float] = {}
    for one in given or ["acc=0"]:
        name, separator, text = one.partition("=")
        names = _GROUPS.get(name, [name] if name in GATED else [])
        if not separator or not names:
            raise UsageError(
                f"--max-drop {one}: expected NAME=SHARE, for example acc=0.01, with one of "
                f"{', '.join([*_GROUPS, *GATED])}"
            )
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value <= 1:
            raise UsageError(f"--max-drop {one}: expected a share from 0 to 1, 0.01 is one point")
        found |= dict.fromkeys(names, value)
    return found


def compare(new: Board, old: Board, drops: Mapping[str, float]) -> Gate:
    """Compare every row of the old leaderboard with the new one's.

    Args:
        new, old: leaderboards.
        drops: see ``parse_drops``.

    Raises:
        UsageError: the old one has no row: there is nothing to compare with.
    """
    if not old["rows"]:
        raise UsageError("the baseline has no row: there is nothing to compare with")
    now = {row["id"]: row for row in new["rows"]}
    verdicts: list[Verdict] = []
    for row in old["rows"]:
        there = now.get(row["id"])
        if there is None:
            verdicts += [_gone(row, new["rows"], drops)]
            continue
        for name, allowed in drops.items():
            told = _verdict(GATED[name], allowed, row, there, old["tests"], new["tests"])
            verdicts += [told] if told else []
    before = {row["id"] for row in old["rows"]}
    added = tuple(_who(row) for row in new["rows"] if row["id"] not in before)
    return Gate(tuple(verdicts), added)


def _verdict(
    metric: Metric,
    allowed: float,
    old: Row,
    new: Row,
    old_tests: Mapping[str, Any],
    new_tests: Mapping[str, Any],
) -> Verdict | None:
    who = _who(old)
    try:
        found = fall(metric, old, new, old_tests, new_tests)
    except NotComparable as why:
        return Verdict(who, metric.name, allowed, why=str(why))
    return Verdict(who, metric.name, allowed, found) if found else None


def _gone(row: Row, rows: Iterable[Row], drops: Mapping[str, float]) -> Verdict:
    """An old row without a new one: gone, or trained or tested in another way."""
    why = "is not in the new leaderboard"
    for other in rows:
        if other["encoder"] == row["encoder"] and other["setting"]["k"] == row["setting"]["k"]:
            same = other["recipe"] == row["recipe"]
            why += f"; there is one with another {'corpus or setting' if same else 'recipe'}"
            break
    return Verdict(_who(row), ", ".join(drops), 0.0, why=why)


def _who(row: Row) -> str:
    setting = row["setting"]
    told = f"{row['encoder']}, k={setting['k']}, corpus {setting['corpus_fingerprint'][:8]}"
    return printable(f"{told}, recipe {row['recipe'][:8]}")


def as_text(gate: Gate) -> str:
    """For a terminal or a log."""
    lines = []
    for one in sorted(gate.verdicts, key=_severity):
        lines.append(f"{one.word:14} {one.row}: {one.metric} {_told(one)}")
        lines += [f"{'':15}{line}" for line in _contents(one)]
    lines += [f"{'new':14} {who}" for who in gate.added]
    return "\n".join([*lines, _summary(gate)])


def as_markdown(gate: Gate) -> str:
    """For a step summary of GitHub Actions."""
    lines = ["## Style overlap gate", "", escape(_summary(gate)), ""]
    lines += ["| verdict | encoder | figure | change | remark |", "| --- | --- | --- | --- | --- |"]
    for one in sorted(gate.verdicts, key=_severity):
        remark = " ".join(_contents(one))
        cells = [one.word, one.row, one.metric, _told(one), remark]
        lines.append(f"| {' | '.join(escape(cell) for cell in cells)} |")
    lines += [f"| new | {escape(who)} | | | |" for who in gate.added]
    return "\n".join([*lines, ""])


def _severity(verdict: Verdict) -> tuple[int, str, str]:
    order = {"WORSE": 0, "not comparable": 1, "within noise": 2, "ok": 3}
    return order[verdict.word], verdict.row, verdict.metric


def _told(verdict: Verdict) -> str:
    found = verdict.fall
    if found is None:
        return printable(verdict.why)
    if found.old == found.new and not found.worse:
        return f"{100 * found.old:.1f}, unchanged"
    change = found.new - found.old
    return (
        f"{100 * found.old:.1f} -> {100 * found.new:.1f} ({100 * change:+.1f}; worse by "
        f"{100 * found.drop:.1f}, 95 % interval {100 * found.low:.1f} to {100 * found.high:.1f}, "
        f"allowed {100 * verdict.allowed:.1f}; {found.how})"
    )


def _contents(verdict: Verdict) -> list[str]:
    found = verdict.fall
    if not verdict.failed or found is None or not found.worse:
        return []
    named = ", ".join(printable(content) for content in found.worse[:_SHOWN])
    more = f" and {len(found.worse) - _SHOWN} more" if len(found.worse) > _SHOWN else ""
    return [f"worse on {named}{more}; better on {len(found.better)}"]


def _summary(gate: Gate) -> str:
    worse = sum(verdict.failed for verdict in gate.verdicts)
    apart = sum(verdict.fall is None for verdict in gate.verdicts)
    told = [f"{len(gate.verdicts)} figures compared" if not apart else
            f"{len(gate.verdicts) - apart} figures compared, {apart} not comparable"]  # fmt: skip
    return f"{told[0]}, {worse} worse by more than noise" + (
        f", {len(gate.added)} new rows" if gate.added else ""
    )
