"""Building a corpus from a table: time and peak memory as the table grows.

    python benchmarks/corpus.py                               # 10^4, 10^5 and 10^6 contents
    python benchmarks/corpus.py --contents 5000000            # ten million rows
    python benchmarks/corpus.py --format parquet

The table is long, two texts a content of about 20 words each, drawn from 30,000 words by Zipf's
law; the second text keeps 70 % of the first one's words. Every size is built cold in a process of
its own. CPU time is what counts on a machine that others use too. Peak memory is given twice: what
the process holds itself (anonymous), and all that was resident, in which the system also counts
the pages of mapped files that it can take back at any time.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

WORDS = 30_000
LENGTH = 20
BATCH = 20_000


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
        while True:
            with open("/proc/self/status") as file:
                held = next(line for line in file if line.startswith("RssAnon"))
            self.peak = max(self.peak, int(held.split()[1]) / 1024)
            time.sleep(0.02)


def measure(path: Path, cache: Path) -> dict[str, float]:
    """Build one corpus in this process."""
    import datasets
    import pyarrow.csv  # noqa: F401  loaded before the clock starts, as in any program that uses us
    import scipy.sparse  # noqa: F401

    from style_overlap.corpus import load_corpus

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    watch = Anonymous()
    watch.start()
    start, cpu = time.perf_counter(), time.process_time()
    corpus = load_corpus(str(path), cache_dir=cache)
    cold, cpu = time.perf_counter() - start, time.process_time() - cpu
    anonymous = watch.peak
    start = time.perf_counter()
    again = load_corpus(str(path), cache_dir=cache)
    assert again.fingerprint == corpus.fingerprint
    assert datasets is not None
    return {
        "contents": len(corpus),
        "cold": cold,
        "cpu": cpu,
        "warm": time.perf_counter() - start,
        "before": before,
        "anonymous": anonymous,
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--contents", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv")
    parser.add_argument("--folder", type=Path, help="where tables and caches go while it runs")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.one.parent / "cache")))
        return
    columns = "contents,rows,table,cold build,CPU,per content,warm start,own memory,resident"
    print(f"| {columns.replace(',', ' | ')} |")
    print(f"|{' --- |' * len(columns.split(','))}")
    for contents in options.contents:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = Path(folder) / f"table.{options.format}"
            write_table(path, contents)
            command = [sys.executable, __file__, "--one", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
            if done.returncode:
                sys.exit(done.stderr)
            found = json.loads(done.stdout)
            print(
                f"| {contents:,} | {2 * contents:,} | {path.stat().st_size / 2**20:,.0f} MB "
                f"| {found['cold']:.1f} s | {found['cpu']:.1f} s "
                f"| {1e6 * found['cpu'] / contents:.0f} µs "
                f"| {found['warm']:.1f} s | {found['anonymous']:.0f} MB "
                f"| {found['resident']:.0f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
