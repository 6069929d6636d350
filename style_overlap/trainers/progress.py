"""What a person sees of a training that runs."""

from __future__ import annotations

import logging
import sys
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback

logger = logging.getLogger(__name__)

_SHOWN = {
    "loss": "loss",
    "eval_accuracy": "validation",
    "eval_matched_accuracy": "matched",
    "eval_fully_shared_accuracy": "fully shared",
    "eval_top1_seen_h": "top-1 of h",
    "eval_top1_unseen_h": "unseen",
}


class Progress(TrainerCallback):
    """A progress bar in a terminal, a line of the log elsewhere; losses logged at every save.

    A run that is taken up again starts at a save: only if every run logs there do both have the
    same windows of losses.
    """

    def __init__(self) -> None:
        """Start without a bar."""
        self.bar: Any = None
        self.scoring: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Open the bar."""
        if state.is_world_process_zero:
            self.bar = _bar("train", state.max_steps, initial=state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Move the bar."""
        control.should_log = control.should_log or control.should_save
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Log together with a save."""
        control.should_log = control.should_log or control.should_save

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Show the loss, the accuracy, or a look at the model."""
        shown = {name: logs[key] for key, name in _SHOWN.items() if logs and key in logs}
        if not shown or not state.is_world_process_zero:
            return
        if self.bar is not None:
            self.bar.set_postfix(shown)
        what = ", ".join(f"{name} {value:.4f}" for name, value in shown.items())
        logger.info("step %d of %d: %s", state.global_step, state.max_steps, what)

    def on_prediction_step(
        self, args: Any, state: Any, control: Any, eval_dataloader: Any = None, **_: Any
    ) -> None:
        """Move a bar of its own while a split is scored."""
        if state.is_world_process_zero:
            self.scoring = self.scoring or _bar("score", len(eval_dataloader), leave=False)
            self.scoring.update()

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the bar of a scored split."""
        if self.scoring is not None:
            self.scoring.close()
            self.scoring = None

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
        """Close the bar of a scored split."""
        self.on_evaluate(args, state, control)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()


def _bar(what: str, total: int, **options: Any) -> Any:
    hidden = not sys.stderr.isatty()
    return tqdm(total=total, desc=what, unit="step", disable=hidden, **options)
