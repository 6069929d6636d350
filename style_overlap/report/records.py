"""All records of some runs, from whatever folders they lie in; half-finished sweeps too.

Nothing here stops at a bad file: what cannot be used is named in :attr:`Records.failed` with the
reason, and the rest is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from style_overlap.errors import UsageError
from style_overlap.report import shape
from style_overlap.results import (
    DYNAMICS_NAME,
    EVALUATIONS,
    GIVEAWAY_NAME,
    HASH_DIGITS,
    PROBES,
    RECORD_NAME,
    RUN_NAME,
    SWEEP_PLAN_NAME,
    digest,
    in_the_middle,
)

# `evaluate --output` and `probe --output` put records into any folder: there they are known by
# their names, which end in digits of a hash.
_HASH = HASH_DIGITS * "[0-9a-f]"
_PATTERNS = (
    SWEEP_PLAN_NAME, RUN_NAME, DYNAMICS_NAME, GIVEAWAY_NAME,
    f"{EVALUATIONS}/*.json", f"{PROBES}/*.json",
    f"k[0-9]*-{_HASH}.json", f"{_HASH}.json",
)  # fmt: skip
_KINDS = ("evaluation", "probe", "run", "plan", "giveaway")

Record = dict[str, Any]


@dataclass(frozen=True)
class Dynamics:
    """What was seen while one checkpoint was trained.

    Attributes:
        config: the training configuration: ``model``, ``k``, ``alpha``, ``seed``, ...
        looks: one entry a look, in the order of steps: ``step``, ``epoch``, ``loss``,
            ``accuracy``, ``retrieval``.
        degenerate: why the training came to nothing, None if it did not.
        corpus: fingerprint of the corpus, empty if it was not recorded.
        styles: names of the classes in label order, as far as they were recorded.
        gallery: what retrieval was measured on: ``contents``, ``limit`` and number of ``seeds``.
        afterwards: whether this is one look, by a probe of an intermediate checkpoint.
    """

    config: Record
    looks: tuple[Record, ...]
    degenerate: str | None = None
    corpus: str = ""
    styles: tuple[str, ...] = ()
    gallery: Record = field(default_factory=dict)
    afterwards: bool = False


@dataclass(frozen=True)
class Records:
    """Every record by the file that it was read from; equal ones once.

    Attributes:
        evaluations: records of the kind ``evaluation``; those inside a run too.
        probes: records of the kind ``probe``.
        dynamics: of every checkpoint that was looked at while it was trained, or of which one from
            the middle of its training was probed.
        runs: records of the kind ``run``, done and failed.
        plans: records of the kind ``plan``.
        giveaways: audits of corpora, records of the kind ``giveaway``.
        failed: files that could not be used, and why; one that disagrees with another one too.
    """

    evaluations: dict[str, Record] = field(default_factory=dict)
    probes: dict[str, Record] = field(default_factory=dict)
    dynamics: dict[str, Dynamics] = field(default_factory=dict)
    runs: dict[str, Record] = field(default_factory=dict)
    plans: dict[str, Record] = field(default_factory=dict)
    giveaways: dict[str, Record] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there is anything to report."""
        return any((self.evaluations, self.probes, self.dynamics, self.runs, self.plans))


def read(paths: Iterable[str | Path]) -> Records:
    """Read records from files, and from folders at any depth.

    Args:
        paths: folders of runs or of checkpoints, single records, ``dynamics.jsonl`` files.

    Raises:
        UsageError: a path that does not exist.
    """
    records = Records()
    known: dict[str, str] = {}
    for file, named in _files([Path(path) for path in paths]):
        try:
            if file.name == DYNAMICS_NAME:
                trained = _trained_beside(file)
                _add_dynamics(records, str(file), _lines(file), trained, trained.get("looks"))
                continue
            record = _load(file)
            if not (isinstance(record, dict) and record.get("kind") in _KINDS):
                if named or _of_a_cell(file, record):  # else it is somebody else's file
                    records.failed[str(file)] = "not a record of style-overlap"
                continue
            shape.check(record)
            _add(records, str(file), record, known)
        except (OSError, UsageError, shape.ShapeError, ValueError, RecursionError) as fault:
            records.failed[str(file)] = _reason(fault)
    return records


