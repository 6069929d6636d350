"""The probe as a whole: features of an encoder, projectors, retrieval, controls."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from conftest import RESERVED, make_corpus
from style_overlap.encoder import Encoder, Feature
from style_overlap.errors import UsageError
from style_overlap.overlap import SPLITS, content_splits, sample
from style_overlap.probe import (
    bag_of_words,
    probe,
    probe_vectors,
    seen_pairs,
    unseen_pairs,
    untrained,
)
from style_overlap.probe.pairs import Pairs
from style_overlap.probe.projectors import Settings
from style_overlap.results import dumps
from tiny_models import make_encoder

SMALL = Settings(dim=16, epochs=3, batch=64)


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(100)


@pytest.fixture
def encoder(tmp_path) -> Encoder:
    return Encoder.load(make_encoder(tmp_path / "encoder", seed=5), head=False, dtype="float32")


def test_every_text_passes_once_for_all_pairs_layers_and_seeds(encoder, corpus):
    wants = [Feature("last", "cls"), Feature("last", "mean"), Feature(1, "mean")]
    pairs = seen_pairs(corpus.styles[:3])
    results = probe(encoder, corpus, pairs, wants, settings=SMALL)
    assert encoder.texts_passed == len({t for s in corpus.styles[:3] for t in corpus.texts(s)})
    assert list(results) == wants
    for found in results.values():
        assert [(r.a, r.b) for r in found] == [("KJV", "ASV"), ("KJV", "WEB"), ("ASV", "WEB")]
        for result in found:
            assert (result.n, result.chance) == (10, pytest.approx(1 / 10))
            assert result.top1.n == 3
            assert result.interval.low <= result.top1.mean <= result.interval.high
            assert result.top1.mean == pytest.approx((result.top1_ab + result.top1_ba) / 2)
            json.loads(dumps(result.record()))


def test_contents_split_as_the_classifiers_data_do(corpus):
    splits = content_splits(corpus, 7)
    for k, alpha in ((2, "0.0"), (3, "0.4"), (5, "1.0")):
        drawn = sample(corpus, k, alpha, seed=7)
        for number, name in enumerate(SPLITS):
            assert (splits[drawn.splits[name].content] == number).all()


def test_projectors_never_see_a_test_content():
    rng = np.random.default_rng(0)
    splits = np.repeat([0, 1, 2], [60, 20, 20])
    a, b = rng.normal(size=(2, 100, 8)).astype(np.float32)
    found = probe_vectors({"A": a, "B": b}, np.arange(100), splits, [("A", "B")], settings=SMALL)
    changed = b.copy()
    changed[splits == 2] = rng.normal(size=(20, 8))
    other = probe_vectors(
        {"A": a, "B": changed}, np.arange(100), splits, [("A", "B")], settings=SMALL
    )
    assert found[0].best_epochs == other[0].best_epochs
    # With the test contents' own answers in view, they would be found.
    assert found[0].top1.mean < 0.3
    assert other[0].top1.mean < 0.3


def test_identical_versions_are_found_with_an_untrained_encoder(encoder, corpus):
    vectors = untrained(encoder).features(corpus.texts("KJV"))
    found = probe_vectors(
        {"one": vectors, "other": vectors},
        corpus.groups,
        content_splits(corpus),
        [("one", "other")],
        settings=SMALL,
    )
    assert found[0].top1.mean == 1


def test_constant_features_score_exactly_chance_and_are_named(corpus):
    splits = content_splits(corpus)
    vectors = {"A": np.ones((100, 8), np.float32), "B": np.ones((100, 8), np.float32)}
    (found,) = probe_vectors(vectors, corpus.groups, splits, [("A", "B")], settings=SMALL)
    assert found.top1.mean == pytest.approx(found.chance) == pytest.approx(1 / 10)
    assert found.constant == "ab"


def test_groups_are_credited_in_the_gallery(corpus):
    splits = np.repeat([0, 1, 2], [60, 20, 20])
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(100, 8)).astype(np.float32)
    swapped = vectors.copy()
    swapped[[90, 91]] = vectors[[91, 90]]  # two contents that say the same
    both = {"A": vectors, "B": swapped}
    groups = np.arange(100)
    (apart,) = probe_vectors(both, groups, splits, [("A", "B")], settings=SMALL)
    groups[91] = 90
    (together,) = probe_vectors(both, groups, splits, [("A", "B")], settings=SMALL)
    assert together.n_groups == 19
    assert together.top1.mean == pytest.approx(apart.top1.mean + 2 / 20)


def test_a_limited_gallery_is_smaller_and_says_so(encoder, corpus):
    pairs = unseen_pairs(corpus)
    assert pairs == [RESERVED]
    want = Feature("last", "mean")
    (limited,) = probe(encoder, corpus, pairs, [want], settings=SMALL, limit=4)[want]
    assert limited.n == 4
    assert limited.chance == pytest.approx(1 / 4)
    (single,) = probe(encoder, corpus, pairs, [want], settings=SMALL, limit=1)[want]
    assert single.n == 1
    assert single.top1.mean is single.chance is single.median_rank is None
    assert json.loads(dumps(single.record()))["top1"]["mean"] is None


def test_a_version_that_is_not_there_is_an_error_with_those_that_are(encoder, corpus):
    with pytest.raises(UsageError, match=r"no version 'NIV': choose from KJV, ASV, .*RWEBSTER"):
        probe(encoder, corpus, [("KJV", "NIV")], [Feature("last")], settings=SMALL)


def test_untrained_control_has_other_weights_and_leaves_random_state_alone(encoder):
    state = torch.get_rng_state()
    one, again, other = untrained(encoder), untrained(encoder), untrained(encoder, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    text = ["in the beginning"]
    assert np.array_equal(one.features(text), again.features(text))
    assert not np.allclose(one.features(text), other.features(text))
    assert not np.allclose(one.features(text), encoder.features(text))


def test_bag_of_words_finds_contents_that_share_words(corpus):
    splits = content_splits(corpus)
    vectors = bag_of_words(corpus, ["KJV", "ASV"], np.flatnonzero(splits == 0), dim=32)
    (found,) = probe_vectors(vectors, corpus.groups, splits, [("KJV", "ASV")], settings=SMALL)
    assert found.top1.mean > 0.5


@pytest.mark.parametrize(
    "texts", [[f"起初神{n}" for n in range(9)], ["light"] * 9, ["a b c"] * 9, ["in the light"]]
)
def test_a_bag_of_fewer_than_two_words_is_refused(texts):
    """No word in two texts, one in all, none of two letters, and a single text."""
    corpus = SimpleNamespace(texts=lambda version: texts)
    message = rf"--bow: fewer than two words .* of the {len(texts)} texts of KJV"
    with pytest.raises(UsageError, match=message):
        bag_of_words(corpus, ["KJV"], np.arange(len(texts)))


@pytest.mark.parametrize(
    ("model_on", "fitted_on"), [("meta", "meta"), ("cpu", "cpu"), ("mps", None)]
)
def test_projectors_are_fitted_where_the_model_is(
    encoder, corpus, monkeypatch, model_on, fitted_on
):
    """Unless it is a GPU without fp64."""
    given = []
    monkeypatch.setattr("style_overlap.probe.run.probe_vectors", lambda *a, **o: given.append(o))
    texts = [text for version in ("KJV", "ASV") for text in corpus.texts(version)]
    want = Feature("last", "cls")
    encoder.forward(texts, [want])
    encoder.device = torch.device(model_on)
    probe(encoder, corpus, [("KJV", "ASV")], [want])
    assert given[0]["device"] == (fitted_on and torch.device(fitted_on))


def test_features_go_to_the_device_that_is_named(corpus, monkeypatch):
    def told(a, b, groups):
        raise UsageError(f"on {a.device} and {b.device}")

    monkeypatch.setattr(Pairs, "of", told)
    vectors = {"A": np.ones((100, 8), np.float32), "B": np.ones((100, 8), np.float32)}
    splits, where = content_splits(corpus), torch.device("meta")
    with pytest.raises(UsageError, match="on meta and meta"):
        probe_vectors(vectors, corpus.groups, splits, [("A", "B")], device=where)


def test_importing_the_package_loads_no_torch():
    import subprocess
    import sys

    code = "import sys, style_overlap.probe; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
