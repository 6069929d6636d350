from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from lm_eval.api.instance import Instance

from harness_run import STYLES, documents, evaluate, task
from style_overlap import scoring
from style_overlap.devices import pick_dtype
from style_overlap.encoder import Feature
from style_overlap.errors import UsageError
from style_overlap.lm import StyleEncoderLM
from tiny_models import make_checkpoint, make_encoder

RUN = Path(__file__).with_name("harness_run.py")
LONG = "the river and the road " * 60


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("lm") / "model", labels=STYLES)


@pytest.fixture
def lm(checkpoint):
    return load(checkpoint)


def load(path, **options):
    return StyleEncoderLM(str(path), **{"dtype": "fp32", "device": "cpu", **options})


def requests(columns, name="style_overlap_k2_a0.0"):
    """What the harness makes of documents: one request a document and class."""
    found = []
    for row in range(len(columns["text"])):
        doc = {key: values[row] for key, values in columns.items()}
        for place, style in enumerate(doc["styles"]):
            arguments = (f"Passage: {doc['text']}\nVersion:", f" {style}")
            found.append(Instance("loglikelihood", doc, arguments, place, (name, row, 1)))
    return found


def count_rows(lm):
    _ = lm.encoder.pooling  # found out once, by two passes of a sentence that is none of a task's
    rows = []
    lm.encoder.model.register_forward_pre_hook(
        lambda _module, _args, inputs: rows.append(len(inputs["input_ids"])), with_kwargs=True
    )
    return rows


def test_answers_are_the_heads_log_probabilities_of_the_passage(lm):
    columns = documents()
    answers = lm.loglikelihood(requests(columns))
    logits = torch.from_numpy(lm.encoder.logits(columns["text"])).double()
    expected = torch.log_softmax(logits, dim=1).flatten()
    assert [score for score, _ in answers] == pytest.approx(expected.tolist())
    greedy = np.array([greedy for _, greedy in answers]).reshape(-1, 2)
    assert (greedy.argmax(axis=1) == logits.argmax(dim=1).numpy()).all()
    assert (greedy.sum(axis=1) == 1).all()
    assert {type(value) for answer in answers for value in answer} == {float, bool}


@pytest.mark.case(1)
def test_classes_are_matched_by_name_whatever_their_order(checkpoint, tmp_path):
    turned = make_checkpoint(tmp_path / "turned", labels=STYLES)
    config = json.loads((turned / "config.json").read_text())
    config["id2label"] = {"0": STYLES[1], "1": STYLES[0]}
    config["label2id"] = {STYLES[1]: 0, STYLES[0]: 1}
    (turned / "config.json").write_text(json.dumps(config))
    columns = documents()
    as_is = np.array(load(checkpoint).loglikelihood(requests(columns)))
    swapped = np.array(load(turned).loglikelihood(requests(columns)))
    by_class = swapped.reshape(-1, 2, 2)[:, ::-1].reshape(-1, 2)
    np.testing.assert_array_equal(as_is, by_class)  # same weights, names exchanged
    other_way_round = {**columns, "styles": [list(STYLES[::-1])] * 22}
    asked = np.array(load(checkpoint).loglikelihood(requests(other_way_round)))
    np.testing.assert_array_equal(asked.reshape(-1, 2, 2)[:, ::-1].reshape(-1, 2), as_is)


@pytest.mark.case(1)
@pytest.mark.parametrize(
    ("styles", "advice"),
    [
        (("KJV", "ASV", "WEB"), r"\['KJV', 'ASV', 'WEB'\]: fine-tune it with --k 3"),
        (("KJV", "YLT"), r"\['KJV', 'YLT'\]: fine-tune it on these styles"),
    ],
)
def test_other_classes_are_an_error_that_names_both_sets(lm, styles, advice):
    rows = count_rows(lm)
    mixed = [
        *requests(documents(), "style_overlap_k2_a0.0"),
        *requests(documents(styles=styles), "style_overlap_k3_a0.4"),
    ]
    with pytest.raises(
        UsageError, match=rf"has labels \['KJV', 'ASV'\], task style_overlap_k3_a0.4 has {advice}"
    ):
        lm.loglikelihood(mixed)
    assert rows == []


@pytest.mark.case(14)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_equal_logits_stay_equal_and_are_no_credit_to_class_0(tmp_path, dtype):
    labels = ("KJV", "ASV", "WEB")
    path = make_checkpoint(tmp_path / "zero", labels=labels, zero_head=True)
    columns = documents(12, labels)
    answers = load(path, dtype=dtype).loglikelihood(requests(columns))
    assert all(greedy for _, greedy in answers)
    scores = np.array([score for score, _ in answers]).reshape(-1, 3)
    assert scoring.tie_rate(scores) == 1
    np.testing.assert_allclose(scoring.tie_credit(scores, columns["label"]), 1 / 3)


