"""Which processor a model runs on, and in which number format."""

from __future__ import annotations

import logging
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from style_overlap.errors import UsageError

logger = logging.getLogger(__name__)

HARNESS_DEFAULT = "cuda:0"
"""What lm-eval's command line asks for when nobody has named a device."""

_DTYPES = {
    "fp32": torch.float32,
    "float32": torch.float32,
    "float": torch.float32,
    "bf16": torch.bfloat16,
    "bfloat16": torch.bfloat16,
    "fp16": torch.float16,
    "float16": torch.float16,
    "half": torch.float16,
}


def pick_device(name: str | torch.device | None = None) -> torch.device:
    """The device of that name, or the best that is here.

    ``cuda:0`` without any CUDA device is taken for the harness's default and not for a wish: it
    falls back to the best device that is here, and says so once.

    Raises:
        UsageError: no such device on this machine.
    """
    if name is None:
        return _best_device()
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise UsageError(
            f"device is {name!r}: expected cpu, cuda, cuda:N, mps or another of torch's devices"
        ) from None
    if device.type == "cpu":
        return torch.device("cpu")
    count = _device_count(device.type)
    if count == 0 and str(device) == HARNESS_DEFAULT:
        best = _best_device()
        logger.info("no CUDA device here: running on %s", best)
        return best
    if (device.index or 0) >= count:
        here = "there is none" if count == 0 else f"there are {count}, counted from 0"
        raise UsageError(
            f"device is {str(device)!r}, but of {device.type} devices {here}: "
            f"give --device {_best_device()}"
        )
    return device


def pick_dtype(name: str | torch.dtype | None, device: torch.device) -> torch.dtype:
    """The number format of that name; ``auto`` is bf16 where the processor is faster in it.

    Raises:
        UsageError: an unknown name.
    """
    if isinstance(name, torch.dtype):
        if name not in _DTYPES.values():
            raise UsageError(f"dtype is {name}: expected float32, bfloat16 or float16")
        return name
    if name is None or name == "auto":
        return torch.bfloat16 if _computes_bf16(device) else torch.float32
    known = _DTYPES.get(str(name).lower().removeprefix("torch."))
    if known is None:
        raise UsageError(f"dtype is {name!r}: expected auto, fp32, bf16 or fp16")
    return known


def _best_device() -> torch.device:
    for kind in ("cuda", "mps"):
        if _device_count(kind):
            return torch.device(kind)
    return torch.device("cpu")


def _device_count(kind: str) -> int:
    try:
        module: Any = torch.get_device_module(kind)
    except RuntimeError:  # a name that torch knows and this build of it lacks
        return 0
    available = getattr(module, "is_available", None) or torch.backends.mps.is_available
    return int(module.device_count()) if available() else 0


def _computes_bf16(device: torch.device) -> bool:
    """Whether bf16 is faster than fp32: emulated, or on half of the units, it is not."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    found = _capabilities()
    if any(found.get(name) for name in ("amx_bf16", "sve_bf16", "bf16")):
        return True
    # Intel's cores do bf16 dot products on one of the two units that multiply in fp32: 80 GFLOP/s
    # against 145 on a Xeon whose AMX is hidden by the hypervisor. AMD's do them on both.
    return bool(found.get("avx512_bf16")) and not _made_by_intel()


def _capabilities() -> Mapping[str, Any]:
    cpu: Any = torch.cpu
    if hasattr(cpu, "get_capabilities"):  # torch 2.13
        return cpu.get_capabilities()
    older = {"avx512_bf16": "_is_avx512_bf16_supported", "amx_bf16": "_is_amx_tile_supported"}
    return {name: getattr(cpu, asks)() for name, asks in older.items() if hasattr(cpu, asks)}


def _made_by_intel() -> bool:
    try:
        name = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        name = platform.processor()
    return "GenuineIntel" in name
