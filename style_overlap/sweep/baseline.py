"""``baseline:tfidf``: a bag of words in place of an encoder, in records of the same shape.

TF-IDF of single words and logistic regression, trained and scored on the very texts that encoders
get. Document frequencies are those of all training contents in all k styles, without labels and
whatever the overlap, so the texts are vectorised once for all cells of one k and seed.
"""

from __future__ import annotations

import time
from functools import lru_cache
from importlib import metadata
from typing import Any

import numpy as np

from style_overlap import scoring
from style_overlap.corpus import ParallelCorpus
from style_overlap.corpus.floor import MAX_ITER, BagOfWords
from style_overlap.names import alpha_text, task_name
from style_overlap.overlap import Sample, content_splits, sample
from style_overlap.results import SCHEMA, checkpoint_part, credit_by_content, digest, versions
from style_overlap.sweep.plan import Cell
from style_overlap.tasks.style_overlap.docs import OPTIONS, DataOptions
from style_overlap.trainers.data import draw
from style_overlap.trainers.outcome import Scored, degenerate, metrics_of
from style_overlap.trainers.settings import TrainSettings


def config(settings: TrainSettings) -> dict[str, Any]:
    """Configuration of a cell: what it shares with encoders' cells, and its own settings."""
    unused = dict.fromkeys(("max_length", "early_stopping", "dropout"))
    return {
        **settings.config(),
        **unused,
        "dtype": "fp64",
        "arguments": {"max_iter": MAX_ITER},
        "probe": None,
    }


def run(
    cell: Cell, settings: TrainSettings, corpus: ParallelCorpus, alphas: tuple[str, ...]
) -> dict[str, Any]:
    """Train, score at every overlap: the parts ``training`` and ``evaluation`` of a run's record.

    Args:
        cell: the cell.
        settings: its training, as :func:`style_overlap.sweep.grid.settings_of` gives it.
        corpus: its corpus.
        alphas: overlaps to score at.
    """
    started = time.time()
    drawn = draw(settings, corpus)
    words = _vectorised(corpus, settings.k, settings.sampling_seed)
    model = words.fit(drawn.splits["train"])
    scored: dict[str, Scored] = {
        name: (words.scores(model, drawn.splits[name]), drawn.splits[name].style)
        for name in ("validation", "test")
    }
    told = {**versions(), "scikit-learn": metadata.version("scikit-learn")}
    training = {
        "schema": SCHEMA,
        "kind": "checkpoint",
        "config": {name: value for name, value in cell.config.items() if name != "probe"},
        "data": drawn.record(),
        "base_model_fingerprint": None,
        "compute": {"device": "cpu", "dtype": "fp64", "processes": 1},
        "metrics": {name: metrics_of(*one) for name, one in scored.items()},
        "degenerate": degenerate(list(scored.values())),
        "time": {"seconds": round(time.time() - started, 1)},
        "versions": told,
    }
    options = DataOptions(**{name: cell.config[name] for name in OPTIONS})
    fingerprint = digest([model.coef_, model.intercept_])
    evaluation = {
        "schema": SCHEMA,
        "kind": "evaluation",
        "checkpoint": checkpoint_part(cell.folder, training),
        "model": {
            "labels": list(drawn.styles),
            "model_fingerprint": fingerprint,
            "model_num_parameters": int(model.coef_.size + model.intercept_.size),
            "model_dtype": "float64",
            "model_device": "cpu",
        },
        "config": options.config(settings.k),
        "tasks": {
            task_name(settings.k, alpha): _task(words, model, corpus, settings, alpha)
            for alpha in alphas
        },
        "retrieval": {},
        "versions": told,
    }
    return {"training": training, "evaluation": evaluation}


@lru_cache(maxsize=1)
def _vectorised(corpus: ParallelCorpus, k: int, seed: int) -> BagOfWords:
    # Identity of the corpus is enough: a process loads it once.
    trained = np.flatnonzero(content_splits(corpus, seed) == 0)
    return BagOfWords([corpus.texts(style) for style in corpus.styles[:k]], trained)


@lru_cache(maxsize=1)
def _content_ids(corpus: ParallelCorpus) -> list[str]:
    return corpus.content_ids


@lru_cache(maxsize=16)
def _sample(corpus: ParallelCorpus, k: int, alpha: str, seed: int, assignment: str) -> Sample:
    return sample(corpus, k, alpha, seed, assignment)


def _task(
    words: BagOfWords, model: Any, corpus: ParallelCorpus, settings: TrainSettings, alpha: str
) -> dict[str, Any]:
    """As the harness would have scored it."""
    drawn = _sample(corpus, settings.k, alpha, settings.sampling_seed, settings.assignment)
    test = drawn.splits["test"]
    scores = words.scores(model, test)
    credit = scoring.tie_credit(scores, test.style)
    ids = _content_ids(corpus)
    return {
        "alpha_eval": alpha_text(alpha),
        "realised_alpha": drawn.realised["test"],
        "corpus_fingerprint": corpus.fingerprint,
        "data_fingerprint": drawn.fingerprint,
        "styles": list(corpus.styles[: settings.k]),
        "acc": float(credit.mean()),
        "acc_stderr": float(np.std(credit, ddof=1) / np.sqrt(len(credit))),
        "macro_f1": scoring.macro_f1(scores, test.style),
        "tie_rate": scoring.tie_rate(scores),
        "documents": len(test),
        "credit": credit_by_content(
            zip((ids[row] for row in test.content.tolist()), credit.tolist(), strict=True)
        ),
    }
