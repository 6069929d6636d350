"""What is retrieved, and by which projectors: the same for a checkpoint and its controls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from style_overlap.corpus import ParallelCorpus
from style_overlap.encoder import Feature, TextModel
from style_overlap.probe.controls import bag_of_words
from style_overlap.probe.projectors import Settings
from style_overlap.probe.run import SEEDS, PairResult, probe, probe_vectors
from style_overlap.probe.splits import FIT, UNUSED, probe_splits
from style_overlap.probe.summary import feature_name, report

Pair = tuple[str, str]

Found = tuple[list[dict[str, Any]], list[dict[str, Any]]]
"""Rows, one a pair, and their summaries, as records hold them."""


class Gallery:
    """Contents, pairs of versions and splits.

    Attributes:
        versions: all versions of the pairs, each once.
        rows: contents that take part.
        identity: what tells this gallery from others of the same options.
    """

    def __init__(
        self,
        corpus: ParallelCorpus,
        sets: Mapping[str, list[Pair]],
        *,
        data_seed: int,
        contents: int | None = None,
        limit: int | None = None,
        seeds: Sequence[int] = SEEDS,
        settings: Settings | None = None,
    ) -> None:
        """Choose contents.

        Args:
            corpus: contents and their versions.
            sets: pairs of versions, by the name of the set they are summed up in.
            data_seed: the classifier's.
            contents: train projectors on as much as a corpus of so many contents would give.
            limit: contents in the gallery at most.
            seeds: of the probe.
            settings: of the projectors.

        Raises:
            UsageError: more contents than the corpus has, or none.
        """
        self.corpus, self.sets = corpus, sets
        self.pairs = [pair for pairs in sets.values() for pair in pairs]
        self.versions = list(dict.fromkeys(version for pair in self.pairs for version in pair))
        self.splits = probe_splits(corpus, data_seed, contents=contents, limit=limit)
        self.rows = np.flatnonzero(self.splits != UNUSED)
        self.identity = [corpus.fingerprint, sets, data_seed]
        self._size: dict[str, Any] = {
            "data_seed": data_seed,
            "contents": contents,
            "limit": limit,
        }
        self._fit: dict[str, Any] = {"seeds": seeds, "settings": settings}

    @cached_property
    def texts(self) -> list[str]:
        """All texts that take part: those of the first version, in the order of rows, and so on."""
        columns = {version: self.corpus.texts(version) for version in self.versions}
        return [columns[version][row] for version in self.versions for row in self.rows]

    def encoder(self, source: str, encoder: TextModel, wants: Sequence[Feature]) -> Found:
        """Probe features of an encoder; ``source`` says whose they are."""
        found = probe(encoder, self.corpus, self.pairs, wants, **self._size, **self._fit)
        return self._report(source, ((feature_name(want), got) for want, got in found.items()))

    def bag_of_words(self) -> Found:
        """Probe TF-IDF vectors, fitted to the contents that projectors are trained on."""
        vectors = bag_of_words(self.corpus, self.versions, np.flatnonzero(self.splits == FIT))
        groups, splits = self.corpus.groups, self.splits
        found = probe_vectors(vectors, groups, splits, self.pairs, **self._fit)
        return self._report("bag of words", [("tf-idf", found)])

    def _report(self, source: str, found: Iterable[tuple[str, list[PairResult]]]) -> Found:
        rows: list[dict[str, Any]] = []
        summary: list[dict[str, Any]] = []
        for features, results in found:
            start = 0
            for name, pairs in self.sets.items():
                some = results[start : start + len(pairs)]
                start += len(pairs)
                listed, told = report(some, source=source, features=features, chosen=name)
                rows += listed
                summary.append(told)
        return rows, summary
