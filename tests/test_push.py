"""Pushing to the Hub, without one: what would be sent, and when nothing is."""

from __future__ import annotations

import pytest
from huggingface_hub import HfApi, ModelCard, constants
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from style_overlap.errors import UsageError
from style_overlap.model_folders import model_fingerprint
from style_overlap.results import write_json
from style_overlap.trainers import push as pushing
from style_overlap.trainers.card import model_card
from tiny_models import make_checkpoint

RECORD = {
    "config": {"model": "org/enc", "k": 2, "alpha": "0.4", "seed": 3, "data_seed": 3,
               "corpus": "bible", "chunk_verses": 5, "assignment": "contiguous", "max_length": 128,
               "arguments": {"learning_rate": 1e-5, "num_train_epochs": 3.0}},
    "data": {"styles": ["KJV", "ASV"], "corpus_fingerprint": "f" * 64,
             "sizes": {"train": 80, "validation": 10, "test": 10},
             "realised_alpha": {"train": 0.4}},
    "metrics": {"test": {"accuracy": 0.9, "macro_f1": 0.89, "tie_rate": 0.0},
                "validation": {"accuracy": 0.91, "macro_f1": 0.9, "tie_rate": 0.0},
                "epochs": 3.0, "steps": 60},
    "truncated": {"KJV": {"count": 3, "of": 50}, "ASV": {"count": 0, "of": 50}},
    "degenerate": None,
}  # fmt: skip


@pytest.fixture
def checkpoint(tmp_path):
    folder = make_checkpoint(tmp_path / "checkpoint", labels=("KJV", "ASV"))
    write_json(folder / "style_overlap.json", RECORD)
    return folder


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """What was sent, in order; the files that transformers saves are kept."""
    sent = []
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

    def whole(self, repo_id, **options):
        self.save_pretrained(tmp_path / "hub")
        sent.append((type(self).__name__, repo_id, options["private"]))

    monkeypatch.setattr(PreTrainedModel, "push_to_hub", whole)
    monkeypatch.setattr(PreTrainedTokenizerBase, "push_to_hub", whole)

    def file(self, *, path_or_fileobj, path_in_repo, repo_id, **_):
        (tmp_path / "hub" / path_in_repo).write_bytes(path_or_fileobj)
        sent.append((path_in_repo, repo_id, None))

    monkeypatch.setattr(HfApi, "upload_file", file)
    return sent


def test_weights_tokenizer_card_and_record_are_pushed_by_transformers(checkpoint, hub, tmp_path):
    address = pushing.push(checkpoint, "me/styles", private=True)
    assert address.endswith("/me/styles")
    assert [name for name, _, _ in hub][2:] == ["README.md", "style_overlap.json"]
    assert "ForSequenceClassification" in hub[0][0]
    assert {repo for _, repo, _ in hub} == {"me/styles"}
    assert hub[0][2] is True
    # The record of a leaderboard finds the model again by its weights.
    assert model_fingerprint(tmp_path / "hub") == model_fingerprint(checkpoint)
    assert 'model="me/styles"' in (tmp_path / "hub" / "README.md").read_text()


@pytest.mark.parametrize("name", ["a/b/c", "", "-x", "a b", "../x", "me/" + "x" * 200])
def test_a_name_that_the_hub_refuses_is_refused_before_training(name, hub):
    with pytest.raises(UsageError, match="owner/name"):
        pushing.check(name)


def test_without_the_hub_the_flag_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match="HF_HUB_OFFLINE"):
        pushing.check("me/styles")


def test_a_failed_push_leaves_the_checkpoint_and_says_how_to_go_on(checkpoint, hub, monkeypatch):
    def down(self, *_, **__):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(HfApi, "upload_file", down)
    with pytest.raises(UsageError, match=r"no route to host.*hf auth login"):
        pushing.push(checkpoint, "me/styles")
    assert (checkpoint / "model.safetensors").is_file()


def test_the_card_has_a_model_index_the_data_and_the_limits():
    text = model_card(RECORD)
    card = ModelCard(text)
    by_type = {result.metric_type: result for result in card.data.eval_results}
    assert by_type["accuracy"].metric_value == 0.9
    assert by_type["f1"].metric_value == 0.89
    assert by_type["accuracy"].dataset_name == "style_overlap_k2_a0.4"
    assert by_type["accuracy"].dataset_revision == "f" * 12
    assert card.data.base_model == "org/enc"
    assert "model-index:" in text
    for part in ("80 training", "KJV 3 of 50", "`learning_rate`: 1e-05", "## Limits", "by topic",
                 "3 epochs, 60 steps"):  # fmt: skip
        assert part in text


def test_a_card_at_full_overlap_does_not_warn_of_topics():
    record = {**RECORD, "config": {**RECORD["config"], "alpha": "1.0"}}
    assert "by topic" not in model_card(record)
