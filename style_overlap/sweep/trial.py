"""How long cells should take while none is finished: a step of their encoder is timed here, now."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub import try_to_load_from_cache
from transformers import TrainingArguments

from style_overlap.batching import inspect_layout
from style_overlap.corpus import ParallelCorpus
from style_overlap.encoder import LOGITS, TextModel
from style_overlap.errors import UsageError
from style_overlap.model_folders import resolve_model
from style_overlap.overlap import content_splits, sample
from style_overlap.probe.splits import UNUSED, probe_splits
from style_overlap.sweep.estimate import recipe
from style_overlap.sweep.faults import one_line
from style_overlap.sweep.grid import settings_of
from style_overlap.sweep.measure import corpus_of
from style_overlap.sweep.plan import Cell
from style_overlap.trainers.arguments import build
from style_overlap.trainers.data import TokenisedSplit, collate, draw
from style_overlap.trainers.looks import Length, plan_looks
from style_overlap.trainers.settings import TrainSettings
from style_overlap.trainers.start import computes_in_bf16, load_encoder


def expect(
    cells: Sequence[Cell], alphas: tuple[str, ...], at_once: int
) -> tuple[float, int, list[str]]:
    """Seconds that cells of encoders should take, one after the other.

    Args:
        cells: to be run.
        alphas: overlaps that they are scored at.
        at_once: how many run at once: each has its share of the cores.

    Returns:
        Seconds of those whose encoder could be timed, how many those are, and why others could not.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(recipe(cell.config), []).append(cell)
    threads = torch.get_num_threads()
    torch.set_num_threads(max(threads // at_once, 1))
    try:
        found = [(_tried(group, alphas), len(group)) for group in groups.values()]
    finally:
        torch.set_num_threads(threads)
    timed = [(seconds, count) for seconds, count in found if not isinstance(seconds, str)]
    reasons = [told for told, _ in found if isinstance(told, str)]
    return sum(seconds for seconds, _ in timed), sum(count for _, count in timed), reasons


def _tried(cells: Sequence[Cell], alphas: tuple[str, ...]) -> float | str:
    try:
        return _seconds(cells, alphas)
    except Exception as error:  # whatever an encoder may fail with
        return str(error) if isinstance(error, UsageError) else one_line(error)


def _seconds(cells: Sequence[Cell], alphas: tuple[str, ...]) -> float:
    """Of cells that differ in k, overlap and seed alone: a text costs the same in all of them."""
    settings = [settings_of(cell, Path(cell.folder)) for cell in cells]
    corpus = corpus_of(settings[0].corpus, settings[0].chunk_verses)
    arguments = build(settings[0])
    train, read = _time_a_text(settings[0], arguments, corpus)
    total = 0.0
    for cell, one in zip(cells, settings, strict=True):
        length, seed = Length.of(arguments, cell.texts), one.sampling_seed
        versions = one.k + (len(corpus.reserved) if len(corpus.reserved) > 1 else 0)
        probed = 0
        if cell.config["probe"]["retrieval"]:
            probed += _probed(corpus, seed, cell.config["probe"]["contents"])
        if asked := one.looks():
            splits = content_splits(corpus, seed)
            looks = plan_looks(asked, arguments, cell.texts, splits, versions, pairs=1)
            each = _probed(corpus, seed, looks.contents, looks.limit)
            probed += len(looks.steps(length)) * each
        texts = _scored(corpus, one.k, seed, one.assignment, alphas) + versions * probed
        total += train * length.texts + read * texts
    return total


def _time_a_text(
    settings: TrainSettings, arguments: TrainingArguments, corpus: ParallelCorpus
) -> tuple[float, float]:
    """Seconds that a text of the usual length takes in training, and in a forward pass in fp32."""
    drawn, device = draw(settings, corpus), arguments.device
    model, tokenizer, _ = load_encoder(_at_hand(settings.model), drawn.styles, 0, settings.dropout)
    layout = inspect_layout(model.to(device).train(), tokenizer, settings.max_length)
    size, passes = arguments.per_device_train_batch_size, arguments.gradient_accumulation_steps
    texts = _middle(drawn.texts["train"], size)
    split = TokenisedSplit(tokenizer, texts, np.zeros(len(texts), np.int64), layout)
    batch: dict[str, Any] = collate([split[row] for row in range(len(texts))])
    batch = {name: tensor.to(device) for name, tensor in batch.items()}
    half = torch.float16 if arguments.fp16 else torch.bfloat16
    rounded = arguments.fp16 or (arguments.bf16 and computes_in_bf16(model, batch, device))
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.0)

    def train() -> None:
        with torch.autocast(device.type, half, enabled=rounded):
            loss = model(**batch).loss
        loss.backward()

    a_text = (_clock(train, device) + _clock(optimiser.step, device) / passes) / len(texts)
    optimiser.zero_grad()
    del optimiser
    reader = TextModel(model, tokenizer, max_length=settings.max_length, progress=False)
    # About what scoring puts into one batch.
    texts = _middle(drawn.texts["train"], 8 if device.type == "cpu" else 256)
    padded = reader.padded(texts)
    return a_text, _clock(lambda: reader.compute(*padded, [LOGITS]), device) / len(texts)


def _at_hand(model: str) -> str:
    """The folder of an encoder on this machine; nothing is fetched.

    Raises:
        UsageError: it is not here.
    """
    folder = Path(resolve_model(model))
    if not folder.is_dir():
        cached = try_to_load_from_cache(str(folder), "config.json")
        folder = Path(cached).parent if isinstance(cached, str) else folder
    if not [*folder.glob("*.safetensors"), *folder.glob("*.bin")]:
        raise UsageError(f"{model} is not on this machine yet")
    return str(folder)


def _middle(texts: Sequence[str], count: int) -> list[str]:
    ordered = sorted(texts, key=len)
    return ordered[max((len(ordered) - count) // 2, 0) :][:count]


def _clock(act: Callable[[], Any], device: torch.device) -> float:
    """Seconds of the second time: the first one warms up."""
    started = 0.0
    for _ in range(2):
        started = time.perf_counter()
        act()
        if device.type != "cpu":
            torch.get_device_module(device).synchronize()
    return time.perf_counter() - started


@lru_cache(maxsize=64)
def _scored(
    corpus: ParallelCorpus, k: int, seed: int, assignment: str, alphas: tuple[str, ...]
) -> int:
    """Distinct texts of the test sets."""
    tests = [sample(corpus, k, alpha, seed, assignment).splits["test"] for alpha in alphas]
    return len(np.unique(np.concatenate([test.content * k + test.style for test in tests])))


def _probed(corpus: ParallelCorpus, seed: int, contents: int | None, limit: Any = None) -> int:
    """Contents that a probe reads, in every version."""
    return int((probe_splits(corpus, seed, contents=contents, limit=limit) != UNUSED).sum())
