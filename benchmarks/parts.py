"""The parts of the suite, and what each of them has to have."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from benchmarks.section import Section

PARTS = ("score", "train", "probe", "retrieval", "tasks", "sample", "startup", "growth")
"""What runs if none is named."""

ON_DEMAND = ("corpus",)
"""What runs only if it is named."""

SIZES = ("quick", "standard", "full")


class Part(Protocol):
    """A module of this package.

    ``check(answers)`` compares the contenders' answers and raises ``DisagreementError``; it is a
    function of plain data, so that a test can feed it answers that differ.
    """

    TITLE: str
    SIZES: dict[str, Any]
    """A size for each of ``SIZES``."""

    def run(self, size: Any, rounds: int) -> Section:
        """Measure, compare the answers, and tell."""

    def check(self, answers: Any) -> list[str]:
        """Compare answers; what there is to say of them."""

    def profiled(self, size: Any) -> dict[str, float]:
        """Seconds of every function of ours, once, under a profiler."""


def load(name: str) -> Part:
    """The part of that name."""
    module: Any = import_module(f"benchmarks.{name}")
    return module
