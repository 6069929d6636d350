"""Arithmetic that does not depend on what the caller is in the middle of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Matrix products in fp32: no autocast, no TF32 or bf16 shortcuts.

    A probe runs in the middle of a bf16 training run, whose settings are global.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
