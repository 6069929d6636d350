"""The measure on data as it is found: alpha of any labelled data set, with bias and doubt.

``alpha = 1 - I(C;S)/H(S)`` (Eq. 1) of few examples a content is too low: by chance alone a content
seen three times leans to one style, so that the plug-in I(C;S) is biased upwards. Corrections:

- ``adjusted`` (the default) takes away what contents and styles of the same sizes share by chance,

      alpha = 1 - (I - E[I]) / (H(S) - E[I])

  with E[I] over all random pairings, exactly (hypergeometric; Vinh, Epps and Bailey, JMLR 11, 2010,
  for clusterings). It is 1 on average where content says nothing, and 0 where it says all.
- ``miller-madow`` adds the first-order term (m - 1)/2N to each entropy, m the cells that are not
  empty. Right to first order, too small where many contents have few examples.
- ``none``.

Intervals are a percentile bootstrap over contents, whose examples are not independent. With fewer
than 30 contents, say topics, these are taken as given: examples are drawn instead, and the interval
is centred on the estimate, since drawing with replacement is biased upwards once more.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import hypergeom

from style_overlap.codes import number
from style_overlap.corpus.incidence import check_size
from style_overlap.errors import UsageError

CORRECTIONS = ("adjusted", "miller-madow", "none")

RESAMPLES = 500
FEW_CONTENTS = 30
"""Fewer contents than this are taken as given."""

THIN = 3.0
"""Fewer examples a content than this, on average, and the figure rests on the correction."""

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Overlap:
    """Content overlap of a labelled data set.

    Attributes:
        alpha: the estimate; None where the data cannot tell, and ``note`` says why.
        low, high: bootstrap interval.
        level: of the interval.
        over: what was drawn for it, ``contents`` or ``examples``.
        plug_in: alpha without correction.
        correction: the one that was used.
        examples, contents, styles: how many there are.
        entropy: H(S) in bits.
        note: what to know before trusting the figure.
    """

    alpha: float | None
    low: float | None
    high: float | None
    level: float
    over: str
    plug_in: float
    correction: str
    examples: int
    contents: int
    styles: int
    entropy: float
    note: str | None = None

    def sentence(self) -> str:
        """What it means."""
        if self.alpha is None:
            return f"How much content says about the label cannot be told: {self.note}."
        said = f"Content alone determines {1 - self.alpha:.0%} of the label's entropy"
        if self.low is not None and self.high is not None:
            said += f" ({self.level:.0%} interval {1 - self.high:.0%} to {1 - self.low:.0%})"
        return said + "."

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "sentence": self.sentence()}


def estimate(
    content: npt.ArrayLike,
    style: npt.ArrayLike,
    *,
    correction: str = "adjusted",
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Overlap:
    """Content overlap of a labelled data set, corrected for bias, with an interval.

    Args:
        content: content of each example (topic, author, source ...), shape (n,), any values.
        style: label of each example, shape (n,), any values.
        correction: one of ``CORRECTIONS``.
        resamples: bootstrap samples; 0 for no interval.
        level: of the interval.
        seed: of the bootstrap.

    Raises:
        UsageError: fewer than two styles, lengths differ, or an unknown correction.
    """
    if correction not in CORRECTIONS:
        raise UsageError(f"correction {correction!r}: expected {', '.join(CORRECTIONS)}")
    counts = contingency(content, style)
    contents, styles = counts.shape
    if styles < 2:
        raise UsageError("alpha is undefined for fewer than two styles: H(S) = 0")
    parts = _expected_parts(counts) if correction == "adjusted" else np.zeros(contents)
    alpha = _alpha(counts, correction, float(parts.sum()))
    plug_in = _conditional(counts) / _entropy(counts.sum(axis=0))
    low = high = None
    over = "contents" if contents >= FEW_CONTENTS else "examples"
    if alpha is not None and resamples:
        draws = _draws(counts, over, correction, parts, resamples, seed)
        if len(draws):
            tails = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
            if over == "examples":
                tails += alpha - np.median(draws)
            low, high = (float(value) for value in np.clip(tails, 0, 1))
    return Overlap(
        alpha=None if alpha is None else float(np.clip(alpha, 0, 1)),
        low=low,
        high=high,
        level=level,
        over=over,
        plug_in=plug_in,
        correction=correction,
        examples=int(counts.sum()),
        contents=contents,
        styles=styles,
        entropy=_entropy(counts.sum(axis=0)) / float(np.log(2)),
        note=None if correction == "none" else _note(counts, alpha, plug_in),
    )


def contingency(content: npt.ArrayLike, style: npt.ArrayLike) -> Counts:
    """Examples by content and style, shape (contents, styles)."""
    (rows, contents), (columns, styles) = number(content), number(style)
    if len(rows) != len(columns):
        raise UsageError(f"{len(rows)} contents, but {len(columns)} styles: expected one of each")
    if not len(rows):
        raise UsageError("no examples: alpha is undefined")
    shape = (len(contents), len(styles))
    check_size(*shape)
    return np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape)


def expected_information(counts: Counts) -> float:
    """E[I(C;S)] in nats if examples of the same contents and styles were paired at random."""
    return float(_expected_parts(counts).sum() / counts.sum())


def _expected_parts(counts: Counts) -> Floats:
    """What every content adds to n E[I], shape (contents,): a function of its size alone."""
    n = int(counts.sum())
    sizes, of_content = np.unique(counts.sum(axis=1), return_inverse=True)
    styles, how_often = np.unique(counts.sum(axis=0), return_counts=True)
    parts = np.zeros(len(sizes))
    for place, size in enumerate(sizes.tolist()):
        for label, times in zip(styles.tolist(), how_often.tolist(), strict=True):
            # hypergeometric, and nothing of weight lies twelve standard deviations away
            mean = size * label / n
            reach = 12 * np.sqrt(mean + 1)
            low = max(1, size + label - n, int(mean - reach))
            joint = np.arange(low, min(size, label, int(mean + reach) + 1) + 1)
            chance = hypergeom.pmf(joint, n, label, size)
            logs = np.log(joint) + np.log(n) - np.log(size) - np.log(label)
            parts[place] += times * float((chance * joint * logs).sum())
    return parts[of_content]


def _entropy(counts: Counts) -> float:
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def _conditional(counts: Counts) -> float:
    """H(S|C) in nats."""
    here = counts > 0
    per_content = np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)[here]
    return float((counts[here] * np.log(per_content / counts[here])).sum() / counts.sum())


def _alpha(counts: Counts, correction: str, expected: float) -> float | None:
    """Corrected alpha, not yet clipped; ``expected`` is n E[I] in nats."""
    n, entropy, conditional = counts.sum(), _entropy(counts.sum(axis=0)), _conditional(counts)
    if entropy == 0:
        return None
    if correction == "adjusted":
        share = expected / n
        if entropy - share < 1e-9 * max(entropy, 1.0):
            return None  # every content has one example: chance alone would explain all
        return 1 - (entropy - conditional - share) / (entropy - share)
    if correction == "miller-madow":
        # H(S|C) = H(C,S) - H(C), each with its own term
        more = int((counts > 0).sum()) - int((counts.sum(axis=1) > 0).sum())
        styles = int((counts.sum(axis=0) > 0).sum())
        return float((conditional + more / (2 * n)) / (entropy + (styles - 1) / (2 * n)))
    return conditional / entropy


def _draws(
    counts: Counts, over: str, correction: str, parts: Floats, resamples: int, seed: int
) -> Floats:
    """Bootstrap estimates; what chance explains of a content is not computed anew."""
    rng = np.random.default_rng(seed)
    n, found = int(counts.sum()), []
    for _ in range(resamples):
        if over == "contents":
            rows = rng.integers(len(counts), size=len(counts))
            drawn, expected = counts[rows], float(parts[rows].sum())
        else:
            drawn = rng.multinomial(n, (counts / n).ravel()).reshape(counts.shape)
            expected = float(parts.sum())
        alpha = _alpha(drawn, correction, expected)
        if alpha is not None:  # one style was drawn and no other: undefined
            found.append(alpha)
    return np.asarray(found)


def _note(counts: Counts, alpha: float | None, plug_in: float) -> str | None:
    per_content = counts.sum() / len(counts)
    if alpha is None:
        return "every content has one example, so any label would look determined by it"
    if counts.max() == 1:
        return (
            "no content has two examples of one style, as in a parallel corpus: if that is by "
            f"design, the figure without correction is right (content determines {1 - plug_in:.0%})"
        )
    if per_content < THIN:
        return (
            f"only {per_content:.1f} examples a content: the figure rests on its correction "
            f"(without one, content would seem to determine {1 - plug_in:.0%})"
        )
    return None
