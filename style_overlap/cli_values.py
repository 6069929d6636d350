"""Options of the command line that are followed by several values."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

from style_overlap.errors import UsageError

MANY = ("--model", "--k", "--alphas", "--seeds", "--set")
"""Options that take several values: ``--k 2 3``, ``--k 2 --k 3`` and ``--k 2,3`` are the same."""


class SeveralValues(TyperCommand):
    """A command whose options may be followed by several values; it has no arguments of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the name of an option before each of its values."""
        return super().parse_args(ctx, spread(args))


def spread(words: list[str]) -> list[str]:
    """``--k 2 3`` as ``--k 2 --k 3``."""
    found: list[str] = []
    option: str | None = None
    for word, after in zip(words, [*words[1:], "--"], strict=True):
        if word in MANY and _is_option(after):
            raise UsageError(f"{word} is followed by no value")
    for number, word in enumerate(words):
        if _is_option(word):
            name = word.partition("=")[0]
            option = name if name in MANY else None
            found.append(word)
        elif option and words[number - 1] != option:
            found += [option, word]
        else:
            found.append(word)
    return found


def _is_option(word: str) -> bool:
    return word.startswith("-") and not re.fullmatch(r"-[.\d]\S*", word)  # or a negative number


def values(name: str, given: list[str] | None) -> list[str]:
    """What was given to an option, one by one; nothing if it was not given.

    Raises:
        UsageError: it was given, and is empty: as a rule a variable of the shell that is not set.
    """
    found = [part for word in given or [] for part in re.split(r"[,\s]+", word) if part]
    if given and not found:
        raise UsageError(f"{name} is empty: give one value or more, or leave it out")
    return found


def numbers(name: str, given: list[str] | None) -> list[int]:
    """The same as whole numbers.

    Raises:
        UsageError: something else than a whole number, or empty.
    """
    found = values(name, given)
    if wrong := [value for value in found if not re.fullmatch(r"-?\d+", value)]:
        raise UsageError(f"{name} is {wrong[0]!r}: expected whole numbers, such as {name} 2 3")
    return [int(value) for value in found]
