"""A plan is data: the cells of a sweep, each with its whole configuration, in one file.

The id of a cell is a hash of its configuration and of the fingerprint of its data, so equal cells
are found again whoever planned them, and what is finished is never done twice.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from style_overlap.errors import UsageError
from style_overlap.names import alpha_text, as_alpha
from style_overlap.results import SCHEMA, SWEEP_PLAN_NAME, digest, read_json, write_json

_AGAIN = "plan again with style-overlap sweep ... --save-plan FILE (records of runs stay)"

LOCKS = ".locks"
"""Folder of locks in a folder of runs: one a cell, and the plan's."""


@dataclass(frozen=True)
class Cell:
    """One training with all that is measured on it.

    Attributes:
        id: SHA-256 (hex) of configuration and data.
        folder: name of its folder in the folder of runs.
        config: the configuration of the training, and ``probe``, what is probed.
        data: fingerprint of the sample.
        texts: number of training texts.
    """

    id: str
    folder: str
    config: Mapping[str, Any]
    data: str
    texts: int

    @classmethod
    def of(cls, config: Mapping[str, Any], data: str, texts: int) -> Cell:
        """The cell of a configuration."""
        id_ = digest({"config": config, "data": data})
        name = f"k{config['k']}-a{config['alpha']}-s{config['seed']}-{id_[:10]}"
        return cls(id_, f"{short_name(config['model'])}-{name}", config, data, texts)

    @property
    def title(self) -> str:
        """What a person calls it."""
        c = self.config
        return f"{short_name(c['model'])} k={c['k']} alpha={c['alpha']} seed={c['seed']}"


@dataclass(frozen=True)
class Plan:
    """What a sweep is to do.

    Attributes:
        cells: in the order in which they are run.
        alphas_eval: overlaps that every cell is scored at, ascending, in their one spelling.
    """

    cells: tuple[Cell, ...]
    alphas_eval: tuple[str, ...]

    def part(self, which: str | None) -> Plan:
        """Every nth cell: ``2/8`` has the second, the tenth, ...; None has all.

        Raises:
            UsageError: not of the form i/n with 1 <= i <= n.
        """
        if which is None:
            return self
        match = re.fullmatch(r"(\d+)/(\d+)", which.strip())
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise UsageError(f"--part is {which!r}: expected i/n, such as 1/8 to 8/8")
        return replace(self, cells=self.cells[int(match[1]) - 1 :: int(match[2])])

    def with_cells_of(self, other: Plan) -> Plan:
        """This plan, and after it the cells that only the other one has."""
        known = {cell.id for cell in self.cells}
        return Plan(
            (*self.cells, *(cell for cell in other.cells if cell.id not in known)),
            tuple(sorted({*self.alphas_eval, *other.alphas_eval}, key=as_alpha)),
        )

    def to_json(self) -> dict[str, Any]:
        """As it lies in a file."""
        return {
            "schema": SCHEMA,
            "kind": "plan",
            "alphas_eval": list(self.alphas_eval),
            "cells": [asdict(cell) for cell in self.cells],
        }


def read_plan(path: Path) -> Plan:
    """Read a plan.

    Raises:
        UsageError: no such file, no plan, or a cell that is not what its id says.
    """
    try:
        found = read_json(path)
    except UsageError as error:
        raise UsageError(f"{error}; {_AGAIN}") from error
    if not isinstance(found, dict) or found.get("kind") != "plan":
        raise UsageError(
            f"{path} is no plan: make one with style-overlap sweep ... --save-plan FILE"
        )
    if found.get("schema") != SCHEMA:
        raise UsageError(f"{path} has schema {found.get('schema')}: this version reads {SCHEMA}")
    try:
        cells = tuple(Cell(**cell) for cell in found["cells"])
        for cell in cells:
            if cell != Cell.of(cell.config, cell.data, cell.texts) or type(cell.texts) is not int:
                raise UsageError(f"{path}: cell {cell.id[:10]} was changed by hand; {_AGAIN}")
        alphas = list(found["alphas_eval"])
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is no whole plan ({error}): {_AGAIN}") from None
    if not cells or len({cell.id for cell in cells}) < len(cells):
        raise UsageError(f"{path} has no cells, or one of them twice: {_AGAIN}")
    try:
        written = [alpha_text(alpha) for alpha in alphas]
    except UsageError as error:
        raise UsageError(f"{path}: alphas_eval: {error}; {_AGAIN}") from None
    if not written or written != alphas or written != sorted(set(written), key=as_alpha):
        raise UsageError(f"{path}: alphas_eval is {alphas}: expected overlaps, ascending; {_AGAIN}")
    return Plan(cells, tuple(written))


def plan_of(runs: Path) -> Plan | None:
    """The plan of a folder of runs, None if it has none yet.

    Raises:
        UsageError: it cannot be read.
    """
    path = runs / SWEEP_PLAN_NAME
    return read_plan(path) if path.is_file() else None


def extend_plan(runs: Path, plan: Plan) -> Plan:
    """Add a plan to that of a folder of runs, which is made if it is not there.

    Returns:
        The plan that was given, scored at the overlaps of the whole.

    Raises:
        UsageError: the folder cannot be written to, or holds something else.
    """
    _refuse_file(runs)
    with locked(runs, "plan"):
        there = plan_of(runs)
        whole = there.with_cells_of(plan) if there else plan
        if whole != there:
            write_json(runs / SWEEP_PLAN_NAME, whole.to_json())
    return replace(plan, alphas_eval=whole.alphas_eval)


def as_scored_in(runs: Path, plan: Plan) -> Plan:
    """What ``extend_plan`` would return; nothing is written.

    Raises:
        UsageError: the folder's plan cannot be read.
    """
    _refuse_file(runs)
    there = plan_of(runs)
    return replace(plan, alphas_eval=there.with_cells_of(plan).alphas_eval) if there else plan


def _refuse_file(runs: Path) -> None:
    for path in (runs, *runs.parents):
        if path.exists():
            if not path.is_dir():
                raise UsageError(f"{path} is a file: give a folder for --output")
            return


def save_plan(path: Path, plan: Plan, runs: Path) -> None:
    """Write a plan to a file; the plan of a folder of runs is only added to.

    Args:
        path: the file.
        plan: what goes there.
        runs: the folder of runs that the plan is meant for.

    Raises:
        UsageError: the file cannot be written, or is there and is no plan.
    """
    folder = path.resolve().parent
    if path.name == SWEEP_PLAN_NAME and (folder == runs.resolve() or (folder / LOCKS).is_dir()):
        extend_plan(folder, plan)
        return
    if path.exists():
        try:
            read_plan(path)
        except UsageError as error:
            raise UsageError(f"{error}; give --save-plan another file") from None
    write_json(path, plan.to_json())


@contextlib.contextmanager
def locked(runs: Path, name: str, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock of a folder of runs; the system opens it when its holder ends, however it ends.

    Raises:
        filelock.Timeout: another process holds it, and ``wait`` is false.
        UsageError: the folder cannot be written to.
    """
    path = runs / LOCKS / f"{name}.lock"
    lock = FileLock(path, timeout=-1 if wait else 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:  # an OSError too
        raise
    except OSError as error:
        raise UsageError(f"cannot lock {path}: {error.strerror}; give another --output") from error
    try:
        yield
    finally:
        lock.release()


def short_name(model: str) -> str:
    """The last part of an encoder's name, fit for a folder."""
    last = model.rstrip("/").split("/")[-1].removeprefix("package:")
    return re.sub(r"[^A-Za-z0-9._]+", "-", last).strip("-.")[:60] or "encoder"
