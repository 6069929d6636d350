"""What a part has to tell, as Markdown, and the page that it goes into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.runner import Run
from benchmarks.spread import Spread, ratio


@dataclass(frozen=True)
class Section:
    """The result of a part.

    Attributes:
        work: what was done, and how much of it.
        header: names of the columns.
        rows: cells.
        notes: what else there is to say, a sentence each.
    """

    work: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=tuple)

    def lines(self) -> list[str]:
        """As Markdown."""
        return [
            self.work,
            "",
            *table(self.header, self.rows),
            *([""] if self.notes else []),
            *(f"- {note}" for note in self.notes),
        ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table: the first column to the left, figures to the right."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return [f"| {' | '.join(map(str, row))} |" for row in (header, rule, *rows)]


def verdict(met: bool, about: str = "") -> str:
    """``met`` or ``missed``; where the goal speaks of something else, of what."""
    return f"goal is for {about}" if about else "met" if met else "missed"


def goal(reached: float, wanted: float, *, least: bool = True, about: str = "") -> str:
    """A goal and whether the median meets it.

    Args:
        about: what the goal speaks of, where that is not what was measured.
    """
    met = reached >= wanted if least else reached <= wanted
    return f"{wanted:g}x{'' if least else ' at most'}: {verdict(met, about)}"


def seconds(runs: Sequence[Run]) -> Spread:
    """Wall clock of some runs."""
    return Spread.of(run.seconds for run in runs)


def faster(ours: Sequence[Run], theirs: Sequence[Run]) -> Spread:
    """Theirs over ours: how many times faster ours is."""
    return ratio([run.seconds for run in theirs], [run.seconds for run in ours])


HEADER = ("", "seconds", "ours / peer", "ours is faster", "goal", "peak memory")
"""Columns of ``compared``."""


def compared(
    found: Mapping[str, Sequence[Run]], ours: str, goals: Mapping[str, float], about: str = ""
) -> list[tuple[str, ...]]:
    """Rows of a plain comparison: ours, then every peer with the ratio and its goal.

    Args:
        found: runs by name.
        ours: the name of ours.
        goals: by peer, how many times faster ours is to be.
        about: see ``goal``.
    """
    rows = []
    for name, runs in found.items():
        peak = f"{max(run.peak_mb for run in runs):,.0f} MB"
        cells = ("", "", "")
        if name != ours:
            times = faster(found[ours], runs)
            part = ratio([run.seconds for run in found[ours]], [run.seconds for run in runs])
            wanted = goal(times.median, goals[name], about=about) if name in goals else ""
            cells = (part.text(), f"{times.text(1)}x", wanted)
        rows.append((name, seconds(runs).text(), *cells, peak))
    return rows


def insert(page: str, name: str, lines: Sequence[str]) -> str:
    """The page with the lines between the markers of that name, in place of what stood there.

    Raises:
        ValueError: the page does not have exactly one pair of them.
    """
    begin, end = markers(name)
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"the page needs the lines {begin} and {end}, once each and in this order")
    before, _, rest = page.partition(begin)
    return "\n".join([f"{before}{begin}", "", *lines, "", f"{end}{rest.partition(end)[2]}"])


def markers(name: str) -> tuple[str, str]:
    """The two lines between which a result stands."""
    return f"<!-- begin {name} -->", f"<!-- end {name} -->"


def check(path: Path, names: Sequence[str]) -> None:
    """See that a page has a place for every name.

    Raises:
        ValueError: it has not.
        OSError: it cannot be read.
    """
    page = path.read_text(encoding="utf-8")
    for name in ("machine", *names):
        insert(page, name, ())


def write(path: Path, results: Mapping[str, Sequence[str]]) -> None:
    """Put results into a page, all or none.

    Raises:
        ValueError: a result that the page has no place for.
        OSError: the page cannot be read or written.
    """
    page = path.read_text(encoding="utf-8")
    for name, lines in results.items():
        page = insert(page, name, lines)
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(page, encoding="utf-8")
    draft.replace(path)
