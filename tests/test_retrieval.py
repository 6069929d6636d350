"""Retrieval: exact ranks both ways, ties shared, content groups credited."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from style_overlap.errors import UsageError
from style_overlap.probe.retrieval import BLOCK, retrieve, tolerance

sizes = st.integers(2, 40)
dims = st.integers(1, 24)
blocks = st.sampled_from([1, 2, 7, 16, 1024])
seeds = st.integers(0, 2**32 - 1)


def noisy_pair(n: int, d: int, seed: int, noise: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    content = rng.normal(size=(n, d))
    a, b = content + noise * rng.normal(size=(2, n, d))
    return a.astype(np.float32), b.astype(np.float32)


def by_the_book(a: np.ndarray, b: np.ndarray, groups: np.ndarray) -> dict[str, np.ndarray]:
    """One query at a time in fp64: a gallery in random order, so ties by counting."""
    a, b = (x.astype(np.float64) for x in (a, b))
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    credit, rank = [], []
    for query, group in zip(a, groups, strict=True):
        similarity, right = b @ query, groups == group
        best = similarity[right].max()
        above = (similarity > best + tolerance(a.shape[1])).sum()
        near = np.abs(similarity - best) <= tolerance(a.shape[1])
        credit.append((near & right).sum() / near.sum() if above == 0 else 0.0)
        rank.append(above + (near.sum() + 1) / ((near & right).sum() + 1))
    return {"credit": np.array(credit), "rank": np.array(rank)}


@given(sizes, dims, blocks, seeds, st.booleans())
@settings(max_examples=80, deadline=None)
def test_agrees_with_one_query_at_a_time(n, d, block, seed, grouped):
    a, b = noisy_pair(n, d, seed)
    groups = np.random.default_rng(seed).integers(0, n, n) if grouped else np.arange(n)
    result = retrieve(a, b, groups=groups, block=block)
    if len(set(groups)) < 2:
        assert result is None
        return
    for direction, queries, gallery in ((result.ab, a, b), (result.ba, b, a)):
        expected = by_the_book(queries, gallery, groups)
        np.testing.assert_allclose(direction.credit, expected["credit"])
        np.testing.assert_allclose(direction.rank, expected["rank"])


@given(st.integers(2, 300), st.integers(1, 1500), blocks, seeds)
@example(257, 768, 64, 0)
@settings(max_examples=40, deadline=None)
def test_constant_features_score_exactly_chance(n, d, block, seed):
    rng = np.random.default_rng(seed)
    vector = rng.choice([rng.normal(size=d), rng.random(d), np.ones(d), rng.random(d) ** -2])
    a = np.repeat(vector[None].astype(np.float32), n, axis=0)
    b = a * np.float32(rng.uniform(0.1, 9))
    result = retrieve(a, b, block=max(block, n // 20 + 1))
    for direction in (result.ab, result.ba):
        assert (direction.credit == 1 / n).all()
        assert (direction.rank == (n + 1) / 2).all()
        np.testing.assert_allclose(direction.recall_at_5, min(1, 5 / n))
    assert result.top1 == pytest.approx(1 / n)
    assert result.chance == pytest.approx(1 / n)


def test_zero_features_score_chance_too():
    result = retrieve(np.zeros((50, 8)), np.zeros((50, 8)))
    assert result.top1 == pytest.approx(1 / 50)


def test_one_constant_version_scores_chance_in_both_directions():
    a, _ = noisy_pair(60, 12, 0)
    result = retrieve(a, np.ones((60, 12)))
    assert result.ab.credit.mean() == pytest.approx(1 / 60)
    # all texts of b ask the same question: one text of a answers it for one of them
    assert result.ba.credit.mean() == pytest.approx(1 / 60)


def test_features_that_differ_by_rounding_alone_are_tied():
    rng = np.random.default_rng(0)
    vector = rng.normal(size=(1, 384)).astype(np.float32)
    rounding = 1 + 2.0**-23 * rng.integers(-1, 2, size=(100, 384))
    a = (vector * rounding).astype(np.float32)
    result = retrieve(a, a)  # the same rounding on both sides must not be found again
    assert result.top1 == pytest.approx(1 / 100)


@given(sizes, dims, blocks, seeds)
@settings(max_examples=40, deadline=None)
def test_order_of_the_contents_changes_nothing(n, d, block, seed):
    rng = np.random.default_rng(seed)
    # Few values, so that there are many ties.
    a, b = rng.integers(-1, 2, size=(2, n, d)).astype(np.float32)
    groups = rng.integers(0, n, n)
    order = rng.permutation(n)
    here = retrieve(a, b, groups=groups, block=block)
    there = retrieve(a[order], b[order], groups=groups[order], block=block)
    if here is None:
        assert there is None
        return
    for name in ("ab", "ba"):
        one, other = getattr(here, name), getattr(there, name)
        for field in ("credit", "rank", "recall_at_5"):
            np.testing.assert_array_equal(getattr(one, field)[order], getattr(other, field))


@given(sizes, dims, seeds)
@settings(max_examples=30, deadline=None)
def test_swapping_the_versions_swaps_the_directions(n, d, seed):
    a, b = noisy_pair(n, d, seed)
    here, there = retrieve(a, b), retrieve(b, a)
    np.testing.assert_array_equal(here.ab.rank, there.ba.rank)
    np.testing.assert_array_equal(here.ba.rank, there.ab.rank)


@given(sizes, st.integers(2, 24), seeds)
@settings(max_examples=30, deadline=None)
def test_cosine_ignores_lengths_and_a_common_rotation(n, d, seed):
    a, b = noisy_pair(n, d, seed)
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    lengths = rng.uniform(0.01, 100, size=(2, n, 1))
    here = retrieve(a, b)
    there = retrieve(lengths[0] * (a @ rotation), lengths[1] * (b @ rotation))
    np.testing.assert_allclose(here.ab.rank, there.ab.rank)
    np.testing.assert_allclose(here.ba.rank, there.ba.rank)


def test_identical_features_are_found_and_unrelated_ones_are_not():
    a, _ = noisy_pair(400, 64, 0)
    same = retrieve(a, a)
    assert same.top1 == 1
    assert same.summary()["median_rank"] == 1
    unrelated = retrieve(a, np.roll(a, 1, axis=0)[:, ::-1].copy())
    assert unrelated.top1 < 0.02
    assert unrelated.summary()["median_rank"] == pytest.approx(200, abs=30)


def test_a_hit_on_any_member_of_the_group_counts():
    # Contents 0 and 1 are the same; each of them finds the other one's text.
    a = np.eye(4, dtype=np.float32)
    b = a[[1, 0, 2, 3]]
    assert retrieve(a, b).top1 == 0.5
    grouped = retrieve(a, b, groups=[7, 7, 8, 9])
    assert grouped.top1 == 1
    assert (grouped.n, grouped.n_groups) == (4, 3)
    assert grouped.chance == pytest.approx((2 + 2 + 1 + 1) / 16)


def test_constant_features_score_the_chance_of_the_groups():
    groups = [0, 0, 0, 1, 2, 2]
    result = retrieve(np.ones((6, 3)), np.ones((6, 3)), groups=groups)
    assert result.top1 == pytest.approx(result.chance)
    assert result.chance == pytest.approx((3 * 3 + 1 + 2 * 2) / 36)


def test_recall_at_5_is_the_expected_value_of_a_fair_draw():
    # 3 candidates above, then 4 ties with one right: places 4 and 5 go to two of the four.
    query = np.array([1.0, 0.0])
    near, far = np.array([1.0, 0.1]), np.array([1.0, 1.0])
    b = np.stack([far, near, near, near, far, far, far, -query])
    a = np.stack([query, *-np.ones((7, 2))])
    direction = retrieve(a, b).ab
    assert direction.recall_at_5[0] == pytest.approx(1 / 2)
    assert direction.rank[0] == pytest.approx(3 + 5 / 2)
    assert direction.credit[0] == 0


@pytest.mark.parametrize(
    ("n", "groups"), [(0, None), (1, None), (3, [4, 4, 4])], ids=["none", "one", "one content"]
)
def test_a_gallery_of_one_content_has_no_score(n, groups):
    assert retrieve(np.ones((n, 3)), np.ones((n, 3)), groups=groups) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_feature_that_is_no_number_is_an_error_with_its_row(bad):
    a, b = noisy_pair(5, 3, 0)
    b[3, 1] = bad
    with pytest.raises(UsageError, match=r"features b are NaN or infinite in 1 of 5 rows.*row 3"):
        retrieve(a, b)


def test_shapes_that_do_not_fit_are_an_error():
    with pytest.raises(UsageError, match=r"\(4, 3\) and \(5, 3\): expected the same contents"):
        retrieve(np.ones((4, 3)), np.ones((5, 3)))
    with pytest.raises(UsageError, match="a have 3 dimensions, features b 2"):
        retrieve(np.ones((4, 3)), np.ones((4, 2)))
    with pytest.raises(UsageError, match=r"shape \(4,\): expected \(n, d\)"):
        retrieve(np.ones(4), np.ones(4))
    with pytest.raises(UsageError, match=r"groups have shape \(3,\)"):
        retrieve(np.ones((4, 3)), np.ones((4, 3)), groups=[1, 2, 3])


def test_a_bf16_training_step_around_it_changes_nothing():
    a, b = (torch.from_numpy(x) for x in noisy_pair(300, 64, 0, noise=1.5))
    outside = retrieve(a, b)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", torch.bfloat16):
            inside = retrieve(a.clone().requires_grad_(), b)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    np.testing.assert_array_equal(outside.ab.rank, inside.ab.rank)
    assert 0.1 < outside.top1 < 0.9  # an example in which precision could matter


class Largest(TorchDispatchMode):
    """Remembers the most numbers that any tensor within it had."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return made


def test_no_matrix_of_all_similarities_is_ever_made():
    n = 6_000
    a, b = noisy_pair(n, 8, 0)
    tracemalloc.start()  # of numpy
    try:
        with Largest() as largest:
            retrieve(a, b, groups=np.arange(n) // 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 8 * n < largest.numbers <= 2 * BLOCK**2 < n * n / 10
    assert peak < n * n / 10


def test_huge_and_tiny_features_keep_their_direction():
    a, b = noisy_pair(30, 8, 0)
    here = retrieve(a, b)
    there = retrieve(a * np.float32(1e30), b * np.float32(1e-30))
    np.testing.assert_array_equal(here.ab.rank, there.ab.rank)
