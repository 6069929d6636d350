"""Documents, prompt and metrics of a classification task."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, TypeVar

import datasets
import numpy as np
import pyarrow as pa

from style_overlap import scoring
from style_overlap.corpus import ParallelCorpus, load_corpus
from style_overlap.errors import UsageError
from style_overlap.overlap import SAMPLING, Sample, first_gap, sample

_TITLES = {
    "KJV": "King James Version",
    "ASV": "American Standard Version",
    "WEB": "World English Bible",
    "YLT": "Young's Literal Translation",
    "DARBY": "Darby Bible",
}


Options = TypeVar("Options", bound="DataOptions")


@dataclass(frozen=True)
class DataOptions:
    """What a user may override with ``--metadata``; the rest of a task is its name.

    Attributes:
        corpus: a corpus specification, see :func:`style_overlap.corpus.load_corpus`.
        chunk_verses: consecutive verses per passage.
        data_seed: seed of regions, splits and pools; a checkpoint is only ever scored fairly on
            the data seed that it was trained with.
        assignment: ``contiguous`` or ``random``.
    """

    corpus: str = "bible"
    chunk_verses: int = 5
    data_seed: int = 0
    assignment: str = "contiguous"

    @classmethod
    def from_metadata(cls: type[Options], metadata: Mapping[str, Any]) -> Options:
        """The options among a task's metadata, which also holds all ``--model_args``.

        Raises:
            UsageError: an option of the wrong kind, a near-miss of an option's name, or an attempt
                to set k or alpha, which are part of the task's name.
        """
        known = asdict(cls())
        options: dict[str, Any] = {}
        for key, value in metadata.items():
            if key in known:
                options[key] = _as_default(key, value, known[key])
            elif key in ("k", "alpha"):
                raise UsageError(
                    f"--metadata cannot set {key}, which is part of the task's name: "
                    "choose another task, or make one with `style-overlap task`"
                )
            elif near := difflib.get_close_matches(key, known, n=1, cutoff=0.8):
                raise UsageError(
                    f"--metadata has {key!r}: did you mean {near[0]!r}? Options: {', '.join(known)}"
                )
        return cls(**options)

    def config(self, k: int, limit: int | None = None) -> dict[str, Any]:
        """What the record of an evaluation says of its data.

        Args:
            k: number of styles.
            limit: documents per task, None for all.
        """
        return {"k": k, "limit": limit, "sampling": SAMPLING, **asdict(self)}


OPTIONS = tuple(asdict(DataOptions()))
"""Names of the options."""


def _as_default(key: str, value: Any, default: Any) -> Any:
    """The value as an option of its default's kind: text, else a whole number or nothing."""
    if isinstance(default, str):
        return str(value)
    if value is None and default is None:
        return None
    try:
        return int(str(value))
    except ValueError:
        example = 1000 if default is None else default
        raise UsageError(
            f"--metadata {key} is {value!r}: expected a whole number, "
            f"for example '{{\"{key}\": {example}}}'"
        ) from None


@lru_cache(maxsize=4)
def _corpus(spec: str, chunk_verses: int) -> ParallelCorpus:
    # All tasks of a run read one corpus: it is opened once.
    return load_corpus(spec, chunk_verses=chunk_verses)


def corpus_of(options: DataOptions) -> ParallelCorpus:
    """The corpus behind a task."""
    return _corpus(options.corpus, options.chunk_verses)


def draw(options: DataOptions, k: int, alpha: str) -> tuple[ParallelCorpus, Sample]:
    """The corpus and the sample behind a task.

    Raises:
        UsageError: the corpus is too small for k: a split lacks one of the styles.
    """
    corpus = corpus_of(options)
    drawn = sample(corpus, k, alpha, options.data_seed, options.assignment)
    if gap := first_gap(drawn.splits, k):
        raise UsageError(
            f"the {gap[0]} split has no passage of {corpus.styles[gap[1]]}: corpus "
            f"{corpus.name!r} has {len(corpus)} contents, too few for k={k} at alpha={alpha}"
        )
    return corpus, drawn


def documents(corpus: ParallelCorpus, drawn: Sample, split_name: str) -> datasets.Dataset:
    """The documents of one split of a sample.

    Columns: ``text``, ``label`` (index into ``styles``), ``style``, ``styles`` (the k classes in
    label order), ``content_id`` and ``shared`` (whether all styles have this content).
    """
    styles, split = list(corpus.styles[: drawn.k]), drawn.splits[split_name]
    table = corpus.table.with_format("arrow")[:]
    stacked = pa.chunked_array(
        [c for style in styles for c in table.column(style).cast(pa.large_string()).chunks]
    )
    label = pa.array(split.style)
    columns = {
        "text": stacked.take(pa.array(split.style * len(corpus) + split.content)),
        "label": label,
        "style": pa.array(styles).take(label),
        "styles": pa.array([styles]).take(pa.array(np.zeros(len(split), np.int64))),
        "content_id": table.column("content_id").take(pa.array(split.content)),
        "shared": pa.array(split.shared),
    }
    # Our own fingerprint: `datasets` would pickle and hash every table to make one.
    return datasets.Dataset(pa.table(columns), fingerprint=f"{drawn.fingerprint}-{split_name}")


def prompt(doc: Mapping[str, Any]) -> str:
    """The prompt of a causal model: the whole passage, then the names of the styles.

    The passage has to be in the prompt, whole, for a second reason: the harness's response cache
    knows a request by its prompt alone.
    """
    options = [f"{s} ({_TITLES[s]})" if s in _TITLES else s for s in doc["styles"]]
    listed = f"{', '.join(options[:-1])} or {options[-1]}"
    return f"Passage: {doc['text']}\nThis passage is from which version: {listed}?\nVersion:"


def process_results(
    doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]
) -> dict[str, Any]:
    """Metrics of one document from the k (log-likelihood, is-greedy) pairs of its styles."""
    scores = np.array([[score for score, _ in results]])
    shares = scoring.prediction_shares(scores)[0]
    return {
        "acc": float(shares[doc["label"]]),
        "macro_f1": (int(doc["label"]), shares.tolist()),
        "tie_rate": float(shares.max() < 1),
    }


def macro_f1(items: Sequence[tuple[int, Sequence[float]]]) -> float:
    """Aggregate the (label, prediction shares) pairs of a task's documents."""
    gold, shares = zip(*items, strict=True)
    return scoring.macro_f1_of_shares(np.array(shares), gold)
