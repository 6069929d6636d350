"""Fine-tuning MiniLM: ours, and transformers' Trainer as people commonly run it.

All see the same texts, seeds, batch of 8, learning rate, schedule and number of epochs, and the
clock runs from the first step to the last. ``padded`` is what the run_classification.py example
does by default: fp32, every text padded to the maximum length (of 256 here: its own default of 128
would cut most passages). ``dynamic`` pads each batch to its longest text.

At the size of ``make bench`` a training is a few steps long, enough for its speed and for a check
that the losses agree. What accuracy they reach is compared by ``--full``, which takes most of
an hour.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.answers import DisagreementError
from benchmarks.runner import Run, Timed, Worker, alternate
from benchmarks.section import Section, faster, goal, seconds, verdict
from benchmarks.spread import Spread

TITLE = "Fine-tuning"


@dataclass(frozen=True)
class Size:
    """How much is trained on.

    Attributes:
        contents: of the corpus, all its splits; with ``whole``, of which to train.
        epochs: passes over them.
        whole: test on the whole test set, and compare the accuracies.
        max_length: tokens of a text.
    """

    contents: int
    epochs: float
    whole: bool = False
    max_length: int = 256


SIZES = {
    "quick": Size(40, 1.0, max_length=32),
    "standard": Size(50, 1.0),
    "full": Size(320, 2.0, whole=True),
}

OURS, OURS_PLAIN = "ours", "ours, --dropout 0"
PADDED, DYNAMIC = "Trainer, fp32, padded", "Trainer, fp32, dynamic"
GOALS = {PADDED: 3.0, DYNAMIC: 1.5}
UTILISATION = 0.5
ABOUT = "the full size"

COMMON: dict[str, Any] = {
    "per_device_train_batch_size": 8,
    "learning_rate": 3e-4,
    "weight_decay": 0.0,
    "warmup_steps": 0,
    "lr_scheduler_type": "linear",
    "train_sampling_strategy": "random",
    "save_strategy": "no",
    "report_to": "none",
}
"""What all are told. Ours keeps its own order of texts, in batches of like length."""


def run(size: Size, rounds: int) -> Section:
    """Measure and compare.

    Raises:
        DisagreementError: ours does not learn as the peers do.
    """
    contenders = [
        Worker(OURS, "benchmarks.train:ours", size=size, dropout=None),
        Worker(OURS_PLAIN, "benchmarks.train:ours", size=size, dropout=0.0),
        Worker(PADDED, "benchmarks.train:trainer", size=size, padded=True),
        Worker(DYNAMIC, "benchmarks.train:trainer", size=size, padded=False),
    ]
    found = alternate(contenders, rounds)
    told = check({name: [run.answer for run in runs] for name, runs in found.items()})
    most = {}
    for dtype in ("fp32", "bf16"):
        with Worker(f"matmul {dtype}", "benchmarks.machine:matmul", dtype=dtype) as worker:
            most[dtype] = worker.run(1.0).answer
    answer = found[OURS][0].answer
    return Section(
        work=(
            f"MiniLM, k=2 at overlap 0, {answer['texts']:,} texts of "
            f"{answer['tokens'] / answer['texts']:.0f} word pieces on average, {size.epochs:g} "
            "epochs in batches of 8, another seed every round."
        ),
        header=("", "texts/s", "seconds", "ours is faster", "goal", "of the limit", "peak memory"),
        rows=_rows(found, most, "" if size.whole else ABOUT),
        notes=[
            *told,
            "The limit is the best square matrix product of the machine in the number format "
            f"used: {most['fp32'] / 1e9:,.0f} GFLOP/s in fp32, {most['bf16'] / 1e9:,.0f} in bf16. "
            "Of it, `of the limit` is what the model's own operations use, padding not counted.",
            "`--dropout 0` is an option of ours and other work than the peers do.",
        ],
    )


def profiled(size: Size) -> dict[str, float]:
    """Where our training spends its time, from loading the encoder to the last score."""
    with Worker(OURS, "benchmarks.train:ours", profile=True, size=size, dropout=None) as worker:
        return dict(worker.run().phases)


def check(answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Compare the mean training loss over seeds, and the matched accuracy where it was measured.

    Raises:
        DisagreementError: other texts, or a difference larger than noise: three standard errors of
            the difference of means over seeds, and at least 0.1 of loss or three points of
            accuracy.
    """
    told = []
    for key, floor in (("loss", 0.1), ("accuracy", 0.03)):
        values = {name: [one.get(key) for one in found] for name, found in answers.items()}
        if any(value is None for found in values.values() for value in found):
            continue
        for peer in GOALS:
            _within_noise(key, values[OURS], values[peer], peer, floor)
        means = ", ".join(f"{n} {statistics.fmean(v):.3f}" for n, v in values.items())
        what = "Mean training loss" if key == "loss" else "Matched test accuracy"
        told.append(f"{what} over {len(values[OURS])} seeds: {means}.")
    sizes = {name: (found[0]["texts"], found[0]["tokens"]) for name, found in answers.items()}
    if len(set(sizes.values())) > 1:
        raise DisagreementError(f"the contenders were not given the same texts: {sizes}")
    return told


