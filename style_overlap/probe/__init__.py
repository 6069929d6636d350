"""The content-retrieval probe: how much content can be read off a model's features.

Importing this package loads no torch; its names do when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from style_overlap.probe.controls import bag_of_words, untrained
    from style_overlap.probe.run import (
        PairResult,
        probe,
        probe_vectors,
        seen_pairs,
        unseen_pairs,
    )

__all__ = [
    "PairResult",
    "bag_of_words",
    "probe",
    "probe_vectors",
    "seen_pairs",
    "unseen_pairs",
    "untrained",
]

_CONTROLS = ("bag_of_words", "untrained")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "controls" if name in _CONTROLS else "run"
    return getattr(import_module(f"{__name__}.{module}"), name)
