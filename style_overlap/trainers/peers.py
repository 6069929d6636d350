"""The processes that share one training: the first decides and writes, the others follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from accelerate.utils import broadcast_object_list
from transformers import TrainingArguments

from style_overlap.errors import UsageError

T = TypeVar("T")


class Peers:
    """All processes of a training, as ``torchrun`` or ``accelerate launch`` started them.

    Attributes:
        count: how many there are.
        first: whether this is the one that writes.
    """

    def __init__(self, arguments: TrainingArguments) -> None:
        """Take the process group that ``TrainingArguments`` has joined."""
        self.count, self.first = arguments.world_size, arguments.process_index == 0

    def from_first(self, act: Callable[[], T]) -> T:
        """Do something in the first process; all get its result, or its error.

        Raises:
            UsageError: what the first process raised.
        """
        if self.count == 1:
            return act()
        answer: list[Any] = [None, None]
        if self.first:
            try:
                answer[0] = act()
            except UsageError as error:
                answer[1] = error
        broadcast_object_list(answer)
        if answer[1] is not None:
            raise answer[1]
        return answer[0]
