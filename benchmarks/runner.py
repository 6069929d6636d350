"""Contenders that do the same work in turn, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from benchmarks import machine, profiles


@dataclass(frozen=True)
class Run:
    """What one contender took in one round.

    Attributes:
        seconds: wall clock.
        peak_mb: most memory that was resident meanwhile, imports and model included.
        answer: what it found.
        phases: parts of the time, by name.
    """

    seconds: float
    peak_mb: float
    answer: Any = None
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Timed:
    """What a work returns that times itself, because only a part of it counts."""

    seconds: float
    answer: Any


class Contender(Protocol):
    """One side of a comparison."""

    name: str

    def wait(self) -> None:
        """Return when it is ready to work: nobody's start may fall into another one's work."""

    def run(self, argument: Any) -> Run:
        """Do the work once. The argument is the number of the round, or a size."""

    def close(self) -> None:
        """Let go of what it holds."""


class ContenderError(Exception):
    """A contender broke down."""


def alternate(contenders: Sequence[Contender], rounds: int) -> dict[str, list[Run]]:
    """Let contenders take turns; every round begins with another one.

    Returns:
        By name, a run for every round.
    """
    found: dict[str, list[Run]] = {contender.name: [] for contender in contenders}
    with ExitStack() as stack:
        for contender in contenders:
            stack.callback(contender.close)
        for contender in contenders:
            contender.wait()
        for number in range(rounds):
            first = number % len(contenders)
            for contender in (*contenders[first:], *contenders[:first]):
                found[contender.name].append(contender.run(number))
    return found


class Worker:
    """A Python function in a process of its own, which is kept from round to round.

    Attributes:
        setup_seconds: from the start of the process until the work could begin: imports, model;
            once it has been waited for.
    """

    def __init__(self, name: str, target: str, *, profile: bool = False, **options: Any) -> None:
        """Start the process; several may start at once.

        Args:
            name: of the contender.
            target: ``module:function``. Called with the options it returns the work, which is
                called with one argument as often as it is asked for.
            profile: collect a profile of the work; it is then slower.
        """
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._end, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, target, options, profile), daemon=True
        )
        self._started, self.setup_seconds = time.perf_counter(), 0.0
        self._process.start()
        theirs.close()

    def wait(self) -> None:
        """Return when the work can begin."""
        if not self.setup_seconds:
            self._receive()
            self.setup_seconds = time.perf_counter() - self._started

    def run(self, argument: Any = 0) -> Run:
        """Do the work once."""
        self.wait()
        self._end.send(argument)
        return self._receive()

    def close(self) -> None:
        """End the process."""
        with suppress(OSError):
            self._end.send(_STOP)
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.terminate()
        self._end.close()

    def __enter__(self) -> Worker:
        """For ``with``: the process ends with the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """End the process."""
        self.close()

    def _receive(self) -> Any:
        try:
            what, found = self._end.recv()
        except EOFError:
            self._process.join(timeout=10)
            raise ContenderError(
                f"{self.name} died with exit code {self._process.exitcode}"
            ) from None
        if what == "failed":
            raise ContenderError(f"{self.name} failed:\n{found}")
        return found


_STOP = "stop"


def _serve(end: Connection, target: str, options: Mapping[str, Any], profile: bool) -> None:
    module, function = target.split(":")
    try:
        machine.keep_to_threads()
        work = getattr(import_module(module), function)(**options)
        end.send(("ready", None))
        while (argument := end.recv()) != _STOP:
            end.send(("done", _measured(work, argument, profile)))
    except Exception:
        with suppress(OSError):  # the parent may be gone, and then nobody wants to know
            end.send(("failed", traceback.format_exc()))


def _measured(work: Callable[[Any], Any], argument: Any, profile: bool) -> Run:
    _forget_peak()
    started = time.perf_counter()
    found, phases = profiles.profiled(work, argument) if profile else (work(argument), {})
    seconds = time.perf_counter() - started
    if isinstance(found, Timed):
        return Run(found.seconds, _peak_mb(), found.answer, phases)
    return Run(seconds, _peak_mb(), found, phases)


def _forget_peak() -> None:
    """Let the peak be that of the work, not of what came before it; Linux only."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    except (OSError, StopIteration):
        import resource
        import sys

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 1024)


class Command:
    """A command line, started anew every round."""

    def __init__(self, name: str, argv: Sequence[str], **environment: str) -> None:
        """Name it.

        Args:
            name: of the contender.
            argv: program and arguments.
            **environment: variables beside those of this process.
        """
        self.name, self.argv, self.environment = name, list(argv), environment

    def wait(self) -> None:
        """Its start is part of its work."""

    def run(self, argument: Any = 0) -> Run:
        """Run it to its end; the answer is what it printed.

        Raises:
            ContenderError: its exit status is not 0.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            started = time.perf_counter()
            process = subprocess.Popen(
                self.argv, stdout=out, stderr=err, env=os.environ | self.environment
            )
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            for stream in (out, err):
                stream.seek(0)
            if process.returncode:
                told = err.read().decode(errors="replace")[-2000:]
                raise ContenderError(f"{self.name}: exit code {process.returncode}\n{told}")
            return Run(seconds, usage.ru_maxrss / 1024, out.read().decode(errors="replace"))

    def close(self) -> None:
        """Nothing is held between rounds."""