def test_each_passage_is_passed_once_over_all_tasks_and_calls(lm):
    rows = count_rows(lm)
    columns = documents()
    first = lm.loglikelihood([*requests(columns, "a"), *requests(columns, "b")])
    assert sum(rows) == 22
    assert lm.loglikelihood(requests(columns, "c")) == first[:44] == first[44:]
    assert sum(rows) == 22


def test_the_harness_runs_several_tasks_in_one_pass(lm):
    rows = count_rows(lm)
    columns = documents()
    results = evaluate(lm, task("one", columns), task("two", columns))
    assert sum(rows) == 22
    logits = lm.encoder.logits(columns["text"])
    accuracy = (logits.argmax(axis=1) == np.array(columns["label"])).mean()
    assert results["results"]["one"]["acc,none"] == pytest.approx(accuracy)
    assert results["results"]["two"]["acc,none"] == pytest.approx(accuracy)
    assert 0 < accuracy < 1


@pytest.mark.case(7)
def test_the_results_file_tells_what_was_read_by_style(lm):
    columns = documents(6)
    columns["text"][1] = columns["text"][3] = LONG  # one passage, twice
    columns["text"][5] = f"again {LONG}"
    config = evaluate(lm, task("cut", columns))["config"]
    assert config["truncated"] == {"ASV": {"count": 2, "of": 2}, "KJV": {"count": 0, "of": 3}}
    assert config["unique_texts"] == 5
    assert config["labels"] == list(STYLES)
    assert config["max_length"] == 128
    assert config["model_dtype"] == "float32"
    assert config["model_device"] == "cpu"
    assert config["model_fingerprint"] == lm.encoder.model_fingerprint
    assert config["model_num_parameters"] == lm.encoder.model.num_parameters()
    assert json.loads(json.dumps(lm.get_model_info())) == lm.get_model_info()


def test_the_harness_notes_the_tokenizers_special_tokens(lm):
    results = evaluate(lm, task("tokens"))
    assert results["tokenizer_pad_token"] == ["[PAD]", "0"]


def test_one_text_in_two_styles_counts_for_both(lm):
    columns = documents(2)
    columns["text"] = ["the same", "the same"]
    lm.loglikelihood(requests(columns))
    info = lm.get_model_info()
    assert info["unique_texts"] == 1
    assert info["truncated"] == {"ASV": {"count": 0, "of": 1}, "KJV": {"count": 0, "of": 1}}


@pytest.mark.parametrize("doc", [{"question": "1 + 1?", "text": "a"}, "1 + 1?", None])
def test_a_foreign_task_is_refused_before_any_pass(lm, doc):
    rows = count_rows(lm)
    foreign = Instance("loglikelihood", doc, ("1 + 1?", " 2"), 0, ("arithmetic", 0, 1))
    with pytest.raises(UsageError, match="task arithmetic is no style task"):
        lm.loglikelihood([*requests(documents()), foreign])
    assert rows == []


def test_a_choice_that_is_no_style_is_refused(lm):
    request = requests(documents())[0]
    request.arguments = ("prompt", " the first one")
    with pytest.raises(UsageError, match="asks for 'the first one': expected one of its styles"):
        lm.loglikelihood([request])


def test_no_requests_no_answers(lm):
    assert lm.loglikelihood([]) == []


@pytest.mark.parametrize("method", ["loglikelihood_rolling", "generate_until"])
def test_what_only_a_language_model_can_do_is_one_clear_error(lm, method):
    with pytest.raises(NotImplementedError, match="style-encoder is a classifier of styles"):
        getattr(lm, method)(requests(documents()))


def test_a_chat_template_is_one_clear_error(lm):
    with pytest.raises(NotImplementedError, match="leave out --apply_chat_template"):
        evaluate(lm, task("chat"), apply_chat_template=True)
    assert lm.chat_template(False) == ""
    assert lm.tokenizer_name == lm.encoder.name


@pytest.mark.case(2)
@pytest.mark.case(20)
def test_a_model_without_a_head_is_refused_when_the_run_starts(tmp_path):
    with pytest.raises(UsageError, match="no trained classification head"):
        load(make_encoder(tmp_path / "raw"))


