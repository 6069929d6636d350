"""Features of the same contents in two versions: what projectors and retrieval work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from style_overlap.errors import UsageError

Features: TypeAlias = npt.ArrayLike | torch.Tensor


@dataclass(frozen=True, eq=False)
class Pairs:
    """Paired features, in fp32, on the device where they were.

    Attributes:
        a: features of one version, shape (n, d_a).
        b: features of the other, shape (n, d_b); row i says the same content as row i of a.
        groups: content group of each row as a number from 0, shape (n,); equal for contents that
            are (nearly) the same.
    """

    a: torch.Tensor
    b: torch.Tensor
    groups: npt.NDArray[np.int64]

    @classmethod
    def of(cls, a: Features, b: Features, groups: npt.ArrayLike | None = None) -> Pairs:
        """Check and convert.

        Args:
            a: shape (n, d_a), any number type.
            b: shape (n, d_b).
            groups: any values, shape (n,). Default: every row its own.

        Raises:
            UsageError: shapes that do not fit, or a feature that is NaN or infinite.
        """
        left, right = _features(a, "a"), _features(b, "b")
        if len(left) != len(right):
            raise UsageError(
                f"features a and b have shapes {tuple(left.shape)} and {tuple(right.shape)}: "
                "expected the same contents in the same order"
            )
        return cls(left, right, _codes(groups, len(left)))

    @property
    def n_groups(self) -> int:
        """Number of distinct contents."""
        return int(self.groups.max(initial=-1)) + 1

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.groups)


def _features(values: Features, side: str) -> torch.Tensor:
    x = torch.as_tensor(values).detach().to(torch.float32)
    if x.ndim != 2:
        raise UsageError(f"features {side} have shape {tuple(x.shape)}: expected (n, d)")
    bad = ~torch.isfinite(x).all(dim=1)
    if bad.any():
        raise UsageError(
            f"features {side} are NaN or infinite in {int(bad.sum())} of {len(x)} rows, first in "
            f"row {int(bad.nonzero()[0])}: extract them in fp32, or look for a diverged checkpoint"
        )
    return x


def _codes(groups: npt.ArrayLike | None, n: int) -> npt.NDArray[np.int64]:
    if groups is None:
        return np.arange(n)
    given = np.asarray(groups)
    if given.shape != (n,):
        raise UsageError(f"groups have shape {given.shape}: expected one group a row, ({n},)")
    return np.unique(given, return_inverse=True)[1].astype(np.int64)
