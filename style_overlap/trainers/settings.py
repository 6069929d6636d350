"""What a fine-tuning is asked to be: all that its weights depend on, and where they go."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from style_overlap.errors import UsageError
from style_overlap.names import AlphaLike, alpha_text


@dataclass(frozen=True)
class TrainSettings:
    """One (encoder, k, alpha, seed).

    Attributes:
        model: folder, hub id or ``package:NAME`` of an encoder.
        k: number of styles, the first k of the corpus.
        alpha: content overlap of the data.
        output: folder of the checkpoint.
        seed: of head, batch order and dropout.
        data_seed: of regions, splits and pools; None for the value of ``seed``.
        contents: train on as much as a corpus of so many contents would give: the training pools
            are thinned evenly over the canonical order. Validation and test stay whole, so the
            figures are those of the registered task. None takes everything.
        corpus: see :func:`style_overlap.corpus.load_corpus`.
        chunk_verses: consecutive verses in one content.
        assignment: ``contiguous`` or ``random``.
        max_length: tokens that are read of a text, None for all that the model can take.
        early_stopping: stop after so many evaluations in a row without a better matched
            validation accuracy, and keep the best; None trains to the end and keeps the last.
        dropout: replaces every dropout rate in the encoder's configuration; None leaves them.
        dtype: ``auto`` computes in bf16 where the hardware is faster in it, else fp32; weights are
            always fp32.
        arguments: any field of ``transformers.TrainingArguments``.
        keep_checkpoints: keep the intermediate ``checkpoint-*`` folders when all is done.
        probe_every: look at the model every so many epochs of training: probe its features, score
            it at the training overlap and at a full one. None does not, unless ``probe_steps``.
        probe_steps: the same, every so many steps.
        probe_contents: what a look works on: as much as a corpus of so many contents would give
            trains the projectors, and the whole test split is searched and scored. None takes so
            few of both that all looks stay within a third of the training's cost.
    """

    model: str
    k: int
    alpha: AlphaLike
    output: Path
    seed: int = 0
    data_seed: int | None = None
    contents: int | None = None
    corpus: str = "bible"
    chunk_verses: int = 5
    assignment: str = "contiguous"
    max_length: int | None = 256
    early_stopping: int | None = None
    dropout: float | None = None
    dtype: str = "auto"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    keep_checkpoints: bool = False
    probe_every: float | None = None
    probe_steps: int | None = None
    probe_contents: int | None = None

    @property
    def sampling_seed(self) -> int:
        """Seed of regions, splits and pools."""
        return self.seed if self.data_seed is None else self.data_seed

    def check(self) -> None:
        """Refuse what could only fail later.

        Raises:
            UsageError: a value out of range.
        """
        alpha_text(self.alpha)
        _whole("--seed", self.seed, 0, 2**32 - 1)
        _whole("--data-seed", self.sampling_seed, 0, 2**63 - 1)
        if self.contents is not None:
            _whole("--contents", self.contents, 2 * self.k)
        if self.max_length is not None:
            _whole("--max-length", self.max_length, 3)  # the first, a word piece, the last
        if self.early_stopping is not None:
            _whole("--early-stopping", self.early_stopping, 1)
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise UsageError(f"--dropout is {self.dropout}: expected a rate from 0 to below 1")
        self._check_looks()

    def looks(self) -> dict[str, Any] | None:
        """When and at what training is looked at, None for not at all; no weight depends on it."""
        if self.probe_every is None and self.probe_steps is None:
            return None
        return {
            "probe_every": self.probe_every,
            "probe_steps": self.probe_steps,
            "probe_contents": self.probe_contents,
        }

    def _check_looks(self) -> None:
        if self.probe_every is not None and self.probe_steps is not None:
            raise UsageError("--probe-every counts epochs, --probe-steps steps: give one of them")
        if self.probe_every is not None and not 0 < self.probe_every < math.inf:
            raise UsageError(f"--probe-every is {self.probe_every}: expected epochs, more than 0")
        if self.probe_steps is not None:
            _whole("--probe-steps", self.probe_steps, 1)
        if self.probe_contents is not None:
            _whole("--probe-contents", self.probe_contents, 1)
            if self.looks() is None:
                raise UsageError("--probe-contents says at what: say when, by --probe-every 0.25")

    def config(self) -> dict[str, Any]:
        """All that the weights depend on, as it goes into the record."""
        return {
            "model": str(self.model),
            "k": self.k,
            "alpha": alpha_text(self.alpha),
            "seed": self.seed,
            "data_seed": self.sampling_seed,
            "contents": self.contents,
            "corpus": str(self.corpus),
            "chunk_verses": self.chunk_verses,
            "assignment": self.assignment,
            "max_length": self.max_length,
            "early_stopping": self.early_stopping,
            "dropout": self.dropout,
            "dtype": self.dtype,
            "arguments": dict(self.arguments),
        }


def _whole(name: str, value: object, least: int, most: int | None = None) -> None:
    # bool is an int: True would pass for 1
    if type(value) is int and value >= least and (most is None or value <= most):
        return
    raise UsageError(
        f"{name} is {value!r}: expected a whole number of at least {least}"
        + (f" and at most {most}" if most is not None else "")
    )
