"""What a plan will cost: time from finished cells, disk from the encoders' sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from style_overlap.model_folders import resolve_model
from style_overlap.names import is_baseline
from style_overlap.results import digest
from style_overlap.sweep.jobs import Job, done_record
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
        seen: (training texts, seconds) of finished cells by recipe and id.
    """

    seen: dict[str, dict[str, tuple[int, float]]] = field(default_factory=dict)

    def add(self, cell: Cell, seconds: float) -> None:
        """Learn from a cell when it is first finished; later it is only scored further."""
        self.seen.setdefault(recipe(cell.config), {}).setdefault(cell.id, (cell.texts, seconds))

    def of(self, cell: Cell) -> float | None:
        """Seconds that a cell should take, by its number of training texts; None if not known.

        They are not known of a finished cell, which is only scored further.
        """
        found = self.seen.get(recipe(cell.config))
        if not found or cell.id in found:
            return None
        return cell.texts * sum(s for _, s in found.values()) / sum(n for n, _ in found.values())

    def total(self, cells: Iterable[Cell]) -> tuple[float, int]:
        """Seconds of those that are known, one after the other, and how many are not known."""
        each = [self.of(cell) for cell in cells]
        return sum(s for s in each if s is not None), each.count(None)


def pace_of(jobs: Iterable[Job]) -> Pace:
    """The pace of the finished ones among some cells."""
    pace = Pace()
    for job in jobs:
        if record := done_record(job):
            pace.add(job.cell, record["time"]["seconds"])
    return pace


@lru_cache(maxsize=64)
def parameters(model: str) -> int | None:
    """Number of parameters of an encoder, None if its configuration is not at hand."""
    if is_baseline(model):
        return 0
    import torch
    from transformers import AutoConfig, AutoModel

    from style_overlap.checkpoints import quiet

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
