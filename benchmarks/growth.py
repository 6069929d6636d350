"""How time and memory grow with the data: scoring, the probe, retrieval and sampling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.answers import DisagreementError
from benchmarks.curves import Curve, Work, curve, judge_memory, judge_time
from benchmarks.runner import Run, Worker
from benchmarks.section import Section

TITLE = "How cost grows"

STEPS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Size:
    """The least amount of data of each work: texts, vectors, vectors, contents."""

    score: int
    probe: int
    retrieval: int
    sample: int


SIZES = {
    "quick": Size(1, 100, 100, 1_000),
    "standard": Size(16, 1_000, 2_000, 62_500),
    "full": Size(100, 4_000, 12_500, 125_000),
}

DIMENSIONS = 384

WORKS = {
    "score": Work("scoring", "scoring (`TextModel` alone, without the harness), texts"),
    "probe": Work("probe", "probe (projectors and retrieval on given features), contents"),
    # Features of both sides are scaled to length 1, in fp32.
    "retrieval": Work("retrieval", "retrieval, texts a side", 2, copied=2 * 4 * DIMENSIONS),
    "sample": Work("sampling", "sampling, contents"),
}


def run(size: Size, rounds: int, figure: Path | None = None) -> Section:
    """Measure.

    Args:
        figure: draw the curves here, an SVG file.

    Raises:
        DisagreementError: a work does not give an answer for every datum.
    """
    found: dict[str, dict[int, list[Run]]] = {}
    for name in WORKS:
        amounts = [getattr(size, name) * step for step in STEPS]
        with Worker(name, f"benchmarks.growth:{name}", most=amounts[-1]) as worker:
            worker.run(amounts[0])  # the first one of all is slower
            found[name] = {amount: [] for amount in amounts}
            for _ in range(rounds):
                for amount in amounts:
                    found[name][amount].append(worker.run(amount))
    told = check({name: {n: r[-1].answer for n, r in runs.items()} for name, runs in found.items()})
    curves = {name: curve(runs) for name, runs in found.items()}
    if figure is not None:
        with Worker("figure", "benchmarks.growth:draw", curves=curves) as worker:
            worker.run(str(figure))
    picture = [f"![Time and memory as the data grow]({figure.name})"] if figure else []
    return Section(
        work="One work at a time, at one, two, four and eight times the data.",
        header=(
            "",
            *("time at 1x", "2x", "4x", "8x"),
            "time grows by the power",
            "goal of time",
            "memory above the smallest, 2x, 4x, 8x",
            "goal of memory",
        ),
        rows=[_row(name, curves[name]) for name in WORKS],
        notes=[*told, *picture],
    )


def profiled(size: Size) -> dict[str, float]:
    """Where the largest sampling spends its time."""
    most = size.sample * STEPS[-1]
    with Worker("sample", "benchmarks.growth:sample", profile=True, most=most) as worker:
        return dict(worker.run(most).phases)


def check(answers: Mapping[str, Mapping[int, int]]) -> list[str]:
    """See that every work did all of its work.

    Raises:
        DisagreementError: fewer or more answers than data.
    """
    for name, by_amount in answers.items():
        for amount, answer in by_amount.items():
            if answer != amount:
                raise DisagreementError(f"{name} of {amount:,} gave {answer:,} answers")
    return ["Every work gave as many answers as there were data."]


def _row(name: str, found: Curve) -> tuple[str, ...]:
    work = WORKS[name]
    more = ", ".join(f"{peak - found.peak_mb[0]:+,.0f} MB" for peak in found.peak_mb[1:])
    label = f"{work.what}: {' / '.join(f'{amount:,}' for amount in found.amounts)}"
    times = [f"{seconds:.3f} s" for seconds in found.seconds]
    judged = (judge_time(work, found), more, judge_memory(work, found))
    return (label, *times, f"{found.power:.2f}", *judged)


def score(most: int) -> Callable[[int], int]:
    """Work: features of so many distinct texts."""
    from benchmarks.texts import ENCODER, MAX_LENGTH, distinct
    from style_overlap.corpus import load_corpus
    from style_overlap.encoder import Encoder, TextModel
    from style_overlap.model_folders import resolve_model

    corpus = load_corpus("bible")
    texts = distinct(corpus.texts(corpus.styles[0]))
    rows = np.linspace(0, len(texts) - 1, most).astype(int)
    loaded = Encoder.load(resolve_model(ENCODER), head=False, max_length=MAX_LENGTH)

    def work(amount: int) -> int:
        # A new one every time: it would remember the texts.
        model = TextModel(
            loaded.model, loaded.tokenizer, head=False, max_length=MAX_LENGTH, progress=False
        )
        some = [texts[row] for row in rows[:: most // amount][:amount]]
        return len(model.features(some, "last", "cls"))

    return work


def probe(most: int) -> Callable[[int], int]:
    """Work: projectors and retrieval of one pair, three epochs."""
    from style_overlap.probe import probe_vectors
    from style_overlap.probe.projectors import Settings

    rng = np.random.default_rng(0)
    vectors = {name: rng.standard_normal((most, DIMENSIONS), dtype=np.float32) for name in "ab"}
    settings = Settings(epochs=3, patience=3)

    def work(amount: int) -> int:
        splits = np.resize([0, 0, 0, 0, 1, 0, 0, 0, 0, 2], amount)
        some = {name: x[:amount] for name, x in vectors.items()}
        [found] = probe_vectors(
            some, np.arange(amount), splits, [("a", "b")], seeds=(0,), settings=settings
        )
        return found.n * 10

    return work


def retrieval(most: int) -> Callable[[int], int]:
    """Work: both-way retrieval."""
    from benchmarks.retrieval import features
    from style_overlap.probe.retrieval import retrieve

    a, b = features(most, DIMENSIONS)

    def work(amount: int) -> int:
        found = retrieve(a[:amount], b[:amount])
        assert found is not None
        return len(found.credit)

    return work


def sample(most: int) -> Callable[[int], int]:
    """Work: a sample at overlap 0.4, k=5."""
    from benchmarks.sample import ALPHA, Contents, K
    from style_overlap.overlap import sample as draw

    def work(amount: int) -> int:
        return draw(Contents(amount), K, ALPHA).n * K

    return work


def draw(curves: Mapping[str, Curve]) -> Callable[[str], Any]:
    """Work: the figure, at the path that is its argument."""
    from matplotlib.figure import Figure

    from style_overlap.report.figures import MARKS, drawing, tidy

    def work(path: str) -> None:
        with drawing():
            figure = Figure(figsize=(8.4, 3.4), layout="constrained")
            left, right = figure.subplots(1, 2)
            for mark, (name, one) in zip(MARKS, curves.items(), strict=False):
                times = np.array(one.amounts) / one.amounts[0]
                look = {
                    "color": mark.color,
                    "marker": mark.marker,
                    "linestyle": mark.dashes,
                    "label": WORKS[name].label,
                }
                left.plot(times, np.array(one.seconds) / one.seconds[0], **look)
                right.plot(times, np.array(one.peak_mb) - one.peak_mb[0], **look)
            for power, label in ((1, "linear"), (2, "quadratic")):
                left.plot(STEPS, np.array(STEPS) ** power, color="#9a9a9a", linewidth=0.8)
                left.annotate(
                    label,
                    (STEPS[-1], STEPS[-1] ** power),
                    xytext=(8, -3),
                    textcoords="offset points",
                    color="#5a5a5a",
                )
            left.set(
                xscale="log", yscale="log", xlim=(0.9, 16), ylabel="time, as multiple of that at 1x"
            )
            right.set(xscale="log", ylabel="peak memory above that at 1x (MB)")
            for axes in (left, right):
                axes.set_xticks(STEPS, [f"{step}x" for step in STEPS])
                axes.set_xticks([], minor=True)
                axes.set_xlabel("data")
                tidy(axes)
            left.legend(frameon=False)
            figure.savefig(path, metadata={"Date": None, "Creator": None})

    return work
