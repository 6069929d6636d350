"""One (encoder, k, alpha, seed) -> ``transformers.Trainer`` -> an ordinary checkpoint folder.

    result = train(TrainSettings(model="FacebookAI/roberta-large", k=3, alpha="0.4", output=path))

An interrupted run, called again, goes on from its last checkpoint to the very weights that it would
have had; a finished one is handed back. Under ``torchrun`` or ``accelerate launch`` the processes
share every step.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transformers import EarlyStoppingCallback, TrainerCallback, TrainingArguments

from style_overlap.batching import inspect_layout
from style_overlap.checkpoints import quiet
from style_overlap.corpus import ParallelCorpus, load_corpus
from style_overlap.model_folders import model_fingerprint, resolve_model
from style_overlap.results import RECORD_NAME, SCHEMA, read_json, versions, write_text
from style_overlap.trainers.arguments import build, choose, describe, parse_arguments
from style_overlap.trainers.card import model_card
from style_overlap.trainers.data import Drawn, TokenisedSplit, collate, count_truncated, draw
from style_overlap.trainers.dynamics import Viewpoint, settle
from style_overlap.trainers.folder import RunFolder, State
from style_overlap.trainers.looks import Looks, tell_cost
from style_overlap.trainers.loop import StyleTrainer
from style_overlap.trainers.outcome import (
    TrainingError,
    degenerate,
    last_epoch_loss,
    losses,
    metrics_of,
)
from style_overlap.trainers.peers import Peers
from style_overlap.trainers.settings import TrainSettings
from style_overlap.trainers.start import computes_in_bf16, keep_head_exact, load_encoder
from style_overlap.trainers.watch import Watch

__all__ = ["TrainSettings", "TrainingError", "TrainingResult", "parse_arguments", "train"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingResult:
    """A finished checkpoint.

    Attributes:
        output: its folder.
        record: its ``style_overlap.json``.
        already_done: whether it was there before.
        first: whether this is the process that speaks for all that shared the work.
    """

    output: Path
    record: dict[str, Any]
    already_done: bool = False
    first: bool = True

    def summary(self) -> str:
        """One line for a person."""
        test = self.record["metrics"]["test"]
        line = f"{self.output}: matched test accuracy {test['accuracy']:.3f}"
        if self.record["degenerate"]:
            line += f", degenerate: {self.record['degenerate']}"
        return f"{line} (already done)" if self.already_done else line


class _AtSave(TrainerCallback):
    """Does something at every checkpoint, in the first process."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.action()


