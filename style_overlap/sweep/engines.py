"""The engines by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from style_overlap.errors import UsageError
from style_overlap.sweep.drive import Engine

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Choice:
    """An engine that has not been started.

    Attributes:
        parallel: cells at once; None before the engine is started, if it depends on a cluster.
        make: starts it for a folder of runs.
    """

    parallel: int | None
    make: Callable[[Path], Engine]


def choose(
    name: str, workers: int | None, gpus_per_run: float | None, cpus_per_run: float | None
) -> Choice:
    """The engine of that name.

    Raises:
        UsageError: no such engine, or an option that it has not.
    """
    if name not in ENGINES:
        raise UsageError(f"--engine is {name!r}: expected {' or '.join(ENGINES)}")
    if name == "local":
        if gpus_per_run is not None or cpus_per_run is not None:
            raise UsageError(
                "--gpus-per-run and --cpus-per-run are ray's: give --engine ray, or --workers"
            )
        from style_overlap.sweep import local

        return Choice(local.cells_at_once(workers), lambda runs: local.engine(runs, workers))
    if workers is not None:
        raise UsageError(
            "--workers is the local engine's: give --gpus-per-run or --cpus-per-run with ray"
        )
    for option, amount in (("--gpus-per-run", gpus_per_run), ("--cpus-per-run", cpus_per_run)):
        if amount is not None and not 0 <= amount < float("inf"):
            raise UsageError(f"{option} is {amount}: expected a number, 0 or more")
    return Choice(None, lambda runs: _ray(gpus_per_run, cpus_per_run))


def _ray(gpus: float | None, cpus: float | None) -> Engine:
    from style_overlap.sweep.ray import RayEngine

    return RayEngine(gpus, cpus)
