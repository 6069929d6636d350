"""One GPU: a BERT-large-sized encoder with random weights, and retrieval at full size.

    python -m benchmarks.gpu --output docs/performance.md    # ten minutes at most
    python -m benchmarks.gpu --device cpu --quick            # does it run? The figures say nothing

Weights do not matter for speed and nothing is fetched. There is no peer: what is told is how near
ours comes to the best matrix product of the same GPU, and how long all cells of the paper's grid
would take on it.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import gpu_encoder, machine
from benchmarks.section import Section, insert, markers, verdict
from benchmarks.spread import Spread


@dataclass(frozen=True)
class Size:
    """How much is done.

    Attributes:
        encoder: fields of its configuration.
        contents: of the corpus that is trained on and scored, None for all.
        max_length: tokens of a text.
        train_seconds: training ends after so many, whether or not it is finished.
        features: texts whose features are taken in fp32.
        gallery: texts a side of the retrieval.
        product: rows of the matrices of the limit.
        rounds: of all but training.
    """

    encoder: Mapping[str, int]
    contents: int | None = None
    max_length: int = 256
    train_seconds: float = 180.0
    features: int = 4_000
    gallery: int = 100_000
    product: int = 8_192
    rounds: int = 3


FULL = Size(gpu_encoder.LARGE)
QUICK = Size(gpu_encoder.TINY, 40, 32, features=20, gallery=300, product=256, rounds=1)

UTILISATION, HOURS = 0.4, 1.0
KS, SEEDS = (2, 3, 4, 5), (0, 1, 2)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for, in a form that can be run."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=str(__doc__).splitlines()[0]
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--quick", action="store_true", help="tiny: does it run?")
    parser.add_argument("--output", type=Path, help="page to put the result into, or a new file")
    asked = parser.parse_args(argv)
    if asked.device == "cpu" and not asked.quick:
        parser.error("a CPU needs days for this: give --quick as well")
    if asked.output:
        try:  # ten minutes later would be late
            insert(page_of(asked.output), "gpu", ())
        except (OSError, ValueError) as error:
            parser.error(f"--output {asked.output}: {error}")
    return asked


def page_of(path: Path) -> str:
    """The page as it is; one that is not there has a place for the result and nothing else."""
    return path.read_text(encoding="utf-8") if path.exists() else "\n".join(markers("gpu")) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and tell; 2 without a GPU."""
    asked = parse(argv)
    threads = 1 if asked.quick else machine.cores()
    machine.use_threads(threads)
    import torch

    if asked.device == "cuda" and not torch.cuda.is_available():
        print(
            "there is no GPU here and nothing was measured; "
            "python -m benchmarks.gpu --device cpu --quick shows that all of it runs",
            file=sys.stderr,
        )
        return 2
    started = time.perf_counter()
    found = run(QUICK if asked.quick else FULL, asked.device)
    words = ["python -m benchmarks.gpu", *(["--device cpu"] if asked.device == "cpu" else [])]
    command = " ".join([*words, *(["--quick"] if asked.quick else [])])
    took = f"{time.perf_counter() - started:.0f} s in all; {machine.state()}."
    lines = [
        *machine.describe(threads),
        "",
        f"`{command}`, {took}",
        "",
        *found.lines(),
    ]
    print("\n".join(lines))
    if asked.output:
        page = insert(page_of(asked.output), "gpu", lines)
        asked.output.write_text(page, encoding="utf-8")
    return 0


