"""The metrics as anyone with `evaluate` uses them."""

from __future__ import annotations

import os
import subprocess
import sys

import evaluate
import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from style_overlap.metrics import (
    MacroF1,
    RetrievalTop1,
    StyleAccuracy,
    macro_f1,
    retrieval_top1,
    style_accuracy,
)

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(50, 3))
LABELS = RNG.integers(0, 3, size=50)


def test_without_ties_they_are_the_usual_accuracy_and_macro_f1():
    got = StyleAccuracy().compute(predictions=SCORES, references=LABELS)
    predicted = SCORES.argmax(axis=1)
    assert got == {"accuracy": pytest.approx((predicted == LABELS).mean()), "tie_rate": 0}
    got = MacroF1().compute(predictions=SCORES, references=LABELS)
    assert got == {"macro_f1": pytest.approx(f1_score(LABELS, predicted, average="macro"))}


@pytest.mark.case(14)
def test_equal_scores_of_label_0_are_chance_and_not_right():
    got = StyleAccuracy().compute(predictions=np.zeros((8, 4)), references=np.zeros(8, int))
    assert got == {"accuracy": 0.25, "tie_rate": 1}


def test_examples_can_be_added_one_by_one_and_in_batches():
    metric = StyleAccuracy()
    metric.add(prediction=[0.1, 0.9], reference=1)
    metric.add_batch(predictions=[[0.9, 0.1], [0.9, 0.1]], references=[0, 1])
    assert metric.compute() == {"accuracy": pytest.approx(2 / 3), "tie_rate": 0}


def test_half_precision_tensors_are_taken():
    scores = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.bfloat16)
    got = StyleAccuracy().compute(predictions=scores, references=torch.tensor([1, 1]))
    assert got == {"accuracy": 0.5, "tie_rate": 0}


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([[0.1, float("nan")]], [0], "finite"),
        ([[0.1, 0.2]], [2], "from 0 to 1"),
        ([[0.1, 0.2]], [-1], "from 0 to 1"),
        ([[0.1, 0.2], [0.1]], [1, 0], "no table"),
        ([[0.1, 0.2]], [1, 0], "Mismatch"),
    ],
)
def test_what_is_no_table_of_scores_is_refused(predictions, references, message):
    with pytest.raises(ValueError, match=message):
        StyleAccuracy().compute(predictions=predictions, references=references)


def test_texts_are_found_by_the_nearest_vector_of_the_other_version():
    vectors = RNG.normal(size=(20, 6))
    turned = 3 * vectors[:, ::-1]
    got = RetrievalTop1().compute(predictions=vectors, references=3 * vectors)
    assert got == {
        "top1": 1, "recall_at_5": 1, "median_rank": 1, "chance": pytest.approx(1 / 20), "n": 20,
    }  # fmt: skip
    cosine = vectors @ turned.T
    cosine /= np.linalg.norm(vectors, axis=1)[:, None] * np.linalg.norm(turned, axis=1)
    own = np.arange(20)
    expected = ((cosine.argmax(axis=1) == own).mean() + (cosine.argmax(axis=0) == own).mean()) / 2
    got = RetrievalTop1().compute(predictions=vectors, references=turned)
    assert got["top1"] == pytest.approx(expected)
    assert 0 < got["top1"] < 1


def test_constant_vectors_are_chance_and_a_gallery_of_one_is_nothing():
    ones = torch.ones(8, 3, dtype=torch.bfloat16)
    got = RetrievalTop1().compute(predictions=ones, references=ones)
    assert got["top1"] == pytest.approx(1 / 8) == got["chance"]
    alone = RetrievalTop1().compute(predictions=ones[:1], references=ones[:1])
    assert alone["top1"] is alone["chance"] is None
    assert alone["n"] == 1


def test_a_text_of_the_same_content_group_counts():
    vectors = np.eye(4)
    swapped = vectors[[1, 0, 2, 3]]
    apart = RetrievalTop1().compute(predictions=vectors, references=swapped)
    together = RetrievalTop1().compute(predictions=vectors, references=swapped, groups=[0, 0, 1, 2])
    assert (apart["top1"], together["top1"]) == (0.5, 1)


def test_vectors_can_be_added_in_batches():
    metric = RetrievalTop1()
    for rows in (slice(0, 3), slice(3, 5)):
        metric.add_batch(predictions=np.eye(5)[rows], references=np.eye(5)[rows])
    assert metric.compute()["top1"] == 1


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.eye(3), np.eye(3)[:, :2], "3 dimensions, features b 2"),
        (np.eye(3), np.eye(2), "Mismatch"),
        (np.full((2, 2), np.nan), np.eye(2), "NaN or infinite"),
        ([[1.0], [1.0, 2.0]], np.eye(2), "rows of one length"),
    ],
)
def test_what_are_no_paired_vectors_is_refused(a, b, message):
    with pytest.raises(ValueError, match=message):
        RetrievalTop1().compute(predictions=a, references=b)


@pytest.mark.case(20)
def test_evaluate_loads_a_metric_by_the_path_of_its_file(tmp_path):
    code = (
        "import evaluate, sys\n"
        "for path in sys.argv[1:]:\n"
        "    metric = evaluate.load(path)\n"
        "    print(metric.compute(predictions=[[0.1, 0.9], [0.2, 0.1]], references=[0, 0]))"
    )
    files = [style_accuracy.__file__, macro_f1.__file__]
    done = subprocess.run(
        [sys.executable, "-c", code, *files],
        env={**os.environ, "HF_HOME": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "{'accuracy': 0.5, 'tie_rate': 0.0}",
        f"{{'macro_f1': {1 / 3}}}",
    ]


@pytest.mark.slow
def test_evaluate_loads_retrieval_by_the_path_of_its_file(tmp_path):
    code = (
        "import evaluate, sys\n"
        "metric = evaluate.load(sys.argv[1])\n"
        "print(metric.compute(predictions=[[1, 0], [0, 1]], references=[[1, 0], [0, 1]])['top1'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, retrieval_top1.__file__],
        env={**os.environ, "HF_HOME": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["1.0"]


def test_they_combine_with_each_other():
    both = evaluate.combine([StyleAccuracy(), MacroF1()])
    got = both.compute(predictions=SCORES, references=LABELS)
    assert set(got) == {"accuracy", "tie_rate", "macro_f1"}


@pytest.mark.slow
@pytest.mark.case(20)
def test_without_a_cache_that_can_be_written_to_and_in_two_processes_at_once(tmp_path):
    home = tmp_path / "home"
    home.write_text("a file, so that no folder can be made here, not even by root")
    code = (
        "from style_overlap.metrics import StyleAccuracy\n"
        "metric = StyleAccuracy()\n"
        "metric.add_batch(predictions=[[0.0, 1.0]] * 3, references=[1, 1, 0])\n"
        "print('ready', flush=True)\n"
        "input()\n"
        "print(metric.compute()['accuracy'])"
    )
    env = {**os.environ, "HF_HOME": str(home)}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [run.stdout.readline() for run in runs] == ["ready\n"] * 2  # both hold examples
    assert [run.communicate("\n")[0].strip() for run in runs] == [str(2 / 3)] * 2
    assert home.is_file()
