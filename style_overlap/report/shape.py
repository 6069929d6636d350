"""What a record must hold before a report reads it: checked once, at the door.

Records come from other machines and other people. A figure is only taken from a record whose parts
are all of the expected kind, so that no reader further in has to doubt them.
"""

from __future__ import annotations

import math
from typing import Any

from style_overlap.errors import UsageError
from style_overlap.names import as_alpha
from style_overlap.results import SCHEMA

_PASSAGES = 10_000  # of one content in one task: far above any corpus


class ShapeError(ValueError):
    """A record that is not what its kind says."""


def check(record: dict[str, Any]) -> None:
    """Check a record of any kind.

    Raises:
        ShapeError: another schema, or a part that is missing or of the wrong kind.
    """
    if record.get("schema") != SCHEMA:
        told = str(record.get("schema"))[:20]
        raise ShapeError(f"record of schema {told}, this version reads {SCHEMA}")
    if record["kind"] == "evaluation":
        _evaluation(record)
    elif record["kind"] == "probe":
        _checkpoint(record)
        retrieval(record, "")
        for part in ("config", "model"):
            _part(record, part, (dict, type(None)), "", None)
        if record.get("dynamics") is not None:
            look(record["dynamics"])
    elif record["kind"] == "run":
        _run(record)
    elif record["kind"] == "giveaway":
        _giveaway(record)


def look(line: Any) -> None:
    """Check one line of a ``dynamics.jsonl``.

    Raises:
        ShapeError: a part is missing or of the wrong kind.
    """
    if not isinstance(line, dict):
        raise ShapeError("a look is not an object")
    _number(line, "step", "")
    _number(line, "epoch", "")
    if line.get("loss") is not None:
        _number(line, "loss", "")
    for name in _part(line, "accuracy", dict, ""):
        if line["accuracy"][name] is not None:
            _number(line["accuracy"], name, "accuracy.", 0, 1)
    for index, row in enumerate(_part(line, "retrieval", list, "")):
        _summary(row, f"retrieval[{index}].")


def retrieval(found: Any, where: str) -> None:
    """Check what a probe found.

    Raises:
        ShapeError: a part is missing or of the wrong kind.
    """
    for index, row in enumerate(_part(found, "summary", list, where)):
        _summary(row, f"{where}summary[{index}].")
    for index, row in enumerate(_part(found, "rows", list, where)):
        for version in ("a", "b"):
            _part(row, version, str, f"{where}rows[{index}].")
    _part(found, "corpus_fingerprint", str, where)


def training(config: Any) -> None:
    """Check the configuration of a training.

    Raises:
        ShapeError: a part is missing or of the wrong kind.
    """
    where = "config."
    _part(config, "model", str, where)
    _number(config, "k", where, 2)
    _alpha(config, "alpha", where)
    _number(config, "seed", where)


def _evaluation(record: dict[str, Any]) -> None:
    _checkpoint(record)
    config = _part(record, "config", dict, "")
    _number(config, "k", "config.", 2)
    tasks = _part(record, "tasks", dict, "")
    if not tasks:
        raise ShapeError("tasks is empty: nothing was scored")
    for name, task in tasks.items():
        where = f"tasks.{name}."
        _alpha(task, "alpha_eval", where)
        _number(task, "acc", where, 0, 1)
        _part(task, "corpus_fingerprint", str, where)
        if not all(isinstance(style, str) for style in _part(task, "styles", list, where)):
            raise ShapeError(f"{where}styles: expected names")
        for pair in _part(task, "credit", dict, where, {}).values():
            if not (isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair))
                    and 0 <= pair[0] <= pair[1] <= _PASSAGES
                    and pair[1] >= 1 and pair[1] == int(pair[1])):  # fmt: skip
                raise ShapeError(f"{where}credit: expected [sum, number] of each content")
    for name, found in _part(record, "retrieval", dict, "", {}).items():
        retrieval(found, f"retrieval.{name}.")
    model = _part(record, "model", dict, "", {})
    truncated = _part(model, "truncated", dict, "model.", {})
    for style in truncated:
        for number in ("count", "of"):
            _number(truncated[style], number, f"model.truncated.{style}.", 0)


def _checkpoint(record: dict[str, Any]) -> None:
    checkpoint = _part(record, "checkpoint", dict, "")
    trained = _part(checkpoint, "config", (dict, type(None)), "checkpoint.", None)
    if trained:
        training(trained)
    for part in ("data", "metrics"):
        _part(checkpoint, part, (dict, type(None)), "checkpoint.", None)
    _part(checkpoint, "degenerate", (str, type(None)), "checkpoint.", None)


def _run(record: dict[str, Any]) -> None:
    _part(record, "config", dict, "")
    status = _part(record, "status", str, "")
    if status not in ("done", "failed"):
        raise ShapeError(f"status is {status[:40]!r}: expected done or failed")
    _part(record, "training", (dict, type(None)), "", None)
    evaluation = _part(record, "evaluation", (dict, type(None)), "", None)
    if evaluation is not None:
        if evaluation.get("kind") != "evaluation":
            raise ShapeError("evaluation: expected a record of the kind evaluation")
        try:
            check(evaluation)
        except ShapeError as fault:
            raise ShapeError(f"evaluation: {fault}") from fault
    for line in _part(record, "dynamics", (list, type(None)), "", None) or []:
        look(line)


def _giveaway(record: dict[str, Any]) -> None:
    _part(record, "fingerprint", str, "")
    _part(record, "styles", list, "")
    _number(record, "chance", "", 0, 1)
    used = _part(record, "used", str, "")
    for cue, states in _part(record, "scores", dict, "").items():
        score = _part(states, used, dict, f"scores.{cue}.")
        for figure in ("accuracy", "stderr"):
            _number(score, figure, f"scores.{cue}.{used}.", 0, 1)


def _summary(row: Any, where: str) -> None:
    for name in ("source", "features", "set"):
        _part(row, name, str, where)
    _number(row, "n", where, 0)
    if row.get("chance") is not None:
        _number(row, "chance", where, 0, 1)
    if row.get("pairs") is not None:
        _number(row, "pairs", where, 1)
    top1 = _part(row, "top1", dict, where)
    if top1.get("mean") is not None:
        _number(top1, "mean", f"{where}top1.", 0, 1)


def _part(holder: Any, name: str, kind: type | tuple[type, ...], where: str, *default: Any) -> Any:
    if not isinstance(holder, dict):
        raise ShapeError(f"{where.rstrip('.') or 'record'}: expected an object")
    if name not in holder:
        if default:
            return default[0]
        raise ShapeError(f"{where}{name} is missing")
    if not isinstance(holder[name], kind):
        raise ShapeError(f"{where}{name} is of the wrong kind ({type(holder[name]).__name__})")
    return holder[name]


def _number(
    holder: Any, name: str, where: str, low: float = -math.inf, high: float = math.inf
) -> None:
    value = _part(holder, name, object, where)
    if not _is_number(value) or not low <= value <= high:
        wanted = "a number" + (f" from {low:g} to {high:g}" if high < math.inf else "")
        raise ShapeError(f"{where}{name} is {str(value)[:40]}: expected {wanted}")


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) <= 1e15  # no figure here is larger, and every such integer is a float
    )


def _alpha(holder: Any, name: str, where: str) -> None:
    try:
        as_alpha(_part(holder, name, (str, int, float), where))
    except UsageError as fault:
        raise ShapeError(f"{where}{name}: {str(fault)[:80]}") from fault
