"""What the figures were measured on, and what the machine can do at most."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "lm-eval", "datasets", "numpy")


def cores() -> int:
    """Processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def use_threads(threads: int) -> None:
    """Give every process that is started from here on so many threads, and no network."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ.update(RAYON_NUM_THREADS=str(threads), HF_HUB_OFFLINE="1")
    # Tokenizers that have run in threads complain when their process forks.
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if threads == 1 else "true"


def keep_to_threads() -> None:
    """Bind this process to as many processors as it may have threads, where that can be done."""
    asked = int(os.environ.get("OMP_NUM_THREADS", cores()))
    if asked < cores() and hasattr(os, "sched_setaffinity"):  # Linux
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:asked])


class Neighbours:
    """Watches how much other programs compute, from here on; Linux only."""

    def __init__(self) -> None:
        """Begin."""
        self._started, self._others = time.perf_counter(), self._of_others()

    def cores(self) -> float:
        """Processors that others, or the machine's host, kept busy on average."""
        seconds = time.perf_counter() - self._started
        return max(self._of_others() - self._others, 0.0) / max(seconds, 1e-9)

    def warning(self, most: float = 0.1) -> str | None:
        """What to say of them if they took more than that part of a processor."""
        found = self.cores()
        if found <= most:
            return None
        return f"meanwhile other programs kept {found:.1f} of the machine's CPUs busy"

    @staticmethod
    def _of_others() -> float:
        """CPU seconds since the start of the machine, without those of this process and its own."""
        lines = _lines("/proc/stat")
        if not lines:
            return 0.0
        user, nice, system, _idle, _waiting, irq, soft_irq, steal = map(int, lines[0].split()[1:9])
        all_of_them = (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")
        mine = os.times()
        # Children count once they have ended: look when no contender is at work.
        return all_of_them - sum(mine[:4])


def describe(threads: int) -> list[str]:
    """The machine and the versions, as lines of Markdown."""
    found = {name: _version(name) for name in PACKAGES}
    listed = ", ".join(f"{name} {version}" for name, version in found.items())
    return [
        f"{_processor()}, {threads} of {os.cpu_count()} logical CPUs, {_memory()}; "
        f"Python {platform.python_version()}, {listed}.",
    ]


def matmul(dtype: str, size: int = 1024, device: str = "cpu") -> Callable[[float], float]:
    """Work that gives the FLOP/s of square matrix products; its argument is for how many seconds.

    Returns:
        The best of all products: what the machine does at most, not on average.
    """
    import torch

    numbers = torch.float32 if dtype == "fp32" else torch.bfloat16
    a, b = (torch.randn(size, size, device=device).to(numbers) for _ in range(2))
    out = torch.empty_like(a)

    def product() -> None:
        torch.mm(a, b, out=out)
        if out.is_cuda:
            torch.cuda.synchronize()

    def work(seconds: float) -> float:
        with torch.inference_mode():
            product()
            best, end = 0.0, time.perf_counter() + seconds
            while (started := time.perf_counter()) < end:
                product()
                best = max(best, 2 * size**3 / (time.perf_counter() - started))
        return best

    return work


def forward_flops(config: Any, lengths: Sequence[int]) -> float:
    """Floating-point operations of one forward pass through a BERT-like encoder.

    Per token and layer 2 (4 d^2 + 2 d f) for the projections and the feed-forward part, and 4 l d
    for the attention over a text of l tokens; embeddings, norms and padding count for nothing.

    Args:
        config: with hidden_size d, intermediate_size f, num_hidden_layers.
        lengths: tokens of every text, without padding.
    """
    d, f = config.hidden_size, config.intermediate_size
    per_layer = sum(length * (2 * (4 * d * d + 2 * d * f) + 4 * length * d) for length in lengths)
    return float(config.num_hidden_layers * per_layer)


def training_flops(config: Any, lengths: Sequence[int]) -> float:
    """The same for forward and backward: a backward pass costs two forward ones."""
    return 3 * forward_flops(config, lengths)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def _processor() -> str:
    lines = _lines("/proc/cpuinfo")
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    known = [name for name in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if name in flags]
    return f"{named[0] if named else platform.processor()} ({', '.join(known) or 'no AVX'})"


def _memory() -> str:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return f"{int(line.split()[1]) / 2**20:.0f} GB of memory"
    return "memory unknown"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def state() -> str:
    """Of the code, and the day."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True
        )
        return done.stdout.strip()

    try:
        name = git("rev-parse", "--short", "HEAD")
        # The page that results are written to is no part of what is measured.
        elsewhere = git("status", "--porcelain", "--", ":(top)", ":(top,exclude)docs")
        changes = " with changes" if elsewhere else ""
    except OSError:
        name, changes = "", ""
    return f"commit {name or 'unknown'}{changes}, {date.today()}"