def test_unknown_arguments_are_named_with_the_likely_one(checkpoint):
    with pytest.raises(UsageError, match=r"'max_lenght', .* did you mean 'max_length'"):
        load(checkpoint, max_lenght=128)
    with pytest.raises(UsageError, match="settings of the tasks go to --metadata"):
        StyleEncoderLM.create_from_arg_string(f"pretrained={checkpoint},chunk_verses=3")


def test_a_missing_checkpoint_is_asked_for():
    with pytest.raises(UsageError, match="Give --model_args pretrained=DIR"):
        StyleEncoderLM.create_from_arg_string("dtype=fp32", {"device": "cpu"})


def test_the_command_lines_options_give_way_to_model_args(checkpoint):
    lm = StyleEncoderLM.create_from_arg_string(
        f"pretrained={checkpoint},batch_size=4,device=cpu,dtype=fp32,max_length=32",
        {"batch_size": 16, "device": "cuda:7", "max_batch_size": None},
    )
    assert lm.encoder.budget.rows == 4
    assert lm.max_length == 32
    assert lm.device == torch.device("cpu")


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"batch_size": 1}, None),  # the harness's default
        ({"batch_size": "1"}, None),
        ({"batch_size": "auto"}, None),
        ({"batch_size": "auto:4", "max_batch_size": 64}, 64),
        ({"batch_size": 8}, 8),
        ({}, None),
    ],
)
def test_batch_sizes_from_the_command_line(checkpoint, options, rows):
    arguments = {"pretrained": str(checkpoint), "dtype": "fp32"}
    harness = {"device": "cpu", "max_batch_size": None, **options}
    assert StyleEncoderLM.create_from_arg_obj(arguments, harness).encoder.budget.rows == rows


def cached(lm, path, name="cached"):
    return evaluate(lm, task(name), use_cache=str(path))


def test_a_response_cache_answers_for_its_own_model(checkpoint, tmp_path):
    first = cached(load(checkpoint), tmp_path / "cache")
    again = load(checkpoint)
    rows = count_rows(again)
    assert cached(again, tmp_path / "cache")["results"] == first["results"]
    assert rows == []


@pytest.mark.parametrize("change", ["weights", "dtype", "max_length"])
def test_a_response_cache_of_another_model_is_refused(checkpoint, tmp_path, change):
    cached(load(checkpoint), tmp_path / "cache")
    other = {
        "weights": lambda: load(make_checkpoint(tmp_path / "b", labels=STYLES, seed=1)),
        "dtype": lambda: load(checkpoint, dtype="bf16"),
        "max_length": lambda: load(checkpoint, max_length=16),
    }[change]()
    with pytest.raises(UsageError, match=r"holds responses of another model.*a path of its own"):
        cached(other, tmp_path / "cache")


def test_a_response_cache_of_nobody_knows_whom_is_refused(checkpoint, tmp_path):
    from sqlitedict import SqliteDict

    with SqliteDict(f"{tmp_path}/cache_rank0.db", autocommit=True) as database:
        database["0" * 64] = (-1.0, True)
    with pytest.raises(UsageError, match="of a model that left no name"):
        cached(load(checkpoint), tmp_path / "cache")


def text_requests(columns, versions=STYLES, styles=STYLES, features=("h", "last")):
    """What the harness makes of the documents of a retrieval task: one request a text."""
    doc = {"content_id": "Invented 1:1", "styles": list(styles), "versions": list(versions)}
    return [
        Instance("embed", doc, (text, version, features), 0, ("content_retrieval_k2", row, 1))
        for row, (text, version) in enumerate(zip(columns["text"], columns["style"], strict=True))
    ]


def test_embeddings_are_the_encoders_features_in_the_order_of_the_requests(lm):
    columns = documents(6)
    columns["text"][4] = columns["text"][1]
    got = lm.embed(text_requests(columns))
    for name, feature in (("h", Feature()), ("last/cls", Feature("last", "cls"))):
        expected = lm.encoder.forward(columns["text"], [feature])[feature]
        np.testing.assert_array_equal([embedding.vectors[name] for embedding in got], expected)
    assert lm.encoder.texts_passed == 5
    assert {embedding.dtype for embedding in got} == {"float32"}
    assert lm.get_model_info()["truncated"] == {
        "ASV": {"count": 0, "of": 3},
        "KJV": {"count": 0, "of": 3},
    }


def test_an_embedding_is_logged_by_its_size(lm):
    (embedding, *_) = lm.embed(text_requests(documents(2)))
    assert repr(embedding) == str(embedding) == "Embedding(h: 32, last/cls: 32, float32)"


