"""The texts of a fine-tuning: drawn, thinned, tokenised once, padded batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset, Sampler

from style_overlap.batching import Layout, Tokens, pad, tokenise
from style_overlap.corpus import ParallelCorpus
from style_overlap.entropy import measure
from style_overlap.errors import UsageError
from style_overlap.names import alpha_text
from style_overlap.overlap import Sample, Split, evenly, first_gap, sample
from style_overlap.results import digest
from style_overlap.trainers.settings import TrainSettings

_POOL = 50
"""Batches whose texts are sorted by length together; fewer leave more padding."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A sample and what is used of it.

    Attributes:
        sample: the whole sample, as the registered task has it.
        styles: the k classes in label order.
        splits: what is used: ``train`` may be thinned, the others are whole.
        texts: texts of every split, in the split's order.
        fingerprint: SHA-256 (hex) of the sample and of how it was thinned.
        corpus_fingerprint: that of the corpus.
    """

    sample: Sample
    styles: tuple[str, ...]
    splits: dict[str, Split]
    texts: dict[str, list[str]]
    fingerprint: str
    corpus_fingerprint: str

    def record(self) -> dict[str, Any]:
        """The ``data`` of a checkpoint's record."""
        train = self.splits["train"]
        realised = {**self.sample.realised, "train": measure(train.content, train.style)}
        return {
            "fingerprint": self.fingerprint,
            "sample_fingerprint": self.sample.fingerprint,
            "corpus_fingerprint": self.corpus_fingerprint,
            "styles": list(self.styles),
            "n": self.sample.n,
            "n_shared": self.sample.n_shared,
            "realised_alpha": realised,
            "sizes": {name: len(split) for name, split in self.splits.items()},
        }


def draw_splits(settings: TrainSettings, corpus: ParallelCorpus) -> tuple[Sample, dict[str, Split]]:
    """Sample the corpus as the task of this k and alpha does, and thin the training split.

    Returns:
        The whole sample, and what is used of it.

    Raises:
        UsageError: the corpus cannot be sampled so, or a split lacks one of the styles.
    """
    drawn = sample(corpus, settings.k, settings.alpha, settings.sampling_seed, settings.assignment)
    splits = dict(drawn.splits)
    if settings.contents is not None:
        if settings.contents > len(corpus):
            raise UsageError(
                f"--contents is {settings.contents}: corpus {corpus.name!r} has {len(corpus)}"
            )
        splits["train"] = thin(splits["train"], settings.k, settings.contents / len(corpus))
    if gap := first_gap(splits, settings.k):
        raise UsageError(
            f"the {gap[0]} split has no text of {corpus.styles[gap[1]]}: k={settings.k} at "
            f"alpha={alpha_text(settings.alpha)} needs more contents than the "
            f"{settings.contents or len(corpus)} of corpus {corpus.name!r}"
        )
    return drawn, splits


def draw(settings: TrainSettings, corpus: ParallelCorpus) -> Drawn:
    """What is drawn and thinned, with its texts.

    Raises:
        UsageError: as for ``draw_splits``.
    """
    drawn, splits = draw_splits(settings, corpus)
    styles = corpus.styles[: settings.k]
    columns = [corpus.texts(style) for style in styles]
    texts = {
        name: [
            columns[style][row]
            for row, style in zip(split.content.tolist(), split.style.tolist(), strict=True)
        ]
        for name, split in splits.items()
    }
    fingerprint = digest({"sample": drawn.fingerprint, "contents": settings.contents})
    return Drawn(drawn, styles, splits, texts, fingerprint, corpus.fingerprint)


def thin(split: Split, k: int, share: float) -> Split:
    """The same share of every pool, taken evenly over the canonical order.

    Regions stay contiguous and the overlap stays what it is; every style and every overlap gets
    the same number of texts, to within one.
    """
    shared = np.unique(split.content[split.shared])
    keep = np.zeros(len(split), dtype=np.bool_)
    for style in range(k):
        mine = split.style == style
        own = np.sort(split.content[mine & ~split.shared])
        total = round(share * int(mine.sum()))
        n_shared = round(share * len(shared))
        kept = np.concatenate([evenly(shared, n_shared), evenly(own, total - n_shared)])
        keep |= mine & np.isin(split.content, kept)
    return Split(split.content[keep], split.style[keep], split.shared[keep])


class TokenisedSplit(Dataset["tuple[TokenisedSplit, int]"]):
    """The texts of one split in tokens; an item is its row, which the collator looks up.

    Attributes:
        tokens: token ids and lengths.
        labels: index into the styles, shape (n,).
    """

    def __init__(
        self, tokenizer: Any, texts: Sequence[str], labels: npt.NDArray[np.int64], layout: Layout
    ) -> None:
        """Tokenise the texts.

        Raises:
            UsageError: a text without any token.
        """
        self.tokens: Tokens = tokenise(tokenizer, texts, layout)
        self.labels = labels
        self.layout = layout

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[TokenisedSplit, int]:
        """The split itself and the row: one collator serves all splits."""
        return self, row

    @property
    def truncated(self) -> npt.NDArray[np.bool_]:
        """Which texts are read in part only, shape (n,)."""
        return self.tokens.lengths > self.tokens.kept


def collate(items: Sequence[tuple[TokenisedSplit, int]]) -> dict[str, torch.Tensor]:
    """A padded batch of the inputs that the model accepts, and its labels."""
    split, rows = items[0][0], [row for _, row in items]
    inputs, _mask = pad(split.tokens, rows, split.layout, torch.device("cpu"))
    return {**inputs, "labels": torch.from_numpy(split.labels[rows])}


class LengthGroupedOrder(Sampler[int]):
    """Random batches of texts of like length, another order every epoch.

    The order of an epoch depends on the seed and the epoch alone. Trainer's own sampler draws it
    from the global generator: resumed in the middle of an epoch it would deal other batches.
    """

    def __init__(self, lengths: npt.NDArray[np.int64], batch: int, seed: int, trainer: Any) -> None:
        """Order texts of these lengths, shape (n,).

        Args:
            trainer: its ``state.epoch`` says which epoch begins.
        """
        self.lengths, self.batch, self.seed, self.trainer = lengths, batch, seed, trainer

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        """Rows in the order of the epoch that begins, or that goes on."""
        yield from self.rows(int(self.trainer.state.epoch or 0))

    def rows(self, epoch: int) -> list[int]:
        """Rows in the order of an epoch; only its last batch may be smaller."""
        generator = np.random.default_rng([self.seed, epoch])
        rows = generator.permutation(len(self.lengths))
        pool = _POOL * self.batch
        pools = [rows[start : start + pool] for start in range(0, len(rows), pool)]
        rows = np.concatenate([one[np.argsort(-self.lengths[one], kind="stable")] for one in pools])
        whole = len(rows) // self.batch
        batches = rows[: whole * self.batch].reshape(whole, self.batch)
        batches = batches[generator.permutation(whole)]
        return [*batches.ravel().tolist(), *rows[whole * self.batch :].tolist()]


def count_truncated(
    drawn: Drawn, tokenised: dict[str, TokenisedSplit]
) -> dict[str, dict[str, int]]:
    """Of every style, how many texts of all splits are read in part only."""
    cut = np.concatenate([one.truncated for one in tokenised.values()])
    labels = np.concatenate([one.labels for one in tokenised.values()])
    return {
        style: {"count": int(cut[labels == label].sum()), "of": int((labels == label).sum())}
        for label, style in enumerate(drawn.styles)
    }
