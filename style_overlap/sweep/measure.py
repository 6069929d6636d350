"""What a cell measures: it trains, is scored by the harness, and is probed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from style_overlap.corpus import ParallelCorpus, load_corpus
from style_overlap.names import as_alpha, is_baseline
from style_overlap.results import DYNAMICS_NAME
from style_overlap.sweep import baseline
from style_overlap.sweep.grid import settings_of
from style_overlap.sweep.jobs import Job, lacks_of


def measure(job: Job) -> dict[str, Any]:
    """All that a finished cell's record says of it."""
    settings = settings_of(job.cell, job.folder, keep_checkpoints=job.keep == "all")
    corpus = corpus_of(settings.corpus, settings.chunk_verses)
    if is_baseline(settings.model):
        started = time.time()
        parts = baseline.run(job.cell, settings, corpus, job.alphas_eval)
        return {**parts, "time": {"seconds": round(time.time() - started, 1)}}
    from style_overlap.evaluation import evaluate
    from style_overlap.trainers.classifier import train

    training = train(settings, corpus=corpus).record
    trained = time.time()
    probe = job.cell.config["probe"]
    retrieval: dict[str, Any] = {}
    if probe["retrieval"]:
        retrieval = {
            "retrieval": True,
            "probe_contents": probe["contents"],
            "probe_seeds": probe["seeds"],
        }
    evaluation = evaluate(str(job.folder), alphas=job.alphas_eval, **retrieval)
    # Runs may be moved, and are made of the same bytes wherever they are made.
    evaluation["checkpoint"]["name"] = job.cell.folder
    # The training may have been made in several attempts, or by hand.
    seconds = training["time"]["seconds"] + time.time() - trained
    return {
        "time": {"seconds": round(seconds, 1)},
        "training": training,
        "evaluation": {"retrieval": {}, **evaluation},
        "dynamics": list(_lines(job.folder / DYNAMICS_NAME)),
    }


def score_more(job: Job, record: dict[str, Any]) -> dict[str, Any]:
    """The record with the overlaps that were asked for after the cell was finished."""
    before, lacks = record["evaluation"], lacks_of(job, record)
    if is_baseline(str(job.cell.config["model"])):
        settings = settings_of(job.cell, job.folder)
        corpus = corpus_of(settings.corpus, settings.chunk_verses)
        more = baseline.run(job.cell, settings, corpus, lacks)["evaluation"]
    else:
        from style_overlap.evaluation import evaluate

        # One record, one number format: by itself scoring may take another one than retrieval.
        more = evaluate(str(job.folder), alphas=lacks, dtype=before["model"]["model_dtype"])
    tasks = {**before["tasks"], **more["tasks"]}
    ordered = dict(sorted(tasks.items(), key=lambda item: as_alpha(item[1]["alpha_eval"])))
    return {**record, "evaluation": {**before, "tasks": ordered}}


@lru_cache(maxsize=2)
def corpus_of(spec: str, chunk_verses: int) -> ParallelCorpus:
    """A corpus, loaded once a process."""
    return load_corpus(spec, chunk_verses=chunk_verses)


def _lines(path: Path) -> Iterator[Any]:
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
