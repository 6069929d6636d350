"""The leaderboard as CSV and Markdown."""

from __future__ import annotations

import csv
import io
import re

from style_overlap.leaderboard.board import Board, Row
from style_overlap.leaderboard.figures import METRICS
from style_overlap.report.wording import literal

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+.!|~&:/@-])")

POINTS = ("reliance", "hoa")
"""Differences of accuracies: points, with a sign."""


def as_csv(board: Board) -> str:
    """One line a row: figures as numbers from 0 to 1, missing ones empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(
        ["rank", "encoder", "k", "styles", "corpus", "corpus_fingerprint", "recipe", "parameters",
         "seeds"]
        + [f"{m.name}{end}" for m in METRICS for end in ("", "_low", "_high", "_sd")]
    )  # fmt: skip
    for row in board["rows"]:
        setting = row["setting"]
        styles, seeds = " ".join(setting["styles"]), " ".join(row["seeds"])
        head = [row["rank"], literal(row["encoder"]), setting["k"], literal(styles),
                literal(setting["corpus"]), setting["corpus_fingerprint"], row["recipe"],
                row["parameters"], literal(seeds)]  # fmt: skip
        figures = [row["figures"][m.name] for m in METRICS]
        told = [figure[end] for figure in figures for end in ("value", "low", "high", "sd")]
        writer.writerow(["" if value is None else value for value in [*head, *told]])
    return buffer.getvalue()


def as_markdown(board: Board) -> str:
    """A table a setting, for a README or a pull request."""
    parts = ["# Leaderboard", ""]
    by_setting: dict[str, list[Row]] = {}
    for row in board["rows"]:
        by_setting.setdefault(row["setting"]["id"], []).append(row)
    for rows in by_setting.values():
        setting = rows[0]["setting"]
        parts += [
            f"## k = {setting['k']}: {escape(', '.join(setting['styles']))}",
            "",
            f"Corpus {escape(setting['corpus'])}, fingerprint "
            f"{escape(setting['corpus_fingerprint'][:12])}. Accuracies in percent with 95 % "
            "intervals; content reliance and HOA in points.",
            "",
            "| rank | encoder | parameters | seeds | "
            + " | ".join(m.title for m in METRICS)
            + " |",
            "|" + " --- |" * (4 + len(METRICS)),
        ]
        for row in rows:
            size = f"{row['parameters']:,}" if row["parameters"] is not None else "–"
            cells = [show(row, m.name) for m in METRICS]
            rank = row["rank"] if row["rank"] is not None else "–"
            seeds = len(row["seeds"])
            parts.append(f"| {rank} | {escape(row['encoder'])} | {size} | {seeds} | "
                         f"{' | '.join(cells)} |")  # fmt: skip
        parts.append("")
    if board["left_out"]:
        parts += ["## Left out", ""]
        parts += [
            f"- {escape(one['source'])}: {escape(one['reason'])}" for one in board["left_out"]
        ]
        parts.append("")
    return "\n".join(parts)


def show(row: Row, name: str) -> str:
    """A figure with its interval, in percent or points; a dash where there is none."""
    figure = row["figures"][name]
    if figure["value"] is None:
        return "–"
    sign = "+" if name in POINTS else ""
    text = f"{100 * figure['value']:{sign}.1f}"
    if figure["low"] is None or figure["high"] is None:
        return text
    return f"{text} [{100 * figure['low']:{sign}.1f}, {100 * figure['high']:{sign}.1f}]"


def escape(text: str) -> str:
    """A stranger's text in Markdown: no markup, no link, no cell or line of its own."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
