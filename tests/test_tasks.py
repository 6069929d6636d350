"""The tasks as the harness sees them, on invented texts, with models whose answers are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from conftest import make_corpus
from style_overlap.errors import UsageError
from style_overlap.names import ALPHAS, KS, UNSEEN_RETRIEVAL, retrieval_name, task_name
from style_overlap.results import RECORD_NAME, write_json
from style_overlap.tasks.style_overlap import docs
from style_overlap.tasks.style_overlap.files import (
    BASE,
    FOLDER,
    group_yaml,
    retrieval_yaml,
    task_yaml,
)


class Answering(LM):
    """A model that gives each style a score from the document and the style's name."""

    def __init__(self, score):
        super().__init__()
        self.score, self.seen = score, []

    def loglikelihood(self, requests):
        self.seen += requests
        return [(self.score(r.doc, r.args[1].strip()), False) for r in requests]

    def loglikelihood_rolling(self, requests):
        raise NotImplementedError

    generate_until = loglikelihood_rolling


def oracle(doc, choice):
    return 0.0 if doc["style"] == choice else -9.0


@pytest.fixture(autouse=True)
def invented_corpus(monkeypatch):
    """Every corpus is the invented one; its fingerprint follows the settings."""
    docs._corpus.cache_clear()
    monkeypatch.setattr(
        docs, "load_corpus", lambda spec, chunk_verses: make_corpus(200, seed=chunk_verses)
    )
    yield
    docs._corpus.cache_clear()


def manager(**metadata) -> TaskManager:
    return TaskManager(include_defaults=False, include_path=str(FOLDER), metadata=metadata)


def run(score, tasks, *, metadata=None, **kwargs):
    model = Answering(score)
    output = simple_evaluate(
        model=model,
        tasks=tasks,
        task_manager=manager(**(metadata or {})),
        bootstrap_iters=0,
        **kwargs,
    )
    return output, model


def test_the_folder_holds_exactly_the_grid_as_the_writer_writes_it():
    expected = {
        f"{task_name(k, alpha)}.yaml": task_yaml(k, alpha, tag=True) for k in KS for alpha in ALPHAS
    }
    for k in KS:
        members = [task_name(k, alpha) for alpha in ALPHAS]
        expected[f"style_overlap_k{k}.yaml"] = group_yaml(f"style_overlap_k{k}", members)
    expected["style_overlap.yaml"] = group_yaml(
        "style_overlap", [f"style_overlap_k{k}" for k in KS]
    )
    retrieval = {retrieval_name(k): k for k in KS} | {UNSEEN_RETRIEVAL: None}
    expected |= {f"{name}.yaml": retrieval_yaml(k) for name, k in retrieval.items()}
    expected["content_retrieval.yaml"] = group_yaml("content_retrieval", list(retrieval))
    assert {path.name: path.read_text() for path in FOLDER.glob("*.yaml")} == expected


def test_groups_and_tags_select_their_tasks():
    tasks = manager()
    assert set(tasks.load(["style_overlap"])["tasks"]) == {
        task_name(k, alpha) for k in KS for alpha in ALPHAS
    }
    assert set(tasks.load(["style_overlap_k3"])["tasks"]) == {task_name(3, a) for a in ALPHAS}
    assert set(tasks.load(["content_retrieval"])["tasks"]) == {
        *map(retrieval_name, KS), UNSEEN_RETRIEVAL,
    }  # fmt: skip
    assert set(tasks.load(["style_overlap_a1.0"])["tasks"]) == {task_name(k, "1.0") for k in KS}


@pytest.mark.case(21)
def test_globs_select_exactly_the_tasks_of_their_k():
    assert manager().match_tasks(["style_overlap_k3_*"]) == [task_name(3, a) for a in ALPHAS]
    assert manager().match_tasks(["style_overlap_k3_a0.4"]) == ["style_overlap_k3_a0.4"]


