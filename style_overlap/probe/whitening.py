"""A common footing for features: every direction the same size, the strongest pairings first.

The features of a fine-tuned classifier differ in size by direction, up to a thousandfold: most of
their variance is the class, and what is left of the content lies in the rest. A linear projector
can make up for that, but gradient steps get there slowly. Of the h of a MiniLM after one epoch at
alpha 0 (KJV and ASV, 290 contents), a hundred epochs found .58 after centring and one common
scale, and .99 from here. The projectors being linear, neither step adds anything that they could
not have learned.

Both steps follow a rotation of the features exactly, so that a rotation changes no result.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

_ROUNDING = 1e-5  # of the features' length: what is smaller, fp32 forward passes may have made up


@dataclass(frozen=True, eq=False)
class Whitening:
    """x -> (x - mean) @ transform: principal axes, each scaled to about unit variance.

    Attributes:
        mean: mean training feature, shape (d,).
        transform: shape (d, d); all zeros for constant features.
    """

    mean: torch.Tensor
    transform: torch.Tensor

    @classmethod
    def of(cls, x: torch.Tensor, ridge: float) -> Whitening:
        """Whitening of training features x, shape (n, d), n >= 2.

        Args:
            x: features.
            ridge: share of the median variance that is added to every axis, so that far smaller
                ones stay small. The median, since one large axis must not hide all others.
        """
        exact = x.double()  # in fp32 the small axes would drown in the rounding of the large one
        mean = exact.mean(dim=0)
        centred = exact - mean
        variance, axes = torch.linalg.eigh(centred.T @ centred / len(x))
        length = exact.square().sum(dim=1).mean()
        rounding = _ROUNDING**2 * length
        if variance.sum() <= rounding:
            return cls(mean.float(), torch.zeros_like(axes).float())
        present = variance[-min(len(x) - 1, len(variance)) :]  # n texts span n - 1 axes at most
        floor = ridge * present.median().clamp_min(0) + rounding / len(variance)
        scale = (variance.clamp_min(0) + floor).rsqrt()
        return cls(mean.float(), (axes * scale).float())

    @property
    def is_constant(self) -> bool:
        """Whether the features were constant: all of them become zero."""
        return not bool(self.transform.any())

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Whiten features of shape (n, d)."""
        return (x - self.mean) @ self.transform


def paired_axes(a: torch.Tensor, b: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Canonical directions of whitened pairs, the best correlated ones first.

    The singular vectors of the cross-covariance, each times the root of its correlation, so that
    the cosine of two projections weighs directions by what they share.

    Args:
        a: whitened training features of one version, shape (n, d_a).
        b: of the other, shape (n, d_b).
        dim: directions wanted; there are min(d_a, d_b) at most.

    Returns:
        Weights of shapes (d_a, p) and (d_b, p), p = min(dim, d_a, d_b).
    """
    left, correlation, right = torch.linalg.svd(a.T @ b / len(a), full_matrices=False)
    root = (correlation[:dim] / correlation[0].clamp_min(1e-12)).sqrt()
    return left[:, :dim] * root, right[:dim].T * root
