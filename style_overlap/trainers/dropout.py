"""Dropout on a CPU, at the speed of the rest of the training."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_LEVELS = 2**16


@contextmanager
def fast_dropout(device: torch.device) -> Iterator[None]:
    """Draw the masks of dropout faster in this block, on a CPU; elsewhere change nothing.

    torch draws one random number per element on a CPU, one after the other: a quarter of a step.
    Here one number serves four elements, and all are compared at once. They come from torch's
    generator, so that a seed, or the random state in a checkpoint, gives the same masks again; they
    are other masks than torch's. Attention draws its masks outside Python, hence a kernel and not a
    module: it is registered, for the whole process, until the block ends.
    """
    if device.type != "cpu":
        yield
        return
    library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():  # that a kernel is replaced
            warnings.simplefilter("ignore")
            library.impl("bernoulli_.float", bernoulli_, "CPU")
        yield
    finally:
        del library  # which brings torch's own back


def bernoulli_(
    out: torch.Tensor, p: float = 0.5, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Fill a tensor with ones by probability ``p``, else zeros; ``p`` to the nearest 2^-16."""
    below = round(p * _LEVELS)
    if below in (0, _LEVELS):
        return out.fill_(below / _LEVELS)
    words = torch.empty(-(-out.numel() // 4), dtype=torch.int64)
    words.random_(-(2**63), None, generator=generator)
    drawn = words.view(torch.int16)[: out.numel()].view(out.shape)
    return torch.lt(drawn, below - _LEVELS // 2, out=out)
