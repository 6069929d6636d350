"""The YAML of a task: one writer for the registered grid and for any k and alpha off it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from style_overlap.names import (
    UNSEEN_RETRIEVAL,
    AlphaLike,
    alpha_text,
    retrieval_name,
    task_name,
)

FOLDER = Path(__file__).resolve().parent
"""The folder that the harness reads."""

BASE = FOLDER / "style_overlap_base"
RETRIEVAL_BASE = FOLDER / "content_retrieval_base"


def task_config(k: int, alpha: AlphaLike) -> dict[str, Any]:
    """A task's own keys, on top of the base file."""
    return {
        "task": task_name(k, alpha),
        "dataset_kwargs": {"k": k, "alpha": alpha_text(alpha)},
    }


def task_yaml(k: int, alpha: AlphaLike, *, include: str = BASE.name, tag: bool = False) -> str:
    """A task's YAML file.

    Args:
        k: number of styles.
        alpha: content overlap.
        include: the base file as seen from the new file: its absolute path outside this folder.
        tag: whether to tag it with its overlap, as the registered grid is.
    """
    lines = [f"include: {include}", f"task: {task_name(k, alpha)}"]
    if tag:
        lines.append(f"tag: style_overlap_a{alpha_text(alpha)}")
    lines += ["dataset_kwargs:", f"  k: {k}", f'  alpha: "{alpha_text(alpha)}"']
    return "\n".join(lines) + "\n"


def retrieval_config(k: int | None) -> dict[str, Any]:
    """A retrieval task's own keys, on top of its base file.

    Args:
        k: pairs of the first k styles; None for the reserved versions.
    """
    if k is None:
        return {"task": UNSEEN_RETRIEVAL, "dataset_kwargs": {"set": "unseen"}}
    return {"task": retrieval_name(k), "dataset_kwargs": {"set": "seen", "k": k}}


def retrieval_yaml(k: int | None) -> str:
    """A retrieval task's YAML file in this folder, see ``retrieval_config``."""
    config = retrieval_config(k)
    lines = [f"include: {RETRIEVAL_BASE.name}", f"task: {config['task']}", "dataset_kwargs:"]
    lines += [f"  {key}: {value}" for key, value in config["dataset_kwargs"].items()]
    return "\n".join(lines) + "\n"


def group_yaml(group: str, members: list[str]) -> str:
    """A group's YAML file. It has no aggregate: overlaps, and pairs, differ in difficulty, so
    their mean would say nothing."""
    return "\n".join([f"group: {group}", "task:", *(f"  - {m}" for m in members)]) + (
        "\nmetadata:\n  version: 1.0\n"
    )
