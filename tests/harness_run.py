"""Evaluate a tiny classifier with the harness, as one process or as one of several.

    python harness_run.py CHECKPOINT OUTPUT

The first process writes results and logged samples to OUTPUT as JSON.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import datasets
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from style_overlap.lm import StyleEncoderLM

STYLES = ("KJV", "ASV")
WORDS = ("river", "stone", "bird", "field", "road", "house", "tree", "winter", "summer")


def documents(count: int = 22, styles: tuple[str, ...] = STYLES, seed: int = 0) -> dict[str, Any]:
    """Columns of a style task: distinct passages, the styles in turn."""
    rng = random.Random(seed)
    label = [number % len(styles) for number in range(count)]
    return {
        "text": [f"{number} {' '.join(rng.choices(WORDS, k=8))}" for number in range(count)],
        "label": label,
        "style": [styles[number] for number in label],
        "styles": [list(styles)] * count,
        "content_id": [f"Invented 1:{number}" for number in range(count)],
        "shared": [False] * count,
    }


def task(name: str, columns: dict[str, Any] | None = None) -> dict[str, Any]:
    """The configuration of a task that lm-eval takes as it is."""
    data = {"test": datasets.Dataset.from_dict(columns or documents())}
    return {
        "task": name,
        "custom_dataset": lambda **_: data,
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "Passage: {{text}}\nVersion:",
        "doc_to_choice": "styles",
        "doc_to_target": "label",
        "metric_list": [{"metric": "acc"}],
    }


def evaluate(lm: Any, *tasks: dict[str, Any], **options: Any) -> Any:
    """Run tasks through the harness; None in every process but the first."""
    manager = TaskManager(include_defaults=False)
    return simple_evaluate(
        model=lm, tasks=list(tasks), task_manager=manager, bootstrap_iters=0, **options
    )


if __name__ == "__main__":
    checkpoint, output = sys.argv[1:]
    model = StyleEncoderLM(checkpoint, dtype="fp32", device="cpu", batch_size=8)
    results = evaluate(model, task("ranks"))
    if results is not None:
        with open(output, "w") as file:
            json.dump(
                {
                    "acc": results["results"]["ranks"]["acc,none"],
                    "documents": [sample["doc"]["text"] for sample in results["samples"]["ranks"]],
                    "scores": [
                        [float(score) for score, _ in sample["filtered_resps"]]
                        for sample in results["samples"]["ranks"]
                    ],
                    "world_size": model.world_size,
                    "unique_texts": results["config"]["unique_texts"],
                    "truncated": results["config"]["truncated"],
                },
                file,
            )
