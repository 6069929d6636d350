"""Do two programs give the same answers? A benchmark of two that do not measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt


class DisagreementError(Exception):
    """Contenders that were given the same work do not give the same answers."""


Classified = Sequence[tuple[str, str]]
"""Texts in the order of the work, each with the class that it was given."""


def same_classes(
    names: tuple[str, str], ours: Classified, theirs: Classified, *, at_least: float = 0.998
) -> float:
    """Share of documents that both put into the same class.

    A text may stand in several tasks. One distinct text may always differ: a model that is torn
    between two classes decides by the last bits of fp32.

    Raises:
        DisagreementError: they read other texts, or more distinct texts differ than ``at_least``
            allows.
    """
    if [text for text, _ in ours] != [text for text, _ in theirs]:
        raise DisagreementError(f"{names[0]} and {names[1]} were not given the same texts")
    differing = [
        text
        for (text, one), (_, other) in zip(ours, theirs, strict=True)
        if one.lower() != other.lower()
    ]
    distinct = len({text for text, _ in ours})
    allowed = max(1.0, (1 - at_least) * distinct)
    if len(set(differing)) > allowed:
        raise DisagreementError(
            f"{names[0]} and {names[1]} give other classes to {len(set(differing))} of {distinct} "
            f"texts, {allowed:.0f} at most may differ; the first: {differing[0][:80]!r}"
        )
    return 1 - len(differing) / max(len(ours), 1)


def same_numbers(
    names: tuple[str, str],
    what: str,
    ours: Mapping[str, float] | npt.ArrayLike,
    theirs: Mapping[str, float] | npt.ArrayLike,
    *,
    tolerance: float,
) -> float:
    """Largest absolute difference between two sets of numbers.

    Raises:
        DisagreementError: it is larger than the tolerance or not a number, or the sets have other
            names or shapes.
    """
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        if list(ours) != list(theirs):
            raise DisagreementError(
                f"{names[0]} has {what} {list(ours)}, {names[1]} {list(theirs)}"
            )
        ours, theirs = list(ours.values()), list(theirs.values())
    one, other = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    if one.shape != other.shape:
        raise DisagreementError(
            f"{what}: {names[0]} has shape {one.shape}, {names[1]} {other.shape}"
        )
    largest = float(np.abs(one - other).max(initial=0.0))
    if not largest <= tolerance:
        raise DisagreementError(
            f"{what}: {names[0]} and {names[1]} differ by {largest:.3g}, "
            f"at most {tolerance:.3g} was expected"
        )
    return largest
