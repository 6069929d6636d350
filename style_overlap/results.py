"""Records of runs: strict JSON, written whole or not at all, and the fingerprints they hold."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import re
import tempfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from style_overlap.errors import UsageError

SCHEMA = 1
"""Version of the record's layout: raised whenever a reader of the old one would misread it."""

RECORD_NAME = "style_overlap.json"
"""The record that lies in every checkpoint folder."""

PLAN_NAME = "style_overlap_plan.json"
"""The record without its results, which lies there while a checkpoint is being trained."""

GIVEAWAY_NAME = "giveaway.json"
DYNAMICS_NAME = "dynamics.jsonl"
"""The looks at a training, in the checkpoint's folder."""

RUN_NAME = "run.json"
"""The record of a sweep's cell, in its folder."""

SWEEP_PLAN_NAME = "plan.json"
"""The plan that lies in every folder of runs."""

EVALUATIONS = "evaluations"
"""Folder of a checkpoint that the records of its evaluations lie in."""

PROBES = "probes"
"""Folder of a checkpoint that the records of its probes lie in."""

HASH_DIGITS = 12
"""Of the hash that ends the name of such a record."""

_PACKAGES = (
    "style-overlap",
    "lm-eval",
    "torch",
    "transformers",
    "accelerate",
    "datasets",
    "tokenizers",
    "numpy",
)


def to_json(value: Any) -> Any:
    """The value as strict JSON has it: NaN and infinities are null, numpy scalars are numbers.

    Raises:
        TypeError: a value of a kind that JSON has no place for.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [to_json(item) for item in items]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # numpy and torch scalars and arrays, without importing either
        return to_json(value.tolist())
    raise TypeError(f"a record cannot hold {type(value).__name__}: {value!r}")


def dumps(value: Any) -> str:
    """Strict JSON with sorted keys, so that equal values give equal bytes."""
    return json.dumps(to_json(value), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 (hex) of a value's canonical JSON."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()


def file_digest(*paths: Path) -> str:
    """SHA-256 (hex) of the files' bytes, read in the order given."""
    sha = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                sha.update(block)
    return sha.hexdigest()


def share(path: str | os.PathLike[str]) -> None:
    """Give a file the permissions of any new one: some writers hide theirs from the team (0600)."""
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(path, 0o666 & ~umask)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file whole or not at all: readers see the old file or the new one, never a part."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}; give a folder that can be written to"
        ) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        share(temporary)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        raise


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a record atomically as strict JSON."""
    write_text(path, dumps(value) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a record.

    Raises:
        UsageError: there is no such file, or it is not JSON.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON: {error}") from error


def checkpoint_part(name: str, trained: Mapping[str, Any]) -> dict[str, Any]:
    """What a record of an evaluation or a probe says of its checkpoint.

    Args:
        name: of the checkpoint.
        trained: the trainer's record, empty for a checkpoint that somebody else trained.
    """
    told = ("config", "data", "degenerate", "metrics")
    return {"name": name, **{key: trained.get(key) for key in told}}


def save_record(record: Mapping[str, Any], folder: Path, identity: Any, prefix: str = "") -> Path:
    """Write a record under a name that no other has: the same again replaces itself.

    Args:
        record: of an evaluation or a probe.
        folder: where it goes, whatever else lies there.
        identity: what was measured and how. That it was measured in the middle of a training is
            part of it: the last checkpoint has the weights of the end, and is none.
        prefix: of the name.
    """
    digits = digest([identity, in_the_middle(record["checkpoint"])])[:HASH_DIGITS]
    path = folder / f"{prefix}{digits}.json"
    write_json(path, dict(record))
    return path


def in_the_middle(checkpoint: Mapping[str, Any]) -> bool:
    """Whether a record's checkpoint is one from the middle of a training.

    The configuration beside it is then that of the whole training, whose final weights it has not.
    """
    return bool(re.search(r"(^|[/\\])checkpoint-\d+[/\\]?$", str(checkpoint.get("name", ""))))


def credit_by_content(scored: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    """Sum of credit and number of passages of every content, sorted by content.

    Passages of one content are not independent, so intervals are drawn over contents.

    Args:
        scored: content id and credit of every passage.
    """
    found: dict[str, list[float]] = {}
    for content, credit in scored:
        found.setdefault(content, []).append(credit)
    return {content: [sum(got), len(got)] for content, got in sorted(found.items())}


def versions() -> dict[str, str]:
    """Versions of Python and of every package that a figure may depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
