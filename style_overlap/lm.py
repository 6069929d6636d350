"""The model that lm-eval calls: any classifier of styles, scored by its own head.

    lm_eval --model style-encoder --model_args pretrained=DIR --tasks 'style_overlap_k3_*'

The harness asks for the log-likelihood of every class name after a prompt. The answer is the
log-probability that the checkpoint's head gives the class, for the passage itself: the prompt
around it is for causal models.

Retrieval tasks ask for features of texts instead (``embed``). A passage that is in tasks of both
kinds passes through the model once, unless its class is wanted in bf16 and its features in fp32.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch
from lm_eval.api.model import LM, CacheHook
from lm_eval.utils import simple_parse_args_string

from style_overlap.coverage import Coverage
from style_overlap.embedding import FEATURES, Embedding, embeddings
from style_overlap.encoder import LOGITS, Encoder, Want
from style_overlap.errors import UsageError
from style_overlap.model_args import merged, refuse_unknown
from style_overlap.model_folders import training_record
from style_overlap.processes import Processes
from style_overlap.questions import read_questions, read_text_requests

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

# Features come with the logits at no cost but memory: more texts than these, a few hundred
# megabytes, are passed again if somebody asks for their features.
_KEEP_FEATURES = 20_000

_OWNER = "style_overlap:model"
"""Key in a response cache that names its model; the harness's own keys are hexadecimal hashes."""


