"""What every content is for in a probe: projectors, the end of their training, or the gallery.

Contents are split as the classifier's data are: one that the classifier was trained on may train
projectors, and held-out contents are new to both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from style_overlap.corpus import ParallelCorpus
from style_overlap.errors import UsageError
from style_overlap.overlap import content_splits, evenly

Rows = npt.NDArray[np.int64]

FIT, STOP, GALLERY, UNUSED = 0, 1, 2, -1
"""To train projectors, to stop their training, to be found again, for nothing."""


def probe_splits(
    corpus: ParallelCorpus, data_seed: int, *, contents: int | None = None, limit: int | None = None
) -> Rows:
    """``FIT``, ``STOP``, ``GALLERY`` or ``UNUSED`` for every content, shape (n,).

    A content is in the gallery if it is in the classifier's test split.

    Args:
        corpus: contents.
        data_seed: the classifier's.
        contents: thin training and validation to what a corpus of so many contents would give,
            evenly over the canonical order; the gallery stays whole.
        limit: contents in the gallery at most, taken evenly as well.

    Raises:
        UsageError: more contents than the corpus has, or none.
    """
    splits = content_splits(corpus, data_seed).copy()
    if contents is not None:
        if not 0 < contents <= len(corpus):
            raise UsageError(
                f"{contents} contents to train projectors on: corpus {corpus.name!r} has "
                f"{len(corpus)}"
            )
        for split in (FIT, STOP):
            _thin(splits, split, round((splits == split).sum() * contents / len(corpus)))
    if limit is not None:
        _thin(splits, GALLERY, limit)
    return splits


def refuse_few(splits: Rows, groups: Rows) -> None:
    """Refuse splits that no projector could be trained on.

    Args:
        splits: see ``probe_splits``, shape (n,).
        groups: content group of each content, shape (n,).

    Raises:
        UsageError: too few contents to train projectors on.
    """
    for split, what in ((FIT, "train projectors"), (STOP, "stop their training")):
        if (n := len(np.unique(groups[splits == split]))) < 2:
            raise UsageError(
                f"{n} contents to {what}: expected two or more; give a larger "
                "--probe-contents, or a larger corpus"
            )


def _thin(splits: Rows, split: int, count: int) -> None:
    rows = np.flatnonzero(splits == split)
    if count < len(rows):
        splits[rows] = UNUSED
        splits[evenly(rows, count)] = split


def draw(groups: Rows, splits: Rows, seed: int) -> tuple[Rows, Rows]:
    """Rows to train projectors on, and rows to stop their training by: another draw every seed.

    The probe's seed would otherwise only order its batches, and its sd say nothing of how much
    hangs on the contents that it was fitted to. Groups stay whole; the gallery takes no part.
    """
    pool = np.flatnonzero((splits == FIT) | (splits == STOP))
    share = (splits == STOP).sum() / max(len(pool), 1)
    names, code = np.unique(groups[pool], return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(names))
    held_out = np.zeros(len(names), dtype=np.bool_)
    held_out[order[: max(round(share * len(names)), 2)]] = True
    return pool[~held_out[code]], pool[held_out[code]]
