"""Sampling at an overlap and measuring it, against the same in pandas.

The peer draws and counts by ``groupby``, and writes Eq. 1 down as it reads, without a Python
function per group. Both split 80/10/10 in blocks of ten groups, draw k regions' pools with every
split spread evenly, share their first contents, mix the examples, and measure Eq. 1 on each split
and on the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchmarks.answers import same_numbers
from benchmarks.runner import Worker, alternate
from benchmarks.section import HEADER, Section, compared

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Sampling and measuring"


@dataclass(frozen=True)
class Size:
    """Contents of the corpus."""

    contents: int


SIZES = {"quick": Size(5_000), "standard": Size(1_000_000), "full": Size(1_000_000)}

OURS, PEER = "ours: sample and measure", "pandas: sample and measure"
OURS_MEASURE, PEER_MEASURE = "ours: measure alone", "pandas: measure alone"
K, ALPHA = 5, "0.4"
GOAL = 10.0
ABOUT = 1_000_000


class Contents:
    """A corpus without texts, which is all that the sampler looks at."""

    styles = tuple(f"style {number}" for number in range(K))

    def __init__(self, contents: int) -> None:
        """So many contents, each in a group of its own."""
        self.groups = np.arange(contents)
        self.fingerprint = f"{contents} invented contents"

    def __len__(self) -> int:
        """Number of contents."""
        return len(self.groups)


def run(size: Size, rounds: int) -> Section:
    """Measure and compare.

    Raises:
        DisagreementError: another number of examples, or another overlap.
    """
    targets = {
        OURS: "ours",
        PEER: "in_pandas",
        OURS_MEASURE: "our_measure",
        PEER_MEASURE: "pandas_measure",
    }
    found = alternate(
        [
            Worker(name, f"benchmarks.sample:{target}", contents=size.contents)
            for name, target in targets.items()
        ],
        rounds,
    )
    told = check({name: runs[-1].answer for name, runs in found.items()})
    about = "" if size.contents >= ABOUT else f"{ABOUT:,} contents"
    rows = [
        row
        for ours_, peer in ((OURS, PEER), (OURS_MEASURE, PEER_MEASURE))
        for row in compared({n: found[n] for n in (ours_, peer)}, ours_, {peer: GOAL}, about)
    ]
    return Section(
        work=f"{size.contents:,} contents, k={K}, overlap {ALPHA}.",
        header=HEADER,
        rows=rows,
        notes=told,
    )


def profiled(size: Size) -> dict[str, float]:
    """Where sampling spends its time."""
    options = {"contents": size.contents}
    with Worker(OURS, "benchmarks.sample:ours", profile=True, **options) as worker:
        return dict(worker.run().phases)


def check(answers: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Compare sizes and overlaps.

    Raises:
        DisagreementError: examples, shared contents or realised overlap differ.
    """
    for ours_, peer in ((OURS, PEER), (OURS_MEASURE, PEER_MEASURE)):
        same_numbers((ours_, peer), "figures", answers[ours_], answers[peer], tolerance=1e-9)
    one = answers[OURS]
    return [
        f"Both draw {one['examples']:,.0f} examples with {one['shared']:,.0f} shared contents, of "
        f"a realised overlap of {one['alpha']:.6f}."
    ]


def ours(contents: int) -> Callable[[int], dict[str, float]]:
    """Work: our sampler, which measures every split; the argument is the seed."""
    from style_overlap.overlap import sample

    corpus = Contents(contents)
    sample(Contents(100), K, ALPHA)  # numpy loads a part of itself when it is first needed

    def work(seed: int) -> dict[str, float]:
        drawn = sample(corpus, K, ALPHA, seed)
        return {
            "examples": sum(map(len, drawn.splits.values())),
            "shared": drawn.n_shared,
            "alpha": float(drawn.realised["all"] or 0.0),
        }

    return work


def in_pandas(contents: int) -> Callable[[int], dict[str, float]]:
    """Work: the same in pandas, step by step."""
    import pandas as pd

    n = contents // K
    shared_each = int(n * float(ALPHA)) // K
    groups = Contents(contents).groups
    overlap_in_pandas(pd.DataFrame({"content": [0, 0, 1], "style": [0, 1, 0]}))  # warms up

    def splits(rng: np.random.Generator) -> pd.Series:
        """Of every group: one in each block of ten is test, one is validation."""
        draws = pd.Series(rng.random(len(groups)), index=groups).groupby(level=0).first()
        rank = draws.groupby(np.arange(len(draws)) // 10).rank(method="first")
        return rank.map({1.0: 2, 2.0: 1}).fillna(0).astype(np.int64)

    def pools(rng: np.random.Generator) -> pd.DataFrame:
        """Every region's contents in drawn order, each split spread evenly over it."""
        frame = pd.DataFrame({"content": np.arange(n * K), "group": groups[: n * K]})
        frame["region"] = frame["content"] // n
        frame["split"] = frame["group"].map(splits(rng))
        frame = frame.sample(frac=1, random_state=rng)
        alike = frame.groupby(["region", "split"])
        frame["place"] = (alike.cumcount() + 0.5) / alike["content"].transform("size")
        return frame.sort_values(["region", "place"])

    def work(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        frame = pools(rng)
        position = frame.groupby("region").cumcount()
        shared = frame[position < shared_each]
        own = frame[position.between(shared_each, shared_each + n - shared_each * K, "left")]
        everywhere = shared.merge(pd.DataFrame({"style": range(K)}), how="cross")
        parts = (everywhere.assign(shared=True), own.assign(style=own["region"], shared=False))
        rows = pd.concat(parts)[["content", "style", "split", "shared"]]
        rows = rows.sample(frac=1, random_state=rng)
        for _, split in rows.groupby("split"):
            overlap_in_pandas(split)
        return {
            "examples": len(rows),
            "shared": len(shared),
            "alpha": round(overlap_in_pandas(rows), 12),
        }

    return work


def overlap_in_pandas(rows: pd.DataFrame) -> float:
    """Eq. 1 of the columns ``content`` and ``style``, as it reads."""
    given = rows.groupby("content")["style"].value_counts(normalize=True)
    entropy = -(given * np.log(given)).groupby(level="content").sum()
    contents = rows["content"].value_counts(normalize=True)
    styles = rows["style"].value_counts(normalize=True)
    return float((contents * entropy).sum() / -(styles * np.log(styles)).sum())


def _labelled(contents: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A million labelled examples or so, in no order."""
    rng = np.random.default_rng(0)
    return rng.integers(0, contents // 2, contents), rng.integers(0, K, contents)


def our_measure(contents: int) -> Callable[[Any], dict[str, float]]:
    """Work: our measure of a labelled sample."""
    from style_overlap.entropy import measure

    content, style = _labelled(contents)
    measure([0, 0, 1], [0, 1, 0])  # warms up
    return lambda _: {"alpha": measure(content, style)}


def pandas_measure(contents: int) -> Callable[[Any], dict[str, float]]:
    """Work: the same in pandas."""
    import pandas as pd

    content, style = _labelled(contents)
    rows = pd.DataFrame({"content": content, "style": style})
    overlap_in_pandas(rows[:10])  # warms up
    return lambda _: {"alpha": overlap_in_pandas(rows)}
