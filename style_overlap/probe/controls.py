"""Controls of the probe: what would be found without fine-tuning, or without an encoder."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch

from style_overlap.corpus import ParallelCorpus
from style_overlap.encoder import TextModel
from style_overlap.errors import UsageError


def untrained(encoder: TextModel, *, seed: int = 0) -> TextModel:
    """The same architecture and tokenizer with weights as drawn."""
    model = encoder.model
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(model)(model.config)
    return TextModel(
        fresh.to(encoder.device),
        encoder.tokenizer,
        name=f"{encoder.name} untrained",
        head=bool(encoder.labels),
        max_length=encoder.max_length,
    )


def bag_of_words(
    corpus: ParallelCorpus,
    versions: Iterable[str],
    train: npt.NDArray[np.int64],
    *,
    dim: int = 384,
) -> dict[str, npt.NDArray[np.float32]]:
    """TF-IDF vectors of every content, each version by itself, reduced to ``dim`` dimensions.

    Args:
        corpus: contents and their versions.
        versions: which.
        train: rows that vocabulary, weights and dimensions are taken from.
        dim: dimensions at most.

    Raises:
        UsageError: hardly a word is in more than one text, so that a bag of words holds nothing.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = {}
    for version in versions:
        texts = corpus.texts(version)
        weigh = TfidfVectorizer(sublinear_tf=True, min_df=2)
        try:
            words = len(weigh.fit([texts[row] for row in train]).vocabulary_)
        except ValueError:  # none is left
            words = 0
        if words < 2:
            raise UsageError(
                f"--bow: fewer than two words are in more than one of the {len(train)} texts of "
                f"{version} that train projectors: leave out --bow, or set spaces between words"
            )
        table = weigh.transform(texts)
        reduce = TruncatedSVD(min(dim, table.shape[1] - 1), random_state=0).fit(table[train])
        vectors[version] = reduce.transform(table).astype(np.float32)
    return vectors
