"""The probe on all ten pairs of k=5, against a loop over the pairs after open_clip.

The loop does for each pair what open_clip does for images and texts: encode both sides in batches
of 32, train two linear projectors with its loss (symmetric, learned scale, clamped at 100), and
rank the whole matrix of similarities as its ``get_clip_metrics`` does. It encodes each version anew
for every pair that the version is in. Both train as many epochs, in batches of as many pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.answers import DisagreementError, same_numbers
from benchmarks.runner import Worker, alternate
from benchmarks.section import HEADER, Section, compared

TITLE = "The retrieval probe on all pairs of k=5"


@dataclass(frozen=True)
class Size:
    """How much is probed.

    Attributes:
        contents: of the corpus, all splits.
        epochs: of the projectors.
        max_length: tokens of a text.
    """

    contents: int
    epochs: int = 20
    max_length: int = 256


SIZES = {"quick": Size(20, 2, 16), "standard": Size(24), "full": Size(400)}

OURS, PEER = "ours", "loop over pairs, after open_clip"
GOALS = {PEER: 5.0}
ABOUT = f"{SIZES['full'].contents} contents"
K, BATCH = 5, 512
LESS = (
    "On more contents both encode more; what a pair costs whatever its size, such as our bootstrap "
    "interval, weighs less then."
)

Array = npt.NDArray[np.float32]


def run(size: Size, rounds: int) -> Section:
    """Measure and compare.

    Raises:
        DisagreementError: their features or what their projectors find differ.
    """
    found = alternate(
        [
            Worker(OURS, "benchmarks.probe:ours", size=size),
            Worker(PEER, "benchmarks.probe:loop", size=size),
        ],
        rounds,
    )
    with Worker("the same vectors for both", "benchmarks.probe:invented") as both:
        top1 = both.run().answer
    answers = {name: {**runs[-1].answer, "top1": top1[name]} for name, runs in found.items()}
    told = check(answers)
    texts = answers[OURS]["texts"]
    about = "" if size == SIZES["full"] else ABOUT
    return Section(
        work=(
            f"MiniLM in fp32, {texts // K} contents in {K} versions ({texts:,} texts), 10 pairs, "
            f"one probe seed, {size.epochs} epochs of the projectors."
        ),
        header=HEADER,
        rows=compared(found, OURS, GOALS, about),
        notes=[
            *told,
            *([LESS] if about else []),
        ],
    )


def profiled(size: Size) -> dict[str, float]:
    """Where our probe spends its time."""
    with Worker(OURS, "benchmarks.probe:ours", profile=True, size=size) as worker:
        return dict(worker.run().phases)


def check(answers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Compare features of all texts, and what is found among vectors given to both.

    Raises:
        DisagreementError: other pairs, features that differ by more than 1e-3 of their length, or
            top-1 that differs by more than 0.1.
    """
    ours, peer = answers[OURS], answers[PEER]
    if list(ours["pairs"]) != list(peer["pairs"]):
        raise DisagreementError(f"ours probes the pairs {ours['pairs']}, the loop {peer['pairs']}")
    names = (OURS, PEER)
    largest = same_numbers(
        names, "features", _unit(ours["features"]), _unit(peer["features"]), tolerance=1e-3
    )
    apart = same_numbers(names, "top-1", [ours["top1"]], [peer["top1"]], tolerance=0.1)
    return [
        f"Features of unit length differ by {largest:.1e} at most. On the same invented vectors "
        f"ours finds {100 * ours['top1']:.1f} %, the loop {100 * peer['top1']:.1f} % "
        f"({100 * apart:.1f} points apart; ours starts from whitened features, the loop from random"
        " weights)."
    ]


def _unit(features: Array) -> Array:
    return features / np.linalg.norm(features, axis=-1, keepdims=True).clip(1e-12)


def ours(size: Size) -> Callable[[Any], dict[str, Any]]:
    """Work: our probe, from texts to top-1."""
    from benchmarks.texts import ENCODER, thinned
    from style_overlap.encoder import Encoder, Feature, TextModel
    from style_overlap.probe import probe, seen_pairs
    from style_overlap.probe.projectors import Settings

    corpus = thinned(size.contents)
    loaded = Encoder.load(ENCODER, head=False, dtype="fp32", max_length=size.max_length)
    pairs = seen_pairs(corpus.styles[:K])
    settings = Settings(epochs=size.epochs, patience=size.epochs, batch=BATCH)
    want = Feature("last", "cls")

    def work(_: Any) -> dict[str, Any]:
        # A new one every round: it would remember the texts.
        encoder = TextModel(
            loaded.model,
            loaded.tokenizer,
            head=False,
            max_length=size.max_length,
            progress=False,
        )
        found = probe(encoder, corpus, pairs, [want], seeds=(0,), settings=settings)[want]
        texts = [text for style in corpus.styles[:K] for text in corpus.texts(style)]
        return {
            "pairs": [(one.a, one.b) for one in found],
            "texts": len(texts),
            "features": encoder.forward(texts, [want])[want],
        }

    return work


