"""The last linear layer of a classifier, h, what goes into it, and the states it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from style_overlap.errors import UsageError

Pooling = Literal["cls", "mean", "last"]


def find_head(model: nn.Module, k: int) -> nn.Linear:
    """The layer that turns h into logits: the last ``nn.Linear`` with k outputs.

    Found by looking at the model, whatever its architecture.

    Raises:
        UsageError: the model has no such layer.
    """
    found = [
        module
        for module in model.modules()
        if isinstance(module, nn.Linear) and module.out_features == k
    ]
    if not found:
        raise UsageError(
            f"{type(model).__name__} has no linear layer with {k} outputs: expected a model "
            "whose classification head ends in one (torch.nn.Linear)"
        )
    return found[-1]


def pool(states: torch.Tensor, mask: torch.Tensor, how: Pooling) -> torch.Tensor:
    """One vector a text, from one a token.

    Args:
        states: shape (batch, length, d).
        mask: 1 where there is a token and 0 where there is padding, shape (batch, length).
        how: ``cls`` the first token, ``last`` the last one, ``mean`` the mean over all.

    Returns:
        Shape (batch, d).
    """
    if how == "mean":
        weights = mask.float().unsqueeze(-1)
        return (states.float() * weights).sum(dim=1) / weights.sum(dim=1)
    length = mask.shape[1]
    place = mask.argmax(dim=1) if how == "cls" else length - 1 - mask.flip(1).argmax(dim=1)
    return states[torch.arange(len(states), device=states.device), place]


@dataclass
class Seen:
    """What passed through a model in one forward pass.

    Attributes:
        head_input: shape (batch, d), or (batch, length, d) where the model pools after the head.
        last: states of the body's last layer, shape (batch, length, d).
    """

    head_input: torch.Tensor | None = None
    last: torch.Tensor | None = None


@contextmanager
def watching(model: Any, head: nn.Linear | None) -> Iterator[Seen]:
    """Collect the head's input and the body's last states from the next forward pass."""
    seen = Seen()
    # The hooks go when the pass is over: a model in training stays as it was.
    handles = [model.base_model.register_forward_hook(lambda _m, _i, out: _keep_last(seen, out))]
    if head is not None:
        handles.append(head.register_forward_pre_hook(lambda _m, args: _keep_input(seen, args)))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _keep_input(seen: Seen, args: tuple[Any, ...]) -> None:
    seen.head_input = args[0] if args else None


def _keep_last(seen: Seen, output: Any) -> None:
    # An encoder-decoder's first output is the decoder's, which sees the text from the left only.
    encoded = getattr(output, "encoder_last_hidden_state", None)
    seen.last = output[0] if encoded is None else encoded


@dataclass(frozen=True)
class Head:
    """A classifier's last linear layer, and how h is had from what goes into it.

    Attributes:
        layer: the linear layer, shape (k, d).
        pad_id: token id of the padding.
        rule: how a model that pools after the head pools, None for one that does so before it.
    """

    layer: nn.Linear
    pad_id: int
    rule: str | None = None

    def h(self, seen: Seen, inputs: dict[str, torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """The vectors that the head's logits are linear in, shape (batch, d)."""
        if seen.head_input is None or self.rule is None:
            return _two_dimensional(seen.head_input, len(mask))
        return _RULES[self.rule](seen.head_input, inputs["input_ids"], mask, self.pad_id)

    def logits(self, h: torch.Tensor) -> torch.Tensor:
        """h @ W.T + b in fp32, shape (batch, k).

        In bf16 the logits would keep 8 bits: classes that differ would come out as ties.
        """
        bias = None if self.layer.bias is None else self.layer.bias.float()
        return nn.functional.linear(h.float(), self.layer.weight.float(), bias)


def inspect_head(
    model: Any, inputs: dict[str, torch.Tensor], mask: torch.Tensor, pad_id: int
) -> Head:
    """Find the head, and by which rule the model pools what goes into it.

    The head's output is replaced by a random linear map of its input for one pass; only the rule
    that the model itself follows gives its answer back, even if the trained weights are all zero.

    Args:
        model: a model with a classification head.
        inputs: texts of different lengths, as the model takes them.
        mask: their attention mask, shape (batch, length).
        pad_id: token id of the padding.

    Raises:
        UsageError: the model's logits are no linear function of what goes into the layer.
    """
    layer = find_head(model, model.config.num_labels)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(layer.weight.shape, generator=generator).to(layer.weight.device)

    def project(_module: Any, args: tuple[Any, ...], _output: Any) -> torch.Tensor:
        return nn.functional.linear(args[0].float(), weights)

    handle = layer.register_forward_hook(project)
    try:
        with watching(model, layer) as seen, torch.inference_mode():
            answer = model(**inputs).logits
    finally:
        handle.remove()
    rules: list[str | None] = [None]
    if seen.head_input is not None and seen.head_input.dim() == 3:
        rules = list(_RULES)
    heads = [Head(layer, pad_id, rule) for rule in rules]
    errors = [_relative_error(weights, head.h(seen, inputs, mask), answer) for head in heads]
    best = min(range(len(heads)), key=errors.__getitem__)
    if not errors[best] < 1e-2:  # a NaN too
        raise UsageError(
            f"{type(model).__name__}: its logits are not what its last linear layer with "
            f"{layer.out_features} outputs gives for the first token, the last one or the mean: "
            "expected a head that ends in a linear layer"
        )
    return heads[best]


def is_causal(model: Any, inputs: dict[str, torch.Tensor]) -> bool:
    """Whether a token's state depends on nothing that comes after it.

    Args:
        inputs: one text of several tokens, as the model takes it.
    """
    ids = inputs["input_ids"]
    turned = torch.cat([ids[:, :1], ids[:, 1:].flip(1)], dim=1)
    first: list[torch.Tensor] = []
    for version in (ids, turned):
        with watching(model, None) as seen:
            model(**{**inputs, "input_ids": version})
        if seen.last is None:
            return False
        first.append(seen.last[:, 0].float())
    return torch.allclose(first[0], first[1], rtol=1e-3, atol=1e-5)


def _relative_error(weights: torch.Tensor, h: torch.Tensor, answer: torch.Tensor) -> float:
    expected = nn.functional.linear(h.float(), weights)
    if expected.shape != answer.shape:
        return float("inf")
    return float((expected - answer.float()).abs().max() / expected.abs().max())


def _two_dimensional(states: torch.Tensor | None, batch: int) -> torch.Tensor:
    if states is None or states.shape[:-1] != (batch,):
        shape = "nothing" if states is None else f"shape {tuple(states.shape)}"
        raise UsageError(f"into the classification head went {shape}: expected ({batch}, d)")
    return states


def _last_unlike_padding(
    states: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor, pad_id: int
) -> torch.Tensor:
    # Decoders look for the padding's token id, which a tokenizer may also set at a text's end.
    return pool(states, (ids != pad_id).long(), "last")


_RULES: dict[str, Callable[..., torch.Tensor]] = {
    "last token": lambda states, _ids, mask, _pad: pool(states, mask, "last"),
    "last token that is not padding": _last_unlike_padding,
    "first token": lambda states, _ids, mask, _pad: pool(states, mask, "cls"),
    "mean": lambda states, _ids, mask, _pad: pool(states, mask, "mean"),
}
