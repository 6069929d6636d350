"""Probing checkpoints and their controls: what is probed, with what, and what the record says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import make_corpus
from style_overlap import probing
from style_overlap.errors import UsageError
from style_overlap.probe import gallery
from style_overlap.probe.options import ProbeOptions
from style_overlap.probe.projectors import Settings
from style_overlap.probing import Probing, save
from style_overlap.report import probe_table
from style_overlap.results import PLAN_NAME, RECORD_NAME, read_json, write_json
from tiny_models import make_checkpoint, make_encoder

SMALL = Settings(dim=16, epochs=2, batch=64)


@pytest.fixture(autouse=True)
def corpus(monkeypatch):
    found = make_corpus(60)
    monkeypatch.setattr(probing, "load_corpus", lambda spec, chunk_verses: found)
    return found


@pytest.fixture
def base(tmp_path):
    return make_encoder(tmp_path / "base", seed=1)


@pytest.fixture
def checkpoint(tmp_path, base):
    folder = make_checkpoint(tmp_path / "run", labels=("KJV", "ASV", "WEB"), seed=2)
    config = {"model": str(base), "k": 3, "alpha": "0.0", "data_seed": 4, "corpus": "invented"}
    write_json(folder / RECORD_NAME, {"kind": "checkpoint", "config": config})
    return folder


def run(spec, **options):
    return Probing(ProbeOptions(settings=SMALL, seeds=2, **options), dtype="fp32").run(str(spec))


def told(record, *keys):
    return [tuple(row[key] for key in keys) for row in record["summary"]]


def test_a_classifier_is_probed_in_its_own_classes_splits_and_both_features(checkpoint):
    record = run(checkpoint, unseen=True)
    assert told(record, "source", "features", "set", "pairs", "n") == [
        ("checkpoint", "h", "seen", 3, 6),
        ("checkpoint", "h", "unseen", 1, 6),
        ("checkpoint", "last/cls", "seen", 3, 6),
        ("checkpoint", "last/cls", "unseen", 1, 6),
    ]
    assert record["data_seed"] == 4
    assert len(record["rows"]) == 8
    assert record["model"]["truncated"] == dict.fromkeys(
        ("KJV", "ASV", "WEB", "NHEB", "RWEBSTER"), 0
    )


def test_a_raw_encoder_is_probed_in_its_last_layer_with_its_own_pooling(base):
    record = run(base)
    assert told(record, "features", "set", "pairs") == [("last/cls", "seen", 1)]
    assert [(row["a"], row["b"]) for row in record["rows"]] == [("KJV", "ASV")]
    (base / "1_Pooling").mkdir()
    write_json(base / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    assert told(run(base, k=3), "features", "pairs") == [("last/mean", 3)]


def test_a_decoder_is_probed_at_its_last_token(tmp_path):
    record = run(make_checkpoint(tmp_path, "gpt2"))
    assert told(record, "features") == [("h",), ("last/last",)]


def test_a_pooling_that_is_not_ours_is_refused_unless_another_is_given(base):
    (base / "1_Pooling").mkdir()
    write_json(base / "1_Pooling" / "config.json", {"pooling_mode_max_tokens": True})
    with pytest.raises(
        UsageError, match="states the pooling max_tokens, which is not known here: give"
    ):
        run(base)
    assert told(run(base, pooling="mean"), "features") == [("last/mean",)]


def test_k_does_not_replace_the_versions_that_a_classifier_has_seen(checkpoint, tmp_path):
    message = "--k is 2, and .*run has 3 classes, KJV, ASV, WEB, which are the versions"
    with pytest.raises(UsageError, match=message):
        run(checkpoint, k=2)
    assert told(run(checkpoint, k=3), "pairs") == [(3,), (3,)]
    of_others = make_checkpoint(tmp_path / "others", labels=("plain", "ornate"))
    assert told(run(of_others, k=3), "pairs") == [(3,), (3,)]


def test_any_layer_pooling_and_pair(checkpoint):
    record = run(checkpoint, layers=("1", "h"), pooling="mean", pair=("WEB", "RWEBSTER"))
    assert told(record, "features", "set") == [("1/mean", "chosen"), ("h", "chosen")]
    assert (record["rows"][0]["a"], record["rows"][0]["b"]) == ("WEB", "RWEBSTER")


def test_controls_stand_beside_the_checkpoint_and_are_computed_once(checkpoint, monkeypatch):
    probed = []
    probe = gallery.probe

    def counted(encoder, *args, **kwargs):
        probed.append(encoder.name)
        return probe(encoder, *args, **kwargs)

    monkeypatch.setattr(gallery, "probe", counted)
    runs = Probing(
        ProbeOptions(settings=SMALL, seeds=2, base=True, untrained=True, bow=True), dtype="fp32"
    )
    first, second = runs.run(str(checkpoint)), runs.run(str(checkpoint))
    assert [row["source"] for row in first["summary"]] == [
        "checkpoint", "checkpoint", "base", "base", "untrained", "untrained", "bag of words",
    ]  # fmt: skip
    assert first["summary"] == second["summary"]
    assert len(probed) == 4  # the checkpoint twice, its base and its untrained twin once
    assert [row["features"] for row in first["summary"] if row["source"] == "base"] == [
        "h",
        "last/cls",
    ]


def test_a_control_is_shared_only_by_those_who_read_the_same_features(checkpoint, base):
    options = ProbeOptions(settings=SMALL, seeds=2, untrained=True, k=3, data_seed=4)
    runs = Probing(options, dtype="fp32")
    features = [
        [row["features"] for row in runs.run(str(one))["summary"] if row["source"] == "untrained"]
        for one in (checkpoint, base)
    ]
    assert features == [["h", "last/cls"], ["last/cls"]]


@pytest.mark.case(3)
def test_the_base_has_no_h_where_a_random_layer_would_make_it(tmp_path, checkpoint):
    # RoBERTa's head has a dense layer of its own, which no encoder's file holds.
    base = make_encoder(tmp_path / "roberta", arch="roberta")
    record = read_json(checkpoint / RECORD_NAME)
    record["config"]["model"] = str(base)
    write_json(checkpoint / RECORD_NAME, record)
    found = run(checkpoint, base=True)
    assert [row["features"] for row in found["summary"] if row["source"] == "base"] == ["last/cls"]
    assert "no h before fine-tuning" in found["notes"][0]
    with pytest.raises(UsageError, match=r"lacks the weights of classifier\.dense"):
        run(base, layers=("h",))


def test_a_step_of_a_training_belongs_to_it(checkpoint, tmp_path):
    step = make_checkpoint(tmp_path / "open" / "checkpoint-12", labels=("KJV", "ASV"), seed=3)
    plan = {"kind": "training", "config": {"model": "x", "k": 2, "data_seed": 7}}
    write_json(tmp_path / "open" / PLAN_NAME, plan)
    assert run(step)["data_seed"] == 7


@pytest.fixture
def step(tmp_path, corpus):
    """A checkpoint from the middle of a training, as transformers leaves it."""
    folder = make_checkpoint(tmp_path / "on" / "checkpoint-12", labels=("KJV", "ASV"), seed=3)
    config = {"model": "x", "k": 2, "alpha": "0.4", "data_seed": 7, "assignment": "contiguous"}
    plan = {"config": config, "data": {"corpus_fingerprint": corpus.fingerprint}}
    write_json(tmp_path / "on" / PLAN_NAME, {"kind": "training", **plan})
    write_json(folder / "trainer_state.json", {"global_step": 12, "epoch": 0.75})
    return folder


def test_a_step_of_a_training_has_a_line_of_its_dynamics(step):
    record = run(step, unseen=True)
    line = record["dynamics"]
    assert (line["step"], line["epoch"]) == (12, 0.75)
    assert all(0 <= line["accuracy"][name] <= 1 for name in ("matched", "fully_shared"))
    assert [{**row, "interval": None} for row in line["retrieval"]] == [
        {**row, "interval": None} for row in record["summary"]
    ]


def test_a_gallery_without_the_classes_scores_none_of_them(step):
    line = run(step, pair=("KJV", "WEB"))["dynamics"]
    assert line["accuracy"] == {"matched": None, "fully_shared": None}
    assert [row["set"] for row in line["retrieval"]] == ["chosen"] * 2


def test_no_dynamics_elsewhere_than_in_the_middle_of_a_training_of_ours(step, checkpoint, base):
    plan = read_json(step.parent / PLAN_NAME)
    plan["data"]["corpus_fingerprint"] = "of another corpus"
    write_json(step.parent / PLAN_NAME, plan)
    assert [run(one)["dynamics"] for one in (step, checkpoint, base)] == [None] * 3
    (step.parent / PLAN_NAME).unlink()
    assert run(step)["dynamics"] is None


def test_texts_without_words_are_refused_before_anything_passes_through_the_model(
    checkpoint, corpus, monkeypatch
):
    clauses = [f"起初神創造天地{number}" for number in range(len(corpus))]
    table = corpus.table
    for name in ("KJV", "ASV", "WEB"):
        table = table.remove_columns(name).add_column(name, clauses)
    spaceless = replace(corpus, table=table)
    monkeypatch.setattr(probing, "load_corpus", lambda spec, chunk_verses: spaceless)
    monkeypatch.setattr(gallery, "probe", None)
    with pytest.raises(UsageError, match="--bow: fewer than two words are in more than one of the"):
        run(checkpoint, bow=True)


def test_other_splits_than_the_checkpoints_are_refused(checkpoint):
    with pytest.raises(UsageError, match="was fine-tuned with data seed 4"):
        run(checkpoint, data_seed=0)
    assert run(checkpoint, data_seed=4)["data_seed"] == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pair": ("KJV", "NIV")}, "has no version 'NIV'"),
        ({"pair": ("KJV", "ASV"), "unseen": True}, "give one of them"),
        ({"layers": ("middle",)}, "--layer is 'middle': expected h, last or a layer's number"),
        ({"layers": ("99",)}, "layer is 99, the model has layers 0"),
        ({"limit": 0}, "--limit is 0"),
        ({"pooling": "max"}, "--pooling is 'max': expected cls, mean or last"),
        ({"k": 1}, "--k is 1"),
        ({"contents": 61}, "corpus 'invented' has 60"),
    ],
)
def test_what_cannot_be_probed_is_told(checkpoint, options, message):
    with pytest.raises(UsageError, match=message):
        run(checkpoint, **options)


def test_base_of_an_encoder_that_nobody_fine_tuned_is_told(base):
    with pytest.raises(UsageError, match="what it was fine-tuned from"):
        run(base, base=True)


def test_the_same_probe_again_replaces_its_record_and_another_does_not(checkpoint, tmp_path):
    one, again = run(checkpoint), run(checkpoint)
    path = save(one, tmp_path / "probes")
    first = path.read_bytes()
    assert save(again, tmp_path / "probes") == path
    assert path.read_bytes() == first
    assert save(run(checkpoint, limit=4), tmp_path / "probes") != path


def test_the_table_names_sources_features_pairs_and_chance(checkpoint, capsys):
    probe_table.show([run(checkpoint, bow=True)])
    out = capsys.readouterr().out
    for text in ("seen: mean of 3", "KJV, WEB", "bag of words", "tf-idf", "16.67"):
        assert text in out
