"""What a plan will cost: time from finished cells, disk from the encoders' sizes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from style_overlap.model_folders import resolve_model
from style_overlap.names import is_baseline
from style_overlap.results import RUN_NAME, digest
from style_overlap.sweep.plan import Cell

_VARIED = ("k", "alpha", "seed", "data_seed")

FINAL_BYTES = 4
"""Bytes a parameter of final weights: fp32."""

CHECKPOINT_BYTES = 12
"""Bytes a parameter of a trainer's checkpoint: fp32 weights and the two moments of AdamW."""


@dataclass
class Pace:
    """Seconds that finished cells took, to say how long others will.

    Attributes:
        seen: (training texts, seconds) of finished cells by recipe.
    """

    seen: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def add(self, cell: Cell, seconds: float) -> None:
        """Learn from a finished cell."""
        if seconds > 0:
            self.seen.setdefault(recipe(cell.config), []).append((cell.texts, seconds))

    def of(self, cell: Cell) -> float | None:
        """Seconds that a cell should take, by its number of training texts; None if not known."""
        found = self.seen.get(recipe(cell.config))
        if not found:
            return None
        return cell.texts * sum(s for _, s in found) / sum(n for n, _ in found)

    def total(self, cells: Iterable[Cell]) -> tuple[float, int]:
        """Seconds of those that are known, one after the other, and how many are not known."""
        each = [self.of(cell) for cell in cells]
        return sum(s for s in each if s is not None), each.count(None)


def pace_of(runs: Path, cells: Iterable[Cell]) -> Pace:
    """The pace of the finished cells of a folder of runs."""
    pace = Pace()
    for cell in cells:
        record = read_record(runs, cell)
        if record and record["status"] == "done":
            pace.add(cell, record["time"]["seconds"])
    return pace


def read_record(runs: Path, cell: Cell) -> dict[str, Any] | None:
    """The record of a cell, None if there is none."""
    try:
        return json.loads((runs / cell.folder / RUN_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=64)
def parameters(model: str) -> int | None:
    """Number of parameters of an encoder, None if its configuration is not at hand."""
    import torch
    from transformers import AutoConfig, AutoModel

    from style_overlap.checkpoints import quiet

    if is_baseline(model):
        return 0
    try:
        with quiet(), torch.device("meta"):
            config = AutoConfig.from_pretrained(resolve_model(model))
            return sum(p.numel() for p in AutoModel.from_config(config).parameters())
    except Exception:  # a hub id that is not here yet, a model with code of its own: not known
        return None


def disk(cells: Iterable[Cell], keep: str, slots: int) -> tuple[int | None, int | None]:
    """Bytes that stay, and bytes that are needed beside them while cells are trained.

    Args:
        cells: those that are still to be run.
        keep: weights that are kept.
        slots: cells at once.
    """
    sizes = [(parameters(str(cell.config["model"])), cell) for cell in cells]
    known = [(size, cell) for size, cell in sizes if size is not None]
    if len(known) < len(sizes):
        return None, None
    stays = sum(size * _kept(cell.config, keep) for size, cell in known)
    largest = sorted((size for size, _ in known), reverse=True)[:slots]
    # A new checkpoint is whole before the old one goes, then the final weights come.
    return stays, sum(largest) * (2 * CHECKPOINT_BYTES + FINAL_BYTES)


def _kept(config: Mapping[str, Any], keep: str) -> int:
    if keep == "none":
        return 0
    if keep == "last":
        return FINAL_BYTES
    limit = config["arguments"].get("save_total_limit")
    epochs = config["arguments"].get("num_train_epochs", 1)
    return FINAL_BYTES + CHECKPOINT_BYTES * int(min(limit or epochs, epochs) or 1)


def recipe(config: Mapping[str, Any]) -> str:
    """What cells share that differ in k, overlap and seed alone."""
    return digest({name: value for name, value in config.items() if name not in _VARIED})
