"""A finished checkpoint's way to the Hub: only ever when asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from style_overlap.checkpoints import quiet
from style_overlap.errors import UsageError
from style_overlap.results import RECORD_NAME, read_json
from style_overlap.trainers.card import model_card


def check(repo_id: str) -> None:
    """Refuse a name that the Hub would refuse, before hours of training.

    Raises:
        UsageError: not ``name`` or ``owner/name``, or the Hub is switched off.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise UsageError(
            f"--push-to-hub is {repo_id!r}: expected owner/name ({str(error).splitlines()[0]})"
        ) from None
    if constants.HF_HUB_OFFLINE:
        raise UsageError("--push-to-hub: HF_HUB_OFFLINE is set; unset it to reach the Hub")


def push(folder: Path, repo_id: str, *, private: bool | None = None) -> str:
    """Push a checkpoint: weights and tokenizer by transformers, then its card and its record.

    Args:
        folder: a finished checkpoint of ours.
        repo_id: ``owner/name``; made if it does not exist.
        private: whether a new repository is private; None for the owner's default.

    Returns:
        Its address.

    Raises:
        UsageError: the Hub cannot be reached, or refuses; the checkpoint stays as it is.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    check(repo_id)
    record = read_json(folder / RECORD_NAME)
    with quiet():
        parts: list[Any] = [
            kind.from_pretrained(folder, local_files_only=True)
            for kind in (AutoModelForSequenceClassification, AutoTokenizer)
        ]
    api = HfApi()
    message = "style-overlap"
    try:
        for part in parts:
            part.push_to_hub(repo_id, private=private, commit_message=message)
        # After transformers, which writes a card of its own.
        for name, content in (
            ("README.md", model_card(record, repo_id).encode()),
            (RECORD_NAME, (folder / RECORD_NAME).read_bytes()),
        ):
            api.upload_file(
                path_or_fileobj=content,
                path_in_repo=name,
                repo_id=repo_id,
                commit_message=message,
            )
    except (HfHubHTTPError, OSError, ValueError) as error:
        told = str(error).strip() or type(error).__name__
        raise UsageError(
            f"{folder} is finished, but was not pushed to {repo_id}: {told.splitlines()[0]}; log "
            "in with `hf auth login`, and type the same command again: it goes on with the push"
        ) from error
    return f"{api.endpoint}/{repo_id}"
