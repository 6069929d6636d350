"""Watches a training: looks at it when a look is due, and keeps the lines of ``dynamics.jsonl``.

So no checkpoint has to be kept for the curve of a training.
"""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from style_overlap.errors import UsageError
from style_overlap.results import DYNAMICS_NAME, to_json, write_text
from style_overlap.trainers.dynamics import Viewpoint
from style_overlap.trainers.looks import LIMIT, Length, Looks
from style_overlap.trainers.outcome import TrainingError
from style_overlap.trainers.peers import Peers

logger = logging.getLogger(__name__)


class Watch(TrainerCallback):
    """Takes the looks, writes them down, and hands them to the trainer's own loggers.

    A look comes with the log of its step, before a checkpoint of that step is saved: so what lies
    before the checkpoint that a run goes on from is in the file, and what lies behind it is
    dropped and looked at again. Of several processes the first one looks and the others wait.

    Attributes:
        began: when training began, by the monotonic clock.
        seconds: that looks have taken.
    """

    def __init__(self, viewpoint: Viewpoint, looks: Looks, folder: Path, peers: Peers) -> None:
        """Look from a viewpoint, and write into a folder."""
        self.viewpoint, self.looks, self.peers = viewpoint, looks, peers
        self.path = folder / DYNAMICS_NAME
        self.lines: list[dict[str, Any]] = []
        self.due: frozenset[int] = frozenset()
        self.began = self.seconds = 0.0
        self.trainer: Any = None
        self.tokenizer: Any = None
        self.max_length: int | None = None

    def join(
        self, trainer: Any, tokenizer: Any, max_length: int | None, checkpoint: Path | None
    ) -> None:
        """Become the last of a trainer's callbacks, and take up the lines of an interrupted run.

        Args:
            trainer: an instance of ``StyleTrainer``.
            tokenizer: its model's.
            max_length: tokens that the model reads of a text.
            checkpoint: that it goes on from.
        """
        self.trainer, self.tokenizer, self.max_length = trainer, tokenizer, max_length
        trainer.add_callback(self)
        step = -1 if checkpoint is None else int(checkpoint.name.rpartition("-")[2])
        self.lines = self.peers.from_first(lambda: self._taken_up(step))

    def on_train_begin(
        self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any
    ) -> None:
        """Look at the fresh head on the encoder, or check that all looks so far are there.

        Raises:
            UsageError: a look is missing that cannot be taken any more.
        """
        self.began = time.monotonic()
        epoch_steps = -(-len(train_dataloader) // args.gradient_accumulation_steps)
        self.due = frozenset(self.looks.steps(Length(state.max_steps, max(epoch_steps, 1), 0)))
        if state.global_step == 0:
            self.take(state)
            return
        passed = {step for step in self.due if step <= state.global_step}
        if missing := sorted(passed - {line["step"] for line in self.lines}):
            raise UsageError(
                f"{self.path} lacks the look at step {missing[0]}, which cannot be taken any "
                f"more: remove {self.path.parent} to start again"
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Have the loss logged where a look is due: it belongs to the look."""
        if state.global_step in self.due or control.should_training_stop:
            control.should_log = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Take the look that is due."""
        # After an early stop "train_loss" is logged before the best weights are put back.
        if ("loss" in logs and state.global_step in self.due) or "train_loss" in logs:
            self.take(state)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Say so if looks took more than their share: what they would cost was only estimated."""
        rest = time.monotonic() - self.began - self.seconds
        if self.seconds > LIMIT * rest:
            line = "looks took %.1f s, more than a third of the %.1f s of the rest of the training"
            logger.warning(f"{line}: ask for fewer looks", self.seconds, rest)

    def take(self, state: Any) -> None:
        """Look at the model as it is, unless this step has been looked at."""
        if self.lines and self.lines[-1]["step"] >= state.global_step:
            return
        line = self.peers.from_first(lambda: self._look(state))
        self.lines.append(line)
        self.trainer.log(_logged(line))

    def _look(self, state: Any) -> dict[str, Any]:
        """Take a look and write it down.

        Raises:
            TrainingError: the weights are not finite.
        """
        started = time.monotonic()
        model = self.trainer.model
        try:
            found = self.viewpoint.look(model, self.tokenizer, self.max_length)
        except UsageError:
            if all(bool(p.isfinite().all()) for p in model.parameters()):
                raise
            raise TrainingError(
                f"the weights are not finite after step {state.global_step} of {state.max_steps}: "
                "give a lower --set learning_rate, or --dtype fp32"
            ) from None
        before = self.lines[-1]["step"] if self.lines else 0
        line: dict[str, Any] = to_json(
            {
                "step": state.global_step,
                "epoch": float(state.epoch or 0),
                "loss": _mean_loss(state.log_history, before),
                **found,
            }
        )
        self._write([*self.lines, line])
        self.seconds += time.monotonic() - started
        return line

    def _taken_up(self, step: int) -> list[dict[str, Any]]:
        """The lines up to a step; those of looks after it are dropped from the file."""
        if not self.path.is_file():
            return []
        try:
            lines = [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]
            kept = [line for line in lines if line["step"] <= step]
        except (ValueError, TypeError, KeyError):
            raise UsageError(
                f"{self.path} is no list of looks: remove {self.path.parent} to start again"
            ) from None
        self._write(kept)
        return kept

    def _write(self, lines: list[dict[str, Any]]) -> None:
        dumped = (json.dumps(line, ensure_ascii=False, allow_nan=False) for line in lines)
        write_text(self.path, "".join(f"{line}\n" for line in dumped))


def _mean_loss(history: list[dict[str, Any]], after: int) -> float | None:
    """Mean training loss of the steps after a step, from the logged windows."""
    total, steps, begins = 0.0, 0, 0
    for row in history:
        if "loss" in row:
            width, begins = row["step"] - begins, row["step"]
            if row["step"] > after:
                total, steps = total + row["loss"] * width, steps + width
    return total / steps if steps else None


def _logged(line: dict[str, Any]) -> dict[str, float]:
    """The figures of a look by names that loggers group under ``eval``."""
    named = {f"eval_{name}_accuracy": value for name, value in line["accuracy"].items()}
    for row in line["retrieval"]:
        features = row["features"].replace("/", "_")
        named[f"eval_top1_{row['set']}_{features}"] = row["top1"]["mean"]
    return {name: value for name, value in named.items() if value is not None}
