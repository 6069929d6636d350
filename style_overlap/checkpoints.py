"""From what a person types to a loaded model, or one line that says why not."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)
from transformers.utils import logging as transformers_logging
from transformers.utils.hub import cached_file

from style_overlap.errors import UsageError
from style_overlap.heads import find_head
from style_overlap.model_folders import POOLING_FILE, resolve_model

logger = logging.getLogger(__name__)

HeadKind: TypeAlias = bool | Literal["untuned"]


@dataclass(frozen=True)
class Checkpoint:
    """What was loaded: the model on the CPU, in evaluation mode, its parameters frozen.

    Attributes:
        missing: parameters that the files do not hold; they are NaN, so that nothing computed
            from them can pass for a result.
    """

    model: Any
    tokenizer: Any
    folder: Path
    missing: tuple[str, ...]


def load_checkpoint(
    spec: str | Path,
    *,
    head: HeadKind,
    dtype: torch.dtype,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Checkpoint:
    """Load a trained classifier, the body alone, or what a fine-tuning starts from.

    Args:
        head: True for a trained classifier, False for the body alone, ``untuned`` for an encoder
            before fine-tuning: its last layer has yet to be trained, but what feeds that layer,
            a pooler for example, has to be in the files.

    Raises:
        UsageError: it cannot be had or read, or no trained head is in it.
    """
    name = resolve_model(spec)
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if revision is not None:
        options["revision"] = revision
    loader = AutoModelForSequenceClassification if head else AutoModel
    with one_line(spec, name), quiet():
        tokenizer = AutoTokenizer.from_pretrained(name, **options)
        model, info = loader.from_pretrained(name, dtype=dtype, output_loading_info=True, **options)
        config = cached_file(name, "config.json", revision=revision)
        if not head:  # a sentence encoder of the hub: into the same folder
            cached_file(
                name, POOLING_FILE, revision=revision, _raise_exceptions_for_missing_entries=False
            )
    missing = tuple(sorted(info["missing_keys"]))
    if head == "untuned":
        missing = _without_last_layer(model, missing)
        if outside := tuple(key for key in missing if _outside_body(model, key)):
            raise lacks_weights(spec, outside)
    elif head:
        _refuse_missing(spec, model, missing)
    if not head and model.config.is_encoder_decoder:
        missing = tuple(key.removeprefix("encoder.") for key in missing if key.startswith("enc"))
        model = model.get_encoder()
    _poison(model, missing)
    model.eval().requires_grad_(False)
    return Checkpoint(model, tokenizer, Path(str(config)).parent, missing)


def is_classifier(spec: str | Path) -> bool:
    """Whether a model's configuration says that it was saved with a classification head.

    Raises:
        UsageError: there is no such model.
    """
    name = resolve_model(spec)
    with one_line(spec, name), quiet():
        config = AutoConfig.from_pretrained(name)
    return any("SequenceClassification" in kind for kind in config.architectures or ())


def _refuse_missing(spec: str | Path, model: Any, missing: tuple[str, ...]) -> None:
    if not missing:
        return
    layer = find_head(model, model.config.num_labels)
    name = next(name for name, module in model.named_modules() if module is layer)
    if f"{name}.weight" in missing:
        raise UsageError(
            f"model {str(spec)!r} has no trained classification head: fine-tune it with "
            f"style-overlap train --model {spec}"
        )
    raise lacks_weights(spec, missing)


def _without_last_layer(model: Any, missing: tuple[str, ...]) -> tuple[str, ...]:
    layer = find_head(model, model.config.num_labels)
    name = next(name for name, module in model.named_modules() if module is layer)
    return tuple(key for key in missing if not key.startswith(f"{name}."))


def _outside_body(model: Any, key: str) -> bool:
    return "pooler" in key or not key.startswith(f"{model.base_model_prefix}.")


def lacks_weights(spec: str | Path, missing: tuple[str, ...]) -> UsageError:
    """The error that a checkpoint without weights that count deserves."""
    some = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    return UsageError(
        f"model {str(spec)!r} lacks the weights of {some}: they would be random, and its results "
        "with them; save the whole model, or fine-tune it with style-overlap train"
    )


def _poison(model: Any, missing: tuple[str, ...]) -> None:
    for key in missing:
        with torch.no_grad(), contextlib.suppress(AttributeError):
            model.get_parameter(key).fill_(float("nan"))


@contextlib.contextmanager
def one_line(spec: str | Path, name: str) -> Iterator[None]:
    """Turn whatever transformers and the hub raise into one line."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:  # tokenizers raises nothing more special for a damaged file
        logger.debug("cannot load %s", spec, exc_info=True)
        lines = str(error).strip().splitlines() or [type(error).__name__]
        where = "" if Path(name).is_dir() else f"there is no folder {name!r} here, and "
        what = "it cannot be loaded" if where else "cannot be loaded"
        raise UsageError(f"model {str(spec)!r}: {where}{what}: {lines[0]}") from None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep back transformers' load report: what matters in it is checked, and said in one line."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
