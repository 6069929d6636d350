"""What to probe, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from style_overlap.encoder import Encoder, Feature
from style_overlap.errors import UsageError
from style_overlap.heads import Pooling
from style_overlap.probe.gallery import Pair
from style_overlap.probe.projectors import Settings


@dataclass(frozen=True)
class ProbeOptions:
    """What to probe, and how.

    Attributes:
        layers: ``h``, ``last`` or a layer's number; by default h and the last layer of a
            classifier, the last layer of any other encoder.
        pooling: how a layer's states become one vector; None is the encoder's own.
        unseen: the reserved versions too.
        pair: these two versions instead.
        k: the first k styles are the seen ones, where the checkpoint does not say.
        base: the encoder before fine-tuning, too.
        untrained: the same architecture with weights as drawn, too.
        bow: a bag of words, too.
        corpus: see :func:`style_overlap.corpus.load_corpus`; None for the checkpoint's own.
        chunk_verses: as for training; None for the checkpoint's own.
        data_seed: of the splits; None for the checkpoint's own, 0 where it has none.
        contents: train projectors on as much as a corpus of so many contents would give.
        limit: contents in the gallery at most.
        seeds: number of probe seeds, 0, 1, ...
        settings: of the projectors.
    """

    layers: tuple[str, ...] = ()
    pooling: Pooling | None = None
    unseen: bool = False
    pair: Pair | None = None
    k: int | None = None
    base: bool = False
    untrained: bool = False
    bow: bool = False
    corpus: str | None = None
    chunk_verses: int | None = None
    data_seed: int | None = None
    contents: int | None = None
    limit: int | None = None
    seeds: int = 3
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        """Refuse options that exclude each other or are out of range."""
        if self.pair and self.unseen:
            raise UsageError("--versions names the pair, --unseen another one: give one of them")
        for name, value in (("--seeds", self.seeds), ("--limit", self.limit)):
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}: expected at least 1")
        if self.pooling not in (None, "cls", "mean", "last"):
            raise UsageError(f"--pooling is {self.pooling!r}: expected cls, mean or last")
        if self.k is not None and self.k < 2:
            raise UsageError(f"--k is {self.k}: a pair needs two styles")
        for layer in self.layers:
            if layer != "h":
                _number(layer)

    def wants(self, encoder: Encoder) -> list[Feature]:
        """The features to probe, their pooling settled, so that the record can name it."""
        layers = self.layers or (("h", "last") if encoder.labels else ("last",))
        pooling = self.pooling or encoder.pooling
        wants = [
            Feature() if layer == "h" else Feature(_number(layer), pooling) for layer in layers
        ]
        return list(dict.fromkeys(wants))


def _number(layer: str) -> Any:
    if layer == "last":
        return "last"
    try:
        return int(layer)
    except ValueError:
        raise UsageError(f"--layer is {layer!r}: expected h, last or a layer's number") from None
