"""Content overlap: sample a parallel corpus at a target alpha.

Sampling (section 2.2 of the paper). Of C contents each of k styles gets n = floor(C/k). Of these,
n_p = floor(n * alpha) are shared by all styles and n_r = n - n_p are exclusive to one. Then
H(S|C) = alpha log k, whatever k is. Four decisions that the paper leaves open:

- *Regions.* The canonical order is cut into k regions of n contents, one per style
  (``contiguous``), so that neighbours of an unseen content have the same style and a content
  shortcut carries over to the test set. ``random`` permutes the order first.
- *Pools.* A region's contents stand in one fixed order. The shared pool takes its first ones, in
  turn from every region; the style that owns the region has the n_r next ones to itself. So pools
  are nested: what is shared at alpha stays shared at every larger alpha, and an exclusive content
  keeps its owner until it becomes shared or drops out.
- *Splits.* 80/10/10, drawn for whole content groups in blocks of ten neighbours. A content's split
  depends on the seed alone, not on k or alpha, so no content is ever in two splits.
- *Draws* come from a fixed integer hash (SplitMix64) and not from a library's generator: the same
  seed gives the same sample in ten years.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from style_overlap.codes import IntArray, first_rows
from style_overlap.draws import draw, order_of
from style_overlap.entropy import count
from style_overlap.errors import UsageError
from style_overlap.names import AlphaLike, alpha_text, as_alpha
from style_overlap.results import digest

SAMPLING = 1
"""Version of the sampling procedure: raised whenever the same seed would give another sample."""

ASSIGNMENTS = ("contiguous", "random")
SPLITS = ("train", "validation", "test")

_MANY = 100_000  # contents from which a sample is drawn by several threads
_BLOCK = 10  # one content group in ten is test, one is validation


class Contents(Protocol):
    """What the sampler needs to know of a corpus."""

    @property
    def fingerprint(self) -> str: ...

    @property
    def styles(self) -> tuple[str, ...]: ...

    @property
    def groups(self) -> IntArray: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Split:
    """The examples of one split; three arrays of shape (m,).

    Attributes:
        content: row of the corpus.
        style: label, an index into the first k styles of the corpus.
        shared: whether the content is in the shared pool.
    """

    content: IntArray
    style: IntArray
    shared: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.content)


@dataclass(frozen=True, eq=False)
class Sample:
    """A corpus sampled at a content overlap.

    Attributes:
        k: number of styles.
        alpha: overlap asked for.
        seed: data seed.
        assignment: ``contiguous`` or ``random``.
        n: contents per style.
        n_shared: of these, shared by all styles.
        splits: the examples of ``train``, ``validation`` and ``test``, in a fair mix of styles.
        realised: overlap as measured (Eq. 1), per split and for ``all``; None where a split has
            fewer than two styles, which leaves alpha undefined.
        fingerprint: SHA-256 (hex) of corpus, settings and sampling procedure.
    """

    k: int
    alpha: Decimal
    seed: int
    assignment: str
    n: int
    n_shared: int
    splits: dict[str, Split]
    realised: dict[str, float | None]
    fingerprint: str


def sample(
    corpus: Contents,
    k: int,
    alpha: AlphaLike,
    seed: int = 0,
    assignment: str = "contiguous",
) -> Sample:
    """Sample k styles of a corpus at content overlap alpha.

    Args:
        corpus: its length, groups, styles and fingerprint are used.
        k: number of styles, the first k of the corpus.
        alpha: overlap; taken as the decimal it is written as, so that floors are exact.
        seed: rotates the regions among the styles, draws splits and pools.
        assignment: which contents a style owns, ``contiguous`` regions or ``random`` ones.

    Raises:
        UsageError: alpha outside [0, 1], fewer than two or more styles than the corpus has, fewer
            contents than styles, or an unknown assignment.
    """
    alpha = as_alpha(alpha)
    if not 2 <= k <= len(corpus.styles):
        raise UsageError(
            f"k is {k}: expected 2 to {len(corpus.styles)}, "
            f"the corpus has the styles {', '.join(corpus.styles)}"
        )
    if assignment not in ASSIGNMENTS:
        raise UsageError(f"assignment is {assignment!r}: expected {' or '.join(ASSIGNMENTS)}")
    n = len(corpus) // k
    if n < 1:
        raise UsageError(f"the corpus has {len(corpus)} contents: k={k} styles need at least {k}")
    n_shared = int((n * alpha).to_integral_value(ROUND_FLOOR))

    order = np.arange(len(corpus))
    if assignment == "random":
        order = order_of(draw(order, seed, "regions"))
    shared, contents, styles = [], [], []
    with ThreadPoolExecutor() as threads:
        # numpy sorts and gathers outside of Python's lock; with few values handing out costs more.
        each: Callable[..., Iterable[Any]] = threads.map if len(corpus) >= _MANY else map
        drawn = each(lambda region: _shuffle(region, seed), order[: k * n].reshape(k, n))
        split_of = content_splits(corpus, seed)
        pools = each(lambda pool: _interleave(pool, split_of), drawn)
        for region, pool in enumerate(pools):
            n_here = n_shared // k + (region < n_shared % k)
            shared.append(pool[:n_here])
            contents.append(pool[n_here : n_here + n - n_shared])
            styles.append(np.full(n - n_shared, (region + seed) % k))
        for style in range(k):
            contents.extend(shared)
            styles.append(np.full(n_shared, style))
        content, style_ids = np.concatenate(contents), np.concatenate(styles)
        in_pool = np.zeros(len(corpus), dtype=np.bool_)
        in_pool[np.concatenate(shared)] = True
        split_here = split_of[content]
        parts = [np.flatnonzero(split_here == number) for number in range(len(SPLITS))]
        examples = [(content[part], style_ids[part]) for part in parts]
        mixed = each(lambda pair: _mix(pair[0], pair[1], k, seed), examples)
        counted = list(each(lambda pair: count(pair[0], pair[1], k), examples))
        splits = {
            name: Split(content, style, in_pool[content])
            for name, (content, style) in zip(SPLITS, mixed, strict=True)
        }
    # No content is in two splits: what is counted of the splits adds up to the whole.
    counted.append(counted[0] + counted[1] + counted[2])
    realised = {name: counts.alpha for name, counts in zip((*SPLITS, "all"), counted, strict=True)}
    fingerprint = digest(
        {
            "corpus": corpus.fingerprint,
            "k": k,
            "alpha": alpha_text(alpha),
            "seed": seed,
            "assignment": assignment,
            "sampling": SAMPLING,
        }
    )
    return Sample(k, alpha, seed, assignment, n, n_shared, splits, realised, fingerprint)


def content_splits(corpus: Contents, seed: int = 0) -> IntArray:
    """Split of every content, shape (n,): 0 train, 1 validation, 2 test, in every sample.

    It depends on the data seed alone, not on k, alpha or assignment, and is the same within a
    content group. Every ten neighbouring groups hold one test and one validation group, so that
    each region and each pool gets its tenth.
    """
    first = first_rows(corpus.groups)
    position = np.cumsum(first == np.arange(len(first))) - 1  # of a group, at its first row
    slots = -(-(position[-1] + 1) // _BLOCK) * _BLOCK
    draws = draw(np.arange(slots), seed, "splits").reshape(-1, _BLOCK)
    least, second = np.argpartition(draws, (0, 1), axis=1)[:, :2].T
    blocks = np.arange(0, slots, _BLOCK)
    split_of_slot = np.zeros(slots, np.int64)
    split_of_slot[blocks + least], split_of_slot[blocks + second] = 2, 1
    return split_of_slot[position[first]]


def evenly(values: IntArray, count: int) -> IntArray:
    """``count`` of n values, spread evenly over their order; all if there are fewer."""
    count = min(max(count, 0), len(values))
    places = (np.arange(count) + 0.5) * len(values) / max(count, 1)
    return values[places.astype(np.int64)]


def first_gap(splits: Mapping[str, Split], k: int) -> tuple[str, int] | None:
    """The first (split, style) without an example, None if every split has all k styles."""
    for name, split in splits.items():
        if missing := set(range(k)) - set(split.style.tolist()):
            return name, min(missing)
    return None


def _shuffle(contents: IntArray, seed: int) -> IntArray:
    """The contents in drawn order."""
    return contents[order_of(draw(contents, seed, "pools"))]


def _interleave(drawn: IntArray, split_of: IntArray) -> IntArray:
    """Contents in drawn order, each split spread evenly: every run has its 80/10/10."""
    split_here, place = split_of[drawn], np.empty(len(drawn))
    for split in range(len(SPLITS)):
        members = np.flatnonzero(split_here == split)
        place[members] = (np.arange(len(members)) + 0.5) / max(len(members), 1)
    return drawn[np.argsort(place, kind="stable")]


def _mix(content: IntArray, style: IntArray, k: int, seed: int) -> tuple[IntArray, IntArray]:
    """A fair mix of styles from the first example on: `--limit 10` must not see one class only."""
    order = order_of(draw(content * k + style, seed, "examples"))
    return content[order], style[order]
