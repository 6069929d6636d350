"""The content-retrieval probe: features of every content in two versions -> what can be found.

All contents of the corpus are fully shared here (alpha = 1), at every k, so that the gallery has
the same size for all checkpoints. They are split as the classifier's data are: a content that the
classifier was trained on may train projectors, and held-out contents are new to both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from style_overlap.bootstrap import Interval, Scores, mean_interval
from style_overlap.corpus import ParallelCorpus
from style_overlap.encoder import Feature, TextModel
from style_overlap.errors import UsageError
from style_overlap.overlap import content_splits
from style_overlap.probe.pairs import Pairs
from style_overlap.probe.projectors import Settings, fit
from style_overlap.stats import MeanSd, mean_sd

SEEDS = (0, 1, 2)

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PairResult:
    """What was found between two versions.

    Attributes:
        a: a version.
        b: another.
        n: contents in the gallery; chance is about 1 / n.
        n_groups: distinct contents among them.
        chance: top-1 of features that say nothing.
        top1: top-1 in both directions averaged, mean and sd over probe seeds; None, as all that
            follows, if the gallery has fewer than two contents.
        top1_ab: from a to b, mean over seeds.
        top1_ba: from b to a.
        recall_at_5: both directions.
        median_rank: both directions.
        interval: bootstrap interval of top-1 over content groups.
        best_epochs: epoch that early stopping chose, a seed.
        constant: versions whose features are constant, ``a``, ``b`` or ``ab``.
    """

    a: str
    b: str
    n: int
    n_groups: int
    chance: float | None
    top1: MeanSd
    top1_ab: float | None
    top1_ba: float | None
    recall_at_5: float | None
    median_rank: float | None
    interval: Interval
    best_epochs: tuple[int, ...]
    constant: str

    def record(self) -> dict[str, Any]:
        """As it is written to results."""
        return asdict(self)


def probe(
    encoder: TextModel,
    corpus: ParallelCorpus,
    pairs: Sequence[tuple[str, str]],
    features: Iterable[Feature] = (Feature(),),
    *,
    data_seed: int = 0,
    seeds: Sequence[int] = SEEDS,
    settings: Settings | None = None,
    limit: int | None = None,
) -> dict[Feature, list[PairResult]]:
    """Probe an encoder; every text of every version is passed through it once.

    Args:
        encoder: in fp32: rounding to bf16 is about as large as what content leaves in h.
        corpus: contents and their versions.
        pairs: pairs of versions, say ``seen_pairs(encoder, corpus)``.
        features: which vectors to probe, for example ``Feature()`` for h and
            ``Feature("last", "cls")``.
        data_seed: the classifier's, so that no projector is tested on what the classifier saw.
        seeds: of the probe.
        settings: of the projectors.
        limit: held-out contents at most; a smaller gallery is an easier one.

    Raises:
        UsageError: a version that the corpus does not have, or features that the encoder has not.
    """
    wants = list(features)
    versions = _versions(corpus, pairs)
    texts = {version: corpus.texts(version) for version in versions}
    found = encoder.forward([text for version in versions for text in texts[version]], wants)
    results = {}
    for want in wants:
        vectors = dict(zip(versions, np.split(found[want], len(versions)), strict=True))
        results[want] = probe_vectors(
            vectors,
            corpus.groups,
            content_splits(corpus, data_seed),
            pairs,
            seeds=seeds,
            settings=settings,
            limit=limit,
        )
    return results


def probe_vectors(
    vectors: Mapping[str, Array],
    groups: npt.NDArray[np.int64],
    splits: npt.NDArray[np.int64],
    pairs: Sequence[tuple[str, str]],
    *,
    seeds: Sequence[int] = SEEDS,
    settings: Settings | None = None,
    limit: int | None = None,
) -> list[PairResult]:
    """Probe vectors of any origin.

    Args:
        vectors: for each version, a vector for every content of the corpus, shape (n, d).
        groups: content group of each content, shape (n,).
        splits: 0 for contents that train projectors, 1 for early stopping, 2 for the gallery.
        pairs: pairs of versions.
        seeds: of the probe.
        settings: of the projectors.
        limit: contents in the gallery at most.
    """
    train, validation, test = (np.flatnonzero(splits == split) for split in range(3))
    test = test[:limit]

    def rows(a: str, b: str, chosen: npt.NDArray[np.int64]) -> Pairs:
        return Pairs.of(vectors[a][chosen], vectors[b][chosen], groups[chosen])

    results = []
    for a, b in pairs:
        fitted = [
            fit(rows(a, b, train), rows(a, b, validation), seed=seed, settings=settings)
            for seed in seeds
        ]
        held_out = rows(a, b, test)
        found = [r for p in fitted if (r := p.retrieve(held_out)) is not None]
        figures = [r.summary() for r in found]
        mean = {key: float(np.mean([f[key] for f in figures])) for key in (figures or [{}])[0]}
        credit = np.mean([r.credit for r in found], axis=0) if found else np.zeros(0)
        results.append(
            PairResult(
                a=a,
                b=b,
                n=len(held_out),
                n_groups=held_out.n_groups,
                chance=mean.get("chance"),
                top1=mean_sd([f["top1"] for f in figures]),
                top1_ab=mean.get("top1_ab"),
                top1_ba=mean.get("top1_ba"),
                recall_at_5=mean.get("recall_at_5"),
                median_rank=mean.get("median_rank"),
                interval=mean_interval(Scores(groups[test] if found else groups[:0], credit)),
                best_epochs=tuple(p.best_epoch for p in fitted),
                constant=fitted[0].constant if fitted else "",
            )
        )
    return results


def seen_pairs(labels: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs among a classifier's classes, in label order."""
    return [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]]


def unseen_pairs(corpus: ParallelCorpus) -> list[tuple[str, str]]:
    """All pairs among the versions that no classifier is trained on."""
    return seen_pairs(corpus.reserved)


def _versions(corpus: ParallelCorpus, pairs: Sequence[tuple[str, str]]) -> list[str]:
    versions = list(dict.fromkeys(version for pair in pairs for version in pair))
    known = (*corpus.styles, *corpus.reserved)
    for version in versions:
        if version not in known:
            raise UsageError(
                f"corpus {corpus.name!r} has no version {version!r}: choose from {', '.join(known)}"
            )
    return versions