class StyleEncoderLM(LM):
    """A style classifier as one of the harness's models.

    Attributes:
        encoder: the checkpoint.
        coverage: the passages that have been scored.
    """

    def __init__(
        self,
        pretrained: str | None = None,
        *,
        dtype: str | torch.dtype = "auto",
        batch_size: int | str | None = "auto",
        max_batch_size: int | None = None,
        device: str | None = None,
        max_length: int | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
        **unknown: Any,
    ) -> None:
        """Load a checkpoint.

        Args:
            pretrained: folder, hub id or ``package:NAME`` with a trained classification head.
            dtype: ``auto`` is bf16 where the processor is faster in it, else fp32, and always fp32
                for features.
            batch_size: passages in a batch at most; ``auto`` counts tokens instead.
            max_batch_size: the same, as a bound on ``auto``.
            device: None or ``cuda:0``, the harness's default, for the best there is.
            max_length: read at most so many tokens of a passage.

        Raises:
            UsageError: an argument that is missing, unknown or unusable, or a model that cannot
                be had or has no trained head.
        """
        super().__init__()
        refuse_unknown(unknown)
        if pretrained is None:
            raise UsageError(
                "which checkpoint? Give --model_args pretrained=DIR, a folder that "
                "style-overlap train has written, or a hub id"
            )
        self.revision = revision
        self.processes = Processes(device)
        load = partial(
            Encoder.load,
            str(pretrained),
            device=self.processes.device,
            max_length=max_length,
            revision=revision,
            trust_remote_code=trust_remote_code,
            batch_size=max_batch_size if str(batch_size).startswith("auto") else batch_size,
            progress=None if self.processes.rank == 0 else False,
        )
        self.encoder = load(dtype=dtype)
        rounded = dtype == "auto" and self.encoder.dtype != torch.float32
        self._load_fp32 = partial(load, dtype=torch.float32) if rounded else None
        self._device = self.encoder.device
        self._rank, self._world_size = self.processes.rank, self.processes.count
        self.coverage = Coverage()

    @classmethod
    def create_from_arg_string(
        cls, arg_string: str, additional_config: dict[str, Any] | None = None
    ) -> StyleEncoderLM:
        """Build from ``key=value,...``, as ``create_from_arg_obj`` does from a mapping."""
        return cls.create_from_arg_obj(simple_parse_args_string(arg_string), additional_config)

    @classmethod
    def create_from_arg_obj(
        cls, arg_dict: dict[str, Any], additional_config: dict[str, Any] | None = None
    ) -> StyleEncoderLM:
        """Build from ``--model_args`` and the harness's own options; the former win."""
        return cls(**merged(arg_dict, additional_config or {}))

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Log-probability of a class for a passage, and whether no class has a higher one.

        Classes with equal logits get equal log-probabilities: a tie stays a tie.

        Args:
            requests: of all tasks of a run; each passage passes through the model once.

        Raises:
            UsageError: a request of some other task, or of one with other classes than the
                checkpoint's. All of them are looked at before any passage is scored.
        """
        if not requests:
            return []
        questions = read_questions(requests, self.encoder.labels, self.encoder.name)
        texts = list(dict.fromkeys(question.text for question in questions))
        wants: list[Want] = [LOGITS]
        if self._load_fp32 is None and len(texts) <= _KEEP_FEATURES:
            wants += FEATURES.values()
        scores = _log_softmax(self.encoder.forward(texts, wants)[LOGITS])
        self._cover([(question.text, question.style) for question in questions])
        row = {text: number for number, text in enumerate(texts)}
        top = scores.max(axis=1)
        return [
            (float(scores[i, label]), bool(scores[i, label] == top[i]))
            for i, label in ((row[question.text], question.label) for question in questions)
        ]

    def embed(self, requests: list[Instance]) -> list[Embedding]:
        """Features of texts, in fp32 unless ``dtype`` asks for another format.

        Rounding to bf16 is about as large as what content leaves in h.

        Args:
            requests: of all retrieval tasks of a run; each text passes through the model once.

        Raises:
            UsageError: as for ``loglikelihood``, or a feature that is not one of ``FEATURES``.
        """
        asked = read_text_requests(requests, self.encoder.labels, self.encoder.name)
        found = embeddings(self.embedder, asked)
        self._cover([(request.text, request.version) for request in asked])
        return found

    @cached_property
    def embedder(self) -> Encoder:
        """The encoder of features: the same one, or the same weights in fp32."""
        return self.encoder if self._load_fp32 is None else self._load_fp32()

    def _cover(self, passages: list[tuple[str, str]]) -> None:
        texts = [text for text, _ in passages]
        self.coverage.add(texts, [style for _, style in passages], self.encoder.truncated(texts))

    def get_model_info(self) -> dict[str, Any]:
        """What the results file says of the model, and of how much of the passages it read.

        ``truncated`` counts distinct passages by style, over all processes once the harness has
        gathered their results.
        """
        return {
            "labels": list(self.encoder.labels),
            "model_fingerprint": self.encoder.model_fingerprint,
            "model_revision": self.revision,
            "model_num_parameters": sum(p.numel() for p in self.encoder.model.parameters()),
            "model_dtype": str(self.encoder.dtype).removeprefix("torch."),
            "model_device": str(self.encoder.device),
            "max_length": self.encoder.max_length,
            "unique_texts": self.coverage.unique_texts,
            "truncated": self.coverage.truncated,
            "training": self._training(),
        }

    def _training(self) -> dict[str, Any] | None:
        """How a checkpoint of ours was trained, None for anyone else's weights.

        With it, a results file says by itself at which overlap its model was trained.
        """
        record = training_record(self.encoder.folder)
        if record.get("model_fingerprint") != self.encoder.model_fingerprint:
            return None  # weights of another training, or a checkpoint from the middle of one
        told = ("config", "data", "degenerate", "base_model_fingerprint")
        return {name: record.get(name) for name in told}

    def set_cache_hook(self, cache_hook: CacheHook) -> None:
        """Take a response cache, unless another model has filled it.

        The harness finds responses by prompt and class name alone: from another model's cache it
        would serve that model's answers as this one's.

        Raises:
            UsageError: the cache is another model's, or nobody knows whose.
        """
        super().set_cache_hook(cache_hook)
        cache: Any = cache_hook.dbdict
        if cache is None:
            return
        mine = self.encoder.fingerprint
        owner = cache.get(_OWNER)
        if owner is None and len(cache) == 0:
            cache[_OWNER] = mine
        elif owner != mine:
            whose = "another model, dtype or max_length" if owner else "a model that left no name"
            raise UsageError(
                f"the --use_cache database {cache.filename} holds responses of {whose}: give "
                f"{self.encoder.name} a path of its own"
            )

    @property
    def tokenizer(self) -> Any:
        """The checkpoint's tokenizer, of which the harness notes the special tokens."""
        return self.encoder.tokenizer

    @property
    def max_length(self) -> int | None:
        """Tokens that are read of a passage."""
        return self.encoder.max_length

    @property
    def tokenizer_name(self) -> str:
        """Name of the checkpoint."""
        return self.encoder.name

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """See ``Processes.all_gather``."""
        return self.processes.all_gather(tensor)

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        """See ``Processes.gather_object``; what the others have counted comes along."""
        parts = self.processes.gather_object((obj, self.coverage.passages), dst)
        if parts is None:
            return None
        self.coverage.passages = set().union(*(passages for _, passages in parts))
        return [part for part, _ in parts]

    def barrier(self) -> None:
        """Wait for all processes."""
        self.processes.barrier()

    def loglikelihood_rolling(self, requests: list[Instance]) -> NoReturn:
        """Not for a classifier."""
        raise NotImplementedError(_only_styles("no likelihood of a whole text"))

    def generate_until(self, requests: list[Instance]) -> NoReturn:
        """Not for a classifier."""
        raise NotImplementedError(_only_styles("no text"))

    def apply_chat_template(self, *_: Any, **__: Any) -> NoReturn:
        """Not for a classifier."""
        raise NotImplementedError(_only_styles("no chat") + "; leave out --apply_chat_template")

    def chat_template(self, chat_template: bool | str = False) -> str:
        """None: whoever asks for one is told so before any prompt is built."""
        if chat_template:
            self.apply_chat_template()
        return ""


def _log_softmax(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Log-probabilities, shape (n, k): in fp64, so that logits that differ still do afterwards."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _only_styles(what: str) -> str:
    return (
        f"style-encoder is a classifier of styles: it gives {what}. It runs the tasks named "
        "style_overlap_k*_a* and content_retrieval_*"
    )
