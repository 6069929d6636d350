"""``transformers.TrainingArguments``: our defaults, the user's fields, none declared a second time.

The defaults are the usual ones for fine-tuning RoBERTa-large: AdamW at 1e-5, batches of 32, 6 %
warm-up, linear decay, weight decay 0.1. Three epochs, always, and the last state is kept: data sets
of all overlaps have one size, so all classifiers get the same number of steps.
"""

from __future__ import annotations

import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
import yaml
from transformers import TrainingArguments

from style_overlap.devices import pick_device, pick_dtype
from style_overlap.errors import UsageError
from style_overlap.trainers.settings import TrainSettings

DEFAULTS: dict[str, Any] = {
    "learning_rate": 1e-5,
    "per_device_train_batch_size": 32,
    "num_train_epochs": 3.0,
    "warmup_steps": 0.06,  # below 1: a share of all steps
    "lr_scheduler_type": "linear",
    "weight_decay": 0.1,
    "train_sampling_strategy": "group_by_length",
    "save_strategy": "epoch",
    "save_total_limit": 1,
    "logging_steps": 0.05,
    "report_to": "none",
    # An early stop has to remember, over an interruption, how long it has been waiting.
    "restore_callback_states_from_checkpoint": True,
}
"""Fields that differ from those of ``TrainingArguments``."""

EARLY_STOPPING: dict[str, Any] = {
    "eval_strategy": "epoch",
    "load_best_model_at_end": True,
    "metric_for_best_model": "accuracy",
    "greater_is_better": True,
}

CPU_BATCH = 8
"""Texts in one pass on a CPU: more fall out of its caches, and 32 take 1.8 times as long a text."""

OURS = {
    "output_dir": "--output",
    "seed": "--seed",
    "data_seed": "--data-seed",
    "bf16": "--dtype bf16",
    "fp16": "--dtype fp16",
    "resume_from_checkpoint": "the same command once more, which resumes",
    "disable_tqdm": "a terminal or none: the progress bar goes by that",
    "logging_nan_inf_filter": "nothing: a loss that is not finite always stops the run",
    "remove_unused_columns": "nothing: only inputs that the model accepts are passed",
    "label_names": "nothing: the labels are the styles",
    "push_to_hub": "--push-to-hub, which pushes the finished checkpoint with its card",
}
"""Fields that we set, and what to use instead."""

POSITIVE = (
    "num_train_epochs",
    "per_device_train_batch_size",
    "per_device_eval_batch_size",
    "gradient_accumulation_steps",
)
"""Fields of which 0 or less would train nothing, or fail only once the texts are there."""


def parse_arguments(pairs: Iterable[str], file: Path | None = None) -> dict[str, Any]:
    """Fields of ``TrainingArguments`` from ``name=value`` pairs and a YAML file; pairs win.

    Raises:
        UsageError: a pair without ``=``, a file that is not a YAML mapping, or a field that does
            not exist or is not the user's to set.
    """
    found: dict[str, Any] = {}
    if file is not None:
        try:
            loaded = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"cannot read {file}: {error.strerror}") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from None
        if not isinstance(loaded, dict | None):
            raise UsageError(f"{file} holds no mapping: expected lines such as learning_rate: 2e-5")
        found.update(loaded or {})
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {pair}: expected name=value, such as learning_rate=2e-5")
        try:
            found[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UsageError(f"--set {pair}: {value!r} is not a YAML value") from None
    return checked(found)


def checked(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with values of their declared types.

    Raises:
        UsageError: a field that does not exist or is not the user's to set, or a value of a type
            that it does not take.
    """
    known = {field.name for field in fields(TrainingArguments) if field.init}
    kinds = typing.get_type_hints(TrainingArguments)
    settled = {}
    for name, value in arguments.items():
        if name in OURS:
            raise UsageError(f"{name} cannot be set: use {OURS[name]}")
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean {near[0]}?" if near else "see transformers.TrainingArguments"
            raise UsageError(f"TrainingArguments has no field {name!r}: {hint}")
        settled[name] = _as_declared(name, value, kinds[name])
        if name in POSITIVE and not 0 < settled[name] < math.inf:
            raise UsageError(f"{name} is {value}: expected more than 0")
    return settled


def choose(settings: TrainSettings) -> dict[str, Any]:
    """Defaults and the user's fields, before anything is fitted to this machine.

    Raises:
        UsageError: as ``checked``.
    """
    defaults = {**DEFAULTS, **(EARLY_STOPPING if settings.early_stopping else {})}
    return {**defaults, **checked(settings.arguments)}


def build(settings: TrainSettings) -> TrainingArguments:
    """Defaults and the user's fields as one ``TrainingArguments``; starts the process group.

    Raises:
        UsageError: a combination of fields or a number format that cannot be used here.
    """
    chosen = choose(settings)
    device = pick_device("cpu" if chosen.get("use_cpu") else None)
    dtype = pick_dtype(settings.dtype, device)
    if dtype == torch.float16 and device.type == "cpu":
        raise UsageError("--dtype fp16 needs a GPU: give --dtype auto, bf16 or fp32")
    if device.type == "cpu":
        chosen["use_cpu"] = True
        chosen = _in_small_passes(chosen, settings.arguments)
        chosen.setdefault("per_device_eval_batch_size", CPU_BATCH)
    chosen.setdefault("per_device_eval_batch_size", 64)
    try:
        return TrainingArguments(
            **chosen,
            output_dir=str(settings.output),
            seed=settings.seed,
            bf16=dtype == torch.bfloat16,
            fp16=dtype == torch.float16,
            disable_tqdm=True,
            logging_nan_inf_filter=False,
            remove_unused_columns=False,
            label_names=["labels"],
        )
    except (ValueError, TypeError) as error:
        raise UsageError(f"TrainingArguments: {' '.join(str(error).split())}") from error


def describe(arguments: TrainingArguments) -> dict[str, Any]:
    """Where and how it is computed, for the record."""
    texts = arguments.train_batch_size * arguments.gradient_accumulation_steps
    return {
        "device": arguments.device.type,
        "dtype": {"no": "fp32"}.get(arguments.mixed_precision, arguments.mixed_precision),
        "processes": arguments.world_size,
        "texts_per_pass": arguments.train_batch_size,
        "effective_batch": texts * arguments.world_size,
    }


def _in_small_passes(chosen: dict[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The same number of texts a step, in passes that a CPU is quick with; unless it was asked."""
    size, steps = chosen["per_device_train_batch_size"], "gradient_accumulation_steps"
    if steps in asked or size <= CPU_BATCH or size % CPU_BATCH:
        return chosen
    return {**chosen, "per_device_train_batch_size": CPU_BATCH, steps: size // CPU_BATCH}


def _as_declared(name: str, value: Any, kind: Any) -> Any:
    """The value as the field's type has it; YAML takes ``2e-5`` for a string."""
    union = isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union
    allowed = set(typing.get_args(kind)) if union else {kind}
    if type(value) in allowed or (value is None and type(None) in allowed):
        return value
    if not allowed & {bool, int, float}:
        return value
    if not isinstance(value, bool) and allowed & {int, float}:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = None
        if number is not None and float in allowed:
            return number
        if number is not None and number.is_integer():
            return int(number)
    if str in allowed or dict in allowed:
        return value
    expected = " or ".join(sorted(getattr(one, "__name__", str(one)) for one in allowed))
    raise UsageError(f"{name} is {value!r}: expected {expected.replace('NoneType', 'null')}")
