"""A leaderboard's folder: the page and the same figures as JSON, CSV and Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from style_overlap.leaderboard import page, tables
from style_overlap.leaderboard.board import Board, board
from style_overlap.leaderboard.entries import assemble
from style_overlap.leaderboard.sources import gather
from style_overlap.results import write_json, write_text


def write(paths: Iterable[str | os.PathLike[str]], output: Path) -> Board:
    """Read runs, results files and submissions, and write the site.

    Args:
        paths: see ``sources.gather``.
        output: folder, made if it does not exist.

    Raises:
        UsageError: a path that does not exist, or not a single row.
    """
    made = board(assemble(gather(paths)))
    write_json(output / "leaderboard.json", made)
    write_text(output / "leaderboard.csv", tables.as_csv(made))
    write_text(output / "leaderboard.md", tables.as_markdown(made))
    write_text(output / "index.html", page.as_html(made))
    return made
