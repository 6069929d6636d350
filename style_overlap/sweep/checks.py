"""What is refused before a sweep begins, so that no cell fails for it."""

from __future__ import annotations

import os
from pathlib import Path

from style_overlap.checkpoints import is_classifier
from style_overlap.errors import UsageError
from style_overlap.model_folders import model_fingerprint, resolve_model, weight_files
from style_overlap.names import is_baseline
from style_overlap.results import digest
from style_overlap.sweep.grid import settings_of
from style_overlap.sweep.jobs import Job, done_record
from style_overlap.sweep.measure import corpus_of
from style_overlap.sweep.plan import Plan, plan_of
from style_overlap.trainers.arguments import build
from style_overlap.trainers.data import draw_splits


def check_here(plan: Plan) -> None:
    """Refuse settings that no encoder's cell could be trained with on this machine.

    Raises:
        UsageError: a combination of fields or a number format that cannot be used here.
    """
    for cell in plan.cells:
        if not is_baseline(cell.config["model"]):
            build(settings_of(cell, Path(cell.folder)))  # nothing is written
            return


def check_data(plan: Plan, path: Path) -> None:
    """Refuse a plan whose texts are others now: its cells are named by those it was made for.

    Args:
        plan: as it was read.
        path: where it was read from.

    Raises:
        UsageError: a corpus that is not there, or has changed.
    """
    known: dict[str, str] = {}
    for cell in plan.cells:
        settings = settings_of(cell, Path(cell.folder))
        key = digest({**cell.config, "model": None, "arguments": None, "probe": None})
        if key not in known:
            corpus = corpus_of(settings.corpus, settings.chunk_verses)
            known[key] = draw_splits(settings, corpus)[0].fingerprint
        if known[key] != cell.data:
            raise UsageError(
                f"{path}: the texts of {settings.corpus} have changed since this was planned: plan "
                "again with style-overlap sweep ... --save-plan FILE, into another folder of runs"
            )


def check_encoders(plan: Plan) -> None:
    """Refuse encoders that cannot be had, before any cell fails for it.

    Raises:
        UsageError: no such encoder, no network for one of the hub, or a folder without weights.
    """
    for model in dict.fromkeys(str(cell.config["model"]) for cell in plan.cells):
        if not is_baseline(model):
            is_classifier(model)  # reads its configuration
            folder = Path(resolve_model(model))
            if folder.is_dir():
                weight_files(folder)


def refuse_launcher() -> None:
    """A launcher's processes would all run the same cells.

    Raises:
        UsageError: started by ``torchrun`` or ``accelerate launch``.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "sweep shares out whole cells by itself: start it once, without torchrun or "
            "accelerate launch, and give --workers"
        )


def check_weights(runs: Path, plan: Plan) -> None:
    """Refuse an encoder whose folder holds other weights than finished cells were trained from.

    A cell is named by its encoder's folder, and one matrix must not mix two encoders.

    Args:
        runs: folder of runs.
        plan: what is to be done there.

    Raises:
        UsageError: an encoder that has been replaced.
    """
    there = plan_of(runs)
    if there is None:
        return
    for model in dict.fromkeys(str(cell.config["model"]) for cell in plan.cells):
        found = [done_record(Job(c, runs, ())) for c in there.cells if c.config["model"] == model]
        bases = {record["training"].get("base_model_fingerprint") for record in found if record}
        folder = Path(resolve_model(model)) if bases - {None} else Path()
        if bases - {None} and folder.is_dir() and model_fingerprint(folder) not in bases:
            raise UsageError(
                f"{model} holds other weights than those that the finished cells in {runs} were "
                "trained from: give another --output, or the encoder another folder"
            )
