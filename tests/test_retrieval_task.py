"""The retrieval tasks as the harness sees them: invented texts, models whose features are known."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager
from lm_eval.utils import make_table

from conftest import RESERVED, make_corpus
from style_overlap.devices import pick_dtype
from style_overlap.embedding import Embedding
from style_overlap.encoder import Encoder, Feature
from style_overlap.errors import UsageError
from style_overlap.evaluation import evaluate, save
from style_overlap.lm import StyleEncoderLM
from style_overlap.overlap import content_splits
from style_overlap.probe import probe, seen_pairs
from style_overlap.probe.projectors import Settings
from style_overlap.probe.summary import report
from style_overlap.results import RECORD_NAME, dumps, read_json, write_json
from style_overlap.tasks.style_overlap import docs, retrieval
from style_overlap.tasks.style_overlap.files import FOLDER
from tiny_models import make_checkpoint

CORPUS = make_corpus(200)
TASKS = ["style_overlap_k2", "content_retrieval_k2", "content_retrieval_unseen"]
HELD_OUT = 20
QUICK = Settings(dim=16, epochs=8)


@pytest.fixture(autouse=True)
def invented_corpus(monkeypatch):
    """Every corpus is the invented one."""
    docs._corpus.cache_clear()
    monkeypatch.setattr(docs, "load_corpus", lambda spec, chunk_verses: CORPUS)
    yield
    docs._corpus.cache_clear()


@pytest.fixture(autouse=True)
def quick_projectors(monkeypatch):
    monkeypatch.setattr(retrieval, "Settings", lambda: QUICK)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("retrieval") / "model")


class Embedder(LM):
    """A model whose features of a text are a function of it."""

    def __init__(self, features):
        super().__init__()
        self.features, self.asked = features, []

    def embed(self, requests):
        self.asked += [request.args[0] for request in requests]
        return [
            Embedding(dict.fromkeys(names, self.features(text)), "float32")
            for text, _version, names in (request.args for request in requests)
        ]

    def loglikelihood(self, requests):
        raise NotImplementedError

    loglikelihood_rolling = generate_until = loglikelihood


def words(text):
    """A bag of words, hashed to 64 dimensions: contents can be found, but not all of them."""
    found = np.zeros(64, np.float32)
    for word in text.split():
        found[zlib.crc32(word.encode()) % 64] += 1
    return found


def constant(text):
    return np.ones(8, np.float32)


def manager(**metadata) -> TaskManager:
    return TaskManager(include_defaults=False, include_path=str(FOLDER), metadata=metadata)


def load(name="content_retrieval_k2", **metadata):
    (task,) = manager(**metadata).load([name])["tasks"].values()
    return task


def run(lm, tasks, *, metadata=None, **options):
    return simple_evaluate(
        model=lm,
        tasks=tasks,
        task_manager=manager(**(metadata or {})),
        bootstrap_iters=0,
        **options,
    )


def figures(output, name="content_retrieval_k2"):
    found = {key.removesuffix(",none"): value for key, value in output["results"][name].items()}
    return {key: found[key] for key in retrieval.METRICS}


def found(output, name="content_retrieval_k2"):
    return output["configs"][name]["metadata"]["retrieval"]


def play(task, lm, processes=1, **options):
    """What each process's documents give, as the harness makes it of them."""
    items = []
    for rank in range(processes):
        task.build_all_requests(rank=rank, world_size=processes, **options)
        for request, answer in zip(task.instances, lm.embed(task.instances), strict=True):
            request.resps.append(answer)
        by_document = defaultdict(list)
        for request in task.instances:
            by_document[request.doc_id].append(request)
        for number, doc in task.doc_iterator(rank=rank, world_size=processes, **options):
            answers = [r.resps[0] for r in sorted(by_document[number], key=lambda r: r.idx)]
            items.append(task.process_results(doc, answers))
    return items


def aggregate(task, items):
    return {name: of([item[name] for item in items]) for name, of in task.aggregation().items()}


def test_one_call_runs_both_kinds_of_tasks_and_passes_each_text_once(checkpoint):
    texts = {text for v in ("KJV", "ASV", *RESERVED) for text in CORPUS.texts(v)}
    for tasks in (TASKS, TASKS[::-1]):
        lm = StyleEncoderLM(str(checkpoint), dtype="fp32", device="cpu")
        output = run(lm, tasks)
        assert lm.encoder.texts_passed == len(texts)
        assert set(output["results"]) >= {*TASKS[1:], "style_overlap_k2_a0.4"}
        for name in TASKS[1:]:
            got = figures(output, name)
            assert (got["n"], got["limited"]) == (HELD_OUT, 0)
            assert got["chance"] == pytest.approx(1 / HELD_OUT)
            assert got["chance"] < got["top1"] < 1
            assert got["chance"] < got["top1_cls"] < 1


