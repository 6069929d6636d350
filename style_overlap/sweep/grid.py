"""Encoders x seeds x k x overlaps -> the cells of a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from style_overlap.corpus import ParallelCorpus
from style_overlap.errors import UsageError
from style_overlap.model_folders import resolve_model
from style_overlap.names import ALPHAS, AlphaLike, alpha_text, as_alpha, is_baseline
from style_overlap.probe.splits import probe_splits, refuse_few
from style_overlap.sweep import baseline
from style_overlap.sweep.plan import Cell, Plan
from style_overlap.trainers.arguments import choose
from style_overlap.trainers.data import draw_splits
from style_overlap.trainers.settings import TrainSettings


@dataclass(frozen=True)
class Probes:
    """What is asked of the features of every cell.

    Attributes:
        retrieval: run the retrieval tasks on the finished classifier.
        contents: train projectors on so many contents; None for all.
        seeds: how many fits of every pair of projectors.
        every: look at the classifier while it is trained, every so many epochs; None does not.

    Raises:
        UsageError: a number below 1.
    """

    retrieval: bool = True
    contents: int | None = None
    seeds: int = 3
    every: float | None = None

    def __post_init__(self) -> None:
        """Refuse what could only fail later."""
        for name, value in (("--probe-contents", self.contents), ("--probe-seeds", self.seeds)):
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}: expected 1 or more")

    def config(self) -> dict[str, Any]:
        """As a cell's configuration has it."""
        return asdict(self)


def grid(
    corpus: ParallelCorpus,
    models: Sequence[str],
    ks: Sequence[int],
    alphas: Sequence[AlphaLike],
    seeds: Sequence[int],
    recipe: TrainSettings,
    probes: Probes,
) -> Plan:
    """All cells of a grid, one encoder and seed after the other: a sweep that is cut short has
    whole matrices of its first seeds.

    Args:
        corpus: the corpus that ``recipe`` names.
        models: encoders, or ``baseline:tfidf``.
        ks: numbers of styles.
        alphas: overlaps to train at. Every cell is scored at these and at the registered six.
        seeds: of data and training alike.
        recipe: all else of a training; its model, k, alpha, output and seeds do not count.
        probes: what is asked of the features.

    Raises:
        UsageError: a value that cannot be used, or a corpus that is too small for a cell.
    """
    for name, values in (
        ("--model", models),
        ("--k", ks),
        ("--alphas", alphas),
        ("--seeds", seeds),
    ):
        if not values:
            raise UsageError(f"{name} is empty: give one value or more")
    levels = sorted({as_alpha(alpha) for alpha in alphas})
    # How many contents a look takes is settled when a training begins, unless it is said here.
    probed = probes.retrieval or (probes.every is not None and probes.contents is not None)
    probed = probed and not all(map(is_baseline, models))
    data = {}
    for seed in dict.fromkeys(seeds):
        for k in dict.fromkeys(ks):
            for alpha in levels:
                settings = replace(recipe, k=k, alpha=alpha, seed=seed, data_seed=seed)
                _looked_at(settings, probes.config()).check()
                drawn, splits = draw_splits(settings, corpus)
                data[seed, k, alpha] = settings, drawn.fingerprint, len(splits["train"])
        if probed:
            refuse_few(probe_splits(corpus, seed, contents=probes.contents), corpus.groups)
    cells = []
    for model in dict.fromkeys(map(_one_spelling, models)):
        for settings, fingerprint, texts in data.values():
            config = _config(replace(settings, model=model), probes)
            cells.append(Cell.of(config, fingerprint, texts))
    evaluated = sorted({*ALPHAS, *levels})
    return Plan(tuple(cells), tuple(map(alpha_text, evaluated)))


def settings_of(cell: Cell, output: Path, *, keep_checkpoints: bool = False) -> TrainSettings:
    """The training of a cell."""
    known = {field.name for field in fields(TrainSettings)}
    asked = {name: value for name, value in cell.config.items() if name in known}
    settings = TrainSettings(**asked, output=output, keep_checkpoints=keep_checkpoints)
    return _looked_at(settings, cell.config["probe"])


def _one_spelling(model: str) -> str:
    """``enc/`` and ``./enc`` are one encoder, and so one cell."""
    if is_baseline(model):
        return model
    resolve_model(model)
    return os.path.normpath(model) if Path(model).is_dir() else model


def _looked_at(settings: TrainSettings, probe: Mapping[str, Any] | None) -> TrainSettings:
    if not probe or probe["every"] is None:
        return settings
    return replace(settings, probe_every=probe["every"], probe_contents=probe["contents"])


def _config(settings: TrainSettings, probes: Probes) -> dict[str, Any]:
    if is_baseline(settings.model):
        return baseline.config(settings)
    return {**settings.config(), "arguments": choose(settings), "probe": probes.config()}
