"""Whitening and canonical directions: well-conditioned, and the same after a rotation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from style_overlap.probe.whitening import Whitening, paired_axes


def uneven(n: int = 500, d: int = 12, *, seed: int = 0) -> torch.Tensor:
    """Features whose directions differ in size ten-thousandfold, in no particular axes."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    sized = rng.normal(size=(n, d)) * np.logspace(-2, 2, d)
    return torch.from_numpy(sized @ rotation + 5).float()


def rotation(d: int) -> torch.Tensor:
    return torch.from_numpy(np.linalg.qr(np.random.default_rng(9).normal(size=(d, d)))[0]).float()


def test_every_direction_has_the_same_size_afterwards():
    x = uneven()
    white = Whitening.of(x, ridge=1e-12)(x)
    torch.testing.assert_close(white.mean(dim=0), torch.zeros(12), atol=1e-3, rtol=0)
    torch.testing.assert_close(white.T @ white / 500, torch.eye(12), atol=0.01, rtol=0)


def test_ridge_keeps_small_directions_small():
    x = uneven()
    variance = torch.linalg.eigvalsh(Whitening.of(x, ridge=1.0)(x).T.cov(correction=0))
    assert variance[0] < 1e-3
    assert variance[5] == pytest.approx(0.5, abs=1e-3)  # the median one
    assert 0.99 < variance[-1] < 1


def test_one_huge_direction_does_not_hide_the_others():
    x = uneven()
    huge = x + 10 * torch.randn(500, 1, generator=torch.Generator().manual_seed(0)) * x[:1]
    variance = torch.linalg.eigvalsh(Whitening.of(huge, ridge=0.1)(huge).T.cov(correction=0))
    plain = torch.linalg.eigvalsh(Whitening.of(x, ridge=0.1)(x).T.cov(correction=0))
    assert (variance > 0.5).sum() >= (plain > 0.5).sum() - 1


def test_a_rotation_only_flips_signs():
    x = uneven()
    here, there = (Whitening.of(z, ridge=1e-3)(z) for z in (x, x @ rotation(12)))
    torch.testing.assert_close(here.abs(), there.abs(), atol=5e-3, rtol=0)


def test_projections_on_canonical_directions_survive_a_rotation_of_one_version():
    a = uneven()
    b = (
        a @ rotation(12)
        + 0.1 * torch.from_numpy(np.random.default_rng(3).normal(size=(500, 12))).float()
    )

    def cosines(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        white_a, white_b = (Whitening.of(z, ridge=1e-3)(z) for z in (a, b))
        left, right = paired_axes(white_a, white_b, 5)
        assert left.shape == right.shape == (12, 5)
        normal = torch.nn.functional.normalize
        return normal(white_a @ left, dim=1) @ normal(white_b @ right, dim=1).T

    torch.testing.assert_close(cosines(a, b), cosines(a @ rotation(12), b), atol=5e-3, rtol=0)


def test_fewer_texts_than_dimensions_stay_finite():
    x = torch.randn(10, 40, generator=torch.Generator().manual_seed(0))
    white = Whitening.of(x, ridge=1e-3)(torch.randn(5, 40))
    assert torch.isfinite(white).all()


@pytest.mark.parametrize("value", [0.0, 1.0, -3e4])
def test_constant_features_become_zero(value):
    whitening = Whitening.of(torch.full((50, 6), value), ridge=1e-3)
    assert whitening.is_constant
    assert not whitening(torch.full((3, 6), value)).any()
    assert not Whitening.of(uneven(), ridge=1e-3).is_constant


def test_axes_are_as_many_as_the_smaller_version_has():
    a, b = torch.randn(50, 6), torch.randn(50, 4)
    left, right = paired_axes(a, b, 16)
    assert (left.shape, right.shape) == ((6, 4), (4, 4))
