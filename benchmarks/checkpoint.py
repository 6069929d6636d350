"""The fine-tuned classifier that scoring is measured with: trained once, then kept in the cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.texts import ENCODER, MAX_LENGTH, quiet
from style_overlap.corpus.store import cache_root
from style_overlap.results import digest, versions, write_json

STYLES = ("KJV", "ASV")


def classifier(trained: bool) -> Callable[[Any], str]:
    """Work that gives the folder of a checkpoint of MiniLM for k=2.

    Args:
        trained: fine-tuned, about half a minute; else with a new head, which puts nearly all texts
            into one class: a check of answers that could not fail, good for a smoke test only.
    """
    quiet()
    return lambda _: str(_fine_tuned() if trained else _with_new_head())


def _fine_tuned(contents: int = 400, epochs: float = 2.0, max_length: int = 64) -> Path:
    from style_overlap.trainers.classifier import TrainSettings, train

    settings = TrainSettings(
        model=ENCODER,
        k=2,
        alpha="0",
        output=Path(),
        contents=contents,
        max_length=max_length,  # the shortcut shows in a text's beginning; scoring reads all of it
        dropout=0.0,
        arguments={
            "learning_rate": 3e-4,
            "num_train_epochs": epochs,
            "per_device_train_batch_size": 8,
        },
    )
    key = digest([settings.config(), versions()])[:12]
    folder = cache_root() / "benchmarks" / f"minilm-{key}"
    train(replace(settings, output=folder))
    # The trainer's tokenizer names that length, so that nobody reads more than was trained on.
    # Here time is what counts, and that of whole passages.
    path = folder / "tokenizer_config.json"
    write_json(path, {**json.loads(path.read_text()), "model_max_length": MAX_LENGTH})
    return folder


def _with_new_head() -> Path:
    from style_overlap.trainers.start import load_encoder

    folder = cache_root() / "benchmarks" / "minilm-untrained"
    model, tokenizer, _ = load_encoder(ENCODER, STYLES, seed=0)
    tokenizer.model_max_length = MAX_LENGTH
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
