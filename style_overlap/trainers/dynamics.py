"""Training dynamics: when in training does content go, and what is won meanwhile.

A look at a model in training: its accuracy on the test texts of the training overlap and of a full
one, and the content-retrieval probe on seen and unseen versions. One forward pass of a text serves
all of it. A look changes nothing of the training: neither weights nor random states.

The only place where trainers and probe meet, besides the sweep.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from transformers import TrainingArguments

from style_overlap.corpus import ParallelCorpus
from style_overlap.encoder import LOGITS, Feature, TextModel
from style_overlap.errors import UsageError
from style_overlap.overlap import Split, content_splits, sample
from style_overlap.probe import probe_vectors, seen_pairs, unseen_pairs
from style_overlap.probe.precision import full_precision
from style_overlap.probe.run import check_versions, probe_splits
from style_overlap.probe.summary import feature_name, report
from style_overlap.scoring import accuracy
from style_overlap.trainers.data import Drawn
from style_overlap.trainers.looks import Looks, plan_looks
from style_overlap.trainers.settings import TrainSettings


def probed(corpus: ParallelCorpus, styles: tuple[str, ...]) -> dict[str, list[tuple[str, str]]]:
    """Pairs of versions that are probed: of the classes, and of the versions never trained on."""
    sets = {"seen": seen_pairs(styles), "unseen": unseen_pairs(corpus)}
    return {name: pairs for name, pairs in sets.items() if pairs}


def settle(
    settings: TrainSettings, corpus: ParallelCorpus, drawn: Drawn, arguments: TrainingArguments
) -> Looks | None:
    """What looks the settings ask for and can have, None for none; nothing is written yet.

    Raises:
        UsageError: they cannot be had.
    """
    asked = settings.looks()
    if asked is None:
        return None
    pairs = [pair for chosen in probed(corpus, drawn.styles).values() for pair in chosen]
    versions = check_versions(corpus, pairs)
    splits = content_splits(corpus, settings.sampling_seed)
    n = len(drawn.splits["train"])
    looks = plan_looks(asked, arguments, n, splits, len(versions), len(pairs))
    Viewpoint(settings, corpus, drawn, looks)
    return looks


class Viewpoint:
    """The texts that are looked at, the same at every look."""

    def __init__(
        self, settings: TrainSettings, corpus: ParallelCorpus, drawn: Drawn, looks: Looks
    ) -> None:
        """Choose the texts.

        Raises:
            UsageError: too few contents to train projectors on.
        """
        self.sets = probed(corpus, drawn.styles)
        self.versions = check_versions(corpus, [p for pairs in self.sets.values() for p in pairs])
        self.seeds = range(looks.seeds)
        seed = settings.sampling_seed
        splits = probe_splits(corpus, seed, contents=looks.contents, limit=looks.limit)
        rows = np.flatnonzero(splits >= 0)
        self.splits, self.groups = splits[rows], corpus.groups[rows]
        for number, what in enumerate(("train projectors", "stop their training")):
            if (n := len(np.unique(self.groups[self.splits == number]))) < 2:
                raise UsageError(
                    f"{n} contents to {what}: expected two or more; give a larger "
                    "--probe-contents, or a larger corpus"
                )
        columns = {version: corpus.texts(version) for version in self.versions}
        self.texts = [columns[version][row] for version in self.versions for row in rows]
        full = sample(corpus, settings.k, 1, seed, settings.assignment)
        place = np.full(len(corpus), -1)
        place[rows] = np.arange(len(rows))
        self.scored = {
            "matched": self._places(drawn.splits["test"], place, drawn.styles),
            "fully_shared": self._places(full.splits["test"], place, drawn.styles),
        }

    def _places(
        self, test: Split, place: npt.NDArray[np.int64], styles: tuple[str, ...]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where the texts of a test split stand among the texts, and their labels."""
        here = place[test.content] >= 0
        content, style = place[test.content[here]], test.style[here]
        column = np.array([self.versions.index(name) for name in styles])
        return column[style] * len(self.splits) + content, style

    def look(self, model: Any, tokenizer: Any, max_length: int | None) -> dict[str, Any]:
        """What a model scores, and how much content its features hold; in fp32.

        Args:
            model: a classifier, which may be in training, its weights in fp32.
            tokenizer: its tokenizer.
            max_length: tokens that are read of a text.

        Returns:
            ``accuracy`` and ``retrieval`` of a line of ``dynamics.jsonl``.
        """
        device = next(model.parameters()).device
        with _own_forward(model), full_precision(device):
            encoder = TextModel(
                model, tokenizer, name="the model in training", max_length=max_length,
                progress=False,
            )  # fmt: skip
            features = (Feature(), Feature("last", encoder.pooling))
            found = encoder.forward(self.texts, [LOGITS, *features])
        logits = found[LOGITS]
        retrieval = []
        for feature in features:
            parts = np.split(found[feature], len(self.versions))
            vectors = dict(zip(self.versions, parts, strict=True))
            for name, pairs in self.sets.items():
                results = probe_vectors(vectors, self.groups, self.splits, pairs, seeds=self.seeds)
                _, summary = report(
                    results, source="checkpoint", features=feature_name(feature), chosen=name
                )
                retrieval.append({k: v for k, v in summary.items() if k != "interval"})
        return {
            "accuracy": {
                name: accuracy(logits[rows], labels) if len(rows) else None
                for name, (rows, labels) in self.scored.items()
            },
            "retrieval": retrieval,
        }


@contextmanager
def _own_forward(model: Any) -> Iterator[None]:
    """The forward pass of the model's class, not the one in bf16 that Trainer has put before it."""
    wrapped = vars(model).pop("forward", None)
    try:
        yield
    finally:
        if wrapped is not None:
            model.forward = wrapped