def _files(paths: list[Path]) -> Iterator[tuple[Path, bool]]:
    """Files to read, each once, and whether they were given by name."""
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist: expected a folder of runs or a record")
        files = [path]
        if path.is_dir():
            files = sorted({file for pattern in _PATTERNS for file in path.rglob(pattern)})
        for file in files:
            if file.is_file() and (real := file.resolve()) not in seen:
                seen.add(real)
                yield file, file is path


def _of_a_cell(file: Path, content: Any) -> bool:
    """Whether a file that is no record stands where a cell of a sweep has its own."""
    planned = (file.parent.parent / SWEEP_PLAN_NAME).is_file()
    return file.name == RUN_NAME and (planned or not isinstance(content, dict))


def _add(records: Records, source: str, record: Record, known: dict[str, str]) -> None:
    kind = record["kind"]
    if kind == "plan":
        records.plans[source] = record
    elif kind == "giveaway":
        records.giveaways[source] = record
    elif kind == "run":
        records.runs[source] = record
        if record.get("evaluation") and record["status"] == "done":
            _add(records, source, record["evaluation"], known)
        training = record.get("training") or {}
        if record.get("dynamics"):
            _add_dynamics(records, source, record["dynamics"], training, training.get("looks"))
    else:
        # The folder's name and the versions are no part of what was found; but the last checkpoint
        # of a training has the weights of its end, and would stand for it.
        checkpoint = {k: v for k, v in record["checkpoint"].items() if k != "name"}
        middle = in_the_middle(record["checkpoint"])
        found = {k: v for k, v in record.items() if k not in ("versions", "checkpoint")}
        if kind == "evaluation" and not found.get("retrieval"):
            found.pop("retrieval", None)  # not asked for: as older records have it
        if known.setdefault(digest([found, checkpoint, middle]), source) == source:
            (records.evaluations if kind == "evaluation" else records.probes)[source] = record
            if kind == "probe" and record.get("dynamics"):
                _add_dynamics(records, source, [record["dynamics"]], checkpoint, record)


def _add_dynamics(
    records: Records, source: str, lines: list[Record], training: Mapping[str, Any], probed: Any
) -> None:
    """Note the looks at one training; ``probed`` says what retrieval was measured on, and how."""
    config = training.get("config")
    if not config:
        records.failed[source] = f"no {RECORD_NAME} beside it: its training has not finished"
        return
    shape.training(config)
    data = training.get("data")
    data, probed = (part if isinstance(part, dict) else {} for part in (data, probed))
    seeds = probed.get("seeds")
    seeds = len(seeds) if isinstance(seeds, list) else seeds
    found = Dynamics(
        config=config,
        looks=tuple(sorted(lines, key=lambda look: look["step"])),
        degenerate=training.get("degenerate"),
        corpus=str(data.get("corpus_fingerprint", "")),
        styles=tuple(map(str, data.get("styles") or ())),
        gallery={name: probed.get(name) for name in ("contents", "limit")} | {"seeds": seeds},
        afterwards=probed.get("kind") == "probe",
    )
    if found not in records.dynamics.values():
        records.dynamics[source] = found


def _lines(file: Path) -> list[Record]:
    """The looks of a file; a last line that was cut while it was written is left out."""
    looks: list[Record] = []
    lines = file.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            look = _parse(line)
            shape.look(look)
        except (ValueError, RecursionError) as fault:
            if number == len(lines) and looks:
                break
            raise shape.ShapeError(f"line {number}: {_reason(fault)}") from fault
        looks.append(look)
    return looks


def _trained_beside(file: Path) -> Record:
    path = file.with_name(RECORD_NAME)
    if not path.is_file():
        return {}
    record = _load(path)
    return record if isinstance(record, dict) else {}


def _load(file: Path) -> Any:
    return _parse(file.read_text(encoding="utf-8"))


def _parse(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _reason(fault: BaseException) -> str:
    if isinstance(fault, (UsageError, shape.ShapeError)):
        return str(fault)
    if isinstance(fault, OSError):
        return f"cannot be read: {fault.strerror}"
    return f"not valid JSON: {fault}"
