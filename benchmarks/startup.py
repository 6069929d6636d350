"""How long the command line and the import take before anything is done."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.answers import DisagreementError
from benchmarks.runner import Command, alternate
from benchmarks.section import Section, verdict
from benchmarks.spread import Spread

TITLE = "Start-up"


@dataclass(frozen=True)
class Size:
    """Starts in every round; the fastest of a round counts."""

    starts: int


SIZES = {"quick": Size(1), "standard": Size(5), "full": Size(20)}

HELP, IMPORT, PASS = "style-overlap --help", 'python -c "import style_overlap"', "python -c pass"
MODULES = "modules after the import of the command line"
MORE = 0.3
HEAVY = ("torch", "transformers", "datasets", "lm_eval", "matplotlib")


def run(size: Size, rounds: int) -> Section:
    """Measure.

    Raises:
        DisagreementError: the command line loads torch or another large library.
    """
    program = shutil.which("style-overlap", path=str(Path(sys.executable).parent))
    python = sys.executable
    commands = [
        Command(PASS, [python, "-c", "pass"]),
        Command(IMPORT, [python, "-c", "import style_overlap"]),
        Command(HELP, [program or "style-overlap", "--help"]),
    ]
    fastest: dict[str, list[float]] = {command.name: [] for command in commands}
    for _ in range(rounds):
        found = alternate(commands, size.starts)
        for name, runs in found.items():
            fastest[name].append(min(run.seconds for run in runs))
    loaded = Command(MODULES, [python, "-c", "import style_overlap.cli, sys; print(*sys.modules)"])
    told = check({MODULES: loaded.run().answer, HELP: found[HELP][-1].answer})
    rows = []
    for name, values in fastest.items():
        more = Spread.of(
            value - bare for value, bare in zip(values, fastest[PASS], strict=True)
        ).median
        wanted = "" if name == PASS else f"{MORE:g} s more at most: {verdict(more <= MORE)}"
        cells = (Spread.of(values).text(3), f"{more:+.3f}" if wanted else "", wanted)
        rows.append((f"`{name}`", *cells))
    return Section(
        work=f"The fastest of {size.starts} starts, {rounds} times.",
        header=("", "seconds", "more than bare Python", "goal"),
        rows=rows,
        notes=told,
    )


def profiled(size: Size) -> dict[str, float]:
    """Where the import of the command line spends its time."""
    from benchmarks.runner import Worker

    with Worker(HELP, "benchmarks.startup:imported", profile=True) as worker:
        return dict(worker.run().phases)


def imported():  # type: ignore[no-untyped-def]
    """Work: import the command line."""
    from importlib import import_module

    return lambda _: bool(import_module("style_overlap.cli"))


def check(answers: Mapping[str, str]) -> list[str]:
    """See what the command line has loaded, and that it helps.

    Raises:
        DisagreementError: a large library, or no help.
    """
    heavy = sorted(set(HEAVY) & set(answers[MODULES].split()))
    if heavy:
        raise DisagreementError(f"the command line loads {', '.join(heavy)} before it is needed")
    if "evaluate" not in answers[HELP] or "train" not in answers[HELP]:
        raise DisagreementError("style-overlap --help does not list its commands")
    return [f"None of {', '.join(HEAVY)} is loaded."]
