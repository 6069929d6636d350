"""Both-way retrieval side by side with its peers: time, peak memory, same answers.

    python benchmarks/retrieval.py                      # 20,000 x 20,000, about a minute
    python benchmarks/retrieval.py --n 100000 --threads 2

The work is the same for all: given features of two versions, find for every text of each the
nearest text of the other. ``style_overlap`` also gives exact ranks and shares ties. Peers:
``sentence_transformers.util.semantic_search`` at its defaults and faiss's flat index; one that is
not installed is left out. Every contender runs in a process of its own, so that peak memory is
its own; "over imports" leaves out what was there before the search, the features included.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

OURS = "style_overlap"
PEERS = {"semantic_search": "sentence_transformers", "faiss": "faiss"}


def features(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Two noisy views of n contents: three in four are found at the default size."""
    rng = np.random.default_rng(0)
    content = rng.standard_normal((n, d), dtype=np.float32)
    noise = rng.standard_normal((2, n, d), dtype=np.float32) * 1.8
    return content + noise[0], content + noise[1]


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def ours(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    from style_overlap.probe.retrieval import retrieve

    found = retrieve(a, b)
    assert found is not None
    return np.stack([found.ab.credit, found.ba.credit])


def semantic_search(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    import torch
    from sentence_transformers.util import dot_score
    from sentence_transformers.util import semantic_search as search

    hits = []
    left, right = (torch.from_numpy(unit(x)) for x in (a, b))
    for queries, gallery in ((left, right), (right, left)):
        found = search(queries, gallery, top_k=1, score_function=dot_score)
        hits.append([hit[0]["corpus_id"] == row for row, hit in enumerate(found)])
    return np.array(hits, dtype=float)


def faiss(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    from faiss import IndexFlatIP

    hits = []
    left, right = unit(a), unit(b)
    for queries, gallery in ((left, right), (right, left)):
        index = IndexFlatIP(gallery.shape[1])
        index.add(gallery)
        hits.append(index.search(queries, 1)[1][:, 0] == np.arange(len(queries)))
    return np.array(hits, dtype=float)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, n: int, d: int, answer: Path) -> None:
    """Run one contender in this process; print its figures, write its answer."""
    contender = {OURS: ours, "semantic_search": semantic_search, "faiss": faiss}[name]
    contender(*features(64, d))  # imports and warms up
    a, b = features(n, d)
    before, wall, cpu = peak_mb(), time.perf_counter(), time.process_time()
    hits = contender(a, b)
    figures = {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "peak_mb": peak_mb(),
        "over_imports_mb": peak_mb() - before,
    }
    np.save(answer, hits)
    print(json.dumps(figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=20_000, help="texts in each version")
    parser.add_argument("--d", type=int, default=384, help="dimensions")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure[0], args.n, args.d, Path(args.measure[1]))
        return

    names = [OURS, *(peer for peer, module in PEERS.items() if importlib.util.find_spec(module))]
    environment = os.environ | {
        name: str(args.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    }
    print(f"{args.n:,} x {args.n:,}, d = {args.d}, {args.threads} threads, both directions")
    figures, answers = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            answer = Path(folder) / f"{name}.npy"
            size = ["--n", str(args.n), "--d", str(args.d)]
            command = [sys.executable, __file__, *size, "--measure", name, str(answer)]
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            figures[name], answers[name] = json.loads(done.stdout), np.load(answer)
            row = figures[name]
            print(
                f"{name:16} wall {row['wall_s']:7.1f} s  cpu {row['cpu_s']:7.1f} s"
                f"  peak {row['peak_mb']:6.0f} MB  (+{row['over_imports_mb']:.0f} over imports)"
                f"  top-1 {answers[name].mean():.4f}",
                flush=True,
            )
    for name in names[1:]:
        differ = int((np.abs(answers[name] - answers[OURS]) > 0.5).sum())
        print(
            f"{OURS} / {name}: wall {figures[OURS]['wall_s'] / figures[name]['wall_s']:.2f}, "
            f"cpu {figures[OURS]['cpu_s'] / figures[name]['cpu_s']:.2f}; "
            f"{differ} of {2 * args.n:,} answers differ"
        )


if __name__ == "__main__":
    main()