def _within_noise(
    what: str, ours: Sequence[float], theirs: Sequence[float], peer: str, floor: float
) -> None:
    n = len(ours)
    variances = [statistics.variance(v) if n > 1 else 0.0 for v in (ours, theirs)]
    bound = max(floor, 3 * math.sqrt(sum(variances) / n))
    difference = statistics.fmean(ours) - statistics.fmean(theirs)
    if not abs(difference) <= bound:
        raise DisagreementError(
            f"{what} of ours and of {peer} differs by {difference:.3f} in the mean over {n} seeds, "
            f"at most {bound:.3f} was expected"
        )


def _rows(
    found: Mapping[str, Sequence[Run]], most: Mapping[str, float], about: str
) -> list[tuple[str, ...]]:
    rows = []
    for name, runs in found.items():
        answer = runs[0].answer
        used = [run.answer["flops"] / run.seconds / most[answer["dtype"]] for run in runs]
        utilisation = Spread.of(used)
        share = f"{100 * utilisation.median:.0f} % in {answer['dtype']}"
        times, wanted = "", ""
        if name in GOALS:
            spread = faster(found[OURS], runs)
            times, wanted = f"{spread.text(1)}x", goal(spread.median, GOALS[name], about=about)
        elif name == OURS:
            met = utilisation.median >= UTILISATION
            share += f" ({100 * UTILISATION:.0f} %: {verdict(met, about)})"
        speed = Spread.of(run.answer["passes"] / run.seconds for run in runs)
        peak = f"{max(run.peak_mb for run in runs):,.0f} MB"
        rows.append((name, speed.text(1), seconds(runs).text(1), times, wanted, share, peak))
    return rows


def ours(size: Size, dropout: float | None) -> Callable[[int], Timed]:
    """Work: ``style_overlap``'s own training, by its Python call; the argument is the seed."""
    from benchmarks.texts import quiet, thinned
    from benchmarks.training import answer_of, clock, mean_loss, settings
    from style_overlap.trainers.classifier import train

    quiet()
    corpus = thinned(None if size.whole else size.contents)

    def work(seed: int) -> Timed:
        with tempfile.TemporaryDirectory() as folder:
            asked = settings(size, seed, Path(folder), COMMON, dropout)
            watch = clock()
            record = train(asked, corpus=corpus, callbacks=[watch]).record
        accuracy = record["metrics"]["test"]["accuracy"] if size.whole else None
        found = answer_of(asked, corpus, mean_loss(record["log"]), accuracy)
        return Timed(watch.seconds, {**found, "dtype": record["compute"]["dtype"]})

    return work


def trainer(size: Size, padded: bool) -> Callable[[int], Timed]:
    """Work: transformers' Trainer and its usual collators; the argument is the seed."""
    import torch
    import transformers as hf

    from benchmarks.texts import ENCODER, quiet, thinned
    from benchmarks.training import answer_of, clock, settings
    from style_overlap.model_folders import resolve_model
    from style_overlap.trainers.data import draw

    quiet()
    corpus, name = thinned(None if size.whole else size.contents), resolve_model(ENCODER)
    tokenizer = hf.AutoTokenizer.from_pretrained(name)

    def tokenised(texts: Sequence[str], labels: Sequence[int]) -> list[dict[str, Any]]:
        options = {"padding": "max_length"} if padded else {}
        columns = tokenizer(list(texts), truncation=True, max_length=size.max_length, **options)
        rows = zip(*columns.values(), labels, strict=True)
        return [dict(zip((*columns, "label"), row, strict=True)) for row in rows]

    def work(seed: int) -> Timed:
        with tempfile.TemporaryDirectory() as folder:
            asked = settings(size, seed, Path(folder), COMMON, None)
            drawn, watch = draw(asked, corpus), clock()
            hf.set_seed(seed)
            model = hf.AutoModelForSequenceClassification.from_pretrained(name, num_labels=2)
            peer = hf.Trainer(
                model=model,
                args=hf.TrainingArguments(
                    **COMMON,
                    output_dir=folder,
                    seed=seed,
                    num_train_epochs=size.epochs,
                    use_cpu=not torch.cuda.is_available(),
                    disable_tqdm=True,
                ),
                train_dataset=tokenised(drawn.texts["train"], drawn.splits["train"].style.tolist()),
                data_collator=hf.default_data_collator
                if padded
                else hf.DataCollatorWithPadding(tokenizer),
                callbacks=[watch],
            )
            peer.remove_callback(hf.trainer_callback.PrinterCallback)
            loss = peer.train().training_loss
            accuracy = None
            if size.whole:
                labels = drawn.splits["test"].style
                scored = peer.predict(tokenised(drawn.texts["test"], labels.tolist()))
                accuracy = float((scored.predictions.argmax(axis=1) == labels).mean())
        return Timed(watch.seconds, {**answer_of(asked, corpus, loss, accuracy), "dtype": "fp32"})

    return work
