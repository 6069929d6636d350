"""Sampling at a target overlap from data that is not parallel: some contents have all styles.

The sample has the form that ``overlap.sample`` gives it: n contents per style, of which
n_p = floor(n * alpha) are shared by all k styles and n - n_p are exclusive to one. A content that
has several styles can be shared or be exclusive to any one of them, so that the largest n is a
matching problem. With R contents that have all styles and are not used as shared ones, n is
possible if and only if n_p contents have all styles and, by Hall's theorem, for every set U of
styles

    (n - n_p) |U|  <=  R + number of other contents with a style in U
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from style_overlap.corpus.incidence import Incidence, Ints
from style_overlap.errors import UsageError
from style_overlap.names import AlphaLike, alpha_text, as_alpha

MAX_K = 10
"""Sets of styles are gone through one by one: there are 2^k."""

FEWEST = 10
"""Contents per style from which a split into train, validation and test has all three."""


@dataclass(frozen=True)
class Plan:
    """The largest sample of k styles.

    Attributes:
        styles: the styles.
        alpha: overlap asked for.
        n: contents per style.
        n_shared: of these, shared by all styles.
        in_common: contents that have all of the styles.
    """

    styles: tuple[str, ...]
    alpha: Decimal
    n: int
    n_shared: int
    in_common: int

    @property
    def k(self) -> int:
        """Number of styles."""
        return len(self.styles)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "k": self.k,
            "styles": list(self.styles),
            "alpha": alpha_text(self.alpha),
            "realised": self.n_shared / self.n,
            "n": self.n,
            "n_shared": self.n_shared,
            "in_common": self.in_common,
        }


@dataclass(frozen=True, eq=False)
class Drawn:
    """The examples of a plan; three arrays of shape (k * n,), in the order of the data.

    Attributes:
        row: which example of the data.
        style: index into the plan's styles.
        shared: whether the content is shared by all styles.
    """

    row: Ints
    style: Ints
    shared: npt.NDArray[np.bool_]


def plan(incidence: Incidence, k: int, alpha: AlphaLike) -> Plan:
    """The largest sample of the first k styles at an overlap.

    Raises:
        UsageError: there is none; says what is lacking.
    """
    alpha = as_alpha(alpha)
    if not 2 <= k <= min(len(incidence.styles), MAX_K):
        raise UsageError(
            f"k is {k}: expected 2 to {min(len(incidence.styles), MAX_K)}, the data have "
            f"{len(incidence.styles)} styles"
        )
    styles = incidence.styles[:k]
    types = np.bincount(incidence.masks(k), minlength=1 << k)
    low, high = 0, int(types[1:].sum()) + 1  # the largest n that works is in [low, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _possible(types, middle, alpha, k) else (low, middle)
    if low == 0:
        raise UsageError(_impossible(types, styles, alpha))
    in_common = int(types[(1 << k) - 1])
    return Plan(styles, alpha, low, _shared(low, alpha), in_common)


def plans(incidence: Incidence, alpha: AlphaLike) -> list[Plan]:
    """The largest sample for every k that has one, k ascending."""
    found = []
    for k in range(2, min(len(incidence.styles), MAX_K) + 1):
        types = np.bincount(incidence.masks(k), minlength=1 << k)
        if not _possible(types, 1, as_alpha(alpha), k):
            break  # nor with one style more
        found.append(plan(incidence, k, alpha))
    return found


def largest(incidence: Incidence, alpha: AlphaLike, fewest: int = FEWEST) -> Plan:
    """The sample of the most styles that has ``fewest`` contents per style.

    Raises:
        UsageError: not even two styles have as many; says why.
    """
    enough = [found for found in plans(incidence, alpha) if found.n >= fewest]
    if enough:
        return enough[-1]
    two = plan(incidence, 2, alpha)
    raise UsageError(
        f"at alpha={alpha_text(alpha)} {' and '.join(two.styles)} allow {two.n} contents each, "
        f"{fewest} are needed: {two.in_common} contents have both; ask for a lower alpha, or "
        "name styles that share more contents"
    )


def _shared(n: int, alpha: Decimal) -> int:
    return int((n * alpha).to_integral_value(ROUND_FLOOR))


def _possible(types: Ints, n: int, alpha: Decimal, k: int) -> bool:
    full = (1 << k) - 1
    shared = _shared(n, alpha)
    spare = int(types[full]) - shared
    if spare < 0:
        return False
    masks = np.arange(1 << k)
    for chosen in range(1, 1 << k):
        others = int(types[(masks & chosen > 0) & (masks != full)].sum())
        if (n - shared) * chosen.bit_count() > spare + others:
            return False
    return True


def _impossible(types: Ints, styles: Sequence[str], alpha: Decimal) -> str:
    names = ", ".join(styles)
    if alpha == 1 and not types[-1]:
        return f"no content has all of {names}: nothing can be shared at alpha=1.0"
    for place, name in enumerate(styles):
        if not types[(np.arange(len(types)) >> place) & 1 == 1].sum():
            return f"style {name} has no contents"
    return f"{names} have too few contents of their own for even one each at alpha={alpha}"


def draw(incidence: Incidence, chosen: Plan) -> Drawn:
    """The examples of a plan: one for each style and content, the first in the data.

    Shared contents are spread evenly over the data. Where a content may belong to several styles, a
    maximum flow decides how many of its like each style gets; each style's are neighbours.
    """
    k, n_exclusive = chosen.k, chosen.n - chosen.n_shared
    rows, masks = incidence.rows(k), incidence.masks(k)
    full = (1 << k) - 1
    common = np.flatnonzero(masks == full)
    spread = np.linspace(0, len(common) - 1, chosen.n_shared).round().astype(int)
    shared = common[spread] if chosen.n_shared else common[:0]
    free = np.ones(len(masks), dtype=bool)
    free[shared] = False
    quotas = _flow(np.bincount(masks[free], minlength=full + 1), n_exclusive, k)
    content, style = [np.repeat(shared, k)], [np.tile(np.arange(k), len(shared))]
    for mask in range(1, full + 1):
        members = np.flatnonzero(free & (masks == mask))
        start = 0
        for label in range(k):
            taken = members[start : start + quotas[label, mask]]
            start += len(taken)
            content.append(taken)
            style.append(np.full(len(taken), label))
    contents, labels = np.concatenate(content), np.concatenate(style)
    row = rows[contents, labels]
    order = np.argsort(row, kind="stable")
    is_shared = np.arange(len(row)) < k * len(shared)
    return Drawn(row[order], labels[order], is_shared[order])


def _flow(types: Ints, each: int, k: int) -> Any:
    """How many contents of each kind every style gets, shape (k, 2^k); each style gets ``each``."""
    import scipy.sparse as sp

    source, first_type = 0, 1 + k
    sink = first_type + (1 << k)
    capacity = sp.lil_matrix((sink + 1, sink + 1), dtype=np.int32)
    for label in range(k):
        capacity[source, 1 + label] = each
        for mask in range(1, 1 << k):
            if mask >> label & 1 and types[mask]:
                capacity[1 + label, first_type + mask] = int(types[mask])
    for mask in range(1, 1 << k):
        capacity[first_type + mask, sink] = int(types[mask])
    flow = sp.csgraph.maximum_flow(capacity.tocsr(), source, sink).flow
    return flow[1 : 1 + k, first_type:sink].toarray()