def test_the_figures_are_those_of_the_probe(checkpoint):
    lm = StyleEncoderLM(str(checkpoint), dtype="fp32", device="cpu", batch_size=1)
    metadata = {"probe_contents": 150, "probe_seeds": 2}
    output = run(lm, ["content_retrieval_k2"], metadata=metadata)
    encoder = Encoder.load(str(checkpoint), dtype="fp32", device="cpu", batch_size=1)
    features = {"h": Feature(), "last/cls": Feature("last", "cls")}
    pairs = seen_pairs(["KJV", "ASV"])
    results = probe(
        encoder,
        CORPUS,
        pairs,
        features.values(),
        seeds=(0, 1),
        settings=QUICK,
        contents=150,
    )
    reports = [
        report(results[f], source="checkpoint", features=name, chosen="seen")
        for name, f in features.items()
    ]
    record = found(output)
    assert record["rows"] == [row for rows, _ in reports for row in rows]
    assert record["summary"] == [summary for _, summary in reports]
    assert (record["contents"], record["seeds"], record["limit"]) == (150, [0, 1], None)
    assert record["dtype"] == "float32"
    h, cls = record["summary"]
    assert figures(output) == {
        "top1": h["top1"]["mean"],
        "top1_cls": cls["top1"]["mean"],
        "recall_at_5": h["recall_at_5"],
        "median_rank": h["median_rank"],
        "chance": h["chance"],
        "n": HELD_OUT,
        "limited": 0,
    }


def test_all_pairs_of_the_styles_are_listed_and_averaged():
    output = run(Embedder(words), ["content_retrieval_k3", "content_retrieval_unseen"])
    rows = [row for row in found(output, "content_retrieval_k3")["rows"] if row["features"] == "h"]
    assert [(row["a"], row["b"]) for row in rows] == [
        ("KJV", "ASV"), ("KJV", "WEB"), ("ASV", "WEB"),
    ]  # fmt: skip
    top1 = figures(output, "content_retrieval_k3")["top1"]
    assert top1 == pytest.approx(np.mean([row["top1"]["mean"] for row in rows]))
    (row, _cls) = found(output, "content_retrieval_unseen")["rows"]
    assert (row["a"], row["b"], row["set"]) == (*RESERVED, "unseen")


def test_projectors_are_trained_once_for_all_metrics(monkeypatch):
    calls = []
    real = retrieval.probe_vectors
    monkeypatch.setattr(
        retrieval, "probe_vectors", lambda *a, **o: calls.append(a) or real(*a, **o)
    )
    run(Embedder(words), ["content_retrieval_k2"])
    assert len(calls) == 2  # h and last/cls


def test_the_same_call_twice_gives_the_same_figures_and_a_task_keeps_nothing_of_another_model():
    task = load()
    first, second = (aggregate(task, play(task, Embedder(words))) for _ in range(2))
    assert first == second
    other = aggregate(task, play(task, Embedder(constant)))
    assert other["top1"] == other["chance"]


@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_share_the_texts_and_find_the_same(processes):
    task, lm = load("content_retrieval_k3"), Embedder(words)
    alone = aggregate(task, play(task, lm))
    asked, lm.asked = lm.asked, []
    assert aggregate(task, play(task, lm, processes)) == alone
    assert sorted(lm.asked) == sorted(asked)
    lm.asked = []
    play(task, lm)
    everything = len(lm.asked)
    task.build_all_requests(rank=0, world_size=processes)
    assert len(task.instances) <= everything // processes + 3 * 2


def test_the_order_of_the_gallery_is_of_no_effect():
    task = load()
    items = play(task, Embedder(words))
    assert aggregate(task, items) == aggregate(task, items[::-1])
    shuffled = [items[place] for place in np.random.default_rng(0).permutation(len(items))]
    assert aggregate(task, items) == aggregate(task, shuffled)


def test_a_document_that_two_processes_score_counts_once():
    task = load()
    items = play(task, Embedder(words))
    once = aggregate(task, items)
    assert aggregate(task, [*items, *items[:7]]) == once
    assert once["n"] == HELD_OUT


