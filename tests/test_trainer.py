"""Fine-tuning from settings to a finished folder, on tiny encoders and invented texts."""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
from transformers.activations import GELUActivation

from conftest import QUICK, make_corpus
from style_overlap.devices import pick_dtype
from style_overlap.encoder import Encoder
from style_overlap.errors import UsageError
from style_overlap.names import task_name
from style_overlap.overlap import sample
from style_overlap.results import file_digest, read_json
from style_overlap.trainers.arguments import DEFAULTS
from style_overlap.trainers.classifier import TrainingError, TrainSettings, train
from style_overlap.trainers.data import LengthGroupedOrder, draw
from style_overlap.trainers.outcome import degenerate
from style_overlap.trainers.start import load_encoder
from tiny_models import make_checkpoint, make_encoder

CORPUS = make_corpus(200)
DTYPE = {torch.float32: "fp32", torch.bfloat16: "bf16"}[pick_dtype("auto", torch.device("cpu"))]


@pytest.fixture(scope="module")
def finished(encoder, tmp_path_factory):
    """A classifier that has learned its task."""
    settings = TrainSettings(
        model=str(encoder), k=2, alpha="1", output=tmp_path_factory.mktemp("done") / "run",
        max_length=64, dropout=0.0, arguments={**QUICK, "num_train_epochs": 4},
    )  # fmt: skip
    return settings, train(settings, corpus=make_corpus(400))


def weights(folder: Path) -> str:
    return file_digest(folder / "model.safetensors")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# What comes out


def test_the_folder_is_a_checkpoint_with_a_card_and_a_record(finished):
    settings, result = finished
    assert names(settings.output) == {
        "README.md", "config.json", "model.safetensors", "style_overlap.json", "tokenizer.json",
        "tokenizer_config.json",
    }  # fmt: skip
    record = read_json(settings.output / "style_overlap.json")
    assert record == json.loads(json.dumps(result.record))
    assert (record["kind"], record["schema"], record["degenerate"]) == ("checkpoint", 1, None)
    assert record["config"]["alpha"] == "1.0"
    assert record["config"]["arguments"] == {**DEFAULTS, **settings.arguments}
    assert record["data"]["styles"] == ["KJV", "ASV"]
    assert record["data"]["realised_alpha"]["train"] == 1
    assert record["model_fingerprint"] == weights(settings.output)
    assert record["compute"]["effective_batch"] == 8
    assert record["log"][0]["loss"] > record["metrics"]["train_loss"] > 0
    mode = (settings.output / "style_overlap.json").stat().st_mode
    assert (settings.output / "model.safetensors").stat().st_mode == mode


def test_the_card_has_the_metadata_that_the_hub_reads(finished):
    from huggingface_hub import ModelCard

    settings, result = finished
    card = ModelCard.load(settings.output / "README.md")
    accuracy = card.data.eval_results[0]
    assert accuracy.dataset_name == task_name(2, "1")
    assert accuracy.metric_value == pytest.approx(result.record["metrics"]["test"]["accuracy"])
    assert "KJV, ASV" in card.text
    assert str(settings.model) in card.text
    assert "Degenerate" not in card.text


@pytest.mark.case(2)
def test_a_saved_classifier_answers_as_the_record_says(finished):
    settings, result = finished
    corpus, split = make_corpus(400), None
    split = draw(settings, corpus)
    model = AutoModelForSequenceClassification.from_pretrained(settings.output).eval()
    tokenizer = AutoTokenizer.from_pretrained(settings.output)
    with torch.no_grad():
        inputs = tokenizer(split.texts["test"], padding=True, return_tensors="pt")
        logits = model(**inputs).logits.numpy()
    accuracy = (logits.argmax(axis=1) == split.splits["test"].style).mean()
    # In bf16, in which it may have been scored, one text in 80 can fall on the other side.
    assert accuracy == pytest.approx(result.record["metrics"]["test"]["accuracy"], abs=1 / 80)
    assert accuracy > 0.7
    again = AutoModelForSequenceClassification.from_pretrained(settings.output).eval()
    with torch.no_grad():
        assert torch.equal(again(**inputs).logits, torch.from_numpy(logits))


