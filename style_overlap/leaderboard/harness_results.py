"""lm-eval's own results files as observations.

They say what a model scored, and only for our model type how it was trained: from the field
``training`` that ``style-encoder`` leaves there, or from a checkpoint's record among the given
paths whose weights have the same fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from style_overlap.leaderboard import strict
from style_overlap.leaderboard.observations import (
    Observation,
    Record,
    Score,
    Seen,
    Setting,
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


def observe(found: Found) -> Iterator[Seen]:
    """What results files of lm-eval say."""
    for source, results in found.harness.items():
        yield from guarded(source, partial(_file, source, results, found))


def _file(source: str, results: Record, found: Found) -> Iterator[Seen]:
    tasks = _tasks(results)
    if not tasks:
        raise Refused("holds no style classification task with an accuracy")
    config = results["config"]
    if config.get("limit") is not None:
        raise Refused(f"limited to {config['limit']} documents a task")
    training = _training(config, found)
    probes = _probes(results)
    by_test: dict[tuple[Any, ...], list[Record]] = {}
    for task in tasks:
        data = task["metadata"]
        key = (task["k"], tuple(data["styles"]), data["corpus_fingerprint"], data["assignment"],
               data["data_seed"], data.get("sampling", 1))  # fmt: skip
        by_test.setdefault(key, []).append(task)
    for (k, styles, corpus, assignment, data_seed, sampling), group in sorted(
        by_test.items(), key=lambda item: str(item[0])
    ):
        if training is None:
            yield Unknown(
                source,
                str(results.get("model_name") or results.get("model_source") or "?")[:200],
                int(k),
                corpus,
                {alpha_text(task["alpha"]): task["scores"]["acc,none"] for task in group},
                "its alpha_train is not known: no record of its training was given",
            )
            continue
        trained = usable(training, k, assignment, data_seed, corpus)
        setting: Setting = setting_of(trained, k, styles, corpus, sampling)
        yield Observation(
            source,
            setting,
            training_of(trained, training.get("base_model_fingerprint")),
            config.get("model_num_parameters"),
            {alpha_text(task["alpha"]): _score(task) for task in group},
            tuple(one for body in probes for one in probed(body, corpus)),
        )


def _tasks(results: Record) -> list[Record]:
    """Our tasks, told by their fields: k and alpha of the data, and the data's fingerprints."""
    tasks = []
    for name, config in results["configs"].items():
        identity, data = config.get("dataset_kwargs"), config.get("metadata")
        scores = results["results"].get(name)
        if not (isinstance(identity, dict) and isinstance(data, dict) and isinstance(scores, dict)):
            continue
        if not {"k", "alpha"} <= identity.keys() or "corpus_fingerprint" not in data:
            continue
        if "acc,none" not in scores:
            continue  # --predict_only, or a retrieval task
        task = {"k": identity["k"], "alpha": identity["alpha"], "metadata": data, "scores": scores}
        strict.check(task, "harness_task")
        counts = results.get("n-samples", {}).get(name, {})
        if isinstance(counts, dict) and counts.get("effective") != counts.get("original"):
            raise Refused(f"{name} was limited to {counts.get('effective')} documents")
        tasks.append(task)
    return tasks


def _probes(results: Record) -> list[Record]:
    """What retrieval tasks of the same run found: they leave it in their metadata."""
    data = [config.get("metadata") for config in results["configs"].values()]
    bodies = [one["retrieval"] for one in data if isinstance(one, dict) and "retrieval" in one]
    for body in bodies:
        strict.check(body, "retrieval")
    return bodies


def _training(config: Record, found: Found) -> Record | None:
    own = config.get("training")
    if isinstance(own, dict) and own.get("config"):
        strict.check(own, "checkpoint_part")
        return own
    return found.training.get(config.get("model_fingerprint") or "")


def _score(task: Record) -> Score:
    stderr = task["scores"].get("acc_stderr,none")
    return Score(
        task["scores"]["acc,none"],
        stderr if isinstance(stderr, (int, float)) else None,
        task["metadata"]["data_fingerprint"],
        None,
    )
