"""The folder of a fine-tuning: who may write to it, what is in it, where to go on.

At the start the plan is written, which is the record without its results, and at the very end the
record: a folder with a record is finished, one with a plan alone was interrupted. Nothing is ever
overwritten by other settings.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open

from style_overlap.errors import UsageError
from style_overlap.results import PLAN_NAME, RECORD_NAME, read_json, to_json, write_json

LOCK_NAME = ".style_overlap.lock"

_CHECKPOINT = re.compile(r"checkpoint-(\d+)")

State = Literal["new", "interrupted", "finished"]


class RunFolder:
    """The output folder of one fine-tuning."""

    def __init__(self, path: str | Path) -> None:
        """Name the folder; nothing is written yet."""
        self.path = Path(path).expanduser()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out, until this one ends, however it ends.

        Raises:
            UsageError: another process is at work here, or the folder cannot be made.
        """
        self._refuse_foreign()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / LOCK_NAME, timeout=0)
            lock.acquire()
        except Timeout:
            raise UsageError(
                f"another process is training into {self.path}: wait for it, or give another "
                "--output"
            ) from None
        except OSError as error:
            raise UsageError(
                f"cannot write to {self.path}: {error.strerror}; give another --output"
            ) from None
        try:
            yield
        finally:
            if (self.path / RECORD_NAME).is_file():
                # Nothing is left to guard: whoever opened it before sees a finished run.
                (self.path / LOCK_NAME).unlink(missing_ok=True)
            lock.release()

    def state(self, plan: Mapping[str, Any]) -> State:
        """How far a run of this plan has come here.

        Args:
            plan: ``config``, ``data``, ``base_model_fingerprint`` and ``compute`` of the record.

        Raises:
            UsageError: the folder belongs to other settings, or to something else.
        """
        self._refuse_foreign()
        stages: tuple[tuple[str, State], ...] = (
            (RECORD_NAME, "finished"),
            (PLAN_NAME, "interrupted"),
        )
        for name, state in stages:
            if (self.path / name).is_file():
                found = read_json(self.path / name)
                if found.get("kind") not in ("checkpoint", "training"):
                    raise self._foreign(name)
                self._refuse_other(found, to_json(dict(plan)), state)
                self._refuse_other_looks(found.get("looks"), plan.get("looks"), state)
                return state
        return "new"

    def planned(self, name: str) -> dict[str, Any] | None:
        """What the plan of an interrupted run says.

        Args:
            name: ``looks``, as they were planned when it began, or ``time``, what it had taken at
                its last checkpoint.
        """
        path = self.path / PLAN_NAME
        return read_json(path).get(name) if path.is_file() else None

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Claim the folder for this plan."""
        write_json(self.path / PLAN_NAME, {**plan, "kind": "training"})

    def last_checkpoint(self, processes: int) -> Path | None:
        """The newest whole checkpoint; parts of newer ones, left by a kill, are removed."""
        for _, folder in sorted(self._checkpoints(), reverse=True):
            if _is_whole(folder, processes):
                return folder
            shutil.rmtree(folder, ignore_errors=True)
        return None

    def finish(self, record: Mapping[str, Any], keep_checkpoints: bool) -> None:
        """Write the record, then clear away what only an interrupted run needs."""
        write_json(self.path / RECORD_NAME, dict(record))
        self.clear(keep_checkpoints)

    def clear(self, keep_checkpoints: bool) -> None:
        """Clear a finished run's folder, unless that was done before."""
        plan = self.path / PLAN_NAME
        if not plan.is_file():
            return
        if not keep_checkpoints:
            for _, folder in self._checkpoints():
                shutil.rmtree(folder)
        # Last: its presence says that the clearing is not over.
        plan.unlink()

    def _checkpoints(self) -> list[tuple[int, Path]]:
        matches = ((_CHECKPOINT.fullmatch(path.name), path) for path in self.path.iterdir())
        return [(int(match[1]), path) for match, path in matches if match and path.is_dir()]

    def _refuse_foreign(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file: give a folder for --output")
        if not self.path.is_dir():
            return
        names = {path.name for path in self.path.iterdir()}
        # Another process may be writing its plan at this moment, under a name of the moment.
        ours = (LOCK_NAME, f".{PLAN_NAME}.", f".{RECORD_NAME}.")
        other = sorted(name for name in names if not name.startswith(ours))
        if other and not names & {RECORD_NAME, PLAN_NAME}:
            raise self._foreign(other[0])

    def _foreign(self, name: str) -> UsageError:
        return UsageError(
            f"{self.path} holds other files, {name} for one: give a new or an empty folder for "
            "--output"
        )

    def _refuse_other(self, had: Any, asked: Any, state: str) -> None:
        by_weights = bool(had["base_model_fingerprint"] and asked["base_model_fingerprint"])
        old, new = _identity(had, by_weights), _identity(asked, by_weights)
        names = sorted(old.keys() | new.keys())
        differing = [name for name in names if old.get(name, _ABSENT) != new.get(name, _ABSENT)]
        if not differing:
            return
        # Other settings mean other data: a hash says something only where nothing else does.
        told = [name for name in differing if name != _DATA] or differing
        listed = [f"{name} is {_text(old, name)} there, {_text(new, name)} here" for name in told]
        raise UsageError(
            f"{self.path} holds a run that is {state}, with other settings: {'; '.join(listed)}. "
            "Give another --output, or remove that folder"
        )

    def _refuse_other_looks(
        self, had: Mapping[str, Any] | None, asked: Mapping[str, Any] | None, state: str
    ) -> None:
        """The weights do not depend on looks; but none can be taken of a training that is over."""
        old, new = _asked_looks(had), _asked_looks(asked)
        # Who does not ask for looks is content with a finished run that has some.
        if old == new or (state == "finished" and new == _NO_LOOKS):
            return
        if state == "finished":
            kept = sorted(path.name for _, path in self._checkpoints())
            probed = self.path / ("checkpoint-*" if kept else "")
            advice = (
                f"train into another --output, or probe what is there: style-overlap probe {probed}"
            )
        else:
            advice = "ask for the same, give another --output, or remove that folder"
        raise UsageError(
            f"{self.path} holds a run that is {state}, trained {old} and not {new}: looks at "
            f"training cannot be taken afterwards; {advice}"
        )


_ABSENT = object()
_NO_LOOKS = "without looks"
_DATA = "fingerprint of the data"


def _identity(plan: Mapping[str, Any], by_weights: bool) -> dict[str, Any]:
    """All that the weights depend on, by names that a person knows.

    Args:
        by_weights: an encoder is told by its weights, not by the path it was reached by.
    """
    identity = {**plan["config"], _DATA: plan["data"]["fingerprint"]}
    identity["processes"] = plan["compute"]["processes"]
    if by_weights:
        del identity["model"]
        identity["weights of the model"] = plan["base_model_fingerprint"]
    return _flat(identity)


def _asked_looks(looks: Mapping[str, Any] | None) -> str:
    """Looks as they are asked for on the command line."""
    names = ("probe_every", "probe_steps", "probe_contents")
    given = [
        f"--{name.replace('_', '-')} {looks[name]:g}"
        for name in names
        if looks and looks[name] is not None
    ]
    return f"with {' '.join(given)}" if given else _NO_LOOKS


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        flat: dict[str, Any] = {}
        for name, item in value.items():
            flat |= _flat(item, f"{prefix}.{name}" if prefix else str(name))
        return flat
    return {prefix: value}


def _text(values: dict[str, Any], name: str) -> str:
    return json.dumps(values[name]) if name in values else "unset"


def _is_whole(folder: Path, processes: int) -> bool:
    """Whether all of a checkpoint is there: the trainer's state is the last file to be written."""
    ranks = (
        ["rng_state.pth"] if processes == 1 else [f"rng_state_{i}.pth" for i in range(processes)]
    )
    try:
        json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
        for path in folder.glob("*.safetensors"):
            with safe_open(path, framework="numpy"):
                pass
    except (OSError, ValueError, SafetensorError):
        return False
    archives = {*folder.glob("*.pt"), *(folder / name for name in ranks)}
    return all(zipfile.is_zipfile(path) for path in archives)