def test_a_model_that_knows_scores_1_and_reports_what_the_data_were():
    output, model = run(oracle, ["style_overlap_k3_a0.4"])
    scores = output["results"]["style_overlap_k3_a0.4"]
    assert (scores["acc,none"], scores["macro_f1,none"], scores["tie_rate,none"]) == (1, 1, 0)
    metadata = output["configs"]["style_overlap_k3_a0.4"]["metadata"]
    assert metadata["realised_alpha"]["all"] == pytest.approx(26 / 66)
    assert metadata["styles"] == ["KJV", "ASV", "WEB"]
    assert len(metadata["data_fingerprint"]) == 64
    assert metadata["corpus_fingerprint"].startswith("invented")
    assert {request.args[1] for request in model.seen} == {" KJV", " ASV", " WEB"}
    json.dumps(metadata)


@pytest.mark.case(14)
@pytest.mark.parametrize("k", KS)
def test_a_model_that_says_the_same_of_every_style_scores_chance(k):
    name = task_name(k, 0)
    output, _ = run(lambda doc, choice: -1.0, [name])
    scores = output["results"][name]
    assert scores["acc,none"] == pytest.approx(1 / k)
    assert scores["tie_rate,none"] == 1


def test_documents_of_one_split_are_never_in_another():
    tasks = manager().load(["style_overlap_k2"])["tasks"]
    train, test = set(), set()
    for task in tasks.values():
        train |= set(task.training_docs()["content_id"])
        test |= set(task.test_docs()["content_id"])
    assert train
    assert test
    assert not train & test


@pytest.mark.case(18)
def test_every_option_changes_the_data():
    def fingerprint(**metadata):
        (task,) = manager(**metadata).load(["style_overlap_k2_a0.4"])["tasks"].values()
        return task.provenance["data_fingerprint"]

    plain = fingerprint()
    changed = [
        fingerprint(data_seed=1),
        fingerprint(assignment="random"),
        fingerprint(chunk_verses=3),
        fingerprint(chunk_verses="4"),
    ]
    assert len({plain, *changed}) == 5
    assert fingerprint(pretrained="x", dtype="float32") == plain


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"chunk_verse": 5}, "did you mean 'chunk_verses'"),
        ({"data-seed": 1}, "did you mean 'data_seed'"),
        ({"alpha": 0.3}, "alpha, which is part of the task's name"),
        ({"data_seed": "one"}, "data_seed is 'one': expected a whole number"),
        ({"assignment": "sorted"}, "contiguous or random"),
    ],
)
def test_wrong_options_are_told(metadata, told):
    with pytest.raises(UsageError, match=told):
        manager(**metadata).load(["style_overlap_k2_a0.4"])


@pytest.mark.case(28)
def test_a_corpus_too_small_for_its_splits_is_told(monkeypatch):
    monkeypatch.setattr(docs, "load_corpus", lambda spec, chunk_verses: make_corpus(10))
    with pytest.raises(UsageError, match="10 contents, too few for k=5"):
        manager().load(["style_overlap_k5_a0.0"])


def test_a_task_off_the_grid_is_a_file(tmp_path):
    path = tmp_path / "style_overlap_k3_a0.35.yaml"
    path.write_text(task_yaml(3, "0.35", include=str(BASE)))
    output, _ = run(oracle, [str(path)])
    metadata = output["configs"]["style_overlap_k3_a0.35"]["metadata"]
    assert metadata["shared_contents"] == 66 * 35 // 100
    assert output["results"]["style_overlap_k3_a0.35"]["acc,none"] == 1


def test_the_prompt_holds_the_whole_passage_and_names_the_styles():
    _, model = run(oracle, ["style_overlap_k2_a1.0"], limit=3)
    for request in model.seen:
        prompt = request.args[0]
        assert request.doc["text"] in prompt
        assert "KJV (King James Version) or ASV (American Standard Version)" in prompt


def test_few_shot_examples_come_from_the_training_split():
    _, model = run(oracle, ["style_overlap_k2_a0.0"], num_fewshot=2, limit=4)
    (task,) = manager().load(["style_overlap_k2_a0.0"])["tasks"].values()
    training = set(task.training_docs()["text"])
    tested = set(task.test_docs()["text"])
    for request in model.seen:
        shots = [part for part in request.args[0].split("\n\n") if part]
        assert len(shots) == 3
        for shot in shots[:2]:
            text = shot.removeprefix("Passage: ").split("\n")[0]
            assert text in training
            assert text not in tested
            assert shot.split()[-1] in ("KJV", "ASV")


