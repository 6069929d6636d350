"""Laws of the sampler and of the measure (Eq. 1)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from style_overlap import overlap
from style_overlap.draws import order_of
from style_overlap.entropy import measure
from style_overlap.errors import UsageError
from style_overlap.overlap import ASSIGNMENTS, SAMPLING, Sample, sample


@dataclass
class Contents:
    """A corpus as the sampler sees it."""

    size: int
    styles: tuple[str, ...] = ("A", "B", "C", "D", "E")
    fingerprint: str = "f"
    groups: np.ndarray = field(default=None)

    def __post_init__(self):
        if self.groups is None:
            self.groups = np.arange(self.size)

    def __len__(self) -> int:
        return self.size


alphas = st.integers(0, 100).map(lambda percent: Decimal(percent) / 100)
settings = st.fixed_dictionaries(
    {
        "k": st.integers(2, 5),
        "seed": st.integers(0, 10_000),
        "assignment": st.sampled_from(ASSIGNMENTS),
    }
)
sizes = st.integers(5, 400)


def pools(drawn: Sample) -> tuple[set[int], dict[int, set[int]]]:
    """Shared contents, and the exclusive contents of every style."""
    shared: set[int] = set()
    exclusive: dict[int, set[int]] = {style: set() for style in range(drawn.k)}
    for split in drawn.splits.values():
        for content, style, is_shared in zip(split.content, split.style, split.shared, strict=True):
            if is_shared:
                shared.add(int(content))
            else:
                exclusive[int(style)].add(int(content))
    return shared, exclusive


@given(sizes, alphas, settings)
def test_every_style_gets_n_contents_of_which_exactly_the_floor_is_shared(size, alpha, kwargs):
    drawn = sample(Contents(size), alpha=alpha, **kwargs)
    n = size // kwargs["k"]
    n_shared = n * Fraction(alpha) // 1
    shared, exclusive = pools(drawn)
    assert (drawn.n, drawn.n_shared, len(shared)) == (n, n_shared, n_shared)
    assert {len(own) for own in exclusive.values()} == {n - n_shared}
    styles = np.concatenate([split.style for split in drawn.splits.values()])
    assert np.bincount(styles, minlength=drawn.k).tolist() == [n] * drawn.k


@given(sizes, alphas, settings)
def test_exclusive_contents_have_one_style_and_shared_ones_have_all(size, alpha, kwargs):
    drawn = sample(Contents(size), alpha=alpha, **kwargs)
    styles_of: dict[int, list[int]] = {}
    for split in drawn.splits.values():
        for content, style in zip(split.content, split.style, strict=True):
            styles_of.setdefault(int(content), []).append(int(style))
    shared, _ = pools(drawn)
    for content, styles in styles_of.items():
        expected = list(range(drawn.k)) if content in shared else styles[:1]
        assert sorted(styles) == expected


@given(sizes, alphas, settings)
def test_realised_alpha_is_the_shared_part_whatever_k(size, alpha, kwargs):
    drawn = sample(Contents(size), alpha=alpha, **kwargs)
    assert drawn.realised["all"] == pytest.approx(drawn.n_shared / drawn.n, abs=1e-12)


@given(st.integers(1, 100), alphas, st.integers(0, 99), st.sampled_from(ASSIGNMENTS))
def test_realised_alpha_does_not_depend_on_k(n, alpha, seed, assignment):
    realised = [
        sample(Contents(n * k), k, alpha, seed, assignment).realised["all"] for k in (2, 3, 4, 5)
    ]
    assert realised == pytest.approx([realised[0]] * 4, abs=1e-12)


@given(sizes, alphas, alphas, settings)
def test_shared_chunks_stay_shared_and_exclusive_ones_keep_their_owner(size, one, two, kwargs):
    low, high = sorted((one, two))
    fewer, exclusive_low = pools(sample(Contents(size), alpha=low, **kwargs))
    more, exclusive_high = pools(sample(Contents(size), alpha=high, **kwargs))
    assert fewer <= more
    for style in exclusive_low:
        assert exclusive_high[style] <= exclusive_low[style]


@given(sizes, settings, st.data())
def test_a_content_is_in_the_same_split_at_every_alpha_and_k_and_groups_are_never_cut(
    size, kwargs, data
):
    groups = np.array(data.draw(st.lists(st.integers(0, size), min_size=size, max_size=size)))
    corpus = Contents(size, groups=groups)
    split_of_group: dict[int, str] = {}
    for k, alpha in ((kwargs["k"], "0"), (kwargs["k"], "0.55"), (2, "1"), (5, "0.2")):
        drawn = sample(corpus, k, alpha, kwargs["seed"], kwargs["assignment"])
        for name, split in drawn.splits.items():
            for group in groups[split.content]:
                assert split_of_group.setdefault(int(group), name) == name


@given(sizes, alphas, settings)
def test_same_seed_gives_the_same_sample(size, alpha, kwargs):
    one, two = (sample(Contents(size), alpha=alpha, **kwargs) for _ in range(2))
    assert one.fingerprint == two.fingerprint
    for name in one.splits:
        for column in ("content", "style", "shared"):
            np.testing.assert_array_equal(
                getattr(one.splits[name], column), getattr(two.splits[name], column)
            )


def bytes_of(drawn: Sample) -> bytes:
    return b"".join(
        np.stack([split.content, split.style, split.shared]).astype("<i8").tobytes()
        for split in drawn.splits.values()
    )


def test_the_sample_of_a_seed_is_the_one_that_it_was_in_the_first_version():
    """Whoever changes it has to raise ``SAMPLING``, which is in every fingerprint."""
    drawn = sample(Contents(997), 4, "0.3", seed=7, assignment="random")
    assert SAMPLING == 1
    assert hashlib.sha256(bytes_of(drawn)).hexdigest().startswith("c47661d3d581afd4")


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_several_threads_draw_the_same_sample_as_one(monkeypatch, assignment):
    corpus = Contents(3_001)
    alone = sample(corpus, 3, "0.4", 5, assignment)
    monkeypatch.setattr(overlap, "_MANY", 1)
    together = sample(corpus, 3, "0.4", 5, assignment)
    assert bytes_of(together) == bytes_of(alone)
    assert together.realised == alone.realised


@given(
    st.lists(st.integers(0, 2**64 - 1), unique=True)
    | st.lists(st.integers(2**63, 2**63 + 40), unique=True)  # told apart by their last bits alone
)
def test_the_order_of_draws_is_that_of_their_values(values):
    draws = np.array(values, np.uint64)
    assert order_of(draws).tolist() == np.argsort(draws).tolist()


@pytest.mark.case(18)
def test_fingerprint_follows_alpha_k_seed_assignment_and_corpus():
    base = {"corpus": Contents(100), "k": 2, "alpha": "0.4", "seed": 0, "assignment": "contiguous"}
    changes = {
        "corpus": Contents(100, fingerprint="other"),
        "k": 3,
        "alpha": "0.6",
        "seed": 1,
        "assignment": "random",
    }
    prints = [sample(**{**base, key: value}).fingerprint for key, value in changes.items()]
    assert len({sample(**base).fingerprint, *prints}) == 6
    assert sample(**{**base, "alpha": 0.40}).fingerprint == sample(**base).fingerprint


def test_contiguous_regions_are_runs_of_the_canonical_order_that_the_seed_rotates():
    for seed in (0, 1):
        _, exclusive = pools(sample(Contents(100), 2, 0, seed))
        assert exclusive[seed] == set(range(50))


def test_splits_are_80_10_10_within_every_region_and_pool():
    drawn = sample(Contents(6000), 3, "0.4", seed=5)
    for style in range(3):
        for shared in (True, False):
            sizes = [
                int(((split.style == style) & (split.shared == shared)).sum())
                for split in drawn.splits.values()
            ]
            parts = np.array(sizes) / sum(sizes)
            np.testing.assert_allclose(parts, [0.8, 0.1, 0.1], atol=0.01)


def test_shared_pool_takes_from_every_region_in_turn():
    shared, _ = pools(sample(Contents(300), 3, "0.29", seed=2))
    counts = np.bincount(np.array(sorted(shared)) // 100)
    assert counts.sum() == 29
    assert counts.max() - counts.min() <= 1


def test_first_examples_mix_the_styles():
    test = sample(Contents(2000), 2, 0).splits["test"]
    assert 4 <= test.style[:20].sum() <= 16


@pytest.mark.case(28)
def test_floors_are_exact_and_the_realised_overlap_is_reported():
    assert sample(Contents(200), 2, 0.29).n_shared == 29
    drawn = sample(Contents(14), 2, "0.4")
    assert (drawn.n, drawn.n_shared) == (7, 2)
    assert drawn.realised["all"] == pytest.approx(2 / 7)


@pytest.mark.case(28)
@pytest.mark.parametrize("alpha", [-0.1, 1.01, float("nan"), float("inf"), "a lot"])
def test_alpha_outside_0_to_1_is_one_clear_error(alpha):
    with pytest.raises(UsageError, match="expected a number from 0 to 1"):
        sample(Contents(100), 2, alpha)


@pytest.mark.case(28)
def test_too_few_contents_or_styles_are_clear_errors():
    with pytest.raises(UsageError, match="4 contents: k=5 styles need at least 5"):
        sample(Contents(4), 5, 0.4)
    with pytest.raises(UsageError, match="k is 6: expected 2 to 5"):
        sample(Contents(100), 6, 0.4)
    with pytest.raises(UsageError, match="k is 1"):
        sample(Contents(100), 1, 0.4)
    with pytest.raises(UsageError, match="contiguous or random"):
        sample(Contents(100), 2, 0.4, assignment="sorted")


labelled = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=2, max_size=60)


@given(labelled)
def test_measure_agrees_with_the_definition_and_stays_in_0_to_1(pairs):
    content, style = zip(*pairs, strict=True)
    assume(len(set(style)) > 1)

    def entropy(values):
        p = np.array([values.count(v) for v in set(values)]) / len(values)
        return -(p * np.log2(p)).sum()

    mutual = entropy(content) + entropy(style) - entropy(pairs)
    alpha = measure(content, style)
    assert 0 <= alpha <= 1
    assert alpha == pytest.approx(1 - mutual / entropy(style), abs=1e-9)


@given(labelled)
def test_measure_does_not_care_how_contents_and_styles_are_named(pairs):
    content, style = zip(*pairs, strict=True)
    assume(len(set(style)) > 1)
    named = measure([f"content {c}" for c in content], [f"style {s}" for s in style])
    assert named == pytest.approx(measure(content, style), abs=1e-12)
    far = measure([c * 10**12 - 5 for c in content], style)
    assert far == pytest.approx(named, abs=1e-12)


def test_measure_of_one_style_or_of_unequal_lengths_is_an_error():
    with pytest.raises(ValueError, match="fewer than two styles"):
        measure([1, 2, 3], ["A", "A", "A"])
    with pytest.raises(ValueError, match="fewer than two styles"):
        measure([], [])
    with pytest.raises(ValueError, match="3 content ids, but 2 style labels"):
        measure([1, 2, 3], ["A", "B"])
