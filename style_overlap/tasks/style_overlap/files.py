"""The YAML of a task: one writer for the registered grid and for any k and alpha off it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from style_overlap.names import AlphaLike, alpha_text, task_name

FOLDER = Path(__file__).parent
BASE = FOLDER / "style_overlap_base"


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


def group_yaml(group: str, members: list[str]) -> str:
    """A group's YAML file. It has no aggregate: overlaps differ in difficulty, so their mean
    would say nothing."""
    return "\n".join([f"group: {group}", "task:", *(f"  - {m}" for m in members)]) + (
        "\nmetadata:\n  version: 1.0\n"
    )