def test_few_shot_examples_follow_the_harness_seed():
    def prompts(seed):
        _, model = run(
            oracle, ["style_overlap_k2_a0.0"], num_fewshot=2, limit=4, fewshot_random_seed=seed
        )
        return [request.args[0] for request in model.seen]

    assert prompts(1) == prompts(1) != prompts(2)


def test_predict_only_gives_samples_and_no_metrics():
    output, _ = run(oracle, ["style_overlap_k2_a0.0"], predict_only=True, limit=5)
    assert len(output["samples"]["style_overlap_k2_a0.0"]) == 5
    assert not any(key.startswith("acc") for key in output["results"]["style_overlap_k2_a0.0"])


def test_limit_sees_every_style_and_logged_samples_hold_the_document():
    output, _ = run(oracle, ["style_overlap_k2_a0.0"], limit=12, log_samples=True)
    samples = output["samples"]["style_overlap_k2_a0.0"]
    assert len(samples) == 12
    assert {sample["doc"]["style"] for sample in samples} == {"KJV", "ASV"}
    assert output["n-samples"]["style_overlap_k2_a0.0"]["effective"] == 12


@pytest.mark.case(18)
def test_a_request_cache_never_serves_other_data(tmp_path, monkeypatch):
    import lm_eval.caching.cache as cache

    monkeypatch.setattr(cache, "PATH", str(tmp_path))
    name = "style_overlap_k2_a0.0"

    def texts(**metadata):
        _, model = run(oracle, [name], metadata=metadata, cache_requests=True)
        return [request.doc["text"] for request in model.seen]

    first = texts()
    assert texts() == first
    assert len(list(tmp_path.iterdir())) == 1
    assert texts(data_seed=1) != first
    assert len(list(tmp_path.iterdir())) == 2


def test_a_checkpoint_is_not_scored_on_passages_it_was_trained_on(tmp_path):
    config = {"corpus": "bible", "chunk_verses": 5, "data_seed": 7, "assignment": "contiguous"}
    write_json(tmp_path / RECORD_NAME, {"config": config})
    with pytest.raises(UsageError, match=r"add --metadata '\{\"data_seed\": 7\}'"):
        manager(pretrained=str(tmp_path)).load(["style_overlap_k2_a0.0"])
    loaded = manager(pretrained=str(tmp_path), data_seed=7).load(["style_overlap_k2_a0.0"])
    task = loaded["tasks"]["style_overlap_k2_a0.0"]
    assert task.provenance["data_seed"] == 7
    # The same texts by another path are the same data; other texts by the same path are not.
    moved = {"config": {**config, "corpus": "elsewhere.csv"}, "data": {}}
    moved["data"]["corpus_fingerprint"] = task.provenance["corpus_fingerprint"]
    write_json(tmp_path / RECORD_NAME, moved)
    manager(pretrained=str(tmp_path), data_seed=7).load(["style_overlap_k2_a0.0"])
    # Before training ends its record is the parent's, that of any checkpoint-* folder in it.
    (tmp_path / "checkpoint-5").mkdir()
    with pytest.raises(UsageError, match=r'\{"data_seed": 7\}'):
        manager(pretrained=str(tmp_path / "checkpoint-5")).load(["style_overlap_k2_a0.0"])
    moved["data"]["corpus_fingerprint"] = "other"
    write_json(tmp_path / RECORD_NAME, moved)
    with pytest.raises(UsageError, match=r'\{"corpus": "elsewhere.csv"\}'):
        manager(pretrained=str(tmp_path), data_seed=7).load(["style_overlap_k2_a0.0"])


def test_the_folder_has_a_readme_in_the_harness_form():
    text = (Path(FOLDER) / "README.md").read_text()
    for heading in ("### Paper", "### Citation", "### Groups, Tags, and Tasks", "### Checklist"):
        assert heading in text
