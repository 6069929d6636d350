"""Cross-overlap matrices: Acc(alpha_train, alpha_eval) over seeds, from evaluation records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from style_overlap import stats
from style_overlap.names import alpha_text, as_alpha
from style_overlap.report.wording import span
from style_overlap.results import digest, in_the_middle
from style_overlap.stats import HoaPair, MeanSd

Cell = tuple[str, str]
"""(alpha_train, alpha_eval)."""

Recipe = dict[str, Any]

Training = tuple[str, int]
"""(alpha_train, seed): one fine-tuning, one row of a matrix for one seed."""

_VARIED = ("alpha", "seed", "data_seed")  # what may differ between the cells of one matrix


class Key(NamedTuple):
    """What has to be equal for two records to be averaged."""

    encoder: str
    k: int
    styles: tuple[str, ...]
    corpus: str
    protocol: str  # hash of all else: assignment, training settings


@dataclass(frozen=True)
class Matrix:
    """One matrix: one encoder, k, corpus and training recipe; only seeds are averaged.

    Attributes:
        key: what all of its records have in common.
        recipe: the training settings in common.
        cells: accuracy of each seed, by (alpha_train, alpha_eval).
        absent: fine-tunings without a usable figure, and why: ``degenerate: ...``, ``failed: ...``
            or ``missing``.
        losses: training loss of the last epoch of each fine-tuning, where it was recorded.
        texts: number of training texts of each fine-tuning, where it was recorded.
        cut: how many passages of each style were scored, and how many of them not to their end:
            {style: {"count": cut, "of": all}} of each fine-tuning, where it was recorded.
        data_seeds: the data seed of each seed.
        credits: what each cell and seed got on every content: {content: (sum, number)}.
    """

    key: Key
    recipe: Recipe = field(default_factory=dict)
    cells: dict[Cell, dict[int, float]] = field(default_factory=dict)
    absent: dict[Training, str] = field(default_factory=dict)
    losses: dict[Training, float] = field(default_factory=dict)
    texts: dict[Training, int] = field(default_factory=dict)
    cut: dict[Training, dict[str, dict[str, int]]] = field(default_factory=dict)
    data_seeds: dict[int, Any] = field(default_factory=dict)
    credits: dict[tuple[Cell, int], Mapping[str, Sequence[float]]] = field(default_factory=dict)

    @property
    def encoder(self) -> str:
        """What was fine-tuned."""
        return self.key.encoder

    @property
    def k(self) -> int:
        """Number of styles."""
        return self.key.k

    @property
    def styles(self) -> tuple[str, ...]:
        """Their names in label order."""
        return self.key.styles

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that any cell has."""
        return tuple(sorted({seed for by_seed in self.cells.values() for seed in by_seed}))

    @property
    def alphas_train(self) -> list[str]:
        """Rows, ascending; those too of which no fine-tuning can be used."""
        rows = {row for row, _ in self.cells} | {row for row, _ in self.absent}
        return sorted(rows, key=as_alpha)

    @property
    def alphas_eval(self) -> list[str]:
        """Columns, ascending."""
        return sorted({column for _, column in self.cells}, key=as_alpha)

    @property
    def alphas_both(self) -> list[str]:
        """Overlaps that are rows and columns: those that pairs can be made of."""
        return [alpha for alpha in self.alphas_train if alpha in self.alphas_eval]

    @property
    def trained_on(self) -> str:
        """Number of training texts, empty where it was not recorded: each seed splits otherwise."""
        return span(self.texts.values(), ",")

    def at(self, cell: Cell) -> MeanSd:
        """Mean accuracy over seeds and its sample standard deviation."""
        return stats.mean_sd(list(self.cells.get(cell, {}).values()))

    def loss(self, alpha: str) -> MeanSd:
        """Training loss at the end of the fine-tunings at alpha."""
        return stats.mean_sd([loss for (row, _), loss in self.losses.items() if row == alpha])

    def why(self, *alphas: str) -> str | None:
        """Why rows have fewer seeds than others, in one word; None if they have not."""
        states = {told.split(":")[0] for (row, _), told in self.absent.items() if row in alphas}
        return next((s for s in ("failed", "degenerate", "missing") if s in states), None)

    def hoa_of_seeds(self) -> dict[int, tuple[HoaPair, ...]]:
        """High-overlap advantage (Eq. 2) of each pair, for each seed."""
        alphas = sorted({alpha for cell in self.cells for alpha in cell}, key=as_alpha)
        exact = [as_alpha(alpha) for alpha in alphas]
        return {
            seed: stats.hoa(
                [
                    [self.cells.get((row, col), {}).get(seed, np.nan) for col in alphas]
                    for row in alphas
                ],
                exact,
            )
            for seed in self.seeds
        }

    def hoa_by_seed(self) -> dict[tuple[str, str], MeanSd]:
        """High-overlap advantage (Eq. 2) of each pair: of each seed first, then mean and sd."""
        found: dict[tuple[str, str], list[float]] = {}
        for pairs in self.hoa_of_seeds().values():
            for pair in pairs:
                found.setdefault((alpha_text(pair.low), alpha_text(pair.high)), []).append(pair.hoa)
        return {pair: stats.mean_sd(found[pair]) for pair in sorted(found, key=_in_order)}

    def hoa(self) -> tuple[HoaPair, ...]:
        """Mean high-overlap advantage of every pair that some seed has measured both ways."""
        return tuple(
            HoaPair(as_alpha(low), as_alpha(high), value.mean)
            for (low, high), value in self.hoa_by_seed().items()
            if value.mean is not None
        )


