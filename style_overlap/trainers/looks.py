"""When a training is looked at, and how much of the corpus a look may pass through the model.

A look costs forward passes: of the texts that train projectors, and of those that are searched and
scored. So that all looks together stay within a third of the training's cost, the budget follows
from what is known beforehand, the number of texts that training passes and of looks, and never
from a clock: the same command looks at the same texts on any day.
"""

from __future__ import annotations

import logging
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from transformers import TrainingArguments

from style_overlap.errors import UsageError

logger = logging.getLogger(__name__)

LIMIT = 1 / 3
"""Of the training's cost, that all looks may come to."""

SHARE = 1 / 4
"""Of the training's cost, for forward passes; the rest is left to fitting projectors."""

FP32_PASSES = 3.0
"""Forward passes that training on one text costs as much as: one, and two for the way back.

Measured for MiniLM on a CPU: 3.0."""

BF16_PASSES = {"cpu": 2.0}
"""The same where training computes in bf16, and a look in fp32.

Measured for MiniLM on a CPU with avx512_bf16: 2.1. Elsewhere 1: not measured, but matrix units
make bf16 several times as fast."""

_FITS = 12
"""Pairs of projectors that are fitted to one kind of features in a look, about."""

LEAST = 64
"""Contents at least in a look: with fewer its figures would say nothing, whatever they cost."""


@dataclass(frozen=True)
class Looks:
    """Looks at a training: what was asked for, and what it comes to.

    Attributes:
        probe_every: epochs from look to look.
        probe_steps: steps from look to look.
        probe_contents: as asked for; None leaves the rest to the budget.
        contents: projectors are trained on as much as a corpus of so many contents would give.
        limit: contents in the gallery, and of the test splits that are scored; None for all.
        seeds: of the probe.
    """

    probe_every: float | None
    probe_steps: int | None
    probe_contents: int | None
    contents: int
    limit: int | None
    seeds: int = 3

    def record(self) -> dict[str, Any]:
        """As it goes into the checkpoint's record."""
        return asdict(self)

    def steps(self, length: Length) -> tuple[int, ...]:
        """Steps after which is looked: none, every interval, and the last; ascending."""
        return _steps(self.probe_every, self.probe_steps, length)


@dataclass(frozen=True)
class Length:
    """How long a training is, as far as is known beforehand.

    Attributes:
        steps: steps of the optimiser.
        epoch_steps: of these in one epoch.
        texts: texts that go through the model, counted each time.
    """

    steps: int
    epoch_steps: int
    texts: int

    @classmethod
    def of(cls, arguments: TrainingArguments, n: int) -> Length:
        """The length of a training on n texts."""
        passes = n / (arguments.train_batch_size * arguments.world_size)
        whole = math.floor(passes) if arguments.dataloader_drop_last else math.ceil(passes)
        epoch_steps = max(math.ceil(whole / arguments.gradient_accumulation_steps), 1)
        steps = math.ceil(arguments.num_train_epochs * epoch_steps)
        if arguments.max_steps > 0:
            steps = arguments.max_steps
        return cls(steps, epoch_steps, round(n * steps / epoch_steps))


def plan_looks(
    asked: dict[str, Any],
    arguments: TrainingArguments,
    n: int,
    splits: npt.NDArray[np.int64],
    versions: int,
    pairs: int,
) -> Looks:
    """Settle what a look works on.

    Args:
        asked: see ``TrainSettings.looks``.
        arguments: of the training.
        n: training texts.
        splits: of every content of the corpus, see ``overlap.content_splits``.
        versions: of the corpus that are probed, each with a text of every content.
        pairs: of versions, seen and unseen.

    Raises:
        UsageError: more contents than there are, or a model that is spread over processes.
    """
    if arguments.fsdp or arguments.deepspeed:
        raise UsageError(
            "--probe-every and --probe-steps need the whole model in one process: leave out "
            "fsdp and deepspeed, or probe the checkpoints afterwards"
        )
    total, gallery = len(splits), int((splits == 2).sum())
    if asked["probe_contents"] is not None:
        if asked["probe_contents"] > total:
            raise UsageError(
                f"--probe-contents is {asked['probe_contents']}: the corpus has {total}"
            )
        return Looks(**asked, contents=asked["probe_contents"], limit=None)
    length = Length.of(arguments, n)
    looks = len(_steps(asked["probe_every"], asked["probe_steps"], length))
    training = _passes(arguments) * length.texts
    per_look = max(int(SHARE * training / looks / versions), LEAST)
    # Half of them for the gallery, which decides how exact a figure is.
    limit = min(per_look // 2, gallery)
    per_look = min(per_look, total - gallery + limit)
    contents = min(math.ceil((per_look - limit) * total / (total - gallery)), total)
    # Projectors for the eleven pairs of five styles would take as long as the passes; and the mean
    # over many pairs needs no second seed.
    seeds = min(max(_FITS // pairs, 1), 3)
    return Looks(**asked, contents=contents, limit=limit, seeds=seeds)


def tell_cost(looks: Looks, texts: int, arguments: TrainingArguments, n: int) -> None:
    """Say what looks at so many texts each will cost, and warn where that is too much.

    Args:
        looks: as planned.
        texts: that a look passes.
        arguments: of the training.
        n: training texts.
    """
    length = Length.of(arguments, n)
    number = len(looks.steps(length))
    share = number * texts / (_passes(arguments) * length.texts)
    level, advice = logging.INFO, ""
    if share > LIMIT:
        level, advice = logging.WARNING, ", more than a third of it: ask for fewer looks"
        if looks.probe_contents is None:
            advice += f", or train on more texts; no look is at fewer than {LEAST} contents"
        else:
            advice += ", or for fewer contents by --probe-contents"
    line = "%d looks at %d texts each cost about %.2f of the training%s"
    logger.log(level, line, number, texts, share, advice)


def _steps(every: float | None, steps: int | None, length: Length) -> tuple[int, ...]:
    interval = max(steps or (every or 0) * length.epoch_steps, 1)  # at every step at most
    inside = {round(look * interval) for look in range(math.ceil(length.steps / interval))}
    return tuple(sorted({*inside, length.steps}))


def _passes(arguments: TrainingArguments) -> float:
    if arguments.bf16 or arguments.fp16:
        return BF16_PASSES.get(arguments.device.type, 1.0)
    return FP32_PASSES
