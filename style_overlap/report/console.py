"""A terminal, or the pipe or log file in its place."""

from __future__ import annotations

from rich.console import Console


def console(width: int) -> Console:
    """Where tables are printed: names from records are text on it, never markup.

    Args:
        width: in characters, of a pipe or a file, which have none of their own.
    """
    terminal = Console(highlight=False, markup=False)
    if terminal.is_terminal:
        return terminal
    return Console(highlight=False, markup=False, width=width)
