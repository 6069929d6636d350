"""What the harness asks of a model, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from style_overlap.errors import UsageError

_FIELDS = ("text", "style", "styles")
_TEXT_FIELDS = ("content_id", "styles", "versions")


@dataclass(frozen=True)
class Question:
    """One request: how likely is this class for this passage?

    Attributes:
        text: the passage.
        style: its true style.
        label: number of the class that is asked for, in the checkpoint's order.
    """

    text: str
    style: str
    label: int


@dataclass(frozen=True)
class TextRequest:
    """One request for the features of a text.

    Attributes:
        text: the text.
        version: its style.
        features: names of the features.
    """

    text: str
    version: str
    features: tuple[str, ...]


def read_questions(
    requests: Iterable[Any], labels: Sequence[str], checkpoint: str
) -> list[Question]:
    """The harness's requests as questions to a checkpoint, classes matched by name.

    Args:
        requests: ``lm_eval.api.instance.Instance`` objects of any number of tasks: ``doc`` is the
            document, ``args`` the prompt and the class name.
        labels: the checkpoint's classes, in the order of its logits.
        checkpoint: its name.

    Raises:
        UsageError: a document that is no style task's, classes other than the checkpoint's, or a
            choice that is none of them.
    """
    number = {label: place for place, label in enumerate(labels)}
    matched: set[tuple[str | None, tuple[str, ...]]] = set()
    questions = []
    for request in requests:
        task, doc = request.task_name, request.doc
        _refuse_foreign(task, doc, _FIELDS)
        styles = tuple(doc["styles"])
        if (task, styles) not in matched:
            _refuse_other_classes(task, styles, labels, checkpoint)
            matched.add((task, styles))
        choice = str(request.args[-1]).strip()
        if choice not in number:
            raise UsageError(
                f"task {task} asks for {choice!r}: expected one of its styles {list(styles)}"
            )
        questions.append(Question(doc["text"], doc["style"], number[choice]))
    return questions


def read_text_requests(
    requests: Iterable[Any], labels: Sequence[str], checkpoint: str
) -> list[TextRequest]:
    """The harness's requests for features.

    Args:
        requests: as for ``read_questions``; ``args`` are text, version and names of features. A
            document's ``styles`` are the classes that the checkpoint has to have, or none of them
            in particular if it is to have seen none of the document's ``versions``.
        labels: the checkpoint's classes.
        checkpoint: its name.

    Raises:
        UsageError: a document that is no retrieval task's, classes other than the checkpoint's,
            or a version that should be unseen and is one of its classes.
    """
    matched: set[tuple[str | None, tuple[str, ...], tuple[str, ...]]] = set()
    found = []
    for request in requests:
        task, doc = request.task_name, request.doc
        _refuse_foreign(task, doc, _TEXT_FIELDS)
        key = (task, tuple(doc["styles"]), tuple(doc["versions"]))
        if key not in matched:
            if doc["styles"]:
                _refuse_other_classes(task, doc["styles"], labels, checkpoint)
            else:
                _refuse_seen(task, doc["versions"], labels, checkpoint)
            matched.add(key)
        text, version, features = request.args
        found.append(TextRequest(text, version, tuple(features)))
    return found


def _refuse_foreign(task: str | None, doc: Any, fields: Sequence[str]) -> None:
    if isinstance(doc, Mapping) and all(field in doc for field in fields):
        return
    has = sorted(doc) if isinstance(doc, Mapping) else type(doc).__name__
    raise UsageError(
        f"task {task} is no style task: its documents have {has}, expected {list(fields)}; with "
        "style-encoder run tasks named style_overlap_k*_a* and content_retrieval_*"
    )


def _refuse_seen(
    task: str | None, versions: Sequence[str], labels: Sequence[str], checkpoint: str
) -> None:
    if seen := [version for version in versions if version in labels]:
        raise UsageError(
            f"task {task} is about versions that a classifier has not seen, and checkpoint "
            f"{checkpoint} was trained to tell {', '.join(seen)}: run content_retrieval_k"
            f"{len(labels)}, or reserve others with --metadata '{{\"corpus\": ...}}'"
        )


def _refuse_other_classes(
    task: str | None, styles: Sequence[str], labels: Sequence[str], checkpoint: str
) -> None:
    if sorted(styles) == sorted(labels):
        return
    advice = (
        f"fine-tune it with --k {len(styles)}"
        if len(styles) != len(labels)
        else "fine-tune it on these styles, or give another checkpoint"
    )
    raise UsageError(
        f"checkpoint {checkpoint} has labels {list(labels)}, task {task} has {list(styles)}: "
        f"{advice}"
    )
