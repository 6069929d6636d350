"""Engines of one machine: cells one after the other in this process, or shared out to workers."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from tqdm import tqdm

from style_overlap.errors import UsageError
from style_overlap.sweep.cell import record_lost, run
from style_overlap.sweep.faults import SweepStoppedError
from style_overlap.sweep.jobs import Job, Outcome

LOGS = "logs"
"""Folder of a folder of runs for what workers print."""

_PATIENCE = 5.0  # seconds that a worker gets to end


class InProcess:
    """Runs cells here, one at a time."""

    slots = parallel = 1

    def __init__(self) -> None:
        """Start without a cell."""
        self._job: Job | None = None

    def start(self, job: Job) -> None:
        """Take a cell on."""
        self._job = job

    def finished(self) -> Outcome:
        """Run it."""
        assert self._job is not None
        return run(self._job)

    def close(self) -> None:
        """Nothing runs outside of ``finished``."""


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    log: Path
    job: Job | None = None


class Workers:
    """Runs cells in processes of their own, each with its GPU or its share of the cores.

    A worker that dies takes its cell with it and no other: the cell has failed, and another worker
    takes the place. Workers end with this process, however it ends.
    """

    def __init__(self, runs: Path, environments: list[dict[str, str]]) -> None:
        """Start without a worker: they are started when there is a cell for them.

        Args:
            runs: folder of runs.
            environments: variables of each worker, as ``environments_of`` gives them.
        """
        self.slots = self.parallel = len(environments)
        self._runs, self._environments = runs, environments
        self._workers: dict[int, _Worker] = {}

    def start(self, job: Job) -> None:
        """Hand a cell to a worker that has none."""
        free = (n for n in range(self.slots) if n not in self._workers or not self._workers[n].job)
        number = next(free)
        worker = self._workers.get(number)
        if worker is None or not worker.process.is_alive():  # one may die without a cell
            worker = self._workers[number] = self._hire(number)
        worker.job = job
        # A worker that dies from here on is found by ``finished``.
        with contextlib.suppress(OSError):
            worker.pipe.send(job)

    def finished(self) -> Outcome:
        """Wait for the first worker that is done."""
        busy = {worker.pipe: number for number, worker in self._workers.items() if worker.job}
        number = busy[connection.wait(list(busy))[0]]  # type: ignore[index]
        worker = self._workers[number]
        job, worker.job = worker.job, None
        assert job is not None
        try:
            answer = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            del self._workers[number]
            error = f"the process ended with {_ending(worker.process.exitcode)}"
            return record_lost(job, error, f"{error}\n{_tail(worker.log)}")
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers.values():
            worker.process.terminate()
        for worker in self._workers.values():
            worker.process.join(_PATIENCE)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.pipe.close()
            if worker.log.is_file() and not worker.log.stat().st_size:
                worker.log.unlink()
        with contextlib.suppress(OSError):
            (self._runs / LOGS).rmdir()

    def _hire(self, number: int) -> _Worker:
        log = self._runs / LOGS / f"worker-{os.getpid()}-{number}.log"
        log.parent.mkdir(exist_ok=True)
        context = get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, log), daemon=True)
        with _environment(self._environments[number]):  # before torch counts cores and GPUs
            process.start()
        theirs.close()
        return _Worker(process, mine, log)


def environments_of(workers: int, gpus: list[str], cores: int) -> list[dict[str, str]]:
    """Variables that give every worker its GPU, or its share of the cores.

    Args:
        workers: how many.
        gpus: names of the visible ones, as ``CUDA_VISIBLE_DEVICES`` has them.
        cores: how many this process may use.
    """
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, cores // workers))
    shared = {"OMP_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": "false"}
    if not gpus:
        return [shared] * workers
    return [{**shared, "CUDA_VISIBLE_DEVICES": gpus[n % len(gpus)]} for n in range(workers)]


def visible_gpus() -> list[str]:
    """Names of the GPUs that this process may use."""
    import torch

    count = torch.cuda.device_count()
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return named[:count] if named else [str(number) for number in range(count)]


def cells_at_once(workers: int | None) -> int:
    """Cells at once with so many workers; by default one a GPU, else one.

    Raises:
        UsageError: fewer than one worker.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers is {workers}: expected 1 or more")
    return workers or max(len(visible_gpus()), 1)


def engine(runs: Path, workers: int | None) -> InProcess | Workers:
    """The engine for so many workers; this process, if it is one and no GPU has to be chosen."""
    gpus, number = visible_gpus(), cells_at_once(workers)
    if number == 1 and len(gpus) <= 1:
        return InProcess()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Workers(runs, environments_of(number, gpus, cores or 1))


def _serve(pipe: Connection, log: Path) -> None:
    """What a worker does: cells in, outcomes out, until it is ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an end that clears up
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Its own lock is a semaphore of the system, which an end at once would leave behind.
    tqdm.set_lock(threading.RLock())
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(run(job))
        except SweepStoppedError as stop:
            pipe.send(stop)


def _end_with_parent() -> None:
    """A worker must not outlive its parent: it would hold the lock of its cell."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"exit code {code}"


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-4000:] if log.is_file() else ""
