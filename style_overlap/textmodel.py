"""A model in memory as a function of texts: logits and features, each text passed once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from style_overlap import batching
from style_overlap.errors import UsageError
from style_overlap.heads import Head, Pooling, inspect_head, is_causal
from style_overlap.passes import (
    LOGITS,
    Array,
    Budget,
    Feature,
    Want,
    check_finite,
    evaluating,
    one_pass,
    run,
)

CPU_TOKENS = 1_024
"""Tokens in a batch on a CPU: measured, larger batches are slower there."""

GPU_TOKENS = 32_768
"""Tokens in a batch on a GPU; halved whenever its memory runs out."""

PROBE = ("in the beginning was the word", "the word", "light of the world and word of the light")
"""Texts of different lengths, to see how a model behaves."""


class TextModel:
    """A model and its tokenizer as a function of texts.

    What has been computed of a text is kept: a text is passed through the model again only for
    something that has not been asked of it before. So the weights must not change meanwhile; a
    model in training is wrapped anew at every look.

    In fp32 a result may differ in its last bits with the texts that share its batch. Batches
    depend on the set of new texts alone, not on their order.

    Attributes:
        model: the model, left as it was given.
        tokenizer: its tokenizer.
        name: what it is called in messages.
        labels: names of the classes in the order of the logits, empty without a head.
        max_length: tokens that are read of a text, None without a limit.
        texts_passed: texts that have gone through the model.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str = "model",
        head: bool = True,
        max_length: int | None = None,
        batch_size: int | str | None = None,
        progress: bool | None = None,
    ) -> None:
        """Wrap a model that is in memory.

        Args:
            head: whether the model has a classification head.
            max_length: read at most so many tokens of a text; None for all the model can take.
            batch_size: texts in a batch at most; ``auto`` and None leave it to the token budget.
            progress: show a progress bar; None shows one in a terminal.

        Raises:
            UsageError: the model has no usable head or padding, or an argument is out of range.
        """
        self.model, self.tokenizer, self.name = model, tokenizer, name
        first = next(model.parameters())
        self.device: torch.device = first.device
        self.dtype: torch.dtype = first.dtype
        self.layout = batching.inspect_layout(
            model, tokenizer, max_length, multiple=8 if self.device.type == "cuda" else 1
        )
        self.max_length = self.layout.max_length
        tokens = CPU_TOKENS if self.device.type == "cpu" else GPU_TOKENS
        self.budget = Budget(tokens, batching.rows_at_most(batch_size))
        self.progress = progress
        self.labels: tuple[str, ...] = ()
        self._head: Head | None = None
        if head:
            self.labels = _label_names(model.config, name)
            with evaluating(model):
                self._head = inspect_head(model, *self.padded(PROBE), self.layout.pad_id)
        self.texts_passed = 0
        self._memo: dict[Want, dict[str, Array]] = {}
        self._lengths: dict[str, int] = {}

    def logits(self, texts: Sequence[str]) -> Array:
        """Logits in fp32, shape (n, k), classes in the order of ``labels``."""
        return self.forward(texts, [LOGITS])[LOGITS]

    def features(
        self,
        texts: Sequence[str],
        layer: int | Literal["h", "last"] | None = None,
        pooling: Pooling | None = None,
    ) -> Array:
        """One vector a text, shape (n, d): see ``Feature``.

        The default layer is h if there is a head, else the body's last one.
        """
        if layer is None:
            layer = "h" if self._head else "last"
        want = Feature(layer, pooling)
        return self.forward(texts, [want])[want]

    def forward(self, texts: Sequence[str], wants: Iterable[Want]) -> dict[Want, Array]:
        """Everything that is wanted of the texts, each text passed through the model once.

        Returns:
            For every want an array with one row a text, in the order of the texts.

        Raises:
            UsageError: a want that the model cannot meet, a text without tokens, or a result
                that is not finite.
        """
        asked = {want: self.settled(want) for want in wants}
        kept = [self._memo.setdefault(want, {}) for want in asked.values()]
        new = [text for text in dict.fromkeys(texts) if not all(text in memo for memo in kept)]
        if new:
            self._run(new, list(asked.values()))
        if not texts:
            return {want: np.zeros((0, 0), dtype=np.float32) for want in asked}
        return {
            want: np.stack([self._memo[settled][text] for text in texts])
            for want, settled in asked.items()
        }

    def lengths(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        """Tokens of every text before it is cut, special tokens included, shape (n,)."""
        if new := [text for text in dict.fromkeys(texts) if text not in self._lengths]:
            self._tokenised(new)
        return np.array([self._lengths[text] for text in texts], dtype=np.int64)

    def truncated(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Which texts are read in part only, shape (n,)."""
        lengths = self.lengths(texts)
        return lengths > (lengths if self.max_length is None else self.max_length)

    @cached_property
    def pooling(self) -> Pooling:
        """How states are pooled if nobody says.

        The last token if each token sees only those before it, else the first one.
        """
        inputs, _mask = self.padded(PROBE[:1])
        with evaluating(self.model):
            return "last" if is_causal(self.model, inputs) else "cls"

    def settled(self, want: Want) -> Want:
        """The want with nothing left open.

        Raises:
            UsageError: this encoder cannot meet it.
        """
        needs_head = want == LOGITS or want.layer == "h"
        if needs_head and self._head is None:
            what = "logits" if want == LOGITS else "h"
            raise UsageError(
                f"{self.name} was loaded without a classification head, so it has no {what}: "
                "ask for layer=last, or load a fine-tuned checkpoint"
            )
        if want == LOGITS:
            return LOGITS
        if want.layer == "h":
            return Feature()
        if want.layer != "last" and not isinstance(want.layer, int):
            raise UsageError(f"layer is {want.layer!r}: expected h, last or a layer's number")
        pooling = want.pooling or self.pooling
        if pooling not in ("cls", "mean", "last"):
            raise UsageError(f"pooling is {pooling!r}: expected cls, mean or last")
        return Feature(want.layer, pooling)

    def _run(self, texts: list[str], wants: list[Want]) -> None:
        tokens = self._tokenised(texts)
        compute = partial(self.compute, wants=wants)
        hidden = None if self.progress is None else not self.progress
        with tqdm(total=len(texts), desc=self.name, unit="text", disable=hidden) as bar:
            for rows, found in run(compute, texts, tokens, self.layout, self.budget, self.device):
                for want, vectors in found.items():
                    self._memo[want].update(zip((texts[row] for row in rows), vectors, strict=True))
                self.texts_passed += len(rows)
                bar.update(len(rows))

    def compute(
        self, inputs: dict[str, torch.Tensor], mask: torch.Tensor, wants: list[Want]
    ) -> dict[Want, Array]:
        """One forward pass of one batch, nothing kept: see ``passes.one_pass``."""
        found = one_pass(self.model, self._head, inputs, mask, wants)
        check_finite(found, self.name, self.dtype)
        return found

    def _tokenised(self, texts: Sequence[str]) -> batching.Tokens:
        tokens = batching.tokenise(self.tokenizer, texts, self.layout)
        self._lengths.update(zip(texts, tokens.lengths.tolist(), strict=True))
        return tokens

    def padded(self, texts: Sequence[str]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Texts as one batch: the model's inputs by name, and the attention mask."""
        tokens = batching.tokenise(self.tokenizer, texts, self.layout)
        return batching.pad(tokens, range(len(texts)), self.layout, self.device)


def _label_names(config: Any, name: str) -> tuple[str, ...]:
    """Names of a classifier's classes, in the order of its logits.

    Raises:
        UsageError: two classes have one name.
    """
    labels = tuple(str(config.id2label[number]) for number in sorted(config.id2label))
    if len(set(labels)) < len(labels):
        raise UsageError(
            f"model {name!r} has classes of one name in its config.json: id2label is "
            f"{list(labels)}, expected one name a class"
        )
    return labels
