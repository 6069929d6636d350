"""The real ``lm_eval`` command as a contender: its phases, and the class it gave to every text."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.profiles import own_seconds
from benchmarks.runner import Command, Run

CLOCK = Path(__file__).parent / "clock"


class Harness(Command):
    """``lm_eval --tasks style_overlap_k2`` with one checkpoint."""

    def __init__(
        self, name: str, checkpoint: str, dtype: str, limit: int | None, *, profile: bool = False
    ) -> None:
        """Compose the command line.

        Args:
            limit: documents of every task; None for all.
            profile: run under cProfile.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="style-overlap-benchmark-"))
        self.clock, self.profile = self.folder / "clock.jsonl", self.folder / "profile"
        program = shutil.which("lm_eval", path=str(Path(sys.executable).parent)) or "lm_eval"
        profiler = [sys.executable, "-m", "cProfile", "-o", str(self.profile)] if profile else []
        limited = [] if limit is None else ["--limit", str(limit)]
        arguments = [
            *("--model", "style-encoder", "--model_args", f"pretrained={checkpoint},dtype={dtype}"),
            *("--tasks", "style_overlap_k2", "--device", "cpu", "--log_samples"),
            *("--output_path", str(self.folder / "out"), *limited),
        ]
        super().__init__(
            name,
            [*profiler, program, *arguments],
            PYTHONPATH=str(CLOCK),
            BENCHMARK_CLOCK=str(self.clock),
        )

    def run(self, argument: object = 0) -> Run:
        """Score; the seconds are those of the whole command."""
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        self.clock.unlink(missing_ok=True)
        started = time.time()
        done = super().run(argument)
        marks = json.loads(self.clock.read_text())
        scoring = marks["ended"] - marks["began"]
        start_up = marks["began"] - started
        phases = {
            "start-up": start_up,
            "scoring": scoring,
            "after": done.seconds - start_up - scoring,
        }
        return Run(done.seconds, done.peak_mb, classes(self.folder / "out"), phases)

    def profiled(self) -> dict[str, float]:
        """Run it, and give the seconds of every function."""
        import pstats

        super().run()
        return own_seconds(pstats.Stats(str(self.profile)))

    def close(self) -> None:
        """Remove what it wrote."""
        shutil.rmtree(self.folder, ignore_errors=True)


def classes(folder: Path) -> list[tuple[str, str]]:
    """Texts and their classes from the harness's logged samples, task by task."""
    found = []
    for path in sorted(folder.rglob("samples_*.jsonl")):
        samples = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for sample in sorted(samples, key=lambda sample: sample["doc_id"]):
            scores = [float(score) for score, _ in sample["filtered_resps"]]
            style = sample["doc"]["styles"][max(range(len(scores)), key=scores.__getitem__)]
            found.append((sample["doc"]["text"], style))
    return found
