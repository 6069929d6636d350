"""The bag-of-words floor: the cross-overlap matrix of TF-IDF and logistic regression.

Drawn from the very samples that encoders are trained and scored on, in seconds: the texts are
vectorised once, whatever the number of overlaps. Document frequencies are those of the training
contents in all styles; since a content is in the same split at every overlap, no test text takes
part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from style_overlap.corpus.parallel import ParallelCorpus
from style_overlap.names import ALPHAS, alpha_text
from style_overlap.overlap import Split, sample
from style_overlap.scoring import tie_credit

CONTENTS = 20_000
"""Most contents that are used; of more, as many spread evenly."""


MAX_ITER = 300
"""Iterations of the logistic regression at most; it needs fewer."""


class BagOfWords:
    """TF-IDF of all texts of a corpus, and logistic regression on any of them.

    Attributes:
        k: number of styles.
    """

    def __init__(self, texts: Sequence[Sequence[str]], trained: npt.NDArray[np.int64]) -> None:
        """Vectorise the texts.

        Args:
            texts: the texts of every style, in canonical order.
            trained: contents that document frequencies are counted on, in all styles.
        """
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.k, self._contents = len(texts), len(texts[0])
        vectorizer = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b")
        vectorizer.fit(column[row] for column in texts for row in trained)
        self._x = vectorizer.transform([text for column in texts for text in column])

    def fit(self, split: Split) -> Any:
        """A classifier of the texts of a split, which has two styles or more."""
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=MAX_ITER).fit(self._of(split), split.style)

    def scores(self, model: Any, split: Split) -> npt.NDArray[np.float64]:
        """Scores of a split's texts, shape (n, k); the highest is the prediction."""
        return _by_class(model.decision_function(self._of(split)), model.classes_, self.k)

    def _of(self, split: Split) -> Any:
        return self._x[split.style * self._contents + split.content]


@dataclass(frozen=True, eq=False)
class _Thinned:
    """Some contents of a corpus, as the sampler sees them."""

    fingerprint: str
    styles: tuple[str, ...]
    groups: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.groups)


@dataclass(frozen=True)
class Floor:
    """The matrix.

    Attributes:
        accuracy: on the test split, by alpha_train, then alpha_eval.
        texts: in the smallest of the test splits.
    """

    accuracy: dict[str, dict[str, float]]
    texts: int


def cross_overlap(
    corpus: ParallelCorpus, k: int, seed: int = 0, alphas: Sequence[Decimal] = ALPHAS
) -> Floor:
    """Train at every overlap, score at every overlap.

    A row is left out where its training split has fewer than two styles, a column where its test
    split is empty, as in very small corpora.

    Args:
        corpus: the corpus.
        k: number of styles, the first k.
        seed: data seed.
        alphas: overlaps, for rows and columns.
    """
    rows = np.unique(np.linspace(0, len(corpus) - 1, min(len(corpus), CONTENTS)).astype(np.int64))
    thinned = _Thinned(corpus.fingerprint, corpus.styles, corpus.groups[rows])
    samples = {alpha_text(alpha): sample(thinned, k, alpha, seed) for alpha in alphas}
    table = corpus.table.select(rows) if len(rows) < len(corpus) else corpus.table
    trained = np.unique(np.concatenate([s.splits["train"].content for s in samples.values()]))
    words = BagOfWords([list(table[style]) for style in corpus.styles[:k]], trained)
    matrix: dict[str, dict[str, float]] = {}
    for alpha, drawn in samples.items():
        train = drawn.splits["train"]
        if len(np.unique(train.style)) < 2:
            continue
        model = words.fit(train)
        matrix[alpha] = {}
        for alpha_eval, other in samples.items():
            test = other.splits["test"]
            if len(test):
                credit = tie_credit(words.scores(model, test), test.style)
                matrix[alpha][alpha_eval] = float(credit.mean())
    return Floor(matrix, min(len(drawn.splits["test"]) for drawn in samples.values()))


def _by_class(
    scores: npt.NDArray[np.float64], classes: npt.NDArray[np.int64], k: int
) -> npt.NDArray[np.float64]:
    """Scores of shape (n, k); classes that training had no text of are the least likely."""
    if scores.ndim == 1:  # two classes: one score, for the second
        scores = np.stack([-scores, scores], axis=1)
    full = np.full((len(scores), k), scores.min() - 1.0)
    full[:, classes] = scores
    return full
