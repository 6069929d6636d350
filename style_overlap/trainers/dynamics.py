"""Training dynamics: when in training does content go, and what is won meanwhile.

A look at a model in training: its accuracy on the test texts of the training overlap and of a full
one, and the content-retrieval probe on seen and unseen versions. One forward pass of a text serves
all of it. A look changes nothing of the training: neither weights nor random states.

The only place where trainers and probe meet, besides the sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from transformers import TrainingArguments

from style_overlap.corpus import ParallelCorpus
from style_overlap.encoder import LOGITS, Feature, TextModel
from style_overlap.overlap import Split, content_splits, sample
from style_overlap.passes import Array
from style_overlap.probe import seen_pairs, unseen_pairs
from style_overlap.probe.gallery import Found, Gallery
from style_overlap.probe.precision import full_precision
from style_overlap.probe.run import check_versions
from style_overlap.probe.splits import refuse_few
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
    """The texts that are looked at, the same at every look.

    Attributes:
        texts: all that pass through the model in a look.
    """

    def __init__(
        self, settings: TrainSettings, corpus: ParallelCorpus, drawn: Drawn, looks: Looks
    ) -> None:
        """Choose the texts.

        Raises:
            UsageError: too few contents to train projectors on.
        """
        self.gallery = Gallery(
            corpus,
            probed(corpus, drawn.styles),
            data_seed=settings.sampling_seed,
            contents=looks.contents,
            limit=looks.limit,
            seeds=range(looks.seeds),
        )
        refuse_few(self.gallery.splits, corpus.groups)
        self.texts = self.gallery.texts
        self.scored = scored_splits(corpus, settings.config())

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
            return look(encoder, self.gallery, features, self.scored)[1]


def scored_splits(corpus: ParallelCorpus, config: Mapping[str, Any]) -> dict[str, Split]:
    """The test splits that a look scores: of the training overlap, and of a full one.

    Args:
        corpus: that was trained on.
        config: see ``TrainSettings.config``.
    """
    k, seed, assignment = (config[name] for name in ("k", "data_seed", "assignment"))
    overlaps = {"matched": config["alpha"], "fully_shared": 1}
    return {
        name: sample(corpus, k, alpha, seed, assignment).splits["test"]
        for name, alpha in overlaps.items()
    }


def look(
    encoder: TextModel,
    gallery: Gallery,
    features: Sequence[Feature],
    scored: Mapping[str, Split],
) -> tuple[Found, dict[str, Any]]:
    """Probe a classifier and score it, from one forward pass of every text.

    Args:
        encoder: the classifier, its classes the first styles of the gallery's corpus.
        gallery: the texts.
        features: to probe.
        scored: test splits; their texts are scored as far as they are in the gallery.

    Returns:
        All that the probe found; and of a line of ``dynamics.jsonl`` ``accuracy``, None where the
        gallery has no such texts or lacks a class, and ``retrieval``.
    """
    logits = encoder.forward(gallery.texts, [LOGITS, *features])[LOGITS]
    found = gallery.encoder("checkpoint", encoder, features)
    return found, {
        "accuracy": {
            name: _accuracy(logits, encoder.labels, gallery, test) for name, test in scored.items()
        },
        "retrieval": [{k: v for k, v in row.items() if k != "interval"} for row in found[1]],
    }


def _accuracy(logits: Array, labels: Sequence[str], gallery: Gallery, test: Split) -> float | None:
    place = np.full(len(gallery.splits), -1)
    place[gallery.rows] = np.arange(len(gallery.rows))
    here = place[test.content] >= 0
    if not here.any() or not set(labels) <= set(gallery.versions):
        return None
    content, style = place[test.content[here]], test.style[here]
    column = np.array([gallery.versions.index(name) for name in labels])
    return accuracy(logits[column[style] * len(gallery.rows) + content], style)


@contextmanager
def _own_forward(model: Any) -> Iterator[None]:
    """The forward pass of the model's class, not the one in bf16 that Trainer has put before it."""
    wrapped = vars(model).pop("forward", None)
    try:
        yield
    finally:
        if wrapped is not None:
            model.forward = wrapped
