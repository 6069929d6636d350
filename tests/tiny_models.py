"""Checkpoints small enough for a test: random weights, a real tokenizer, nothing fetched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
)

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SPECIAL_ROBERTA = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")
"""As in RoBERTa the padding is number 1, which is also where its positions start."""

COMMON = """
    a all and are as at be but by came come day did do earth for from god great had hast hath
    have he heaven her him his i in is it king land light lord man men my name not of on one our
    out people said saith say see shall she so son sons than that the thee their them then there
    these they thing this thou thy to unto up upon us was water went were when which who will
    with word ye yet you your river stone bird field road house tree winter summer morning evening
"""
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

POSITIONS = 128
"""Tokens that every tiny model can take, special tokens included."""

_BERT_LIKE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    # Larger than usual: with 0.02 all texts get nearly the same logits, and no test could fail.
    "initializer_range": 0.3,
}
_GPT2_LIKE = {"n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}
_DISTIL_LIKE = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "initializer_range": 0.3}
_LLAMA_LIKE = {**_BERT_LIKE, "num_key_value_heads": 4, "head_dim": 8}

ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", {**_BERT_LIKE, "max_position_embeddings": POSITIONS}),
    # padding_idx 1: the first two positions cannot be used, 514 gives 512 in the real one
    "roberta": ("roberta", {**_BERT_LIKE, "max_position_embeddings": POSITIONS + 2}),
    "xlm-roberta": ("xlm-roberta", {**_BERT_LIKE, "max_position_embeddings": POSITIONS + 2}),
    "mpnet": ("mpnet", {**_BERT_LIKE, "max_position_embeddings": POSITIONS + 2}),
    "electra": (
        "electra",
        {**_BERT_LIKE, "embedding_size": 16, "max_position_embeddings": POSITIONS},
    ),
    "albert": (
        "albert",
        {**_BERT_LIKE, "embedding_size": 16, "max_position_embeddings": POSITIONS},
    ),
    "distilbert": ("distilbert", {**_DISTIL_LIKE, "max_position_embeddings": POSITIONS}),
    "deberta-v2": (
        "deberta-v2",
        {
            **_BERT_LIKE,
            "max_position_embeddings": POSITIONS,
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
    ),
    "modernbert": (
        "modernbert",
        {
            **_BERT_LIKE,
            "max_position_embeddings": POSITIONS,
            "initializer_cutoff_factor": 2.0,
            "global_attn_every_n_layers": 2,
            "local_attention": 16,
        },
    ),
    "fnet": ("fnet", {**_BERT_LIKE, "max_position_embeddings": POSITIONS}),
    "eurobert": ("eurobert", {**_LLAMA_LIKE, "max_position_embeddings": POSITIONS}),
    "llama": ("llama", {**_LLAMA_LIKE, "max_position_embeddings": POSITIONS}),
    "gpt2": ("gpt2", {**_GPT2_LIKE, "n_positions": POSITIONS}),
}
"""Every architecture of the tests: its ``model_type`` and the settings that make it tiny."""

ROBERTA_LIKE = ("roberta", "xlm-roberta", "mpnet")
DECODERS = ("gpt2", "llama")
"""Those with a tokenizer that has no padding token and adds no special tokens."""


def make_tokenizer(
    arch: str = "bert", *, model_max_length: int | None = None, token_types: bool = False
) -> PreTrainedTokenizerFast:
    """A lower-casing WordPiece tokenizer that knows every word of letters and digits.

    Args:
        arch: the GPT-2 family gets one without padding and special tokens.
        model_max_length: what it says of its own limit; None says nothing.
        token_types: return ``token_type_ids`` too, whether or not the model takes them.
    """
    special = SPECIAL_ROBERTA if arch in ROBERTA_LIKE else SPECIAL
    tails = [f"##{character}" for character in CHARACTERS]
    pieces = [*special, *CHARACTERS, *tails, *".,;:!?'\"()-", *COMMON.split()]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    settings: dict[str, Any] = {}
    if model_max_length is not None:
        settings["model_max_length"] = model_max_length
    if token_types:
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    if arch in DECODERS:
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            unk_token="[UNK]",
            bos_token="[CLS]",
            eos_token="[SEP]",
            **settings,
        )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        **settings,
    )


def make_config(arch: str, tokenizer: PreTrainedTokenizerFast, **overrides: Any) -> Any:
    """The configuration of a tiny model of one architecture."""
    model_type, settings = ARCHITECTURES[arch]
    tokens = {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.convert_tokens_to_ids("[CLS]"),
        "eos_token_id": tokenizer.convert_tokens_to_ids("[SEP]"),
        "cls_token_id": tokenizer.convert_tokens_to_ids("[CLS]"),
        "sep_token_id": tokenizer.convert_tokens_to_ids("[SEP]"),
        "mask_token_id": tokenizer.convert_tokens_to_ids("[MASK]"),
    }
    return AutoConfig.for_model(
        model_type, **{"vocab_size": len(tokenizer), **settings, **tokens, **overrides}
    )


def make_checkpoint(
    path: str | os.PathLike[str],
    arch: str = "bert",
    labels: Sequence[str] = ("KJV", "ASV"),
    seed: int = 0,
    *,
    zero_head: bool = False,
    model_max_length: int | None = None,
    token_types: bool = False,
    **config: Any,
) -> Path:
    """Write a checkpoint with a classification head, as ``save_pretrained`` leaves it.

    Args:
        path: folder to write.
        arch: a key of ARCHITECTURES.
        labels: names of the classes, in the order of the head's outputs.
        seed: of the random weights.
        zero_head: set the head's last layer to 0, so that all logits are equal.
        model_max_length: the limit that the tokenizer's configuration names.
        token_types: the tokenizer returns ``token_type_ids``.
        config: settings that replace those of the architecture.
    """
    tokenizer = make_tokenizer(arch, model_max_length=model_max_length, token_types=token_types)
    settings = make_config(
        arch,
        tokenizer,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        **config,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForSequenceClassification.from_config(settings)
    if zero_head:
        heads = [
            module
            for module in model.modules()
            if isinstance(module, torch.nn.Linear) and module.out_features == len(labels)
        ]
        for parameter in heads[-1].parameters():
            torch.nn.init.zeros_(parameter)
    return _save(path, model, tokenizer)


def make_encoder(
    path: str | os.PathLike[str],
    arch: str = "bert",
    seed: int = 0,
    *,
    model_max_length: int | None = None,
    token_types: bool = False,
    **config: Any,
) -> Path:
    """Write a checkpoint without a head, the kind that a fine-tuning starts from."""
    tokenizer = make_tokenizer(arch, model_max_length=model_max_length)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModel.from_config(make_config(arch, tokenizer, **config))
    return _save(path, model, tokenizer)


def _save(path: str | os.PathLike[str], model: Any, tokenizer: PreTrainedTokenizerFast) -> Path:
    folder = Path(path)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