@dataclass(frozen=True)
class Matrices:
    """All matrices of some records, and the records that are in none, with the reason."""

    matrices: tuple[Matrix, ...]
    left_out: dict[str, str] = field(default_factory=dict)


def build(records: Mapping[str, dict[str, Any]]) -> Matrices:
    """Sort evaluation records into matrices.

    A degenerate or limited run is left out and named, never averaged. Two records of one cell and
    seed that disagree cannot both be right: the later one is left out and named. So is a second
    data seed of one seed, which no cell and no pair may mix with the first.
    """
    found: dict[Key, Matrix] = {}
    left_out: dict[str, str] = {}
    for path, record in records.items():
        if reason := unusable(record):
            left_out[path] = reason
            continue
        trained, checkpoint = record["checkpoint"]["config"], record["checkpoint"]
        key = key_of(record)
        matrix = found.setdefault(key, Matrix(key, recipe_of(trained, record["config"])))
        training = (alpha_text(trained["alpha"]), int(trained["seed"]))
        if reason := checkpoint.get("degenerate"):
            left_out[path] = matrix.absent[training] = f"degenerate: {reason}"
        elif reason := _clash(matrix, training, record):
            left_out[path] = reason
        else:
            _add(matrix, training, record)
    return Matrices(tuple(found[key] for key in sorted(found)), left_out)


def unusable(record: Mapping[str, Any]) -> str | None:
    """Why the figures of an evaluation or a probe are in no mean, None if they may be in one."""
    if record["config"].get("limit") is not None:
        return f"limited to {record['config']['limit']} documents a task"
    if not record["checkpoint"]["config"]:
        return "not trained by style-overlap: its alpha_train is not known"
    if in_the_middle(record["checkpoint"]):
        return "a checkpoint from the middle of a training"
    return None


def recipe_of(trained: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> Recipe:
    """The settings that all fine-tunings of a matrix have in common.

    Args:
        trained: configuration of one of them.
        options: configuration of its evaluation, which says how contents were assigned to styles.
    """
    assignment = (options or {}).get("assignment", trained.get("assignment"))
    recipe = {name: value for name, value in trained.items() if name not in _VARIED}
    return {**recipe, "assignment": assignment}


def key_of(record: Mapping[str, Any]) -> Key:
    """What a record of an evaluation or a probe may be averaged with."""
    if "tasks" in record:
        task: dict[str, Any] = next(iter(record["tasks"].values()))
        corpus, styles, k = task["corpus_fingerprint"], task["styles"], record["config"]["k"]
    else:
        corpus, k = record["corpus_fingerprint"], record["checkpoint"]["config"]["k"]
        data = record["checkpoint"].get("data") or {}
        styles = data.get("styles") or (record.get("model") or {}).get("labels") or ()
    recipe = recipe_of(record["checkpoint"]["config"], record["config"])
    return make_key(recipe, k, styles, corpus)


def make_key(recipe: Mapping[str, Any], k: int, styles: Sequence[str], corpus: str) -> Key:
    """The key of a recipe on a corpus."""
    return Key(str(recipe["model"]), int(k), tuple(map(str, styles)), corpus, digest(recipe))


def _clash(matrix: Matrix, training: Training, record: Mapping[str, Any]) -> str | None:
    alpha, seed = training
    data_seed = record["checkpoint"]["config"].get("data_seed")
    if (known := matrix.data_seeds.get(seed, data_seed)) != data_seed:
        return (
            f"another record has seed={seed} with data_seed={known}, this one with "
            f"data_seed={data_seed}: a matrix takes one of them"
        )
    for task in record["tasks"].values():
        column = alpha_text(task["alpha_eval"])
        if matrix.cells.get((alpha, column), {}).get(seed, task["acc"]) != task["acc"]:
            return (
                f"another record has alpha_train={alpha}, alpha_eval={column}, seed={seed} "
                "with another accuracy"
            )
    return None


def _add(matrix: Matrix, training: Training, record: Mapping[str, Any]) -> None:
    alpha, seed = training
    checkpoint = record["checkpoint"]
    matrix.data_seeds[seed] = checkpoint["config"].get("data_seed")
    for task in record["tasks"].values():
        cell = (alpha, alpha_text(task["alpha_eval"]))
        matrix.cells.setdefault(cell, {})[seed] = task["acc"]
        if task.get("credit"):
            matrix.credits[cell, seed] = task["credit"]
    loss = (checkpoint.get("metrics") or {}).get("train_loss")
    if isinstance(loss, (int, float)):
        matrix.losses[training] = float(loss)
    sizes = (checkpoint.get("data") or {}).get("sizes")
    if isinstance(sizes, dict) and isinstance(sizes.get("train"), int):
        matrix.texts[training] = sizes["train"]
    if truncated := record.get("model", {}).get("truncated"):
        matrix.cut[training] = truncated


def _in_order(pair: tuple[str, str]) -> tuple[Any, Any]:
    return as_alpha(pair[0]), as_alpha(pair[1])
