"""Cells of a sweep without a figure: planned and not there, failed, or degenerate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from style_overlap.names import alpha_text
from style_overlap.report import shape
from style_overlap.report.matrix import Matrix
from style_overlap.report.records import Records
from style_overlap.results import RUN_NAME


@dataclass(frozen=True, order=True)
class Absent:
    """One fine-tuning without a usable figure."""

    encoder: str
    k: int
    alpha: str
    seed: int
    why: str


def absent(records: Records, matrices: Iterable[Matrix]) -> tuple[list[Matrix], list[Absent]]:
    """Tell the matrices what they lack.

    A planned or failed cell belongs to the matrices that no setting of it contradicts. Without a
    plan, an overlap that one seed of a matrix has is missed in its other seeds. What has a figure
    by one record is not absent by another.

    Returns:
        The matrices with ``absent`` filled in, and all that is absent, whether it belongs to a
        matrix or not.
    """
    filled = [
        replace(matrix, absent={t: w for t, w in matrix.absent.items() if not _measured(matrix, t)})
        for matrix in matrices
    ]
    loose: set[Absent] = set()
    for config, why in _unfinished(records):
        training = (alpha_text(config["alpha"]), int(config["seed"]))
        mine = [matrix for matrix in filled if _fits(config, matrix)]
        for matrix in mine:
            if not _measured(matrix, training):
                matrix.absent.setdefault(training, why)
        if not mine:
            loose.add(Absent(str(config["model"]), int(config["k"]), *training, why))
    for matrix in filled:
        seeds = {*matrix.seeds, *(seed for _, seed in matrix.absent)}
        for training in [(row, seed) for row in matrix.alphas_train for seed in sorted(seeds)]:
            if not _measured(matrix, training):
                matrix.absent.setdefault(training, "missing: no record of it")
    named = {
        Absent(matrix.encoder, matrix.k, *training, why)
        for matrix in filled
        for training, why in matrix.absent.items()
    }
    return filled, sorted(named | loose)


def _unfinished(records: Records) -> list[tuple[Mapping[str, Any], str]]:
    """Configurations of failed and of planned cells; what failed is told before what is missing."""
    found: list[tuple[Mapping[str, Any], str]] = []
    ended = {str(run.get("cell")) for run in records.runs.values()}
    for run in records.runs.values():
        if run["status"] == "failed":
            told = " ".join(str(run.get("error") or "no reason recorded").split())
            found.append((run["config"], f"failed: {told}"))
    for path, plan in records.plans.items():
        cells = plan.get("cells")
        found += [
            (cell["config"], f"missing: {_why_planned(records, Path(path).parent, cell)}")
            for cell in (cells if isinstance(cells, list) else [])
            if isinstance(cell, dict) and str(cell.get("id")) not in ended and "config" in cell
        ]
    return [(config, why) for config, why in found if _is_training(config)]


def _why_planned(records: Records, runs: Path, cell: Mapping[str, Any]) -> str:
    record = str(runs / str(cell.get("folder")) / RUN_NAME)
    return "its record cannot be read" if record in records.failed else "planned, not run yet"


def _is_training(config: Any) -> bool:
    try:
        shape.training(config)
    except shape.ShapeError:
        return False
    return True


def _fits(config: Mapping[str, Any], matrix: Matrix) -> bool:
    return all(config[key] == matrix.recipe[key] for key in matrix.recipe if key in config)


def _measured(matrix: Matrix, training: tuple[str, int]) -> bool:
    alpha, seed = training
    return any(row == alpha and seed in by_seed for (row, _), by_seed in matrix.cells.items())
