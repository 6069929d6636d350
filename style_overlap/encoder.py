"""Any checkpoint as a function of texts: logits and features, each text passed once.

encoder = Encoder.load("runs/k2_a0.4_seed0")
encoder.logits(texts)                                  # (n, k), classes as in encoder.labels
encoder.features(texts)                                # (n, d), h: the head's input
encoder.features(texts, layer="last", pooling="cls")   # (n, d), the body's last [CLS]
encoder.forward(texts, [LOGITS, Feature(), Feature("last", "cls")])   # all from one pass
"""

from __future__ import annotations

import logging
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from style_overlap.checkpoints import HeadKind, lacks_weights, load_checkpoint
from style_overlap.devices import pick_device, pick_dtype
from style_overlap.errors import UsageError
from style_overlap.heads import Pooling, find_head
from style_overlap.model_folders import (
    checkpoint_fingerprint,
    default_pooling,
    model_fingerprint,
    resolve_model,
)
from style_overlap.passes import LOGITS, Feature, NotFiniteError, Want
from style_overlap.textmodel import PROBE, TextModel

__all__ = [
    "LOGITS",
    "Encoder",
    "Feature",
    "TextModel",
    "Want",
    "find_head",
    "model_fingerprint",
    "pick_device",
    "pick_dtype",
    "resolve_model",
]

logger = logging.getLogger(__name__)


class Encoder(TextModel):
    """A checkpoint as a function of texts, its weights frozen.

    Attributes:
        folder: where it lies.
    """

    def __init__(self, model: Any, tokenizer: Any, *, folder: Path, **options: Any) -> None:
        """Wrap a model and the folder that it was read from: see ``TextModel``."""
        super().__init__(model, tokenizer, **options)
        self.folder = folder

    @classmethod
    def load(
        cls,
        spec: str | Path,
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "auto",
        max_length: int | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
        head: HeadKind = True,
        batch_size: int | str | None = None,
        progress: bool | None = None,
    ) -> Encoder:
        """Load a checkpoint: a folder, a hub id or ``package:NAME``.

        Args:
            device: None for the best there is.
            dtype: ``auto`` is bf16 where the processor computes in it, else fp32.
            head: False loads the body alone, ``untuned`` an encoder as it is before fine-tuning,
                whose h is there but whose logits say nothing: see ``load_checkpoint``.

        Raises:
            UsageError: there is no such model, or it has no trained head, or one of the
                arguments cannot be used here.
        """
        place = pick_device(device)
        number_format = pick_dtype(dtype, place)
        checkpoint = load_checkpoint(
            spec,
            head=head,
            dtype=number_format,
            revision=revision,
            trust_remote_code=trust_remote_code,
        )
        wrap = partial(
            cls,
            tokenizer=checkpoint.tokenizer,
            name=str(spec),
            head=bool(head),
            max_length=max_length,
            batch_size=batch_size,
            folder=checkpoint.folder,
            progress=progress,
        )
        model = checkpoint.model.to(place)
        try:
            encoder = wrap(model)
            encoder.compute(*encoder.padded(PROBE), [Feature("last", "mean")])
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:  # FNet, for one, has no bf16
            if number_format == torch.float32:
                raise
            if dtype != "auto":
                raise UsageError(f"{spec} cannot compute in {number_format}: {error}") from None
            logger.info("%s cannot compute in %s: using float32", spec, number_format)
            encoder = wrap(model.float())
        except NotFiniteError:
            if checkpoint.missing:  # they are NaN, and so is all that they have a part in
                raise lacks_weights(spec, checkpoint.missing) from None
            raise
        return encoder

    @cached_property
    def model_fingerprint(self) -> str:
        """SHA-256 (hex) of the weight files."""
        return model_fingerprint(self.folder)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of all that its results depend on."""
        settings = {"dtype": str(self.dtype), "max_length": self.max_length}
        return checkpoint_fingerprint(self.folder, self.tokenizer, settings)

    @cached_property
    def pooling(self) -> Pooling:
        """How states are pooled if nobody says.

        Without a head, as a sentence-transformers folder states it; else as ``TextModel`` has it.

        Raises:
            UsageError: it states one that is none of ours.
        """
        stated = None if self.labels else default_pooling(self.folder)
        return stated or super().pooling