@pytest.mark.case(14)
def test_constant_features_score_exactly_chance():
    output = run(Embedder(constant), TASKS[1:])
    for name in TASKS[1:]:
        got = figures(output, name)
        assert got["top1"] == got["top1_cls"] == pytest.approx(got["chance"], abs=1e-12)
        assert {row["constant"] for row in found(output, name)["rows"]} == {"ab"}


def test_a_limited_gallery_is_marked_and_leaves_the_projectors_what_they_are():
    lm = Embedder(words)
    whole = run(lm, ["content_retrieval_k2"])
    asked, lm.asked = len(lm.asked), []
    output = run(lm, ["content_retrieval_k2"], limit=5)
    assert len(lm.asked) == asked - 2 * (HELD_OUT - 5)
    got = figures(output)
    assert (got["n"], got["limited"], got["chance"]) == (5, 1, pytest.approx(1 / 5))
    assert output["configs"]["content_retrieval_k2"]["metadata"]["limited"] is True
    assert (found(whole)["limit"], found(output)["limit"]) == (None, 5)
    epochs = [[row["best_epochs"] for row in found(one)["rows"]] for one in (whole, output)]
    assert epochs[0] == epochs[1]
    chosen = run(lm, ["content_retrieval_k2"], samples={"content_retrieval_k2": [3, 11, 12]})
    assert (figures(chosen)["n"], figures(chosen)["limited"]) == (3, 1)


@pytest.mark.case(14)
def test_a_gallery_of_one_has_no_figures_and_nothing_is_ever_nan():
    output = run(Embedder(words), ["content_retrieval_k2"], limit=1)
    got = figures(output)
    assert (got.pop("n"), got.pop("limited")) == (1, 1)
    assert set(got.values()) == {None}
    text = json.dumps(found(output), allow_nan=False)  # raises at a NaN
    assert json.loads(text)["summary"][0]["top1"]["mean"] is None
    assert "nan" not in make_table(output).lower()


def test_predict_only_gives_samples_and_no_metrics():
    lm = Embedder(words)
    output = run(lm, ["content_retrieval_k2"], predict_only=True)
    assert len(output["samples"]["content_retrieval_k2"]) == HELD_OUT
    scores = output["results"]["content_retrieval_k2"]
    assert not any(key.startswith(("top1", "n,")) for key in scores)
    assert "retrieval" not in output["configs"]["content_retrieval_k2"]["metadata"]


def test_logged_samples_hold_neither_vectors_nor_training_texts(checkpoint):
    lm = StyleEncoderLM(str(checkpoint), dtype="fp32", device="cpu")
    output = run(lm, ["content_retrieval_k2"], log_samples=True)
    samples = output["samples"]["content_retrieval_k2"]
    text = json.dumps(samples, default=str)
    assert "array" not in text
    assert len(text) < 2_000 * len(samples)
    held_out = np.flatnonzero(content_splits(CORPUS) == 2)
    expected = sorted(CORPUS.texts(version)[row] for row in held_out for version in ("KJV", "ASV"))
    logged = [argument[0] for sample in samples for argument in sample["arguments"]]
    assert sorted(logged) == expected
    assert [sample["target"] for sample in samples] == [CORPUS.content_ids[row] for row in held_out]


def test_a_response_cache_changes_nothing(checkpoint, tmp_path):
    runs = [
        run(
            StyleEncoderLM(str(checkpoint), dtype="fp32", device="cpu", batch_size=1),
            TASKS[:2],
            use_cache=str(tmp_path / "cache"),
        )
        for _ in range(2)
    ]
    assert runs[0]["results"] == runs[1]["results"]
    assert found(runs[0]) == found(runs[1])


def test_a_request_cache_never_serves_another_seed(tmp_path, monkeypatch):
    import lm_eval.caching.cache as cache

    monkeypatch.setattr(cache, "PATH", str(tmp_path))

    def asked(**metadata):
        lm = Embedder(words)
        run(lm, ["content_retrieval_k2"], metadata=metadata, cache_requests=True, limit=4)
        return lm.asked

    first = asked()
    assert asked() == first
    assert asked(data_seed=1) != first


