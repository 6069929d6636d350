"""The one kind of error that bad input raises."""

from __future__ import annotations


class UsageError(ValueError):
    """Something the user gave cannot be used.

    The message is all that the user sees: it says what was wrong and where, what was expected,
    and what to type instead. The command line prints it without a traceback and exits with 2.
    """
