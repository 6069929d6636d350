"""The data of all registered classification tasks, and what we add to the harness's own start."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.answers import DisagreementError
from benchmarks.runner import Command, Run, Worker, alternate
from benchmarks.section import Section, seconds, verdict
from benchmarks.spread import Spread

TITLE = "Data of the tasks, and the start of lm_eval"


@dataclass(frozen=True)
class Size:
    """Numbers of styles and overlaps whose tasks are built; whether ``lm_eval ls tasks`` runs."""

    ks: tuple[int, ...] = (2, 3, 4, 5)
    alphas: tuple[str, ...] = ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0")
    listing: bool = True


SIZES = {
    "quick": Size(ks=(2,), alphas=("0.4",), listing=False),
    "standard": Size(listing=False),
    "full": Size(),
}

COLD, WARM = "cold: corpus built and cached", "warm: corpus from the cache"
INDEX = "our share of lm_eval's index of tasks"
WITH, WITHOUT = "lm_eval ls tasks, with us", "lm_eval ls tasks, without"
GOALS = {COLD: 10.0, WARM: 1.0, INDEX: 0.2}
OURS = ("style_overlap", "content_retrieval")
"""How names of our tasks and groups begin."""


def run(size: Size, rounds: int) -> Section:
    """Measure.

    Raises:
        DisagreementError: cold and warm data differ, or the harness lists other tasks with us.
    """
    found = alternate(
        [
            Worker(COLD, "benchmarks.tasks:build", size=size, cold=True),
            Worker(WARM, "benchmarks.tasks:build", size=size, cold=False),
            Worker(INDEX, "benchmarks.tasks:index"),
        ],
        rounds,
    )
    if size.listing:
        program = shutil.which("lm_eval", path=str(Path(sys.executable).parent)) or "lm_eval"
        commands = [
            Command(name, [program, "ls", "tasks"], STYLE_OVERLAP_BRIDGE=switch)
            for name, switch in ((WITH, "1"), (WITHOUT, "0"))
        ]
        found |= alternate(commands, rounds)
    told = check({name: runs[-1].answer for name, runs in found.items()})
    rows = [(name, *_measured(name, runs)) for name, runs in found.items()]
    if size.listing:
        more = Spread.of(
            one.seconds - other.seconds
            for one, other in zip(found[WITH], found[WITHOUT], strict=True)
        )
        rows.append(("slower with us", more.text(), "", ""))
    return Section(
        work=(
            f"Train, validation and test documents of {len(size.ks) * len(size.alphas)} tasks "
            "after the imports; and the harness's reading of our folder of tasks, all that its "
            "index takes longer with us."
        ),
        header=("", "seconds", "goal", "peak memory"),
        rows=rows,
        notes=told,
    )


def profiled(size: Size) -> dict[str, float]:
    """Where a cold build spends its time."""
    with Worker(COLD, "benchmarks.tasks:build", profile=True, size=size, cold=True) as worker:
        return dict(worker.run().phases)


def check(answers: Mapping[str, Any]) -> list[str]:
    """Compare the data of both builds, and the two lists of tasks.

    Raises:
        DisagreementError: they differ by more than our own names.
    """
    if answers[COLD] != answers[WARM]:
        raise DisagreementError(
            "tasks built cold and from the cache do not have the same documents"
        )
    told = [f"{sum(answers[WARM].values()):,} documents, the same cold and warm."]
    if WITH in answers:
        mine, others = _names(answers[WITH])
        missing, rest = _names(answers[WITHOUT])
        if others != rest or missing or not mine:
            raise DisagreementError(
                f"lm_eval lists {len(mine)} names of ours with us and {len(missing)} without, and "
                f"{len(others)} against {len(rest)} of its own: expected some and none, and equals"
            )
        if answers[INDEX] != len(mine):
            raise DisagreementError(f"our folder has {answers[INDEX]} names, the list {len(mine)}")
        told.append(f"With us the list has {len(mine)} more names, and the others are the same.")
    return told


def _names(listed: str) -> tuple[list[str], list[str]]:
    """Ours and the others', from a table whose first column holds names."""
    cells = [line.split("|")[1].strip() for line in listed.splitlines() if line.count("|") > 1]
    mine = [cell for cell in cells if cell.startswith(OURS)]
    # A table is as wide as its longest name: rules between header and rows are no names.
    return mine, [cell for cell in cells if cell not in mine and cell.strip(":- ")]


def _measured(name: str, runs: Sequence[Run]) -> tuple[str, str, str]:
    spread = seconds(runs)
    wanted = ""
    if name in GOALS:
        wanted = f"{GOALS[name]:g} s at most: {verdict(spread.median <= GOALS[name])}"
    return spread.text(), wanted, f"{max(run.peak_mb for run in runs):,.0f} MB"


def build(size: Size, cold: bool) -> Callable[[Any], dict[str, int]]:
    """Work: documents of all tasks; how many each has, by a digest of the first and the last."""
    import datasets

    from style_overlap.corpus import load_corpus
    from style_overlap.overlap import SPLITS, sample
    from style_overlap.tasks.style_overlap.docs import documents

    assert datasets is not None  # loaded before the clock starts, as the harness has done by then
    load_corpus("bible")

    def work(_: Any) -> dict[str, int]:
        with tempfile.TemporaryDirectory() as folder:
            corpus = load_corpus("bible", cache_dir=folder if cold else None)
            found = {}
            for k in size.ks:
                for alpha in size.alphas:
                    drawn = sample(corpus, k, alpha)
                    for split in SPLITS:
                        one = documents(corpus, drawn, split)
                        ends = f"{one[0]['content_id']} to {one[-1]['content_id']}"
                        found[f"k{k} a{alpha} {split} {ends}"] = len(one)
            return found

    return work


def index() -> Callable[[Any], int]:
    """Work: what the harness reads of ours when it starts; how many names it finds."""
    from lm_eval.tasks import TaskManager

    from style_overlap.tasks.style_overlap.files import FOLDER

    return lambda _: len(TaskManager(include_path=str(FOLDER), include_defaults=False).all_tasks)
