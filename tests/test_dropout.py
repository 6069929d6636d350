"""Dropout's masks while training on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import dropout, scaled_dot_product_attention

from style_overlap.trainers.dropout import bernoulli_, fast_dropout

N = 400_000
CPU = torch.device("cpu")


def mask(seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    return dropout(torch.ones(N), 0.1)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.003])
def test_elements_are_dropped_by_their_probability_and_the_rest_is_scaled(p):
    torch.manual_seed(1)
    with fast_dropout(CPU):
        found = dropout(torch.ones(N), p)
    assert set(found.unique().tolist()) == {0.0, torch.tensor(1 / (1 - p)).item()}
    assert abs((found == 0).float().mean().item() - p) < 5 * (p * (1 - p) / N) ** 0.5


def test_neighbours_share_a_random_number_and_are_independent_all_the_same():
    torch.manual_seed(2)
    drawn = bernoulli_(torch.empty(N), 0.5).numpy()
    for width in (2, 3, 4, 5, 8):
        rows = drawn[: N // width * width].reshape(-1, width)
        correlation = np.corrcoef(rows.T) - np.eye(width)
        assert np.abs(correlation).max() < 5 * (width / N) ** 0.5


def test_attention_draws_its_masks_so_too():
    q, k = torch.zeros(2, 1, 4, 64, 8)
    v = torch.ones(1, 4, 64, 8)
    with fast_dropout(CPU):
        torch.manual_seed(3)
        found = scaled_dot_product_attention(q, k, v, dropout_p=0.25)
    torch.manual_seed(3)
    kept = bernoulli_(torch.empty(1, 4, 64, 64), 0.75)
    expected = kept.mean(-1, keepdim=True).expand_as(found) / 0.75
    torch.testing.assert_close(found, expected)


def test_a_seed_gives_the_same_masks_again_and_another_seed_others():
    with fast_dropout(CPU):
        assert torch.equal(mask(0), mask(0))
        assert not torch.equal(mask(0), mask(1))


def test_gradients_go_where_the_mask_is_not_zero():
    x = torch.ones(1000, requires_grad=True)
    with fast_dropout(CPU):
        dropout(x, 0.3).sum().backward()
        found = dropout(x, 0.3)
    assert x.grad is not None
    assert set(x.grad.unique().tolist()) == {0.0, found.max().item()}


def test_torchs_own_masks_are_back_afterwards_even_after_an_error():
    before = mask()
    with fast_dropout(CPU):
        inside = mask()
    assert torch.equal(mask(), before)
    assert not torch.equal(inside, before)
    with pytest.raises(ValueError, match="broke"), fast_dropout(CPU):
        raise ValueError("broke")
    assert torch.equal(mask(), before)


def test_on_another_device_nothing_changes():
    before = mask()
    with fast_dropout(torch.device("meta")):
        assert torch.equal(mask(), before)
    with fast_dropout(CPU):
        assert not torch.equal(mask(), before)


@pytest.mark.parametrize("p", [0.0, 1.0, 1e-9, 1 - 1e-9])
def test_certainty_is_certain(p):
    assert bernoulli_(torch.empty(1000), p).unique().tolist() == [round(p)]


def test_any_shape_layout_and_number_format():
    torch.manual_seed(4)
    whole = torch.full((30, 40), 7.0)
    bernoulli_(whole[:, ::2], 0.5)
    assert set(whole[:, ::2].unique().tolist()) == {0.0, 1.0}
    assert whole[:, 1::2].unique().tolist() == [7.0]
    for dtype in (torch.bool, torch.int64, torch.float64, torch.bfloat16, torch.float16):
        found = bernoulli_(torch.empty(1001, dtype=dtype), 0.5)
        assert found.dtype == dtype
        assert 350 < found.double().sum() < 650
    assert bernoulli_(torch.empty(0, 3), 0.5).shape == (0, 3)
    assert bernoulli_(torch.empty(()), 0.5).item() in (0.0, 1.0)
