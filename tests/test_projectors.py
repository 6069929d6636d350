"""Projectors: the CLIP loss in fp32, what they find and what they must not."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from style_overlap.errors import UsageError
from style_overlap.probe.pairs import Pairs
from style_overlap.probe.projectors import Settings, clip_loss, fit
from style_overlap.probe.retrieval import retrieve

SMALL = Settings(dim=32, epochs=30, batch=128, patience=5)
TRAIN, VALIDATION, TEST = slice(0, 400), slice(400, 500), slice(500, 700)


def views(noise: float = 0.3, *, seed: int = 0, n: int = 700, d: int = 24) -> np.ndarray:
    """Two noisy, differently mixed views of n contents, shape (2, n, d): cosine alone fails."""
    rng = np.random.default_rng(seed)
    content = rng.normal(size=(n, d))
    mixed = [content @ rng.normal(size=(d, d)) / math.sqrt(d) for _ in range(2)]
    return (np.stack(mixed) + noise * rng.normal(size=(2, n, d)) + 3).astype(np.float32)


def held_out_top1(a, b, *, seed: int = 0, settings: Settings = SMALL) -> float:
    projectors = fit(
        Pairs.of(a[TRAIN], b[TRAIN]),
        Pairs.of(a[VALIDATION], b[VALIDATION]),
        seed=seed,
        settings=settings,
    )
    return projectors.retrieve(Pairs.of(a[TEST], b[TEST])).top1


def fitted(a, b, **options):
    return fit(
        Pairs.of(a[TRAIN], b[TRAIN]),
        Pairs.of(a[VALIDATION], b[VALIDATION]),
        **{"seed": 0, "settings": SMALL, **options},
    )


def test_contents_are_found_that_cosine_alone_does_not_find():
    a, b = views()
    assert held_out_top1(a, b) > 0.9
    assert retrieve(a[TEST], b[TEST]).top1 < 0.05


def test_contents_are_found_beside_a_direction_a_thousand_times_larger():
    # As in h after fine-tuning: the class fills one direction, contents are in the others.
    a, b = views()
    direction = np.random.default_rng(1).normal(size=24)
    size = 1000 * np.random.default_rng(2).normal(size=(2, 700, 1))
    assert held_out_top1(a + size[0] * direction, b + size[1] * direction) > 0.9


def test_fewer_training_texts_than_dimensions_still_find_some():
    a, b = views(d=200, n=600)
    few = Pairs.of(a[:100], b[:100])
    projectors = fit(few, Pairs.of(a[400:500], b[400:500]), seed=0, settings=SMALL)
    assert projectors.retrieve(Pairs.of(a[500:], b[500:])).top1 > 0.1  # chance is .01


def test_identical_texts_of_an_untrained_encoder_reach_one():
    features = np.tanh(np.random.default_rng(0).normal(size=(700, 24))).astype(np.float32)
    assert held_out_top1(features, features) == 1


def test_shuffled_pairs_fall_to_chance():
    a, b = views()
    shuffled = b[np.random.default_rng(1).permutation(700)]
    top1 = [held_out_top1(a, shuffled, seed=seed) for seed in range(3)]
    assert np.mean(top1) < 0.02  # chance is .005


def test_a_rotation_of_one_version_changes_nothing():
    a, b = views(noise=1.0)
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(24, 24)))[0]
    here = held_out_top1(a, b)
    assert 0.1 < here < 0.9  # neither all are found nor none
    assert held_out_top1(a @ rotation, b) == pytest.approx(here, abs=0.02)


def test_scale_and_offset_of_a_version_change_nothing():
    a, b = views(noise=1.0)
    assert held_out_top1(a * 1e4 - 7e4, b * 1e-4) == pytest.approx(held_out_top1(a, b), abs=0.02)


def test_versions_may_have_different_dimensions():
    a, b = views()
    assert held_out_top1(a, np.hstack([b, b[:, :5]])) > 0.9


@pytest.mark.parametrize("which", ["a", "b", "ab"])
@pytest.mark.parametrize("rounding", [0, 2.0**-23], ids=["equal", "rounded"])
def test_constant_features_score_exactly_chance(which, rounding):
    a, b = views()
    rng = np.random.default_rng(0)
    noise = 1 + rounding * rng.integers(-1, 2, size=(700, 24))  # the same in both versions
    constant = (noise * rng.normal(size=24)).astype(np.float32)
    projectors = fitted(constant if "a" in which else a, constant if "b" in which else b)
    assert projectors.constant == which
    assert projectors.best_epoch == 0
    result = projectors.retrieve(
        Pairs.of((constant if "a" in which else a)[TEST], (constant if "b" in which else b)[TEST])
    )
    assert (result.credit == 1 / 200).all()


@pytest.mark.case(13)
def test_temperature_driven_up_for_ten_thousand_steps_stays_clamped():
    # Neighbours on a circle cannot be moved apart: only a greater scale lowers the loss further.
    angle = torch.arange(160) * 2 * math.pi / 160
    circle = torch.stack([angle.cos(), angle.sin()], dim=1)
    pairs = Pairs.of(circle, circle)
    settings = Settings(dim=2, epochs=1_000, batch=16, lr=1e-2, patience=1_000)
    projectors = fit(pairs, pairs, seed=0, settings=settings)
    assert len(projectors.losses) == 1_000  # of ten steps each
    assert np.isfinite(projectors.losses).all()
    assert projectors.log_scale <= math.log(100) + 1e-6  # fp32
    assert projectors.log_scale == pytest.approx(math.log(100), abs=0.05)  # it did get there
    assert projectors.retrieve(pairs).top1 == 1


@pytest.mark.case(13)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_everything_is_fp32_whatever_the_features_type(dtype):
    a, b = (torch.from_numpy(x).to(dtype) for x in views())
    projectors = fitted(a, b)
    assert projectors.a.weight.dtype == projectors.a(a).dtype == torch.float32
    same_values = fitted(a.float(), b.float())
    assert torch.equal(projectors.a.weight, same_values.a.weight)


def test_a_training_run_around_it_neither_changes_it_nor_is_changed():
    a, b = (torch.from_numpy(x) for x in views())
    alone = fitted(a, b)
    state = torch.get_rng_state()
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        inside = fitted(a + 0, b + 0)
        projected = inside.a(a)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(alone.a.weight, inside.a.weight)
    assert torch.equal(alone.a(a), projected)
    assert alone.losses == inside.losses


def test_same_seed_same_projectors_another_seed_others():
    a, b = views()
    one, again, other = fitted(a, b), fitted(a, b), fitted(a, b, seed=1)
    assert torch.equal(one.a.weight, again.a.weight)
    assert torch.equal(one.b.weight, again.b.weight)
    assert not torch.equal(one.a.weight, other.a.weight)


def test_weights_of_the_best_validation_epoch_are_kept():
    a, b = views(noise=1.0)
    projectors = fitted(a, b, settings=Settings(dim=32, epochs=60, batch=64, patience=4))
    assert len(projectors.losses) == projectors.best_epoch + 4 < 60  # stopped early
    until_best = Settings(dim=32, epochs=projectors.best_epoch, batch=64, patience=4)
    assert torch.equal(projectors.a.weight, fitted(a, b, settings=until_best).a.weight)


def test_at_default_size_noise_is_given_up_long_before_the_last_epoch():
    a, b = np.random.default_rng(0).normal(size=(2, 1_250, 384)).astype(np.float32)
    projectors = fit(Pairs.of(a[:1_000], b[:1_000]), Pairs.of(a[1_000:], b[1_000:]), seed=0)
    assert len(projectors.losses) == projectors.best_epoch + Settings().patience < 50


def test_loss_is_the_mean_cross_entropy_of_both_directions():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5, 3))
    unit_a, unit_b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    logits = 10 * unit_a @ unit_b.T
    by_row = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
    by_column = np.log(np.exp(logits).sum(axis=0)) - np.diag(logits)
    loss = clip_loss(*(torch.tensor(x) for x in (a, b, math.log(10))), groups=torch.arange(5))
    assert loss.item() == pytest.approx((by_row.mean() + by_column.mean()) / 2)


def test_texts_of_one_group_are_no_negatives_of_each_other():
    a = torch.eye(3)[[0, 0, 1, 2]]  # the first two say the same
    scale = torch.tensor(math.log(10))
    apart = clip_loss(a, a, scale, torch.tensor([0, 1, 2, 3]))
    together = clip_loss(a, a, scale, torch.tensor([0, 0, 1, 2]))
    three = 10 - math.log(math.exp(10) + 2)  # two negatives left for rows 0 and 1,
    four = 10 - math.log(math.exp(10) + 3)  # three for rows 2 and 3
    assert together.item() == pytest.approx(-(three + four) / 2, abs=1e-5)
    assert apart.item() > 0.3  # else row 0 is told apart from its equal


def test_too_few_contents_are_an_error():
    a, b = views()
    one_group = Pairs.of(a[:3], b[:3], [5, 5, 5])
    with pytest.raises(UsageError, match="3 validation texts with 1 contents"):
        fit(Pairs.of(a[TRAIN], b[TRAIN]), one_group, seed=0)
    with pytest.raises(UsageError, match="3 training texts with 1 contents"):
        fit(one_group, Pairs.of(a[TRAIN], b[TRAIN]), seed=0)


def test_a_loss_that_is_not_finite_names_the_learning_rate():
    a, b = views()
    with pytest.raises(UsageError, match=r"epoch \d+ at lr=1e\+37"):
        fitted(a, b, settings=Settings(dim=8, lr=1e37))


@pytest.mark.parametrize(
    "bad", [{"batch": 1}, {"dim": 0}, {"lr": 0.0}, {"ridge": -1.0}, {"patience": 0}]
)
def test_settings_that_cannot_train_are_an_error(bad):
    name = next(iter(bad))
    with pytest.raises(UsageError, match=f"{name} is {bad[name]}: expected"):
        Settings(**bad)
