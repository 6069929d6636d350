"""Forward passes: batch after batch, and from each everything that is wanted of its texts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from style_overlap.batching import Layout, Tokens, longest_first, next_batch, pad
from style_overlap.errors import UsageError
from style_overlap.heads import Head, Pooling, Seen, pool, watching

logger = logging.getLogger(__name__)

Array: TypeAlias = npt.NDArray[np.float32]

LOGITS: Literal["logits"] = "logits"


@dataclass(frozen=True)
class Feature:
    """A vector to have of every text.

    Attributes:
        layer: ``h`` the input of the classification head's last linear layer; ``last`` the body's
            last layer; or a layer's number, 0 for the embeddings, -1 for the last one.
        pooling: how a layer's states become one vector; None is the encoder's own. h needs none.
    """

    layer: int | Literal["h", "last"] = "h"
    pooling: Pooling | None = None


Want: TypeAlias = Feature | Literal["logits"]


class NotFiniteError(UsageError):
    """A model gives NaN or infinity: overflow in fp16, or weights that are no good."""


@dataclass
class Budget:
    """What a batch may hold.

    Attributes:
        tokens: padding included; halved when the device's memory runs out.
        rows: texts, None for any number.
    """

    tokens: int
    rows: int | None = None


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """No dropout and no gradients; a model in training is in training again afterwards."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)


def run(
    compute: Callable[[dict[str, torch.Tensor], torch.Tensor], dict[Want, Array]],
    texts: Sequence[str],
    tokens: Tokens,
    layout: Layout,
    budget: Budget,
    device: torch.device,
) -> Iterator[tuple[list[int], dict[Want, Array]]]:
    """Yield, batch after batch, the rows of its texts and what was computed of them.

    Args:
        compute: one forward pass, from inputs and mask.
        texts: distinct texts.
        tokens: the same texts, tokenised.

    Raises:
        UsageError: the device's memory does not hold a single text.
    """
    order = longest_first(texts, tokens)
    start = 0
    while start < len(order):
        kept = tokens.kept[order[start:]]
        count = next_batch(kept, budget.tokens, budget.rows, layout.equal_lengths)
        rows = order[start : start + count]
        try:
            result = compute(*pad(tokens, rows, layout, device))
        except torch.OutOfMemoryError:
            if count == 1:
                raise UsageError(
                    f"{device} has too little memory for one text of {int(kept[0])} tokens: "
                    "give a smaller max_length, dtype=bf16 or another device"
                ) from None
            budget.tokens = count * int(kept[0]) // 2
            logger.warning("out of memory on %s: %d tokens a batch now", device, budget.tokens)
        else:
            yield rows, result
            start += count
            continue
        # Outside the handler: its traceback would keep the failed pass's tensors alive.
        if device.type == "cuda":
            torch.cuda.empty_cache()


def one_pass(
    model: Any,
    head: Head | None,
    inputs: dict[str, torch.Tensor],
    mask: torch.Tensor,
    wants: Sequence[Want],
) -> dict[Want, Array]:
    """Pass one batch through the model, and read every want off it.

    Args:
        wants: features with their pooling settled.

    Returns:
        For every want an array in fp32, one row a text.
    """
    numbered = any(isinstance(want, Feature) and isinstance(want.layer, int) for want in wants)
    extra = {"output_hidden_states": True} if numbered else {}
    with watching(model, head.layer if head else None) as seen, evaluating(model):
        output = model(**inputs, **extra)
        h = None if head is None else head.h(seen, inputs, mask)
        found: dict[Want, Array] = {}
        for want in wants:
            if want == LOGITS or want.layer == "h":
                assert head is not None
                assert h is not None
                vectors = head.logits(h) if want == LOGITS else h
            else:
                states = _states(want.layer, output, seen, mask)
                vectors = pool(states, mask, want.pooling or "cls")
            found[want] = vectors.float().cpu().numpy()
    return found


def check_finite(found: dict[Want, Array], name: str, dtype: torch.dtype) -> None:
    """Let no NaN and no infinity pass for a result.

    Raises:
        NotFiniteError: one of the values is not finite.
    """
    for want, vectors in found.items():
        if not np.isfinite(vectors).all():
            what = "logits" if want == LOGITS else "features"
            hint = "its weights are damaged" if dtype == torch.float32 else "try dtype=fp32"
            raise NotFiniteError(f"{name} gives {what} that are not finite in {dtype}: {hint}")


def _states(layer: int | str, output: Any, seen: Seen, mask: torch.Tensor) -> torch.Tensor:
    if layer == "last":
        states = seen.last
    else:
        layers = getattr(output, "encoder_hidden_states", None) or output.hidden_states
        try:
            states = layers[layer]
        except IndexError:
            raise UsageError(
                f"layer is {layer}, the model has layers 0 (embeddings) to {len(layers) - 1}"
            ) from None
    if states is None or states.shape[:2] != mask.shape:
        raise UsageError(f"the model gives no state of every token in layer {layer}: try layer=h")
    return states
