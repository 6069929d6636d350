"""Scoring a classifier on the six tasks of k=2, through ``lm_eval`` and without it.

The peer is what one would write without a harness: transformers' own pipeline over the six test
sets. The limit is what the machine allows: bare forward passes over the distinct texts, sorted by
length, already tokenised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.answers import Classified, same_classes
from benchmarks.harness import Harness
from benchmarks.runner import Run, Worker, alternate
from benchmarks.section import Section, goal
from benchmarks.spread import Spread, ratio

TITLE = "Scoring a checkpoint with lm_eval"


@dataclass(frozen=True)
class Size:
    """Documents of every task, None for all; and whether the classifier is a trained one."""

    limit: int | None
    trained: bool = True


SIZES = {"quick": Size(2, trained=False), "standard": Size(48), "full": Size(None)}

OURS = {"fp32": "lm_eval, dtype=fp32", "bf16": "lm_eval, dtype=bf16"}
PEER = "pipeline, batch_size=32"
LIMITS = {"fp32": "limit, fp32", "bf16": "limit, bf16"}
GOALS = {"fp32": 4.5, "bf16": 8.0}
ABOVE_LIMIT = 1.15
ABOUT = "the full test sets"
_BATCH = 8


def run(size: Size, rounds: int) -> Section:
    """Measure and compare.

    Raises:
        DisagreementError: they put texts into different classes.
    """
    checkpoint, dtypes = _checkpoint(size), _dtypes()
    given = {"checkpoint": checkpoint, "limit": size.limit}
    peer = Worker(PEER, "benchmarks.score:pipeline", **given)
    peer.wait()  # alone: its start-up is compared with the harness's
    contenders = [
        *(Harness(OURS[dtype], checkpoint, dtype, size.limit) for dtype in dtypes),
        peer,
        *(Worker(LIMITS[dtype], "benchmarks.score:bare", dtype=dtype, **given) for dtype in dtypes),
    ]
    found = alternate(contenders, rounds)
    agreed = check({name: runs[-1].answer for name, runs in found.items()})
    texts = found[PEER][0].answer
    return Section(
        work=(
            f"One MiniLM, k=2, in one process; {len(texts):,} documents of six tasks, "
            f"{len(dict(texts)):,} of them distinct texts; the peer reads each document as it "
            "comes."
        ),
        header=("", "total", "start-up", "scoring", "peer / ours", "goal", "ours / limit", "peak"),
        rows=_rows(found, dtypes, peer.setup_seconds, "" if size.limit is None else ABOUT),
        notes=[
            f"`dtype=auto`, the default, is {dtypes[-1]} on this processor"
            f"{'' if 'bf16' in dtypes else ', which is slower in bf16 or does not have it'}.",
            f"Same class as the pipeline's: {', '.join(agreed)}.",
            "All times are seconds. `total` is the whole command; `start-up` is the harness's "
            "imports, its index of tasks, and loading model and data; `scoring` is from the first "
            "request to the last answer. The rest of the total is the harness's own end: metrics, "
            "files, a description of the machine.",
            "The pipeline's start-up is that of its Python process: imports, model, data.",
        ],
    )


def profiled(size: Size) -> dict[str, float]:
    """Where the command spends its time."""
    harness = Harness("lm_eval", _checkpoint(size), "auto", size.limit, profile=True)
    try:
        return harness.profiled()
    finally:
        harness.close()


def check(answers: Mapping[str, Any]) -> list[str]:
    """Compare the classes of ours and of the limit to the pipeline's; shares of equal ones.

    Raises:
        DisagreementError: more than 0.2 % of the texts, and more than one, differ.
    """
    told = []
    for name in [name for name in OURS.values() if name in answers]:
        share = same_classes((name, PEER), answers[name], answers[PEER])
        told.append(f"{name} {100 * share:.1f} %")
    peer = dict(answers[PEER])
    for name in [name for name in LIMITS.values() if name in answers]:
        once: Classified = list(answers[name].items())
        share = same_classes((name, PEER), once, [(text, peer[text]) for text, _ in once])
        told.append(f"{name} {100 * share:.1f} %")
    return told


def _checkpoint(size: Size) -> str:
    with Worker("checkpoint", "benchmarks.checkpoint:classifier", trained=size.trained) as maker:
        return str(maker.run().answer)


def _dtypes() -> tuple[str, ...]:
    """The number formats worth measuring here: fp32, and bf16 where the default takes it."""
    import torch

    from style_overlap.devices import pick_dtype

    bf16 = pick_dtype("auto", torch.device("cpu")) == torch.bfloat16
    return ("fp32", "bf16") if bf16 else ("fp32",)


def _rows(
    found: Mapping[str, Sequence[Run]], dtypes: Sequence[str], peer_setup: float, about: str
) -> list[tuple[str, ...]]:
    rows = []
    peer = [run.seconds for run in found[PEER]]
    for dtype in dtypes:
        runs = found[OURS[dtype]]
        scoring = [run.phases["scoring"] for run in runs]
        above = ratio(scoring, [run.seconds for run in found[LIMITS[dtype]]])
        times = ratio(peer, scoring)
        rows.append(
            (
                OURS[dtype],
                Spread.of(run.seconds for run in runs).text(1),
                Spread.of(run.phases["start-up"] for run in runs).text(1),
                Spread.of(scoring).text(),
                f"{times.text(1)}x",
                goal(times.median, GOALS[dtype], about=about),
                f"{above.text()} ({goal(above.median, ABOVE_LIMIT, least=False, about=about)})",
                _peak(runs),
            )
        )
    totals = Spread.of(seconds + peer_setup for seconds in peer)
    rows.append(
        (
            PEER,
            totals.text(1),
            f"{peer_setup:.1f}",
            Spread.of(peer).text(),
            *3 * ("",),
            _peak(found[PEER]),
        )
    )
    for dtype in dtypes:
        name = LIMITS[dtype]
        spread = Spread.of(run.seconds for run in found[name])
        rows.append((name, "", "", spread.text(), *3 * ("",), _peak(found[name])))
    return rows


def _peak(runs: Sequence[Run]) -> str:
    return f"{max(run.peak_mb for run in runs):,.0f} MB"


def pipeline(checkpoint: str, limit: int | None) -> Callable[[Any], Classified]:
    """Work: transformers' pipeline over the six test sets, in fp32, as it is by default."""
    import transformers

    from benchmarks.texts import quiet, test_sets

    quiet()
    classify = transformers.pipeline("text-classification", model=checkpoint, device="cpu")
    sets = test_sets(2, limit)
    classify(next(iter(sets.values()))[:1])  # the first call of all is slower

    def work(_: Any) -> Classified:
        found = []
        for texts in sets.values():
            answers = classify(texts, batch_size=32, truncation=True)
            found += [(t, answer["label"]) for t, answer in zip(texts, answers, strict=True)]
        return found

    return work


def bare(checkpoint: str, limit: int | None, dtype: str) -> Callable[[Any], dict[str, str]]:
    """Work: forward passes and nothing else, over the distinct texts, the longest first."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from benchmarks.texts import distinct, quiet, test_sets
    from style_overlap.devices import pick_dtype

    quiet()
    model = AutoModelForSequenceClassification.from_pretrained(
        checkpoint, dtype=pick_dtype(dtype, torch.device("cpu"))
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    texts = distinct([text for one in test_sets(2, limit).values() for text in one])
    texts.sort(key=lambda text: -len(tokenizer(text, truncation=True)["input_ids"]))
    batches = [
        tokenizer(texts[start : start + _BATCH], padding=True, truncation=True, return_tensors="pt")
        for start in range(0, len(texts), _BATCH)
    ]
    with torch.inference_mode():
        model(**batches[0])  # the first call of all is slower

    def work(_: Any) -> dict[str, str]:
        with torch.inference_mode():
            logits = torch.cat([model(**batch).logits for batch in batches])
        names = model.config.id2label
        return {
            text: names[label]
            for text, label in zip(texts, logits.float().argmax(dim=1).tolist(), strict=True)
        }

    return work