def run(size: Size, device: str) -> Section:
    """Measure all of it, one after the other."""
    import torch

    from benchmarks.texts import quiet, thinned
    from style_overlap.devices import pick_dtype

    quiet()
    name = torch.cuda.get_device_name() if device == "cuda" else "the CPU"
    auto = pick_dtype("auto", torch.device(device))
    dtypes = {"auto": "bf16" if auto == torch.bfloat16 else "fp32", "fp32": "fp32"}
    most = {d: machine.matmul(d, size.product, device)(1.0) for d in set(dtypes.values())}
    corpus, rows = thinned(size.contents), []

    def add(what: str, texts: float, spent: Sequence[float], flops: float, dtype: str) -> float:
        times = Spread.of(spent)
        share = f"{100 * flops / times.median / most[dtype]:.0f} % in {dtype}" if flops else ""
        rows.append((what, f"{texts / times.median:,.1f}", times.text(), share, peak.text))
        return times.median / texts

    with tempfile.TemporaryDirectory() as folder:
        base, output = Path(folder) / "encoder", Path(folder) / "trained"
        texts = [text for style in corpus.styles[:2] for text in corpus.texts(style)]
        attention, told = gpu_encoder.make(base, size.encoder, texts)
        with Peak(device) as peak:
            one = gpu_encoder.fine_tune(size, base, output, corpus, device)
        training = add("fine-tuning", one.texts, [one.seconds], one.flops, dtypes["auto"])
        used = one.flops / one.seconds / most[dtypes["auto"]]
        seconds = {}
        for what, dtype, some in (
            ("scoring", "auto", texts),
            ("features, as the probe takes them", "fp32", texts[: size.features]),
        ):
            # Flash attention has no fp32.
            gpu_encoder.attend(output, attention if dtype == "auto" else "sdpa")
            passes = gpu_encoder.Passes(output, device, dtype, size.max_length, some)
            with Peak(device) as peak:
                spent = repeated(passes, size.rounds)
            seconds[what] = add(what, passes.texts, spent, passes.flops, dtypes[dtype])
        plan = gpu_encoder.planned(str(base), KS, SEEDS)
    with Peak(device) as peak:
        spent = repeated(retrieval(size.gallery, device), size.rounds)
    add(f"retrieval {size.gallery:,} x {size.gallery:,}, d=384", size.gallery, spent, 0.0, "fp32")
    steps = plan.trained * training / 3600
    hours = steps + (plan.scored * seconds["scoring"] + plan.cells * one.rest) / 3600
    about = "" if size == FULL else "the full size on a GPU"
    h200 = about or ("" if "H200" in name else "one H200")
    return Section(
        work=f"{name}: {told}; {one.told}.",
        header=("", "texts/s", "seconds", "of the limit", "peak GPU memory"),
        rows=rows,
        notes=[
            "The limit is the best square matrix product of this processor: "
            + ", ".join(f"{v / 1e12:,.1f} TFLOP/s in {d}" for d, v in most.items())
            + ". `of the limit` is the model-FLOPs utilisation, padding not counted; of fine-tuning"
            f" {100 * UTILISATION:.0f} %: {verdict(used >= UTILISATION, about)}.",
            f"All {plan.cells} cells of k={KS[0]} to {KS[-1]}, six overlaps and {len(SEEDS)} seeds "
            f"at the defaults: {plan.trained:,.0f} texts to train on, {plan.scored:,.0f} to score, "
            f"and {one.rest:.0f} s a cell for loading, tokenising, testing and writing: "
            f"{hours:.2f} hours on one such processor, {steps:.2f} of them in training steps "
            f"({HOURS:g} hour at most: {verdict(hours <= HOURS, h200)}). Without the probe, and "
            "without the checkpoints that are written between epochs.",
        ],
    )


class Peak:
    """Most memory of the GPU that was taken within a ``with``; of a CPU nothing is told."""

    def __init__(self, device: str) -> None:
        """Look at that device."""
        import torch

        self.cuda: Any = torch.cuda if device == "cuda" else None
        self.text = ""

    def __enter__(self) -> Peak:
        """Begin, without what the work before has left."""
        gc.collect()
        if self.cuda:
            self.cuda.reset_peak_memory_stats()
        return self

    def __exit__(self, *_: object) -> None:
        """Look."""
        if self.cuda:
            self.text = f"{self.cuda.max_memory_allocated() / 2**30:.1f} GB"


def repeated(work: Callable[[], Any], rounds: int) -> list[float]:
    """Seconds of every round after one that does not count; works end with their answers here."""
    times = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return times[1:]


def retrieval(n: int, device: str) -> Callable[[], Any]:
    """Work: both-way retrieval of features that are on the device."""
    import torch

    from benchmarks.retrieval import features
    from style_overlap.probe.retrieval import retrieve

    a, b = (torch.from_numpy(x).to(device) for x in features(n, 384))
    return lambda: retrieve(a, b)


if __name__ == "__main__":
    sys.exit(main())
