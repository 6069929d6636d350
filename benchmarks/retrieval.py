"""Both-way retrieval side by side with its peers.

The work is the same for all: given features of two versions, find for every text of each the
nearest text of the other. Ours also gives exact ranks and shares ties. Peers are
``sentence_transformers.util.semantic_search`` at its defaults and faiss's flat index; one that is
not installed is left out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.answers import DisagreementError
from benchmarks.runner import Worker, alternate
from benchmarks.section import HEADER, Section, compared, verdict

TITLE = "Retrieval"


@dataclass(frozen=True)
class Size:
    """Texts in each version, and dimensions of their features."""

    n: int
    d: int = 384


TEXTS = 100_000
"""In each version: the goals speak of so many."""

SIZES = {"quick": Size(600), "standard": Size(15_000), "full": Size(TEXTS)}

OURS = "ours"
PEERS = {"semantic_search": "sentence_transformers", "faiss": "faiss"}
MEMORY_GB = 2.0

Array = npt.NDArray[np.float32]


def run(size: Size, rounds: int) -> Section:
    """Measure and compare.

    Raises:
        DisagreementError: they find other texts.
    """
    names = [OURS, *(peer for peer, module in PEERS.items() if importlib.util.find_spec(module))]
    absent = [peer for peer in PEERS if peer not in names]
    found = alternate(
        [
            Worker(name, "benchmarks.retrieval:contender", search=name, n=size.n, d=size.d)
            for name in names
        ],
        rounds,
    )
    told = check({name: runs[-1].answer for name, runs in found.items()})
    peak = max(run.peak_mb for run in found[OURS]) / 1024
    about = "" if size.n >= TEXTS else f"{TEXTS:,} texts"
    return Section(
        work=f"{size.n:,} x {size.n:,} texts, d = {size.d}, both directions.",
        header=HEADER,
        rows=compared(found, OURS, dict.fromkeys(names[1:], 1.0), about),
        notes=[
            *told,
            f"Peak memory of ours, features and imports included: {peak:.2f} GB "
            f"({MEMORY_GB:g} GB at most: {verdict(peak <= MEMORY_GB, about)}).",
            *(f"{peer} is not installed here: left out." for peer in absent),
        ],
    )


def profiled(size: Size) -> dict[str, float]:
    """Where our retrieval spends its time."""
    options = {"search": OURS, "n": size.n, "d": size.d}
    with Worker(OURS, "benchmarks.retrieval:contender", profile=True, **options) as worker:
        return dict(worker.run().phases)


def check(answers: Mapping[str, npt.NDArray[np.float64]]) -> list[str]:
    """Compare which texts are found.

    Raises:
        DisagreementError: one text in ten thousand, and more than one, is found by one and not by
            the other: fp32 similarities of equal size are ranked by rounding.
    """
    told = []
    for name in list(answers)[1:]:
        differing = int((np.abs(answers[name] - answers[OURS]) > 0.5).sum())
        allowed = max(1, answers[OURS].size // 10_000)
        if answers[name].shape != answers[OURS].shape or differing > allowed:
            raise DisagreementError(
                f"{OURS} and {name} differ in {differing} of {answers[OURS].size} answers, "
                f"{allowed} at most may"
            )
        told.append(f"{differing} of {answers[OURS].size:,} answers differ from {name}'s.")
    return told


def contender(search: str, n: int, d: int) -> Callable[[Any], npt.NDArray[np.float64]]:
    """Work: whether the nearest text is the right one, shape (2, n)."""
    find = {OURS: ours, "semantic_search": semantic_search, "faiss": faiss}[search]
    find(*features(64, d))  # imports and warms up
    a, b = features(n, d)
    return lambda _: find(a, b)


def features(n: int, d: int) -> tuple[Array, Array]:
    """Two noisy views of n contents: three in four are found at 20,000 texts."""
    rng = np.random.default_rng(0)
    content = rng.standard_normal((n, d), dtype=np.float32)
    noise = rng.standard_normal((2, n, d), dtype=np.float32) * 1.8
    return content + noise[0], content + noise[1]


def unit(x: Array) -> Array:
    """Rows of length 1."""
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def ours(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """``style_overlap``."""
    from style_overlap.probe.retrieval import retrieve

    found = retrieve(a, b)
    assert found is not None
    return np.stack([found.ab.credit, found.ba.credit])


def semantic_search(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """sentence-transformers, at its default sizes of chunks."""
    import torch
    from sentence_transformers.util import dot_score
    from sentence_transformers.util import semantic_search as search

    hits = []
    left, right = (torch.from_numpy(unit(x)) for x in (a, b))
    for queries, gallery in ((left, right), (right, left)):
        found = search(queries, gallery, top_k=1, score_function=dot_score)
        hits.append([hit[0]["corpus_id"] == row for row, hit in enumerate(found)])
    return np.array(hits, dtype=float)


def faiss(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """faiss, exact search."""
    from faiss import IndexFlatIP

    hits = []
    left, right = unit(a), unit(b)
    for queries, gallery in ((left, right), (right, left)):
        index = IndexFlatIP(gallery.shape[1])
        index.add(gallery)
        hits.append(index.search(queries, 1)[1][:, 0] == np.arange(len(queries)))
    return np.array(hits, dtype=float)