def loop(size: Size) -> Callable[[Any], dict[str, Any]]:
    """Work: the loop over pairs, from texts to top-1."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from benchmarks.texts import ENCODER, quiet, thinned
    from style_overlap.model_folders import resolve_model
    from style_overlap.probe import seen_pairs
    from style_overlap.probe.splits import probe_splits

    quiet()
    corpus, name = thinned(size.contents), resolve_model(ENCODER)
    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name).eval()
    splits = probe_splits(corpus, 0)

    def encode(texts: list[str]) -> Array:
        rows = []
        for start in range(0, len(texts), 32):
            batch = tokenizer(
                texts[start : start + 32],
                padding=True,
                truncation=True,
                max_length=size.max_length,
                return_tensors="pt",
            )
            with torch.no_grad():
                rows.append(model(**batch).last_hidden_state[:, 0])
        return torch.cat(rows).numpy()

    def work(_: Any) -> dict[str, Any]:
        seen: dict[str, Array] = {}
        pairs = seen_pairs(corpus.styles[:K])
        for a, b in pairs:
            left, right = encode(corpus.texts(a)), encode(corpus.texts(b))
            clip_top1(left, right, splits, size.epochs)
            seen |= {a: left, b: right}
        features = np.concatenate([seen[style] for style in corpus.styles[:K]])
        return {"pairs": pairs, "texts": len(features), "features": features}

    return work


def clip_top1(a: Array, b: Array, splits: npt.NDArray[np.int64], epochs: int) -> float:
    """Projectors and retrieval as open_clip has them; top-1, both ways averaged."""
    import torch
    from torch.nn import functional

    torch.manual_seed(0)
    train, test = (torch.from_numpy(np.flatnonzero(splits == split)) for split in (0, 2))
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    project = [torch.nn.Linear(x.shape[1], 256, bias=False) for x in (left, right)]
    scale = torch.nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))
    parameters = [p for layer in project for p in layer.parameters()]
    optimiser = torch.optim.AdamW([*parameters, scale], lr=3e-3, weight_decay=0.0)

    def similarities(rows: torch.Tensor) -> torch.Tensor:
        one, other = (
            functional.normalize(layer(x[rows]), dim=1)
            for layer, x in zip(project, (left, right), strict=True)
        )
        return scale.exp() * one @ other.T

    for _ in range(epochs):
        for rows in train[torch.randperm(len(train))].split(BATCH):
            logits, target = similarities(rows), torch.arange(len(rows))
            loss = functional.cross_entropy(logits, target)
            loss = (loss + functional.cross_entropy(logits.T, target)) / 2
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                scale.clamp_(0, np.log(100))
    with torch.no_grad():
        logits, target = similarities(test), torch.arange(len(test)).view(-1, 1)
    found = []
    for one in (logits, logits.T):
        ranking = torch.argsort(one, descending=True)
        found.append(float((torch.where(ranking == target)[1] == 0).float().mean()))
    return sum(found) / 2


def invented() -> Callable[[Any], dict[str, float]]:
    """Work: top-1 of both sides on vectors that neither has made."""
    from style_overlap.probe import probe_vectors
    from style_overlap.probe.projectors import Settings

    rng = np.random.default_rng(0)
    n, d = 2_000, 32
    content = rng.standard_normal((n, d))
    noise = 0.85 * rng.standard_normal((2, n, d))
    a, b = (content + noise).astype(np.float32)
    splits = np.array([0, 0, 0, 0, 1, 0, 0, 0, 0, 2] * (n // 10))

    def work(_: Any) -> dict[str, float]:
        settings = Settings(epochs=40, patience=40, batch=BATCH)
        [result] = probe_vectors(
            {"a": a, "b": b}, np.arange(n), splits, [("a", "b")], seeds=(0,), settings=settings
        )
        return {OURS: float(result.top1.mean or 0.0), PEER: clip_top1(a, b, splits, 40)}

    return work
