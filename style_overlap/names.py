"""Names of the tasks, and the overlap values they stand for: the only owner of both.

``style_overlap_k3_a0.4`` is three styles at a content overlap of 0.4. Overlaps are decimals, not
binary floats: ``floor(100 * 0.29)`` has to be 29, and ``0.4`` and ``0.40`` are one value with one
name.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from style_overlap.errors import UsageError

KS: tuple[int, ...] = (2, 3, 4, 5)
"""Numbers of styles that have registered tasks."""

ALPHAS: tuple[Decimal, ...] = tuple(Decimal(step) / 10 for step in range(0, 11, 2))
"""The grid of content overlaps, 0.0 to 1.0 in steps of 0.2."""

AlphaLike: TypeAlias = Decimal | str | float | int

BASELINE = "baseline:"
"""What the names of "encoders" begin with that are no encoders but a floor."""

TFIDF = f"{BASELINE}tfidf"
"""The bag of words that may stand in an encoder's place."""


def as_alpha(value: AlphaLike) -> Decimal:
    """The content overlap as an exact decimal.

    Raises:
        UsageError: not a number, or outside [0, 1].
    """
    try:
        # str() first: Decimal(0.29) is the binary value just below 0.29, Decimal("0.29") is not.
        alpha = Decimal(str(value).strip())
    except InvalidOperation:
        alpha = Decimal("NaN")
    if not alpha.is_finite() or not 0 <= alpha <= 1:
        raise UsageError(f"alpha is {value}: expected a number from 0 to 1, for example 0.4")
    return alpha + 0  # turns -0 into 0


def alpha_text(alpha: AlphaLike) -> str:
    """The one spelling of an overlap: no trailing zeros, at least one decimal ("0.0", "0.35")."""
    text = format(as_alpha(alpha).normalize(), "f")
    return text if "." in text else f"{text}.0"


def task_name(k: int, alpha: AlphaLike) -> str:
    """Name of the classification task with k styles at overlap alpha."""
    return f"style_overlap_k{k}_a{alpha_text(alpha)}"


UNSEEN_RETRIEVAL = "content_retrieval_unseen"
"""Name of the retrieval task on the versions that no classifier is trained on."""


def retrieval_name(k: int) -> str:
    """Name of the retrieval task on all pairs of the first k styles."""
    return f"content_retrieval_k{k}"


def is_baseline(model: str) -> bool:
    """Whether this is a baseline's name and no encoder's.

    Raises:
        UsageError: a baseline that does not exist.
    """
    if model.startswith(BASELINE) and model != TFIDF:
        raise UsageError(f"model is {model!r}: the only baseline is {TFIDF}")
    return model == TFIDF
