"""Our own records as observations: evaluations, those inside runs, and probes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from style_overlap.leaderboard.observations import (
    MOST_PASSAGES,
    Observation,
    Record,
    Score,
    Seen,
    Unknown,
    guarded,
    probed,
    setting_of,
    training_of,
    usable,
)
from style_overlap.leaderboard.sources import Found
from style_overlap.leaderboard.strict import Refused
from style_overlap.names import alpha_text
from style_overlap.results import in_the_middle

_SLACK = 1e-6  # between an accuracy and the mean of its credits
_MOST_COPIES = 1000  # passages of one content in one test set


def observe(found: Found) -> Iterator[Seen]:
    """What our own records say."""
    for source, run in found.records.runs.items():
        if run["status"] == "failed":
            yield source, f"the run failed: {str(run.get('error'))[:200]}"
        elif not run.get("evaluation"):
            yield source, "the run has no evaluation"
    for source, record in found.records.evaluations.items():
        yield from guarded(source, partial(_evaluation, source, record, found))
    for source, record in found.records.probes.items():
        yield from guarded(source, partial(_probe, source, record, found))


def _evaluation(source: str, record: Record, found: Found) -> Iterator[Seen]:
    config, checkpoint = record["config"], record["checkpoint"]
    if config["limit"] is not None:
        raise Refused(f"limited to {config['limit']} documents a task")
    tasks = list(record["tasks"].values())
    corpora = {(task["corpus_fingerprint"], tuple(task["styles"])) for task in tasks}
    if len(corpora) > 1:
        raise Refused("its tasks are of two corpora")
    ((corpus, styles),) = corpora
    if not checkpoint.get("config"):
        acc = {alpha_text(task["alpha_eval"]): task["acc"] for task in tasks}
        name = str(checkpoint.get("name", "?"))[:200]
        yield Unknown(source, name, int(config["k"]), corpus, acc, "not trained by style-overlap")
        return
    if in_the_middle(checkpoint):
        raise Refused("a checkpoint from the middle of a training")
    trained = usable(checkpoint, config["k"], config["assignment"], config.get("data_seed"), corpus)
    setting = setting_of(trained, config["k"], styles, corpus, config.get("sampling", 1))
    scores: dict[str, Score] = {}
    for task in tasks:
        score = Score(task["acc"], task.get("acc_stderr"), task["data_fingerprint"], _credit(task))
        if scores.setdefault(alpha_text(task["alpha_eval"]), score) is not score:
            raise Refused(f"two of its tasks are at alpha_eval={task['alpha_eval']}")
    yield Observation(
        source,
        setting,
        training_of(trained, _base(source, record, found)),
        record["model"].get("model_num_parameters"),
        scores,
        tuple(
            (how, row)
            for body in (record.get("retrieval") or {}).values()
            for how, row in probed(body, corpus)
        ),
    )


def _probe(source: str, record: Record, found: Found) -> Iterator[Seen]:
    checkpoint, corpus = record["checkpoint"], record["corpus_fingerprint"]
    if in_the_middle(checkpoint):
        raise Refused("a checkpoint from the middle of a training")
    if record["limit"] is not None:
        raise Refused(f"a probe limited to {record['limit']} contents")
    told = checkpoint.get("config") or {}
    trained = usable(
        checkpoint,
        told.get("k", 0),
        told.get("assignment", "contiguous"),
        record.get("data_seed"),
        corpus,
    )
    data = checkpoint.get("data") or {}
    if "styles" not in data:
        raise Refused("the record does not name the styles that the checkpoint was trained on")
    yield Observation(
        source,
        setting_of(trained, int(trained["k"]), tuple(data["styles"]), corpus, 1),
        training_of(trained, _base(source, record, found)),
        None,
        {},
        tuple(probed(record, corpus)),
    )


def _base(source: str, record: Record, found: Found) -> str | None:
    run = found.records.runs.get(source, {}).get("training")
    known = run or found.training.get(record.get("model", {}).get("model_fingerprint") or "", {})
    return known.get("base_model_fingerprint")


def _credit(task: Record) -> dict[str, tuple[float, int]] | None:
    """Credit of every content, None if it is not told."""
    if not task.get("credit"):
        return None
    found: dict[str, tuple[float, int]] = {}
    for content, (total, count) in task["credit"].items():  # report.shape: pairs of numbers
        if not (1 <= count <= _MOST_COPIES and count == int(count) and 0 <= total <= count):
            told = f"{str(total)[:20]} of {str(count)[:20]} passages right"
            raise Refused(f"no credit that can be: {told} in {content[:60]!r}")
        found[content] = (float(total), int(count))
    passages = sum(count for _, count in found.values())
    if passages > MOST_PASSAGES:
        raise Refused(f"{passages} passages in one test set: at most {MOST_PASSAGES} are read")
    mean = sum(total for total, _ in found.values()) / passages
    if abs(mean - task["acc"]) > _SLACK:
        raise Refused(f"its accuracy {task['acc']} is not the mean of its credits, {mean:.6f}")
    return found