@pytest.mark.case(2)
def test_the_weights_in_the_folder_are_those_that_training_ended_with(settings, tmp_path):
    settings = replace(
        settings, dtype="fp32", keep_checkpoints=True, arguments={**QUICK, "num_train_epochs": 2}
    )
    train(settings, corpus=CORPUS)
    steps = sorted(settings.output.glob("checkpoint-*"))
    assert len(steps) == 1  # save_total_limit
    last = load_file(steps[0] / "model.safetensors")
    final = load_file(settings.output / "model.safetensors")
    assert last.keys() == final.keys()
    assert all(torch.equal(last[key], final[key]) for key in last)
    # A step's checkpoint is one that anybody can load: the probe, for one.
    text = ["topic1 w3 mark0 w5"]
    step, whole = (Encoder.load(f, dtype="fp32") for f in (steps[0], settings.output))
    assert np.array_equal(step.logits(text), whole.logits(text))
    assert step.max_length == whole.max_length == settings.max_length


def test_pipeline_opens_it_and_names_the_styles(finished):
    settings, _ = finished
    classify = pipeline("text-classification", model=str(settings.output), device="cpu")
    answers = classify(["topic1 w3 mark0 w5", "topic1 w3 mark1 w5 w7 w9"], batch_size=2)
    assert {answer["label"] for answer in answers} <= {"KJV", "ASV"}
    assert classify.model.config.label2id == {"KJV": 0, "ASV": 1}


@pytest.mark.parametrize("alpha", ["0", "0.4", "1"])
def test_thinning_takes_the_same_share_of_every_pool_and_leaves_the_test_whole(settings, alpha):
    whole = sample(CORPUS, 2, alpha, 0)
    thinned = draw(replace(settings, alpha=alpha, contents=100), CORPUS)
    assert np.array_equal(thinned.splits["test"].content, whole.splits["test"].content)
    assert np.array_equal(thinned.splits["validation"].content, whole.splits["validation"].content)
    train_split, full = thinned.splits["train"], whole.splits["train"]
    assert set(train_split.content) <= set(full.content)
    assert len(train_split) == len(full) // 2
    for style in (0, 1):
        mine, all_ = train_split.style == style, full.style == style
        assert abs(mine.sum() - all_.sum() / 2) <= 1
        assert abs((mine & train_split.shared).sum() - (all_ & full.shared).sum() / 2) <= 1
        gaps = np.diff(np.unique(train_split.content[mine]))
        assert gaps.max() <= 4 * max(np.diff(np.unique(full.content[all_])).max(), 1)
    assert thinned.record()["realised_alpha"]["train"] == pytest.approx(
        whole.realised["train"], abs=0.03
    )
    assert thinned.fingerprint != draw(replace(settings, alpha=alpha), CORPUS).fingerprint


# Seeds


@pytest.mark.case(8)
def test_equal_seeds_give_equal_bytes_and_equal_records(settings, tmp_path):
    first = train(settings, corpus=CORPUS)
    second = train(replace(settings, output=tmp_path / "second"), corpus=CORPUS)
    assert weights(first.output) == weights(second.output)
    timeless = [{**one.record, "time": None} for one in (first, second)]
    assert timeless[0] == timeless[1]


@pytest.mark.case(8)
def test_heads_are_drawn_by_the_seed_also_where_the_checkpoint_has_one(encoder, tmp_path):
    with_head = make_checkpoint(tmp_path / "head", labels=("x", "y"), seed=7)
    for source in (encoder, with_head):
        heads = [
            load_encoder(str(source), ("KJV", "ASV"), seed)[0].classifier.weight
            for seed in (0, 0, 1)
        ]
        assert torch.equal(heads[0], heads[1])
        assert not torch.equal(heads[0], heads[2])
    trained = load_file(with_head / "model.safetensors")["classifier.weight"]
    assert not torch.equal(heads[0], trained)


def test_the_encoder_itself_is_the_checkpoints_whatever_the_seed(encoder):
    bodies = [load_encoder(str(encoder), ("KJV", "ASV"), seed)[0].bert for seed in (0, 1)]
    stored = load_file(encoder / "model.safetensors")
    for body in bodies:
        for name, tensor in body.state_dict().items():
            assert torch.equal(tensor, stored[name]), name


def test_a_checkpoint_in_half_precision_is_trained_in_fp32(encoder, tmp_path):
    half = AutoModelForSequenceClassification.from_pretrained(encoder).bfloat16()
    half.save_pretrained(tmp_path / "half")
    AutoTokenizer.from_pretrained(encoder).save_pretrained(tmp_path / "half")
    model = load_encoder(str(tmp_path / "half"), ("KJV", "ASV"), 0)[0]
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_an_encoder_without_its_weights_is_refused(encoder, tmp_path):
    from safetensors.torch import save_file

    broken = shutil.copytree(encoder, tmp_path / "broken")
    kept = load_file(broken / "model.safetensors")
    kept = {key: value for key, value in kept.items() if "layer.1" not in key}
    save_file(kept, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UsageError, match=r"lacks 16 weights.*layer\.1"):
        load_encoder(str(broken), ("KJV", "ASV"), 0)


