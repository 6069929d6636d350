"""Cross-overlap matrices: Acc(alpha_train, alpha_eval) over seeds, from evaluation records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from style_overlap import stats
from style_overlap.errors import UsageError
from style_overlap.names import alpha_text, as_alpha
from style_overlap.results import SCHEMA, digest, read_json
from style_overlap.stats import HoaPair

Cell = tuple[str, str]

_VARIED = ("alpha", "seed", "data_seed")  # what may differ between the cells of one matrix


@dataclass(frozen=True)
class Matrix:
    """One matrix: one encoder, k, corpus and training recipe; only seeds are averaged.

    Attributes:
        encoder: what was fine-tuned.
        k: number of styles.
        styles: their names in label order.
        protocol: hash of all else that has to be equal: corpus, assignment, training settings.
        seeds: seeds that any cell has.
        cells: accuracies by (alpha_train, alpha_eval), one for every seed that has the cell.
    """

    encoder: str
    k: int
    styles: tuple[str, ...]
    protocol: str
    seeds: tuple[int, ...]
    cells: dict[Cell, tuple[float, ...]]

    @property
    def alphas_train(self) -> list[str]:
        """Rows, ascending."""
        return sorted({row for row, _ in self.cells}, key=as_alpha)

    @property
    def alphas_eval(self) -> list[str]:
        """Columns, ascending."""
        return sorted({column for _, column in self.cells}, key=as_alpha)

    def mean(self, cell: Cell) -> float | None:
        """Mean accuracy over seeds, None for a cell that nobody has measured."""
        return float(np.mean(self.cells[cell])) if cell in self.cells else None

    def sd(self, cell: Cell) -> float | None:
        """Sample standard deviation over seeds, None with fewer than two."""
        values = self.cells.get(cell, ())
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def hoa(self) -> tuple[HoaPair, ...]:
        """High-overlap advantage of every pair that was measured both ways, of means (Eq. 2)."""
        alphas = [as_alpha(alpha) for alpha in self.alphas_train]
        means = [[self.mean((row, col)) for col in self.alphas_train] for row in self.alphas_train]
        return stats.hoa(np.array(means, dtype=np.float64), alphas)


@dataclass(frozen=True)
class Matrices:
    """All matrices of some records, and the records that are in none, with the reason."""

    matrices: tuple[Matrix, ...]
    left_out: dict[str, str] = field(default_factory=dict)


def read_records(paths: Iterable[str | Path]) -> dict[str, dict[str, Any]]:
    """Evaluation records by file, from files and from folders at any depth.

    Raises:
        UsageError: a path that does not exist, or no evaluation record anywhere.
    """
    records: dict[str, dict[str, Any]] = {}
    given = [Path(path) for path in paths]
    for path in given:
        if not path.exists():
            raise UsageError(f"{path} does not exist: expected a folder of runs or a record")
        files = sorted(path.rglob("evaluations/*.json")) if path.is_dir() else [path]
        for file in files:
            record = read_json(file)
            if isinstance(record, dict) and record.get("kind") == "evaluation":
                records[str(file)] = record
    if not records:
        raise UsageError(
            f"no evaluation records in {', '.join(map(str, given))}: "
            "make them with `style-overlap evaluate DIR`"
        )
    return records


def build(records: dict[str, dict[str, Any]]) -> Matrices:
    """Sort records into matrices.

    A degenerate or limited run is left out and named, never averaged. Two records of one cell and
    seed that disagree cannot both be right: the later one is left out and named.
    """
    cells: dict[tuple[Any, ...], dict[Cell, dict[int, float]]] = {}
    left_out: dict[str, str] = {}
    for path, record in records.items():
        if reason := _unusable(record):
            left_out[path] = reason
            continue
        trained = record["checkpoint"]["config"]
        key = _matrix_key(record)
        for task in record["tasks"].values():
            cell = (str(trained["alpha"]), str(task["alpha_eval"]))
            by_seed = cells.setdefault(key, {}).setdefault(cell, {})
            seed = int(trained["seed"])
            if by_seed.setdefault(seed, task["acc"]) != task["acc"]:
                left_out[path] = (
                    f"another record has alpha_train={cell[0]}, alpha_eval={cell[1]}, seed={seed} "
                    "with another accuracy"
                )
    return Matrices(tuple(_matrix(key, found) for key, found in sorted(cells.items())), left_out)


def _unusable(record: dict[str, Any]) -> str | None:
    if record.get("schema") != SCHEMA:
        return f"record of schema {record.get('schema')}, this version reads {SCHEMA}"
    if record["config"]["limit"] is not None:
        return f"limited to {record['config']['limit']} documents a task"
    if not record["checkpoint"]["config"]:
        return "not trained by style-overlap: its alpha_train is not known"
    if reason := record["checkpoint"]["degenerate"]:
        return f"degenerate: {reason}"
    return None


def _matrix_key(record: dict[str, Any]) -> tuple[Any, ...]:
    task: dict[str, Any] = next(iter(record["tasks"].values()))
    trained = record["checkpoint"]["config"]
    recipe = {name: value for name, value in trained.items() if name not in _VARIED}
    protocol = digest(
        [recipe, record["config"]["assignment"], task["corpus_fingerprint"], task["styles"]]
    )
    return trained["model"], record["config"]["k"], tuple(task["styles"]), protocol


def _matrix(key: tuple[Any, ...], found: dict[Cell, dict[int, float]]) -> Matrix:
    encoder, k, styles, protocol = key
    seeds = tuple(sorted({seed for by_seed in found.values() for seed in by_seed}))
    cells = {cell: tuple(by_seed[s] for s in sorted(by_seed)) for cell, by_seed in found.items()}
    return Matrix(encoder, k, styles, protocol, seeds, cells)


def percent(mean: float | None, sd: float | None = None) -> str:
    """A cell as the paper prints it: ``94.9 ± 0.4`` in percent, or a dash."""
    if mean is None:
        return "–"
    return f"{100 * mean:.1f}" + (f" ± {100 * sd:.1f}" if sd is not None else "")


def rows(matrix: Matrix) -> Sequence[tuple[str, list[str]]]:
    """The matrix as text: (alpha_train, cells in the order of ``alphas_eval``)."""
    return [
        (
            row,
            [percent(matrix.mean((row, col)), matrix.sd((row, col))) for col in matrix.alphas_eval],
        )
        for row in matrix.alphas_train
    ]


def advantages(matrix: Matrix) -> list[str]:
    """The high-overlap advantage in words: each pair, and the tests over them if they are many."""
    pairs = matrix.hoa()
    lines = [f"({alpha_text(p.low)}, {alpha_text(p.high)}) {100 * p.hoa:+.1f}" for p in pairs]
    test = stats.hoa_test(pairs)
    if test.p_t is None or test.mean is None:
        return lines
    positive = sum(p.hoa > 0 for p in pairs)
    return [
        *lines,
        f"mean {100 * test.mean:+.1f}, {positive} of {len(pairs)} pairs positive, Cohen's d "
        f"{test.cohen_d:.2f}, one-sided p {test.p_t:.1g} (paired t), {test.p_sign_flip:.1g} "
        "(sign flip)",
    ]
