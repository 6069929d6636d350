"""Texts as batches of tokens: how many fit, in which order, how padded."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from style_overlap.errors import UsageError

logger = logging.getLogger(__name__)

_LIMITLESS = 10**9
"""A tokenizer that knows no limit names one above this."""


@dataclass(frozen=True)
class Tokens:
    """Tokenised texts.

    Attributes:
        columns: what the model takes, without the attention mask: token ids of every text.
        lengths: tokens of the whole text, shape (n,).
        kept: tokens that are left of it, shape (n,).
    """

    columns: dict[str, list[list[int]]]
    lengths: npt.NDArray[np.int64]
    kept: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """How a model wants its batches.

    Attributes:
        accepted: names of the inputs that its ``forward`` takes.
        pad_id: token id of the padding.
        side: ``right`` or ``left``.
        max_length: tokens at most, None for no limit.
        multiple: batches are padded to a multiple of so many tokens.
    """

    accepted: frozenset[str]
    pad_id: int
    side: str
    max_length: int | None
    multiple: int = 1

    @property
    def equal_lengths(self) -> bool:
        """Whether a batch may hold no padding: nothing tells the model which tokens are."""
        return "attention_mask" not in self.accepted


def usable_positions(model: Any) -> int | None:
    """Tokens that the model has positions for, None if it sets no limit.

    Models after RoBERTa count positions from ``padding_idx + 1``: of 514 they can use 512.
    """
    positions = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions <= 0:
        return None
    for name, module in model.named_modules():
        if (
            isinstance(module, nn.Embedding)
            and "position" in name
            and module.num_embeddings == positions
            and module.padding_idx is not None
        ):
            return positions - module.padding_idx - 1
    return positions


def inspect_layout(model: Any, tokenizer: Any, max_length: int | None, multiple: int = 1) -> Layout:
    """How a model wants its batches, found by looking at it and at its tokenizer.

    Args:
        max_length: the user's own limit; the least of it, the tokenizer's and the model's holds.

    Raises:
        UsageError: no room for a single word, or no token to pad with.
    """
    least = tokenizer.num_special_tokens_to_add() + 1
    if max_length is not None and (not isinstance(max_length, int) or max_length < least):
        raise UsageError(f"max_length is {max_length!r}: expected a number of at least {least}")
    limits = [usable_positions(model)]
    if tokenizer.model_max_length < _LIMITLESS:
        limits.append(tokenizer.model_max_length)
    possible = min((limit for limit in limits if limit is not None), default=None)
    if possible is not None and max_length is not None and max_length > possible:
        logger.warning("max_length is %d, but the model takes %d tokens", max_length, possible)
    both = [limit for limit in (possible, max_length) if limit is not None]
    return Layout(
        accepted=frozenset(inspect.signature(model.forward).parameters),
        pad_id=padding_id(model, tokenizer),
        side=tokenizer.padding_side,
        max_length=min(both, default=None),
        multiple=multiple,
    )


def rows_at_most(batch_size: int | str | None) -> int | None:
    """Texts in a batch at most, None (also for ``auto`` and ``auto:N``) for any number.

    Raises:
        UsageError: not a batch size.
    """
    text = str(batch_size)
    if batch_size is None or text == "auto" or text.startswith("auto:"):
        return None
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"batch_size is {batch_size!r}: expected auto or a number from 1 on")
    return int(text)


def padding_id(model: Any, tokenizer: Any) -> int:
    """Token id to pad with; sets it in the configuration of a model that has none.

    The model's own id goes first: RoBERTa counts positions and GPT-2 finds the last token by it.
    The GPT-2 family has neither; it pads with the token that ends a text, which no text holds.

    Raises:
        UsageError: neither the model nor the tokenizer has a token that could serve.
    """
    config = model.config.get_text_config()
    pad = getattr(config, "pad_token_id", None)
    if isinstance(pad, int) and 0 <= pad < config.vocab_size:
        return pad
    for found in (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id):
        if found is not None:
            config.pad_token_id = found
            return int(found)
    raise UsageError(
        f"the tokenizer of {type(model).__name__} has no padding, end or unknown token: set "
        "pad_token in its tokenizer_config.json"
    )


def tokenise(tokenizer: Any, texts: Sequence[str], layout: Layout) -> Tokens:
    """Tokenise texts once; only those that are too long are cut, in a second call.

    Raises:
        UsageError: a text without any token.
    """
    whole = tokenizer(list(texts), verbose=False, return_attention_mask=False)
    columns = {name: list(values) for name, values in whole.items() if name in layout.accepted}
    lengths = np.array([len(ids) for ids in columns["input_ids"]], dtype=np.int64)
    if len(lengths) and lengths.min() == 0:
        raise UsageError(f"a text has no tokens: {texts[int(lengths.argmin())]!r}")
    limit = layout.max_length
    cut = [] if limit is None else np.flatnonzero(lengths > limit).tolist()
    if cut:
        short = tokenizer(
            [texts[row] for row in cut],
            truncation=True,
            max_length=limit,
            return_attention_mask=False,
        )
        for name in columns:
            for row, values in zip(cut, short[name], strict=True):
                columns[name][row] = values
    kept = np.array([len(ids) for ids in columns["input_ids"]], dtype=np.int64)
    return Tokens(columns, lengths, kept)


def longest_first(texts: Sequence[str], tokens: Tokens) -> list[int]:
    """Rows in the order in which they are batched.

    The same texts give the same batches, in whatever order they come.
    """
    return sorted(range(len(texts)), key=lambda row: (-int(tokens.kept[row]), texts[row]))


def next_batch(
    kept: npt.NDArray[np.int64], budget: int, max_rows: int | None, equal_lengths: bool
) -> int:
    """How many of the rows, longest first, make the next batch: at least one.

    Args:
        kept: their lengths in tokens, falling.
        budget: tokens that a batch may have, padding included.
        max_rows: texts that it may have.
        equal_lengths: only texts of one length go together.
    """
    longest = int(kept[0])
    rows = max(1, budget // longest)
    if max_rows is not None:
        rows = min(rows, max_rows)
    if equal_lengths:
        rows = min(rows, int((kept == longest).sum()))
    return min(rows, len(kept))


def pad(
    tokens: Tokens, rows: Sequence[int], layout: Layout, device: torch.device
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """A batch as the model takes it, and its mask.

    Returns:
        Inputs by name, each of shape (len(rows), length), and the attention mask of that shape
        (also among the inputs if the model takes one).
    """
    longest = int(tokens.kept[list(rows)].max())
    if not layout.equal_lengths:
        longest = -(-longest // layout.multiple) * layout.multiple
        longest = min(longest, layout.max_length or longest)
    mask = np.zeros((len(rows), longest), dtype=np.int64)
    arrays = {
        name: np.full(mask.shape, layout.pad_id if name == "input_ids" else 0, dtype=np.int64)
        for name in tokens.columns
    }
    for place, row in enumerate(rows):
        length = int(tokens.kept[row])
        here = slice(longest - length, longest) if layout.side == "left" else slice(0, length)
        mask[place, here] = 1
        for name, array in arrays.items():
            array[place, here] = tokens.columns[name][row]
    inputs = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
    attention = torch.from_numpy(mask).to(device)
    if "attention_mask" in layout.accepted:
        inputs["attention_mask"] = attention
    return inputs, attention
