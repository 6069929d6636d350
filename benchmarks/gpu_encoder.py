"""The encoder of ``benchmarks.gpu``: made, fine-tuned by our trainer, passed texts through."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.machine import forward_flops, training_flops

if TYPE_CHECKING:
    from benchmarks.gpu import Size

_FIELDS = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
LARGE = dict(zip(_FIELDS, (1024, 4096, 24, 16), strict=True))
TINY = dict(zip(_FIELDS, (32, 64, 2, 2), strict=True))


def make(folder: Path, fields: Mapping[str, int], texts: Sequence[str]) -> tuple[str, str]:
    """Save an encoder with random weights and a tokenizer; its attention, and what it is."""
    from transformers import AutoModel, BertConfig
    from transformers.utils import is_flash_attn_2_available

    tokenizer, pieces = _tokenizer(texts)
    model = AutoModel.from_config(BertConfig(vocab_size=len(tokenizer), **fields))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    attention = "flash_attention_2" if is_flash_attn_2_available() else "sdpa"
    attend(folder, attention)
    millions = sum(p.numel() for p in model.parameters()) / 1e6
    told = (
        f"an encoder of {millions:,.1f} million parameters ({fields['num_hidden_layers']} layers, "
        f"d={fields['hidden_size']}, f={fields['intermediate_size']}), attention by {attention}, "
        f"texts in {pieces}"
    )
    return attention, told


def attend(folder: Path, attention: str) -> None:
    """Have a saved model loaded with this attention; a saved configuration does not keep it."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "attn_implementation": attention}))


def _tokenizer(texts: Sequence[str]) -> tuple[Any, str]:
    """MiniLM's tokenizer, or where it is not installed one that has the texts' own words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    from benchmarks.texts import ENCODER
    from style_overlap.errors import UsageError
    from style_overlap.model_folders import resolve_model

    try:
        return AutoTokenizer.from_pretrained(resolve_model(ENCODER)), "MiniLM's word pieces"
    except UsageError:
        split = pre_tokenizers.BertPreTokenizer()
        words = dict.fromkeys(word for t in texts for word, _ in split.pre_tokenize_str(t))
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
        numbers = {word: number for number, word in enumerate([*special, *words])}
        made = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
        made.pre_tokenizer = split
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        names = dict(
            zip(("pad_token", "unk_token", "cls_token", "sep_token"), special, strict=True)
        )
        whole = PreTrainedTokenizerFast(tokenizer_object=made, **names)
        return whole, "whole words, which are fewer than word pieces: MiniLM is not installed"


def lengths_of(folder: Path, texts: Sequence[str], most: int) -> list[int]:
    """Tokens that are read of every text."""
    from transformers import AutoTokenizer

    whole = AutoTokenizer.from_pretrained(folder)(list(texts), verbose=False)["input_ids"]
    return np.minimum([len(ids) for ids in whole], most).tolist()


@dataclass(frozen=True)
class Trained:
    """A training: texts passed, seconds and operations of its steps, seconds of all the rest."""

    texts: float
    seconds: float
    flops: float
    rest: float
    told: str


def fine_tune(size: Size, base: Path, output: Path, corpus: Any, device: str) -> Trained:
    """Our own training at its defaults, but that nothing is written between epochs."""
    from transformers import AutoConfig

    from benchmarks.training import Clock
    from style_overlap.trainers.classifier import train
    from style_overlap.trainers.data import draw
    from style_overlap.trainers.settings import TrainSettings

    class Limited(Clock):
        """Stops a training that takes too long."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            """Look at the clock, which runs from minus its start."""
            control.should_training_stop |= self.seconds + time.perf_counter() > size.train_seconds

    settings = TrainSettings(
        model=str(base),
        k=2,
        alpha="0",
        output=output,
        max_length=size.max_length,
        arguments={"save_strategy": "no", "use_cpu": device == "cpu"},
    )
    watch, started = Limited(), time.perf_counter()
    record = train(settings, corpus=corpus, callbacks=[watch]).record
    rest = time.perf_counter() - started - watch.seconds
    lengths = lengths_of(base, draw(settings, corpus).texts["train"], size.max_length)
    epochs, compute = record["metrics"]["epochs"], record["compute"]
    return Trained(
        texts=epochs * len(lengths),
        seconds=watch.seconds,
        flops=epochs * training_flops(AutoConfig.from_pretrained(base), lengths),
        rest=rest,
        told=f"{len(lengths):,} texts of {np.mean(lengths):.0f} tokens on average, "
        f"{epochs:.3g} epochs in batches of {compute['effective_batch']}",
    )


class Passes:
    """Work: logits of texts by a classifier, or in fp32 the features that the probe takes."""

    def __init__(
        self, folder: Path, device: str, dtype: str, max_length: int, texts: list[str]
    ) -> None:
        """Load the model."""
        from benchmarks.texts import distinct
        from style_overlap.encoder import LOGITS, Encoder, Feature

        self.loaded = Encoder.load(
            folder, device=device, dtype=dtype, max_length=max_length, progress=False
        )
        self.distinct = distinct(texts)
        self.texts, self.want = len(self.distinct), Feature() if dtype == "fp32" else LOGITS
        lengths = lengths_of(folder, self.distinct, max_length)
        self.flops = forward_flops(self.loaded.model.config, lengths)

    def __call__(self) -> Any:
        """Tokenise and pass all texts, by a new model: the last one would remember them."""
        from style_overlap.encoder import TextModel

        one = self.loaded
        new = TextModel(one.model, one.tokenizer, max_length=one.max_length, progress=False)
        return new.forward(self.distinct, [self.want])


@dataclass(frozen=True)
class Planned:
    """Cells of a grid, texts that they train on, counted each time, and texts to score."""

    cells: int
    trained: float
    scored: int


def planned(model: str, ks: Sequence[int], seeds: Sequence[int]) -> Planned:
    """The grid on the whole default corpus at the trainer's defaults, as ``sweep`` plans it."""
    from style_overlap.corpus import load_corpus
    from style_overlap.names import ALPHAS
    from style_overlap.overlap import sample
    from style_overlap.sweep.grid import Probes, grid
    from style_overlap.trainers.settings import TrainSettings

    corpus = load_corpus("bible")
    recipe = TrainSettings(model=model, k=2, alpha="0", output=Path())
    cells = grid(corpus, [model], ks, ALPHAS, seeds, recipe, Probes()).cells
    scored = 0
    for k in ks:
        for seed in seeds:
            tests = [sample(corpus, k, alpha, seed).splits["test"] for alpha in ALPHAS]
            distinct = np.unique(np.concatenate([t.content * k + t.style for t in tests]))
            scored += len(distinct) * len(ALPHAS)  # each cell is scored at all six overlaps
    epochs = [float(cell.config["arguments"]["num_train_epochs"]) for cell in cells]
    trained = sum(n * cell.texts for n, cell in zip(epochs, cells, strict=True))
    return Planned(len(cells), trained, scored)
