"""Content retrieval on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from style_overlap.report.console import console

_NAME = 32  # characters of a path, its end
_WIDTH = 150  # of a pipe or a log file, which have none of their own


def show(records: Sequence[dict[str, Any]]) -> None:
    """Print the retrieval of every checkpoint and control; pairs are listed where there are many.

    Args:
        records: probe records, in the order of the table.
    """
    terminal = console(_WIDTH)
    table = Table(title="Content retrieval: top-1 in %", title_justify="left")
    table.add_column("encoder", no_wrap=True)
    for name in ("features", "versions"):
        table.add_column(name, no_wrap=True)
    for name in ("top-1", "95 % interval", "a → b", "b → a", "R@5", "median rank", "N", "chance"):
        table.add_column(name, justify="right", no_wrap=True)
    told: set[str] = set()
    for record in records:
        name = _short(record["checkpoint"]["name"])
        for summary in record["summary"]:
            pairs = [row for row in record["rows"] if _same(row, summary)]
            who = name if summary["source"] == "checkpoint" else summary["source"]
            shared = f"{who}{summary}"
            if shared in told:  # a control that several checkpoints have
                continue
            told.add(shared)
            one = pairs[0] if len(pairs) == 1 else None
            what = f"{one['a']}, {one['b']}" if one else f"mean of {len(pairs)}"
            where = f"{summary['set']}: {what}"
            table.add_row(who, summary["features"], where, *_figures(summary, one))
            for row in pairs if not one else ():
                table.add_row("", "", f"  {row['a']}, {row['b']}", *_figures(row, row))
    terminal.print(table)
    for note in dict.fromkeys(note for record in records for note in record["notes"]):
        terminal.print(f"Note: {note}.", soft_wrap=True)


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"


def _same(row: dict[str, Any], summary: dict[str, Any]) -> bool:
    return all(row[key] == summary[key] for key in ("source", "features", "set"))


def _figures(figures: dict[str, Any], pair: dict[str, Any] | None) -> list[str]:
    top1, interval = figures["top1"], figures["interval"]
    mean = _percent(top1["mean"])
    if top1["sd"] is not None:
        mean += f" ± {100 * top1['sd']:.1f}"
    low, high = interval["low"], interval["high"]
    rank = figures["median_rank"]
    return [
        mean,
        "–" if low is None else f"{100 * low:.1f} to {100 * high:.1f}",
        _percent(pair["top1_ab"]) if pair else "",
        _percent(pair["top1_ba"]) if pair else "",
        _percent(figures["recall_at_5"]),
        "–" if rank is None else f"{rank:g}",
        str(figures["n"]),
        "–" if figures["chance"] is None else f"{100 * figures['chance']:.2f}",
    ]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