def train(
    settings: TrainSettings,
    *,
    corpus: ParallelCorpus | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> TrainingResult:
    """Fine-tune a classifier, or go on with it, or hand back the finished one.

    Args:
        settings: what to train, and where it goes.
        corpus: the corpus, if it is at hand; by default ``settings.corpus`` is loaded.
        callbacks: further callbacks of the trainer.

    Raises:
        UsageError: settings that cannot be used, or a folder that belongs to other settings, to
            other files, or to another process at this moment.
        TrainingError: the loss or the logits are not finite.
    """
    settings.check()
    resolve_model(settings.model)
    arguments = build(settings)
    corpus = corpus or load_corpus(settings.corpus, chunk_verses=settings.chunk_verses)
    drawn = draw(settings, corpus)
    looks = settle(settings, corpus, drawn, arguments)
    plan = _plan(settings, arguments, drawn, looks)
    folder, peers = RunFolder(settings.output), Peers(arguments)
    with ExitStack() as stack:

        def claim() -> tuple[State, Path | None, dict[str, Any] | None, dict[str, float]]:
            stack.enter_context(folder.locked())
            state = folder.state(plan)
            if state == "finished":
                folder.clear(settings.keep_checkpoints)
                return state, None, None, {}
            # On another machine the budget may be another: all looks of a run are at one gallery.
            chosen = folder.planned("looks") or plan["looks"]
            checkpoint = folder.last_checkpoint(peers.count)
            before = (checkpoint and folder.planned("time")) or {}
            folder.begin({**plan, "looks": chosen, "time": before})
            return state, checkpoint, chosen, before

        state, checkpoint, plan["looks"], before = peers.from_first(claim)
        if state == "finished":
            record = read_json(folder.path / RECORD_NAME)
            return TrainingResult(folder.path, record, already_done=True, first=peers.first)
        started = time.time()
        watch = None
        if plan["looks"]:
            looks = Looks(**plan["looks"])
            viewpoint = Viewpoint(settings, corpus, drawn, looks)
            watch = Watch(viewpoint, looks, folder.path, peers)
            if peers.first:
                tell_cost(looks, len(viewpoint.texts), arguments, len(drawn.splits["train"]))

        def spent() -> dict[str, float]:
            now = {
                "seconds": time.time() - started,
                "looks_seconds": watch.seconds if watch else 0.0,
            }
            return {name: round(before.get(name, 0.0) + value, 1) for name, value in now.items()}

        keep_time = _AtSave(lambda: folder.begin({**plan, "time": spent()}))
        with quiet():
            results = _fine_tune(
                settings, arguments, drawn, checkpoint, (*callbacks, keep_time), watch
            )
        record = {**plan, **results, "time": spent(), "versions": versions()}

        def finish() -> None:
            write_text(folder.path / "README.md", model_card(record))
            folder.finish(record, settings.keep_checkpoints)

        peers.from_first(finish)
    return TrainingResult(folder.path, record, first=peers.first)


def _plan(
    settings: TrainSettings, arguments: TrainingArguments, drawn: Drawn, looks: Looks | None
) -> dict[str, Any]:
    """The record as far as it is known beforehand."""
    source = Path(resolve_model(settings.model))
    return {
        "schema": SCHEMA,
        "kind": "checkpoint",
        "config": {**settings.config(), "arguments": choose(settings)},
        "data": drawn.record(),
        "base_model_fingerprint": model_fingerprint(source) if source.is_dir() else None,
        "compute": describe(arguments),
        "looks": looks.record() if looks else None,
    }


def _fine_tune(
    settings: TrainSettings,
    arguments: TrainingArguments,
    drawn: Drawn,
    checkpoint: Path | None,
    callbacks: Sequence[TrainerCallback],
    watch: Watch | None,
) -> dict[str, Any]:
    """All of the work: leaves the final model in the folder, and returns the record's results."""
    model, tokenizer, source = load_encoder(
        settings.model, drawn.styles, settings.seed, settings.dropout
    )
    layout = inspect_layout(
        model, tokenizer, settings.max_length, multiple=1 if arguments.use_cpu else 8
    )
    tokenised = {
        name: TokenisedSplit(tokenizer, drawn.texts[name], split.style, layout)
        for name, split in drawn.splits.items()
    }
    first = arguments.process_index == 0
    truncated = count_truncated(drawn, tokenised)
    if first and any(style["count"] for style in truncated.values()):
        cut = ", ".join(f"{name} {n['count']} of {n['of']}" for name, n in truncated.items())
        logger.warning("texts cut to %s tokens: %s", layout.max_length, cut)
    keep_head_exact(model)
    if arguments.bf16 and settings.dtype == "auto":
        batch = collate([tokenised["train"][0]])
        if not computes_in_bf16(model, batch, arguments.device):
            logger.info("%s cannot compute in bf16: using fp32", settings.model)
            arguments = build(replace(settings, dtype="fp32"))
    if settings.early_stopping:
        callbacks = (*callbacks, EarlyStoppingCallback(settings.early_stopping))
    trainer = StyleTrainer(
        tokenizer,
        model=model,
        args=arguments,
        train_dataset=tokenised["train"],
        eval_dataset=tokenised["validation"],
        callbacks=list(callbacks),
    )
    if layout.max_length is not None:
        # Whoever loads the checkpoint reads as much of a text as it was trained on.
        tokenizer.model_max_length = layout.max_length
    if watch:
        watch.join(trainer, tokenizer, layout.max_length, checkpoint)
    trainer.train_or_resume(checkpoint, watch.take if watch else None)
    trainer.save_final()
    scored = {name: trainer.score(tokenised[name]) for name in ("validation", "test")}
    reason = degenerate(list(scored.values()))
    if reason and first:
        logger.warning("%s is degenerate: %s", settings.output, reason)
    state = trainer.state
    return {
        "truncated": truncated,
        "metrics": {
            **{name: metrics_of(*one) for name, one in scored.items()},
            "train_loss": last_epoch_loss(state.log_history),
            "epochs": state.epoch,
            "steps": state.global_step,
        },
        "degenerate": reason,
        "log": losses(state.log_history),
        "compute": describe(arguments),
        "base_model_fingerprint": model_fingerprint(source),
        "model_fingerprint": model_fingerprint(str(arguments.output_dir)),
    }
