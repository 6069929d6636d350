"""What both sides of the fine-tuning benchmark share. Imported by workers only: it loads torch."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import AutoConfig, AutoTokenizer, TrainerCallback

from benchmarks.machine import training_flops
from benchmarks.texts import ENCODER
from style_overlap.corpus import ParallelCorpus
from style_overlap.model_folders import resolve_model
from style_overlap.trainers.data import draw
from style_overlap.trainers.settings import TrainSettings

if TYPE_CHECKING:
    from benchmarks.train import Size


class Clock(TrainerCallback):
    """Seconds from the first step to the last, without loading, tokenising and testing."""

    seconds = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start it."""
        self.seconds = -time.perf_counter()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop it."""
        self.seconds += time.perf_counter()


def clock() -> Clock:
    """A new one."""
    return Clock()


def settings(
    size: Size, seed: int, output: Path, common: Mapping[str, Any], dropout: float | None
) -> TrainSettings:
    """The fine-tuning as ours is asked for it; the peer draws its texts by the same."""
    return TrainSettings(
        model=ENCODER,
        k=2,
        alpha="0",
        output=output,
        seed=seed,
        data_seed=0,
        contents=size.contents if size.whole else None,
        max_length=size.max_length,
        dropout=dropout,
        arguments={
            **common,
            "num_train_epochs": size.epochs,
            "train_sampling_strategy": "group_by_length",
        },
    )


def mean_loss(log: Sequence[Mapping[str, float]]) -> float:
    """Mean training loss over all steps, from the means of the windows that were logged."""
    windows = [row for row in log if "loss" in row]
    steps = np.diff([0, *(row["step"] for row in windows)])
    return float(np.average([row["loss"] for row in windows], weights=steps))


def answer_of(
    asked: TrainSettings, corpus: ParallelCorpus, loss: float | None, accuracy: float | None
) -> dict[str, Any]:
    """What a training is compared by, and the operations that it took."""
    name = resolve_model(ENCODER)
    texts = draw(asked, corpus).texts["train"]
    whole = AutoTokenizer.from_pretrained(name)(texts, verbose=False)["input_ids"]
    lengths = np.minimum([len(ids) for ids in whole], asked.max_length).tolist()
    epochs = asked.arguments["num_train_epochs"]
    config = AutoConfig.from_pretrained(name)
    return {
        "texts": len(texts),
        "tokens": sum(lengths),
        "passes": epochs * len(texts),
        "flops": epochs * training_flops(config, lengths),
        "loss": loss,
        "accuracy": accuracy,
    }
