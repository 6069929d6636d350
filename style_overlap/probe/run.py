"""The content-retrieval probe: features of every content in two versions -> what can be found.

All contents of the corpus are fully shared here (alpha = 1), at every k, so that the gallery has
the same size for all checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from style_overlap.bootstrap import Interval, Scores, mean_interval
from style_overlap.corpus import ParallelCorpus
from style_overlap.encoder import Feature, TextModel
from style_overlap.errors import UsageError
from style_overlap.probe.pairs import Pairs
from style_overlap.probe.projectors import Settings, fit
from style_overlap.probe.splits import GALLERY, UNUSED, draw, probe_splits
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
        top1_by_seed: top-1 of every probe seed, both directions.
        best_epochs: epoch that early stopping chose, a seed.
        constant: versions whose features are constant, ``a``, ``b`` or ``ab``.
        scores: credit of every content of the gallery, mean over seeds and directions.
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
    top1_by_seed: tuple[float, ...]
    best_epochs: tuple[int, ...]
    constant: str
    scores: Scores = field(repr=False, compare=False)

    def record(self) -> dict[str, Any]:
        """As it is written to results: all but the scores of single contents."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "scores"}
        return {**kept, "top1": asdict(self.top1), "interval": asdict(self.interval)}


def probe(
    encoder: TextModel,
    corpus: ParallelCorpus,
    pairs: Sequence[tuple[str, str]],
    features: Iterable[Feature] = (Feature(),),
    *,
    data_seed: int = 0,
    seeds: Sequence[int] = SEEDS,
    settings: Settings | None = None,
    contents: int | None = None,
    limit: int | None = None,
) -> dict[Feature, list[PairResult]]:
    """Probe an encoder; every text of every version is passed through it once.

    Args:
        encoder: in fp32: rounding to bf16 is about as large as what content leaves in h.
        corpus: contents and their versions.
        pairs: pairs of versions, say ``seen_pairs(encoder.labels)``.
        features: which vectors to probe, for example ``Feature()`` for h and
            ``Feature("last", "cls")``.
        data_seed: the classifier's, so that no projector is tested on what the classifier saw.
        seeds: of the probe.
        settings: of the projectors.
        contents: train projectors on as much as a corpus of so many contents would give.
        limit: held-out contents at most; a smaller gallery is an easier one.

    Raises:
        UsageError: a version that the corpus does not have, or features that the encoder has not.
    """
    wants = list(features)
    versions = check_versions(corpus, pairs)
    splits = probe_splits(corpus, data_seed, contents=contents, limit=limit)
    rows = np.flatnonzero(splits != UNUSED)
    columns = {version: corpus.texts(version) for version in versions}
    found = encoder.forward([columns[v][row] for v in versions for row in rows], wants)
    return {
        want: probe_vectors(
            dict(zip(versions, np.split(found[want], len(versions)), strict=True)),
            corpus.groups[rows],
            splits[rows],
            pairs,
            seeds=seeds,
            settings=settings,
            # Whitening computes in fp64, which Apple's GPUs lack.
            device=None if encoder.device.type == "mps" else encoder.device,
        )
        for want in wants
    }


def probe_vectors(
    vectors: Mapping[str, Array],
    groups: npt.NDArray[np.int64],
    splits: npt.NDArray[np.int64],
    pairs: Sequence[tuple[str, str]],
    *,
    seeds: Sequence[int] = SEEDS,
    settings: Settings | None = None,
    device: torch.device | None = None,
) -> list[PairResult]:
    """Probe vectors of any origin.

    Args:
        vectors: for each version, a vector for every content of the corpus, shape (n, d).
        groups: content group of each content, shape (n,).
        splits: see ``probe_splits``, shape (n,).
        pairs: pairs of versions.
        seeds: of the probe. Each draws its own contents for early stopping from all that are not
            in the gallery.
        settings: of the projectors.
        device: to fit and to search on; by default where the vectors are.
    """
    test = np.flatnonzero(splits == GALLERY)
    drawn = [(seed, *draw(groups, splits, seed)) for seed in seeds]

    def rows(a: str, b: str, chosen: npt.NDArray[np.int64]) -> Pairs:
        left, right = (torch.as_tensor(vectors[v][chosen], device=device) for v in (a, b))
        return Pairs.of(left, right, groups[chosen])

    results = []
    for a, b in pairs:
        fitted = [
            fit(rows(a, b, train), rows(a, b, validation), seed=seed, settings=settings)
            for seed, train, validation in drawn
        ]
        held_out = rows(a, b, test)
        found = [r for p in fitted if (r := p.retrieve(held_out)) is not None]
        figures = [r.summary() for r in found]
        mean = {key: float(np.mean([f[key] for f in figures])) for key in (figures or [{}])[0]}
        credit = np.mean([r.credit for r in found], axis=0) if found else np.zeros(0)
        scores = Scores(groups[test] if found else groups[:0], credit)
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
                interval=mean_interval(scores),
                top1_by_seed=tuple(f["top1"] for f in figures),
                best_epochs=tuple(p.best_epoch for p in fitted),
                constant=fitted[0].constant if fitted else "",
                scores=scores,
            )
        )
    return results


def seen_pairs(labels: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs among a classifier's classes, in label order."""
    return [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]]


def unseen_pairs(corpus: ParallelCorpus) -> list[tuple[str, str]]:
    """All pairs among the versions that no classifier is trained on."""
    return seen_pairs(corpus.reserved)


def check_versions(corpus: ParallelCorpus, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """The versions of some pairs, each once.

    Raises:
        UsageError: a version that the corpus does not have.
    """
    versions = list(dict.fromkeys(version for pair in pairs for version in pair))
    known = (*corpus.styles, *corpus.reserved)
    for version in versions:
        if version not in known:
            raise UsageError(
                f"corpus {corpus.name!r} has no version {version!r}: choose from {', '.join(known)}"
            )
    return versions
