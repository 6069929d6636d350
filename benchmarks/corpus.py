"""Building a corpus from a table: time and peak memory as the table grows.

The table is long, two texts a content of about 20 words each, drawn from 30,000 words by Zipf's
law; the second text keeps 70 % of the first one's words. Every size is built cold in a process of
its own. Peak memory is given twice: what the process holds itself (anonymous), and all that was
resident, in which the system also counts the pages of mapped files that it can take back at any
time.
"""

from __future__ import annotations

import csv
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.answers import DisagreementError
from benchmarks.runner import Run, Worker
from benchmarks.section import Section
from benchmarks.spread import Spread

TITLE = "Building a corpus from a table"

WORDS = 30_000
LENGTH = 20
BATCH = 20_000


@dataclass(frozen=True)
class Size:
    """Contents of every table, and its format: ``csv`` or ``parquet``."""

    contents: tuple[int, ...]
    format: str = "csv"


SIZES = {
    "quick": Size((500,)),
    "standard": Size((10_000, 100_000)),
    "full": Size((10_000, 100_000, 1_000_000)),
}


def run(size: Size, rounds: int) -> Section:
    """Measure.

    Raises:
        DisagreementError: a corpus does not hold what its table holds.
    """
    rows = []
    answers: dict[int, Mapping[str, Any]] = {}
    for contents in size.contents:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"table.{size.format}"
            write_table(path, contents)
            runs = []
            for number in range(rounds):
                # A new process every time: what one build leaves in memory helps the next.
                options = {"path": str(path), "cache": str(Path(folder) / f"cache {number}")}
                with Worker(f"{contents:,}", "benchmarks.corpus:build", **options) as worker:
                    runs.append(worker.run())
            rows.append(_row(contents, path.stat().st_size / 2**20, runs))
            answers[contents] = runs[-1].answer
    return Section(
        work=f"Cold, from a {size.format} table of two styles with {LENGTH} words a text.",
        header=("contents", "table", "cold build", "per content", "warm", "own memory", "resident"),
        rows=rows,
        notes=check(answers),
    )


def profiled(size: Size) -> dict[str, float]:
    """Where the build of the largest table spends its time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{size.format}"
        write_table(path, size.contents[-1])
        options = {"path": str(path), "cache": str(Path(folder) / "cache")}
        with Worker("corpus", "benchmarks.corpus:build", profile=True, **options) as worker:
            return dict(worker.run().phases)


def check(answers: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """See that every content is there, and that the cache gives back what was built.

    Raises:
        DisagreementError: contents are missing, or the warm corpus is another one.
    """
    for contents, answer in answers.items():
        if answer["contents"] != contents or answer["fingerprint"] != answer["again"]:
            raise DisagreementError(
                f"a table of {contents:,} contents gave {answer['contents']:,}, built as "
                f"{answer['fingerprint']} and read from the cache as {answer['again']}"
            )
    return ["Every content of the tables is in the corpus, and the cache gives back the same."]


def _row(contents: int, table_mb: float, runs: Sequence[Run]) -> tuple[str, ...]:
    cold = Spread.of(run.seconds for run in runs)
    own = max(run.answer["own_mb"] for run in runs)
    resident = max(run.peak_mb for run in runs)
    return (
        f"{contents:,}",
        f"{table_mb:,.0f} MB",
        f"{cold.text()} s",
        f"{1e6 * cold.median / contents:.0f} µs",
        f"{Spread.of(run.answer['warm'] for run in runs).text()} s",
        f"{own:,.0f} MB",
        f"{resident:,.0f} MB",
    )


def write_table(path: Path, contents: int) -> None:
    """A long table, content by content."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(WORDS)], dtype=object)
    cumulative = np.cumsum(1 / np.arange(1, WORDS + 1))
    cumulative /= cumulative[-1]

    def draw(shape: tuple[int, int]) -> np.ndarray:
        return np.searchsorted(cumulative, rng.random(shape))

    def rows() -> object:
        for start in range(0, contents, BATCH):
            size = min(BATCH, contents - start)
            one = draw((size, LENGTH))
            two = np.where(rng.random(one.shape) < 0.3, draw(one.shape), one)
            for offset, (a, b) in enumerate(zip(one, two, strict=True)):
                yield f"c{start + offset}", "plain", " ".join(words[a])
                yield f"c{start + offset}", "other", " ".join(words[b])

    header = ["content_id", "style", "text"]
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([(name, pa.string()) for name in header])
        with pq.ParquetWriter(path, schema) as writer:
            batch: list[tuple[str, str, str]] = []
            for row in rows():  # type: ignore[attr-defined]
                batch.append(row)
                if len(batch) == 2 * BATCH:
                    writer.write_table(pa.table(list(zip(*batch, strict=True)), schema=schema))
                    batch = []
            if batch:
                writer.write_table(pa.table(list(zip(*batch, strict=True)), schema=schema))
        return
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows())  # type: ignore[arg-type]


class Anonymous(threading.Thread):
    """Watches the memory that is the process' own, in MB; Linux only."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0

    def run(self) -> None:
        status = Path("/proc/self/status")
        while status.exists():
            held = next(one for one in status.read_text().splitlines() if one.startswith("RssAnon"))
            self.peak = max(self.peak, int(held.split()[1]) / 1024)
            time.sleep(0.02)


def build(path: str, cache: str) -> Callable[[Any], Any]:
    """Work: one corpus, cold; then the same from the cache."""
    import datasets
    import pyarrow.csv
    import scipy.sparse

    from benchmarks.runner import Timed
    from style_overlap.corpus import load_corpus

    # Loaded before the clock starts, as in any program that uses us.
    assert all((datasets, pyarrow.csv, scipy.sparse))

    def work(_: Any) -> Timed:
        watch = Anonymous()
        watch.start()
        start = time.perf_counter()
        corpus = load_corpus(path, cache_dir=cache)
        cold, own = time.perf_counter() - start, watch.peak
        start = time.perf_counter()
        again = load_corpus(path, cache_dir=cache)
        warm = time.perf_counter() - start
        return Timed(
            cold,
            {
                "contents": len(corpus),
                "fingerprint": corpus.fingerprint,
                "again": again.fingerprint,
                "warm": warm,
                "own_mb": own,
            },
        )

    return work
