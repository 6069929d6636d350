"""Score checkpoints with the harness on every overlap of their k, one record per checkpoint."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from style_overlap.errors import UsageError
from style_overlap.model_folders import training_record
from style_overlap.names import ALPHAS, AlphaLike, alpha_text, as_alpha, task_name
from style_overlap.results import (
    SCHEMA,
    checkpoint_part,
    credit_by_content,
    save_record,
    versions,
)

if TYPE_CHECKING:
    from style_overlap.tasks.style_overlap.docs import DataOptions


def evaluate(
    checkpoint: str,
    *,
    alphas: Iterable[AlphaLike] = ALPHAS,
    options: DataOptions | None = None,
    limit: int | None = None,
    retrieval: bool = False,
    probe_contents: int | None = None,
    probe_seeds: int = 3,
    **model_args: Any,
) -> dict[str, Any]:
    """Acc(alpha_train, alpha_eval) of one checkpoint at every alpha_eval, by the harness.

    Args:
        checkpoint: folder, hub id or ``package:NAME`` with a trained classification head.
        alphas: values of alpha_eval, on the registered grid or off it.
        options: data of the tasks; by default those that the checkpoint was trained on.
        limit: documents per task, for a quick look; the record is marked, and left out of matrices.
        retrieval: also run content retrieval in the same call: on all pairs of the checkpoint's
            styles, and on the reserved versions if the corpus has two. Everything is in fp32 then,
            unless ``dtype`` is given.
        probe_contents: train the projectors of retrieval on as much as a corpus of so many
            contents would give.
        probe_seeds: number of seeds of the projectors.
        **model_args: arguments of :class:`style_overlap.lm.StyleEncoderLM`, such as ``dtype``.

    Returns:
        The record: per task accuracy, macro-F1, tie rate, the credit of every content, the realised
        overlap and fingerprints; per retrieval task its pairs and their summary.

    Raises:
        UsageError: not a checkpoint of ours or anyone's, or one whose labels are other styles.
    """
    from style_overlap.lm import StyleEncoderLM
    from style_overlap.tasks.style_overlap.docs import OPTIONS, DataOptions
    from style_overlap.tasks.style_overlap.gallery import RetrievalOptions

    levels = sorted({as_alpha(alpha) for alpha in alphas})
    trained = training_record(checkpoint)
    if options is None:
        options = DataOptions(
            **{k: v for k, v in trained.get("config", {}).items() if k in OPTIONS}
        )
    if retrieval:
        options = RetrievalOptions(
            **asdict(options), probe_contents=probe_contents, probe_seeds=probe_seeds
        )
        # Features are computed in fp32, and the logits come along in the same pass.
        model_args = {"dtype": "fp32", **model_args}
    lm = StyleEncoderLM(pretrained=checkpoint, **model_args)
    k = len(lm.encoder.labels)
    tasks = [_task(k, alpha) for alpha in levels]
    probes = _retrieval_tasks(k, options) if retrieval else []
    metadata = {**asdict(options), "pretrained": checkpoint}
    output = _run_harness(lm, tasks + probes, metadata, limit)
    model = lm.get_model_info()
    return {
        "schema": SCHEMA,
        "kind": "evaluation",
        "checkpoint": checkpoint_part(checkpoint, trained),
        "model": model,
        "config": options.config(k, limit),
        "tasks": {
            (name := task_name(k, alpha)): _task_record(output, name, alpha_text(alpha))
            for alpha in levels
        },
        "retrieval": {
            (name := probe["task"]): output["configs"][name]["metadata"]["retrieval"]
            for probe in probes
        },
        "versions": versions(),
    }


def save(record: dict[str, Any], folder: Path) -> Path:
    """Write a record: its name is a hash of the model's fingerprint and of the tasks' data."""
    identity = {
        "model": record["model"],
        "config": record["config"],
        "data": {name: task["data_fingerprint"] for name, task in record["tasks"].items()},
    }
    return save_record(record, folder, identity, prefix=f"k{record['config']['k']}-")


def _task(k: int, alpha: AlphaLike) -> dict[str, Any]:
    """Inline configuration of a task: the same for overlaps on the grid and off it."""
    from lm_eval.tasks._yaml_loader import load_yaml

    from style_overlap.tasks.style_overlap.files import BASE, task_config

    return {**load_yaml(BASE), **task_config(k, alpha)}


def _retrieval_tasks(k: int, options: DataOptions) -> list[dict[str, Any]]:
    """Inline configurations: all pairs of k styles, and the reserved versions if there are two."""
    from lm_eval.tasks._yaml_loader import load_yaml

    from style_overlap.tasks.style_overlap.docs import corpus_of
    from style_overlap.tasks.style_overlap.files import RETRIEVAL_BASE, retrieval_config

    sets = [k, None] if len(corpus_of(options).reserved) > 1 else [k]
    return [{**load_yaml(RETRIEVAL_BASE), **retrieval_config(one)} for one in sets]


def _run_harness(
    lm: Any, tasks: Sequence[dict[str, Any]], metadata: dict[str, Any], limit: int | None
) -> dict[str, Any]:
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    with _quiet():
        # No folder is searched: the tasks are given whole, and indexing 14,000 names takes seconds.
        manager = TaskManager(include_defaults=False, metadata=metadata)
        output = simple_evaluate(
            model=lm, tasks=list(tasks), task_manager=manager, limit=limit, log_samples=True
        )
    if output is None:
        raise UsageError(
            "style-overlap evaluate runs in one process: to share the work among several, use "
            "`accelerate launch -m lm_eval --model style-encoder ...`"
        )
    return output


def _task_record(output: dict[str, Any], name: str, alpha: str) -> dict[str, Any]:
    scores, data = output["results"][name], output["configs"][name]["metadata"]
    samples = output["samples"][name]
    return {
        "alpha_eval": alpha,
        "realised_alpha": data["realised_alpha"]["test"],
        "corpus_fingerprint": data["corpus_fingerprint"],
        "data_fingerprint": data["data_fingerprint"],
        "styles": data["styles"],
        "acc": scores["acc,none"],
        "acc_stderr": scores["acc_stderr,none"],
        "macro_f1": scores["macro_f1,none"],
        "tie_rate": scores["tie_rate,none"],
        "documents": len(samples),
        "credit": credit_by_content((s["doc"]["content_id"], s["acc"]) for s in samples),
    }


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The harness without its progress of every task, its notes, and its search for a git hash."""
    logger = logging.getLogger("lm_eval")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with (
            patch("lm_eval.api.task.tqdm", lambda items, **_: items, create=True),
            patch("lm_eval.evaluator.get_git_commit_hash", lambda: None, create=True),
        ):
            yield
    finally:
        logger.setLevel(level)
