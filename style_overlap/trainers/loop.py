"""``transformers.Trainer`` with our batch order, our stop on a broken loss and our progress bar."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Sampler
from transformers import Trainer
from transformers.trainer import TRAINER_STATE_NAME, TRAINING_ARGS_NAME
from transformers.trainer_callback import PrinterCallback, TrainerCallback, TrainerState
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from style_overlap.results import share
from style_overlap.trainers.data import LengthGroupedOrder, TokenisedSplit, collate
from style_overlap.trainers.dropout import fast_dropout
from style_overlap.trainers.outcome import Scored, TrainingError, metrics_of
from style_overlap.trainers.progress import Progress

logger = logging.getLogger(__name__)


class _KeepTokenizer(TrainerCallback):
    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.tokenizer.save_pretrained(
                Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
            )


class StyleTrainer(Trainer):
    """Trainer of a style classifier."""

    def __init__(self, tokenizer: Any, **options: Any) -> None:
        """Take the arguments of ``transformers.Trainer``.

        Args:
            tokenizer: saved with every checkpoint, so that each is one that anybody can load.
        """
        self.tokenizer = tokenizer
        super().__init__(
            data_collator=collate,
            compute_loss_func=self.mean_loss,
            compute_metrics=lambda scored: metrics_of(scored.predictions, scored.label_ids),
            preprocess_logits_for_metrics=_logits_only,
            **options,
        )
        self.remove_callback(PrinterCallback)
        self.add_callback(Progress())
        # Not as Trainer's processing_class, by which it would change the model's configuration.
        self.add_callback(_KeepTokenizer(tokenizer))

    def mean_loss(
        self, outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """Cross-entropy, a mean over all texts of the step, in however many passes it is made.

        Left to itself, Trainer takes a model that accepts any keyword, as BERT does, for one that
        divides by the number of texts in the step: with two passes a step its loss would be double.
        """
        total = torch.nn.functional.cross_entropy(
            _logits_only(outputs["logits"], labels),
            labels,
            reduction="sum",
            label_smoothing=self.args.label_smoothing_factor,
        )
        if num_items_in_batch is None:
            return total / len(labels)
        # With one process for several GPUs Trainer repeats the number, and multiplies by theirs.
        number = torch.as_tensor(num_items_in_batch).flatten()[0]
        return total / number / max(self.args.n_gpu, 1)

    def train_or_resume(
        self, checkpoint: Path | None, at_the_end: Callable[[TrainerState], None] | None = None
    ) -> None:
        """Train to the end, from a checkpoint if there is one.

        Args:
            checkpoint: to go on from.
            at_the_end: what callbacks do with the last weights, if training ended with this very
                checkpoint and was stopped before or while they did it.
        """
        state = None if checkpoint is None else _final_state(checkpoint)
        if checkpoint is None or state is None:
            with fast_dropout(self.args.device):
                self.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
            return
        # Stopped after its last save. Trainer would forget an early stop, and train on.
        best = state.best_model_checkpoint if self.args.load_best_model_at_end else None
        self.state = state
        if at_the_end is not None:
            self._load_from_checkpoint(str(checkpoint))
            at_the_end(state)
        self._load_from_checkpoint(str(checkpoint.parent / Path(best).name if best else checkpoint))

    def save_final(self) -> None:
        """Write model and tokenizer as ``save_pretrained`` does, in the first process only."""
        self.save_model(self.args.output_dir, _internal_call=True)
        if self.args.should_save:
            folder = Path(str(self.args.output_dir))
            self.tokenizer.save_pretrained(folder)
            # A pickle of this machine's paths; the record has the arguments in plain text.
            (folder / TRAINING_ARGS_NAME).unlink(missing_ok=True)
            for weights in folder.glob("*.safetensors"):
                share(weights)  # safetensors leaves them to their owner alone

    def score(self, split: TokenisedSplit) -> Scored:
        """Logits and labels of a split, longest texts first."""
        found = self.predict(split)
        logits = np.asarray(found.predictions, np.float64)
        labels = np.asarray(found.label_ids, np.int64)
        if len(labels) != len(split):  # processes fill their last batches with repeats
            raise RuntimeError(f"{len(labels)} texts were scored, not {len(split)}")
        return logits, labels

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int] | None:
        if self.args.train_sampling_strategy != "group_by_length":
            return super()._get_train_sampler(train_dataset)
        split: Any = self.train_dataset if train_dataset is None else train_dataset
        batch = self.args.train_batch_size
        return LengthGroupedOrder(split.tokens.kept, batch, self.args.seed, self)

    def _get_eval_sampler(self, eval_dataset: Any) -> Sampler[int] | None:
        return LongestFirst(eval_dataset)

    def training_step(self, *args: Any, **options: Any) -> torch.Tensor:
        """One forward and backward pass.

        Raises:
            TrainingError: the loss is not finite.
        """
        loss = super().training_step(*args, **options)
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss.item()} at step {self.state.global_step + 1} of "
                f"{self.state.max_steps}, learning rate {self._get_learning_rate():g}: give a "
                "lower --set learning_rate, or --dtype fp32"
            )
        return loss


class LongestFirst(Sampler[int]):
    """All texts once, the longest first: little padding, and memory runs out at once or never."""

    def __init__(self, split: TokenisedSplit) -> None:
        """Order the texts of a split."""
        self.rows = np.argsort(-split.tokens.kept, kind="stable").tolist()

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.rows)

    def __iter__(self) -> Any:
        """Rows of the split."""
        return iter(self.rows)


def _final_state(checkpoint: Path) -> TrainerState | None:
    """The state of a checkpoint that training ends with, None for one that it goes on from."""
    state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    control = state.stateful_callbacks.get("TrainerControl", {}).get("args", {})
    return state if control.get("should_training_stop") else None


def _logits_only(logits: Any, _labels: torch.Tensor) -> torch.Tensor:
    """Some models also return caches or states."""
    return (logits[0] if isinstance(logits, tuple | list) else logits).float()
