"""Content retrieval: for each text, the nearest text of the other version by cosine similarity.

Row i of ``a`` and row i of ``b`` say the same content. Top-1 is the share of texts whose nearest
text in the other version says what they say, both ways and averaged (section 2.4 of the paper).

Exact and blockwise. A block of similarities serves both directions: its rows are texts of a among
b, its columns texts of b among a. The similarity of a text to its own counterpart is known
beforehand, so that a block need only be counted, not kept: how many candidates are nearer, how
many as near. That gives ranks, not only the nearest text, and memory is the features plus two
blocks.

Ties. fp32 matrix products round differently at the edges of a block, so equal similarities differ
in their last bits, and constant features would be ranked by rounding. Similarities closer than
``tolerance(d)`` are therefore equal, and equal candidates share: constant features score exactly
chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from style_overlap.errors import UsageError
from style_overlap.probe.pairs import Features, Pairs
from style_overlap.probe.precision import full_precision

FloatArray = npt.NDArray[np.float64]

BLOCK = 1024
"""Rows and columns of a block: 4 MB of similarities, which stay in the processor's cache."""

_PROGRESS_FROM = 20_000  # texts; below, a search takes seconds


@dataclass(frozen=True, eq=False)
class Direction:
    """How well the texts of one version find their content in the other; arrays of shape (n,).

    Attributes:
        credit: chance that the nearest text is a right one, ties drawn fairly: 1, 0 or between.
        recall_at_5: chance that a right one is among the nearest five, ties drawn fairly.
        rank: expected rank of the nearest right one, from 1; the middle of its ties.
    """

    credit: FloatArray
    recall_at_5: FloatArray
    rank: FloatArray


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Retrieval in both directions.

    Attributes:
        n: texts in the gallery; top-1 means little without it.
        n_groups: distinct contents among them.
        chance: expected top-1 of features that say nothing: mean group size / n, 1/n if all
            contents are distinct.
        ab: texts of a as queries, b as gallery.
        ba: texts of b as queries, a as gallery.
    """

    n: int
    n_groups: int
    chance: float
    ab: Direction
    ba: Direction

    @property
    def credit(self) -> FloatArray:
        """Top-1 credit of each content, averaged over directions, shape (n,): for intervals."""
        return (self.ab.credit + self.ba.credit) / 2

    @property
    def top1(self) -> float:
        """Top-1 accuracy, averaged over directions."""
        return float(self.credit.mean())

    def summary(self) -> dict[str, float | int]:
        """The figures of a table's row."""
        return {
            "top1": self.top1,
            "top1_ab": float(self.ab.credit.mean()),
            "top1_ba": float(self.ba.credit.mean()),
            "recall_at_5": float((self.ab.recall_at_5 + self.ba.recall_at_5).mean() / 2),
            "median_rank": float(np.median(np.concatenate([self.ab.rank, self.ba.rank]))),
            "n": self.n,
            "n_groups": self.n_groups,
            "chance": self.chance,
        }


def tolerance(d: int) -> float:
    """Difference below which two fp32 cosine similarities of d dimensions are equal.

    Products of one pair of rows at different places of a block were seen to differ by up to 13
    units of 2^-23 at d = 768, and by up to 0.7 sqrt(d) units at any d below 16,000.
    """
    return max(8.0, 2.0 * d**0.5) * 2.0**-23


def retrieve(
    a: Features,
    b: Features,
    *,
    groups: npt.ArrayLike | None = None,
    block: int = BLOCK,
) -> Retrieval | None:
    """Retrieve every text's content in the other version, both ways.

    Args:
        a: features of one version, shape (n, d); taken as fp32, on the device where they are.
        b: features of the other, shape (n, d); row i says the same content as row i of a.
        groups: content group of each row, shape (n,); a hit on any member counts. Default: every
            row its own.
        block: rows and columns of similarities held at once.

    Returns:
        None for fewer than two distinct contents: a gallery of one is always right.

    Raises:
        UsageError: shapes that do not fit, or a feature that is NaN or infinite.
    """
    pairs = Pairs.of(a, b, groups)
    n, d = pairs.a.shape
    if pairs.b.shape[1] != d:
        raise UsageError(
            f"features a have {d} dimensions, features b {pairs.b.shape[1]}: a cosine needs the "
            "same number; project them first"
        )
    if pairs.n_groups < 2:
        return None
    tol = tolerance(d)
    with torch.inference_mode(), full_precision(pairs.a.device):
        left, right = _unit_rows(pairs.a), _unit_rows(pairs.b)
        own_ab, own_ba, right_ab, right_ba = _own(left, right, pairs.groups, tol)
        above_ab, near_ab, above_ba, near_ba = _count(left, right, own_ab, own_ba, tol, block)
    sizes = np.bincount(pairs.groups)
    return Retrieval(
        n=n,
        n_groups=pairs.n_groups,
        chance=float((sizes[pairs.groups] / n).mean()),
        ab=_direction(above_ab, near_ab, right_ab),
        ba=_direction(above_ba, near_ba, right_ba),
    )