def test_dropout_is_set_everywhere_or_left_alone(encoder):
    rates = {0.0: {0.0}, None: {0.1}, 0.3: {0.3}}
    for rate, expected in rates.items():
        model = load_encoder(str(encoder), ("KJV", "ASV"), 0, rate)[0]
        found = {m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)}
        assert found == expected
        assert model.config.attention_probs_dropout_prob in expected


def curve(record) -> list[tuple[float, float]]:
    return [(row["loss"], row["grad_norm"]) for row in record["log"]]


SAME_ORDER = {**QUICK, "learning_rate": 1e-3, "train_sampling_strategy": "sequential"}


def test_a_step_is_the_same_in_however_many_passes_it_is_made(settings, tmp_path):
    curves = []
    for size, passes in ((32, 1), (16, 2), (8, 4)):
        arguments = {"per_device_train_batch_size": size, "gradient_accumulation_steps": passes}
        run_settings = replace(
            settings, output=tmp_path / f"{passes}", dtype="fp32", dropout=0.0,
            arguments={**SAME_ORDER, **arguments},
        )  # fmt: skip
        record = train(run_settings, corpus=CORPUS).record
        assert record["compute"]["effective_batch"] == 32
        curves.append(np.array(curve(record)))
    assert curves[0].shape == (5, 2)
    assert 0.5 < curves[0][0, 0] < 1.0  # near log 2, and not a multiple of it
    for other in curves[1:]:
        np.testing.assert_allclose(other, curves[0], rtol=1e-3)


def test_a_large_batch_goes_through_a_cpu_in_small_passes(settings):
    big = {**QUICK, "per_device_train_batch_size": 32}
    compute = train(replace(settings, arguments=big), corpus=CORPUS).record["compute"]
    if compute["device"] == "cpu":
        assert (compute["texts_per_pass"], compute["effective_batch"]) == (8, 32)


# Kinds of models


@pytest.mark.parametrize("arch", ["gpt2", "roberta", "distilbert", "fnet", "deberta-v2"])
@pytest.mark.case(5)
@pytest.mark.case(6)
def test_other_architectures_train_save_and_open(arch, tmp_path):
    source = make_encoder(tmp_path / arch, arch, token_types=True)
    settings = TrainSettings(
        model=str(source), k=3, alpha="0.2", output=tmp_path / "run", max_length=None,
        arguments={**QUICK, "max_steps": 3},
    )  # fmt: skip
    result = train(settings, corpus=CORPUS)
    assert result.record["metrics"]["steps"] == 3
    assert result.record["compute"]["dtype"] == DTYPE
    classify = pipeline("text-classification", model=str(result.output), device="cpu")
    texts = ["topic1 mark0", "topic1 mark1 w3 w5 w7 w9", "topic9 mark2 w3"]
    for together, text in zip(classify(texts, batch_size=3), texts, strict=True):
        alone = classify(text)[0]
        assert together["label"] in ("KJV", "ASV", "WEB")
        if arch != "fnet":  # it has no attention mask: padding changes its answer
            assert together["score"] == pytest.approx(alone["score"], abs=1e-5)


def test_a_model_that_bf16_is_not_made_for_is_trained_in_fp32(settings, tmp_path, monkeypatch):
    forward = GELUActivation.forward

    def without_bf16(self, states):
        if states.dtype == torch.bfloat16:
            raise RuntimeError("Unsupported dtype BFloat16")
        return forward(self, states)

    monkeypatch.setattr("style_overlap.trainers.arguments.pick_dtype", _bf16_unless_told)
    monkeypatch.setattr(GELUActivation, "forward", without_bf16)
    result = train(replace(settings, arguments={**QUICK, "max_steps": 2}), corpus=CORPUS)
    assert result.record["compute"]["dtype"] == "fp32"
    with pytest.raises(RuntimeError, match="BFloat16"):
        train(replace(settings, dtype="bf16", output=tmp_path / "forced"), corpus=CORPUS)


def _bf16_unless_told(name, device):
    return torch.bfloat16 if name == "auto" else pick_dtype(name, device)


def test_a_checkpoint_reads_as_much_of_a_text_as_it_was_trained_on(finished):
    settings, result = finished
    assert Encoder.load(result.output).max_length == settings.max_length < 128


