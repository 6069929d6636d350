"""How figures and names are written in every table: one spelling each."""

from __future__ import annotations

from collections.abc import Iterable, Sized

from style_overlap.bootstrap import Interval
from style_overlap.stats import MeanSd

DASH = "–"
"""A figure that there is not."""

_NAME = 80  # characters of a name that are shown


def printable(name: object, length: int = _NAME) -> str:
    """A name from a record on one line: no control or invisible characters, not too long."""
    text = "".join(c if c.isprintable() else " " for c in str(name)[: 20 * length])
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def literal(text: str) -> str:
    """A stranger's text in CSV: spreadsheets run what begins like a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def percent(mean: float | None, sd: float | None = None, digits: int = 1) -> str:
    """A share in percent as the paper prints it, ``94.9 ± 0.4``, or a dash."""
    if mean is None:
        return DASH
    return f"{100 * mean:.{digits}f}" + (f" ± {100 * sd:.{digits}f}" if sd is not None else "")


def points(value: MeanSd) -> str:
    """A difference of two accuracies in points, with its sign."""
    if value.mean is None:
        return DASH
    spread = f" ± {100 * value.sd:.1f}" if value.sd is not None else ""
    return _minus(f"{100 * value.mean:+.1f}") + spread


def few(value: MeanSd, seeds: Sized) -> str:
    """`` (n=2)`` behind a mean over fewer seeds than there are."""
    return f" (n={value.n})" if value.n < len(seeds) else ""


def span(numbers: Iterable[int], form: str = "d") -> str:
    """One number, or from the least to the greatest: ``562–566``."""
    ordered = sorted(set(numbers))
    ends = ordered if len(ordered) < 2 else (ordered[0], ordered[-1])
    return "–".join(format(number, form) for number in ends)


def interval(found: Interval) -> str:
    """An interval of a difference in points."""
    if found.low is None or found.high is None:
        return DASH
    return _minus(f"{100 * found.low:+.1f} to {100 * found.high:+.1f}")


def number(value: float | None, digits: int = 2) -> str:
    """A plain number, or a dash."""
    return DASH if value is None else _minus(f"{value:.{digits}f}")


def _minus(text: str) -> str:
    return text.replace("-", "−")


def p_value(p: float | None) -> str:
    """A p-value with two significant digits, or a dash."""
    if p is None:
        return DASH
    return f"{p:.2g}" if p >= 0.001 else f"{p:.1e}"


def listed(items: Iterable[object]) -> str:
    """``a, b, c``."""
    return ", ".join(map(str, items))


def seeds_text(seeds: Iterable[int]) -> str:
    """``seed 0`` or ``seeds 0, 1, 2``."""
    seeds = list(seeds)
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {listed(seeds)}"
