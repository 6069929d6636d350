"""This process and its peers, where a launcher has started several to share the work."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import torch

from style_overlap.devices import pick_device

T = TypeVar("T")


class Processes:
    """What the harness needs to deal documents out to processes, and to collect the results.

    Works under ``accelerate launch`` and ``torchrun``; otherwise there is one process, and every
    operation gives back what it is given.

    Attributes:
        rank: number of this process, from 0 on.
        count: how many there are.
        device: the device of this process.
    """

    def __init__(self, device: str | torch.device | None = None) -> None:
        """Meet the other processes.

        Args:
            device: as for ``pick_device``; of several GPUs each process gets its own.

        Raises:
            UsageError: no such device.
        """
        self.device = pick_device(device)
        self.rank, self.count = 0, 1
        if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "LOCAL_RANK" not in os.environ:
            return
        from accelerate import PartialState

        state = PartialState(cpu=self.device.type == "cpu")
        self.rank, self.count = state.process_index, state.num_processes
        self.device = state.device

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensors of all processes, one after the other, a scalar as a vector of one."""
        if self.count == 1:
            return tensor
        mine = tensor.reshape(1) if tensor.dim() == 0 else tensor.contiguous()
        parts = [torch.empty_like(mine) for _ in range(self.count)]
        torch.distributed.all_gather(parts, mine)
        return torch.cat(parts)

    def gather_object(self, thing: T, to: int = 0) -> list[T] | None:
        """The objects of all processes in one of them, None in the others."""
        if self.count == 1:
            return [thing]
        things: list[Any] | None = [None] * self.count if self.rank == to else None
        torch.distributed.gather_object(thing, things, dst=to)
        # Without it the first to finish may leave while others still send, and the run aborts.
        self.barrier()
        return things

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.count > 1:
            torch.distributed.barrier()