@pytest.mark.case(7)
def test_texts_that_are_cut_are_counted_by_style_and_named_in_one_line(settings, caplog):
    corpus = make_corpus(200)
    long = " ".join(["river"] * 200)
    table = corpus.table.map(
        lambda row, number: {"KJV": f"{row['KJV']} {long}" if number % 4 == 0 else row["KJV"]},
        with_indices=True,
    )
    settings = replace(settings, alpha="1", max_length=None)
    with caplog.at_level(logging.WARNING):
        result = train(settings, corpus=replace(corpus, table=table))
    # alpha 1: each style has the same 100 contents, drawn from all 200
    contents = np.concatenate([s.content for s in draw(settings, corpus).splits.values()])
    expected = int((np.unique(contents) % 4 == 0).sum())
    assert expected > 10
    assert result.record["truncated"] == {
        "KJV": {"count": expected, "of": 100},
        "ASV": {"count": 0, "of": 100},
    }
    lines = [message for message in caplog.messages if "cut to" in message]
    assert lines == [f"texts cut to 128 tokens: KJV {expected} of 100, ASV 0 of 100"]


def test_early_stopping_keeps_the_best_and_not_the_last(finished, settings, tmp_path):
    settings = replace(
        finished[0], output=tmp_path / "run", early_stopping=2,
        arguments={**QUICK, "num_train_epochs": 12},
    )  # fmt: skip
    record = train(settings, corpus=make_corpus(400)).record
    accuracies = [row["eval_accuracy"] for row in record["log"] if "eval_accuracy" in row]
    assert len(accuracies) > accuracies.index(max(accuracies)) + 1, "trained past the best epoch"
    assert record["metrics"]["validation"]["accuracy"] == pytest.approx(max(accuracies))
    assert record["config"]["early_stopping"] == 2


# Runs that come to nothing


@pytest.mark.case(12)
def test_a_loss_that_is_not_finite_stops_with_step_and_learning_rate(settings):
    settings = replace(settings, arguments={**QUICK, "learning_rate": 1e6})
    with pytest.raises(TrainingError, match=r"nan at step \d+ of 20, learning rate \d"):
        train(settings, corpus=CORPUS)
    assert "style_overlap.json" not in names(settings.output)
    assert "model.safetensors" not in names(settings.output)


@pytest.mark.case(11)
def test_a_run_that_learns_nothing_is_flagged_and_says_so_once(settings, caplog):
    settings = replace(settings, arguments={**QUICK, "learning_rate": 1e-9})
    with caplog.at_level(logging.WARNING):
        result = train(settings, corpus=CORPUS)
    reason = result.record["degenerate"]
    assert reason
    assert f"**Degenerate:** {reason}" in (settings.output / "README.md").read_text()
    assert [m for m in caplog.messages if "degenerate" in m] == [
        f"{settings.output} is degenerate: {reason}"
    ]
    assert reason in result.summary()


@pytest.mark.case(11)
def test_degenerate_means_one_class_or_within_two_standard_errors_of_chance():
    labels = np.tile([0, 1], 50)
    one_class = np.tile([1.0, 0.0], (100, 1))
    assert degenerate([(one_class, labels)]) == "predicts one class only"
    assert degenerate([(np.zeros((100, 2)), labels)]) == "predicts one class only"
    # 2 standard errors of 0.5 over 100 texts are 0.1
    for right, counts in ((60, False), (61, True)):
        scores = np.eye(2)[np.where(np.arange(100) < right, labels, 1 - labels)]
        halves = [(scores[:50], labels[:50]), (scores[50:], labels[50:])]
        assert (degenerate(halves) is None) is counts
        assert counts or "0.600 on 100" in degenerate(halves)


# Order of the batches


def test_batches_are_of_like_length_in_another_order_every_epoch():
    lengths = np.random.default_rng(0).integers(5, 200, size=1003)
    order = LengthGroupedOrder(lengths, 8, seed=3, trainer=None)
    first, second = order.rows(0), order.rows(1)
    assert sorted(first) == sorted(second) == list(range(1003))
    assert first == order.rows(0)
    assert first != second
    assert first != LengthGroupedOrder(lengths, 8, seed=4, trainer=None).rows(0)

    def padding(rows):
        batches = [lengths[rows[start : start + 8]] for start in range(0, len(rows), 8)]
        return sum(batch.max() * len(batch) for batch in batches) / lengths.sum() - 1

    assert padding(first) < 0.05 < 0.5 < padding(list(range(1003)))