def test_of_a_decoder_the_last_token_stands_for_the_text(tmp_path):
    lm = load(make_checkpoint(tmp_path, "gpt2", labels=STYLES))
    columns = documents(2)
    got = lm.embed(text_requests(columns))
    expected = lm.encoder.forward(columns["text"], [Feature("last", "last")])
    np.testing.assert_array_equal(
        [embedding.vectors["last/last"] for embedding in got], expected[Feature("last", "last")]
    )


@pytest.mark.parametrize("order", [1, -1])
def test_a_text_of_both_kinds_of_requests_passes_once_in_either_order(lm, order):
    rows = count_rows(lm)
    columns = documents()
    calls = [
        lambda: lm.loglikelihood(requests(columns)),
        lambda: lm.embed(text_requests(columns)),
    ]
    for call in calls[::order]:
        call()
    assert lm.encoder.texts_passed == sum(rows) == 22


def test_what_classification_keeps_of_many_texts_is_no_features(lm, monkeypatch):
    monkeypatch.setattr("style_overlap.lm._KEEP_FEATURES", 21)
    columns = documents()
    lm.loglikelihood(requests(columns))
    lm.embed(text_requests(columns))
    assert lm.encoder.texts_passed == 44


def test_features_are_fp32_unless_a_dtype_is_asked_for(checkpoint, monkeypatch):
    monkeypatch.setattr("style_overlap.encoder.pick_dtype", _half)
    columns = documents(4)
    exact = load(checkpoint).embed(text_requests(columns))
    auto = load(checkpoint, dtype="auto")
    auto.loglikelihood(requests(columns))
    assert auto.encoder.dtype == torch.bfloat16
    assert "embedder" not in vars(auto)  # classification alone loads no second model
    got = auto.embed(text_requests(columns))
    assert auto.embedder is not auto.encoder
    for one, other in zip(exact, got, strict=True):
        assert one.dtype == other.dtype == "float32"
        np.testing.assert_allclose(one.vectors["h"], other.vectors["h"], rtol=1e-5, atol=1e-6)
    rounded = load(checkpoint, dtype="bf16")
    assert rounded.embed(text_requests(columns))[0].dtype == "bfloat16"
    assert rounded.embedder is rounded.encoder


def _half(dtype, device):
    """As on a processor that computes in bf16, wherever the tests run."""
    return torch.bfloat16 if dtype == "auto" else pick_dtype(dtype, device)


@pytest.mark.case(1)
def test_embedding_needs_the_classes_of_the_task_or_versions_that_are_none_of_them(lm):
    columns = documents(2)
    with pytest.raises(UsageError, match=r"has labels \['KJV', 'ASV'\], task content_retrieval_k2"):
        lm.embed(text_requests(columns, styles=("KJV", "ASV", "WEB")))
    with pytest.raises(
        UsageError, match=r"has not seen, and checkpoint .* was trained to tell ASV"
    ):
        lm.embed(text_requests(columns, versions=("NHEB", "ASV"), styles=()))
    assert len(lm.embed(text_requests(columns, versions=("NHEB", "RWEBSTER"), styles=()))) == 2


def test_a_foreign_request_for_features_is_refused_before_any_pass(lm):
    rows = count_rows(lm)
    foreign = Instance("embed", {"text": "a"}, ("a",), 0, ("mteb", 0, 1))
    with pytest.raises(UsageError, match="task mteb is no style task"):
        lm.embed([*text_requests(documents()), foreign])
    with pytest.raises(UsageError, match="no feature 'h2': expected h or last"):
        lm.embed(text_requests(documents(), features=("h2",)))
    assert rows == []


@pytest.mark.case(16)
@pytest.mark.slow
def test_three_processes_score_every_document_once(checkpoint, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"):
        environment.pop(name, None)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "3"]
    for name, launcher in (("one", []), ("three", launch)):
        done = subprocess.run(
            [sys.executable, *launcher, str(RUN), str(checkpoint), str(tmp_path / name)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
    one, three = (json.loads((tmp_path / name).read_text()) for name in ("one", "three"))
    assert (one["world_size"], three["world_size"]) == (1, 3)
    assert sorted(three["documents"]) == sorted(documents()["text"])
    assert three["acc"] == one["acc"]
    assert three["unique_texts"] == one["unique_texts"] == 22
    assert three["truncated"] == one["truncated"]
    scores = dict(zip(one["documents"], one["scores"], strict=True))
    for text, found in zip(three["documents"], three["scores"], strict=True):
        assert found == pytest.approx(scores[text], abs=1e-5)
