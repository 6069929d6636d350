"""What a retrieval task is about: pairs of versions, splits, and the contents of the gallery."""

from __future__ import annotations

from dataclasses import dataclass

import datasets
import numpy as np

from style_overlap.corpus import ParallelCorpus
from style_overlap.errors import UsageError
from style_overlap.probe.run import seen_pairs, unseen_pairs
from style_overlap.probe.splits import FIT, GALLERY, STOP, UNUSED, Rows, probe_splits
from style_overlap.tasks.style_overlap import docs


@dataclass(frozen=True)
class RetrievalOptions(docs.DataOptions):
    """What a user may override with ``--metadata``.

    Attributes:
        probe_contents: train projectors on as much as a corpus of so many contents would give,
            thinned evenly; None takes all. The gallery stays whole.
        probe_seeds: number of probe seeds: 0, 1, and so on.
    """

    probe_contents: int | None = None
    probe_seeds: int = 3

    def __post_init__(self) -> None:
        """Refuse no seeds at all."""
        if self.probe_seeds < 1:
            raise UsageError(f"--metadata probe_seeds is {self.probe_seeds}: expected at least 1")


@dataclass(frozen=True, eq=False)
class Gallery:
    """Contents to be found again, and contents that train the projectors.

    Attributes:
        corpus: contents and their versions.
        chosen: ``seen`` or ``unseen``.
        pairs: pairs of versions.
        styles: classes that a checkpoint has to have; none where the versions are unseen.
        splits: what each content is for, see ``probe.splits.probe_splits``, shape (n,).
    """

    corpus: ParallelCorpus
    chosen: str
    pairs: list[tuple[str, str]]
    styles: list[str]
    splits: Rows

    @property
    def versions(self) -> list[str]:
        """The versions of all pairs."""
        return list(dict.fromkeys(version for pair in self.pairs for version in pair))

    @property
    def fitting(self) -> Rows:
        """Contents that train projectors, and that stop their training."""
        return np.flatnonzero(np.isin(self.splits, (FIT, STOP)))

    def limited_to(self, rows: list[int]) -> Rows:
        """``splits`` with these contents in the gallery, and no others."""
        splits = np.where(self.splits == GALLERY, UNUSED, self.splits)
        splits[rows] = GALLERY
        return splits

    def documents(self, rows: Rows | None = None) -> datasets.Dataset:
        """Documents of some contents, by default of the gallery.

        Columns: ``content_id``, ``row`` (in the corpus), ``versions`` and ``styles``.
        """
        chosen = np.flatnonzero(self.splits == GALLERY) if rows is None else rows
        identifiers = self.corpus.content_ids
        return datasets.Dataset.from_dict(
            {
                "content_id": [identifiers[row] for row in chosen.tolist()],
                "row": chosen.tolist(),
                "versions": [self.versions] * len(chosen),
                "styles": [self.styles] * len(chosen),
            }
        )


def prepare(options: RetrievalOptions, chosen: str, k: int | None = None) -> Gallery:
    """The gallery of a task.

    Args:
        options: the user's.
        chosen: ``seen`` for all pairs of the first k styles, ``unseen`` for the reserved versions.
        k: number of styles.

    Raises:
        UsageError: the corpus has too few styles, reserved versions or contents.
    """
    corpus = docs.corpus_of(options)
    styles = list(corpus.styles[:k]) if chosen == "seen" else []
    if chosen == "seen" and (k is None or not 2 <= k <= len(corpus.styles)):
        raise UsageError(
            f"retrieval among the first {k} styles: expected 2 to {len(corpus.styles)}, as corpus "
            f"{corpus.name!r} has {', '.join(corpus.styles)}"
        )
    pairs = seen_pairs(styles) if chosen == "seen" else unseen_pairs(corpus)
    if not pairs:
        raise UsageError(
            f"corpus {corpus.name!r} reserves {len(corpus.reserved)} versions, an unseen pair "
            "needs two: name them in the corpus, for example reserved=C,D"
        )
    splits = probe_splits(corpus, options.data_seed, contents=options.probe_contents)
    gallery = Gallery(corpus, chosen, pairs, styles, splits)
    if not (splits == GALLERY).any() or not len(gallery.fitting):
        raise UsageError(
            f"corpus {corpus.name!r} has {len(corpus)} contents, too few to train projectors on "
            "some and to hold others out"
        )
    return gallery