class Answering(LM):
    """A model that gives likelihoods and no features."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def loglikelihood(self, requests):
        self.seen += len(requests)
        return [(-1.0, False)] * len(requests)

    loglikelihood_rolling = generate_until = loglikelihood


@pytest.mark.parametrize("cached", [False, True])
def test_a_model_without_features_is_told_before_it_computes_anything(tmp_path, cached):
    lm = Answering()
    options = {"use_cache": str(tmp_path / "cache")} if cached else {}
    with pytest.raises(UsageError, match="gives no features of texts: run content_retrieval_"):
        run(lm, TASKS, **options)
    assert lm.seen == 0


@pytest.mark.case(1)
def test_a_checkpoint_of_other_classes_is_refused(checkpoint, tmp_path):
    lm = StyleEncoderLM(str(checkpoint), dtype="fp32", device="cpu")
    with pytest.raises(
        UsageError, match=r"\['KJV', 'ASV'\], task content_retrieval_k3 has .*--k 3"
    ):
        run(lm, ["content_retrieval_k3"])
    other = make_checkpoint(tmp_path / "other", labels=("KJV", "WEB"))
    lm = StyleEncoderLM(str(other), dtype="fp32", device="cpu")
    with pytest.raises(UsageError, match=r"has labels \['KJV', 'WEB'\]"):
        run(lm, ["content_retrieval_k2"])
    assert lm.encoder.texts_passed == 0
    assert figures(run(lm, TASKS[2:]), TASKS[2])["n"] == HELD_OUT


def test_a_checkpoint_is_not_probed_on_contents_it_was_trained_on(tmp_path):
    config = {"corpus": "bible", "chunk_verses": 5, "data_seed": 7, "assignment": "random"}
    write_json(tmp_path / RECORD_NAME, {"config": config})
    for name in TASKS[1:]:
        with pytest.raises(UsageError, match=r"add --metadata '\{\"data_seed\": 7\}'"):
            load(name, pretrained=str(tmp_path))
        # How regions were assigned says nothing about who is held out.
        assert load(name, pretrained=str(tmp_path), data_seed=7).options.data_seed == 7


def test_options_thin_the_projectors_contents_and_leave_the_gallery_whole():
    lm = Embedder(words)
    output = run(lm, ["content_retrieval_k2"], metadata={"probe_contents": 50, "probe_seeds": "1"})
    assert len(lm.asked) == 2 * (50 * 0.9 + HELD_OUT)
    assert figures(output)["n"] == HELD_OUT
    assert (found(output)["contents"], found(output)["seeds"]) == (50, [0])


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"probe_content": 50}, "did you mean 'probe_contents'"),
        ({"probe-seeds": 5}, "did you mean 'probe_seeds'"),
        ({"chunk_verse": 5}, "did you mean 'chunk_verses'"),
        ({"probe_contents": "few"}, "probe_contents is 'few': expected a whole number"),
        ({"probe_contents": 0}, "0 contents to train projectors on"),
        ({"probe_contents": 201}, "has 200"),
        ({"probe_seeds": 0}, "probe_seeds is 0: expected at least 1"),
        ({"k": 2}, "k, which is part of the task's name"),
    ],
)
def test_wrong_options_are_told(metadata, told):
    with pytest.raises(UsageError, match=told):
        load(**metadata)


@pytest.mark.case(28)
def test_a_corpus_that_lacks_styles_or_contents_is_told(monkeypatch):
    few = make_corpus(20, ("KJV", "ASV"))
    monkeypatch.setattr(docs, "load_corpus", lambda spec, chunk_verses: few)
    with pytest.raises(UsageError, match=r"first 3 styles: expected 2 to 2.* has KJV, ASV"):
        load("content_retrieval_k3")
    object.__setattr__(few, "reserved", ("NHEB",))
    with pytest.raises(UsageError, match=r"reserves 1 versions.*reserved=C,D"):
        load("content_retrieval_unseen")
    docs._corpus.cache_clear()
    monkeypatch.setattr(docs, "load_corpus", lambda spec, chunk_verses: make_corpus(1))
    with pytest.raises(UsageError, match="1 contents, too few"):
        load()


def test_more_processes_than_documents_are_told_in_all_of_them():
    for rank in (0, 1):
        with pytest.raises(UsageError, match=r"2 processes share 1 documents.*--limit 2"):
            load().build_all_requests(limit=1, rank=rank, world_size=2)


def test_an_evaluation_holds_retrieval_when_asked_for(checkpoint, tmp_path):
    plain = evaluate(str(checkpoint), alphas=[0], dtype="fp32")
    assert plain["retrieval"] == {}
    record = evaluate(
        str(checkpoint), alphas=[0], dtype="fp32", retrieval=True, probe_contents=100, probe_seeds=1
    )
    assert list(record["tasks"]) == list(plain["tasks"]) == ["style_overlap_k2_a0.0"]
    assert (
        record["tasks"]["style_overlap_k2_a0.0"]["acc"]
        == (plain["tasks"]["style_overlap_k2_a0.0"]["acc"])
    )
    assert list(record["retrieval"]) == TASKS[1:]
    for name, chosen in zip(TASKS[1:], ("seen", "unseen"), strict=True):
        body = record["retrieval"][name]
        assert (body["contents"], body["seeds"], body["dtype"]) == (100, [0], "float32")
        assert [(s["features"], s["set"], s["n"]) for s in body["summary"]] == [
            ("h", chosen, HELD_OUT),
            ("last/cls", chosen, HELD_OUT),
        ]
    assert read_json(save(record, tmp_path))["retrieval"] == json.loads(dumps(record["retrieval"]))
    assert save(plain, tmp_path) != save(record, tmp_path)


def test_with_retrieval_classes_come_from_the_pass_that_features_need(checkpoint, monkeypatch):
    monkeypatch.setattr(
        "style_overlap.encoder.pick_dtype",
        lambda name, device: torch.bfloat16 if name == "auto" else pick_dtype(name, device),
    )
    alone = evaluate(str(checkpoint), alphas=[0], limit=3)
    beside = evaluate(str(checkpoint), alphas=[0], limit=3, retrieval=True, probe_seeds=1)
    assert alone["model"]["model_dtype"] == "bfloat16"
    assert beside["model"]["model_dtype"] == "float32"


def test_without_two_reserved_versions_there_is_no_unseen_pair(checkpoint, monkeypatch):
    corpus = make_corpus(200)
    object.__setattr__(corpus, "reserved", ())
    monkeypatch.setattr(docs, "load_corpus", lambda spec, chunk_verses: corpus)
    record = evaluate(str(checkpoint), alphas=[0], retrieval=True, limit=3, probe_seeds=1)
    assert list(record["retrieval"]) == ["content_retrieval_k2"]
    assert record["retrieval"]["content_retrieval_k2"]["limit"] == 3


def write_corpus(path: Path) -> str:
    """The invented corpus as a file, and its specification."""
    versions = ("KJV", "ASV", *RESERVED)
    columns = [CORPUS.content_ids, *(CORPUS.texts(version) for version in versions)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["content_id", *versions])
        writer.writerows(zip(*columns, strict=True))
    return f"{path},classes=KJV,ASV,reserved={','.join(RESERVED)}"


@pytest.mark.case(16)
@pytest.mark.slow
def test_the_command_gives_the_same_figures_in_one_process_and_in_two(checkpoint, tmp_path):
    metadata = json.dumps({"corpus": write_corpus(tmp_path / "texts.csv"), "probe_seeds": 2})
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"):
        environment.pop(name, None)
    two = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    results = []
    for folder, launch in (("one", []), ("two", two)):
        done = subprocess.run(
            [
                *(sys.executable, *launch, "-m", "lm_eval", "--model", "style-encoder"),
                # One text a batch: a text's features then do not depend on its neighbours.
                *("--model_args", f"pretrained={checkpoint},dtype=fp32,batch_size=1"),
                *("--tasks", ",".join(TASKS), "--metadata", metadata, "--device", "cpu"),
                *("--output_path", str(tmp_path / folder), "--log_samples"),
            ],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        (path,) = (tmp_path / folder).rglob("results_*.json")
        results.append(json.loads(path.read_text()))
        (log,) = (tmp_path / folder).rglob("samples_content_retrieval_k2_*.jsonl")
        lines = log.read_text().splitlines()
        assert len(lines) == HELD_OUT
        assert max(map(len, lines)) < 3_000
    one, two = results
    for name in TASKS[1:]:
        assert two["results"][name] == one["results"][name]
        assert found(two, name) == found(one, name)
        assert one["configs"][name]["metadata"]["limited"] is False
        assert figures(one, name)["top1"] > 2 * figures(one, name)["chance"]


@pytest.mark.case(20)
@pytest.mark.slow
def test_the_command_says_in_one_line_that_a_model_gives_no_features(tmp_path):
    metadata = json.dumps({"corpus": write_corpus(tmp_path / "texts.csv")})
    done = subprocess.run(
        [
            *(sys.executable, "-m", "lm_eval", "--model", "dummy", "--metadata", metadata),
            *("--tasks", "style_overlap_k2_a0.0,content_retrieval_k2"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: DummyLM gives no features of texts")
    assert "Traceback" not in done.stderr
