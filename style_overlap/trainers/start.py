"""The state a fine-tuning starts from: the encoder's weights, and a new head drawn by the seed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, set_seed
from transformers.utils.hub import cached_file

from style_overlap.checkpoints import one_line, quiet
from style_overlap.errors import UsageError
from style_overlap.heads import find_head
from style_overlap.model_folders import resolve_model

logger = logging.getLogger(__name__)


def load_encoder(
    spec: str, styles: tuple[str, ...], seed: int, dropout: float | None = None
) -> tuple[Any, Any, Path]:
    """An encoder in fp32 with a new classification head, its tokenizer and its folder.

    The head is new even if the checkpoint has one: equal seeds give equal heads bit by bit,
    other seeds give others.

    Args:
        spec: folder, hub id or ``package:NAME``.
        styles: names of the classes, in label order.
        seed: of the head.
        dropout: rate for every dropout of the model, None for the configuration's own.

    Raises:
        UsageError: it cannot be had or read, has no classification head among transformers'
            models, or lacks weights of the encoder.
    """
    name = resolve_model(spec)
    with one_line(spec, name), quiet():
        tokenizer = AutoTokenizer.from_pretrained(name)
        config = AutoConfig.from_pretrained(
            name,
            id2label=dict(enumerate(styles)),
            label2id={style: label for label, style in enumerate(styles)},
            problem_type="single_label_classification",
        )
        if dropout is not None:
            _set_dropout(config, dropout)
        set_seed(seed)
        # fp32 whatever the file holds: in 8 bits of mantissa a step of 1e-5 rounds to none.
        model, info = AutoModelForSequenceClassification.from_pretrained(
            name,
            config=config,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
        folder = Path(str(cached_file(name, "config.json"))).parent
    new = {*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])}
    _refuse_random_body(spec, model, new)
    _renew_head(model, new, seed)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    return model, tokenizer, folder


def keep_head_exact(model: Any) -> None:
    """Compute the head's last layer in fp32 also under autocast.

    In bf16 logits keep 8 bits: classes that differ would come out as ties.
    """
    layer: Any = find_head(model, model.config.num_labels)
    forward = layer.forward

    def exact(states: torch.Tensor) -> torch.Tensor:
        with torch.autocast(states.device.type, enabled=False):
            return forward(states.float())

    layer.forward = exact


def computes_in_bf16(model: Any, batch: dict[str, torch.Tensor], device: torch.device) -> bool:
    """Whether a forward pass goes through under bf16 autocast; FNet's transform, for one, does not.

    Args:
        model: moved to the device.
        batch: inputs and labels.
        device: where it will be trained.
    """
    model.to(device)
    inputs = {name: tensor.to(device) for name, tensor in batch.items()}
    try:
        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
            model(**inputs)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        return False
    return True


def _set_dropout(config: Any, rate: float) -> None:
    names = [
        name
        for name, value in config.to_dict().items()
        if ("dropout" in name or name.endswith("pdrop")) and isinstance(value, float | int | None)
        if not isinstance(value, bool)
    ]
    if not names:
        raise UsageError(f"--dropout: a {config.model_type} model has no dropout rate to set")
    for name in names:
        setattr(config, name, rate)


def _refuse_random_body(spec: str, model: Any, new: set[str]) -> None:
    prefix = f"{model.base_model_prefix}."
    # A pooler is part of the body in name, but many encoders come without one.
    random = sorted(key for key in new if key.startswith(prefix) and "pooler" not in key)
    if random:
        raise UsageError(
            f"model {spec!r} lacks {len(random)} weights of the encoder, {random[0]} for one: they "
            "would be random; save the whole model, or give another"
        )


def _renew_head(model: Any, new: set[str], seed: int) -> None:
    """Draw what is outside the encoder's body again, where the checkpoint had trained weights."""
    prefix = f"{model.base_model_prefix}."
    head = [key for key, _ in model.named_parameters() if not key.startswith(prefix)]
    if new.issuperset(head):
        return
    logger.info("the checkpoint's own classification head is replaced by a new one")
    set_seed(seed)
    with quiet():
        fresh = AutoModelForSequenceClassification.from_config(model.config)
    with torch.no_grad():
        for key in head:
            model.get_parameter(key).copy_(fresh.get_parameter(key))