def _unit_rows(x: torch.Tensor) -> torch.Tensor:
    """Rows scaled to length 1; a row of zeros stays, its cosine with anything is 0."""
    if not x.numel():
        return x
    tiny = torch.finfo(torch.float32).tiny
    x = x / x.abs().amax(dim=1, keepdim=True).clamp_min(tiny)  # else 1e20 squared overflows
    return x.div_(torch.linalg.vector_norm(x, dim=1, keepdim=True).clamp_min_(tiny))


def _own(
    a: torch.Tensor, b: torch.Tensor, codes: npt.NDArray[np.int64], tol: float
) -> tuple[torch.Tensor, torch.Tensor, FloatArray, FloatArray]:
    """Similarity of each text to its nearest counterpart, and how many counterparts are as near.

    Returns:
        For texts of a, and for texts of b, shape (n,): similarities, then counts.
    """
    first, second = (torch.from_numpy(x).to(a.device) for x in _pairs_within(codes))
    similarity = torch.cat(
        [
            (a[i] * b[j]).sum(dim=1)
            for i, j in zip(first.split(BLOCK), second.split(BLOCK), strict=True)
        ]
    )
    found = []
    for query in (first, second):
        own = torch.full((len(a),), -torch.inf, device=a.device)
        own.scatter_reduce_(0, query, similarity, "amax")
        as_near = query[similarity >= own[query] - tol]
        found.append((own, torch.bincount(as_near, minlength=len(a)).double().cpu().numpy()))
    (own_ab, right_ab), (own_ba, right_ba) = found
    return own_ab, own_ba, right_ab, right_ba


def _pairs_within(
    codes: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All ordered pairs (i, j) of rows of the same group, i = j among them."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    start = np.cumsum(sizes) - sizes
    count = sizes[codes]
    first = np.repeat(np.arange(len(codes)), count)
    within = np.arange(len(first)) - np.repeat(np.cumsum(count) - count, count)
    return first, order[start[codes[first]] + within]


def _count(
    a: torch.Tensor,
    b: torch.Tensor,
    own_ab: torch.Tensor,
    own_ba: torch.Tensor,
    tol: float,
    block: int,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Candidates above, and candidates as near as, each text's own; for a, then for b; (n,)."""
    n = len(a)
    side = min(block, n)
    similarity, mask = torch.empty((2, side * side), device=a.device)
    # at least ... and above ..., for texts of a (rows) and of b (columns)
    counts = torch.zeros((4, n), dtype=torch.float64, device=a.device)
    bounds = (own_ab - tol, own_ab + tol, own_ba - tol, own_ba + tol)
    starts = range(0, n, side)
    hidden = None if n >= _PROGRESS_FROM else True  # None: hidden unless in a terminal
    for row in tqdm(starts, desc="retrieval", leave=False, disable=hidden):
        rows = slice(row, row + side)
        for column in starts:
            columns = slice(column, column + side)
            shape = (len(a[rows]), len(b[columns]))
            size = shape[0] * shape[1]
            s, m = similarity[:size].view(shape), mask[:size].view(shape)
            torch.mm(a[rows], b[columns].T, out=s)
            # The mask is fp32, not bool: sums of it are several times faster, and exact.
            counts[0, rows] += torch.ge(s, bounds[0][rows, None], out=m).sum(dim=1)
            counts[1, rows] += torch.gt(s, bounds[1][rows, None], out=m).sum(dim=1)
            counts[2, columns] += torch.ge(s, bounds[2][columns], out=m).sum(dim=0)
            counts[3, columns] += torch.gt(s, bounds[3][columns], out=m).sum(dim=0)
    at_least_ab, above_ab, at_least_ba, above_ba = counts.cpu().numpy()
    return above_ab, at_least_ab - above_ab, above_ba, at_least_ba - above_ba


def _direction(above: FloatArray, near: FloatArray, right: FloatArray) -> Direction:
    """Fair tie-breaking: ``right`` of the ``near`` candidates at the same distance are right."""
    near = np.maximum(near, right)
    return Direction(
        credit=np.where(above < 1, right / near, 0.0),
        recall_at_5=_recall(5, above, near, right),
        rank=above + (near + 1) / (right + 1),
    )


def _recall(m: int, above: FloatArray, near: FloatArray, right: FloatArray) -> FloatArray:
    """Chance that a right candidate is among the first m, ties in random order, shape (n,)."""
    miss = np.ones(len(above))
    for drawn in range(m):
        here = above + drawn < m  # places left for ties after ``drawn`` of them were wrong ones
        wrong = np.maximum(near - right - drawn, 0) / np.maximum(near - drawn, 1)
        miss = np.where(here, miss * wrong, miss)
    return 1 - miss
