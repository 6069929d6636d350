from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForSequenceClassification

from style_overlap.batching import (
    Layout,
    Tokens,
    inspect_layout,
    longest_first,
    next_batch,
    pad,
    padding_id,
    rows_at_most,
    tokenise,
    usable_positions,
)
from style_overlap.errors import UsageError
from tiny_models import ARCHITECTURES, POSITIONS, make_config, make_tokenizer

CPU = torch.device("cpu")


def model_and_tokenizer(arch, **limits):
    tokenizer = make_tokenizer(arch, **limits)
    return AutoModelForSequenceClassification.from_config(make_config(arch, tokenizer)), tokenizer


def layout(**changes):
    return Layout(
        **{
            "accepted": frozenset({"input_ids", "attention_mask"}),
            "pad_id": 9,
            "side": "right",
            "max_length": 8,
            **changes,
        }
    )


def some_tokens(*lengths):
    kept = np.array(lengths)
    return Tokens({"input_ids": [[1] * length for length in lengths]}, kept, kept)


@pytest.mark.case(7)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_usable_positions_are_those_that_the_model_takes(arch):
    model, _ = model_and_tokenizer(arch)
    assert usable_positions(model) == POSITIONS
    ids = torch.full((1, POSITIONS), 20)  # no padding among them
    assert model(input_ids=ids).logits.shape == (1, 2)
    if arch in ("bert", "roberta", "mpnet", "gpt2"):  # those that look a position up
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=torch.full((1, POSITIONS + 1), 20))


@pytest.mark.parametrize(
    ("tokenizer_limit", "wanted", "expected"),
    [(None, None, POSITIONS), (50, None, 50), (50, 30, 30), (None, 70, 70)],
)
def test_the_least_limit_holds(tokenizer_limit, wanted, expected):
    model, tokenizer = model_and_tokenizer("roberta", model_max_length=tokenizer_limit)
    assert inspect_layout(model, tokenizer, wanted).max_length == expected


def test_a_limit_beyond_the_model_is_cut_and_said(caplog):
    with caplog.at_level(logging.WARNING):
        assert inspect_layout(*model_and_tokenizer("bert"), 4096).max_length == POSITIONS
    assert f"max_length is 4096, but the model takes {POSITIONS} tokens" in caplog.text


@pytest.mark.parametrize("wanted", [0, -1, 2, 2.5, "64"])
def test_a_limit_without_room_for_a_word_is_refused(wanted):
    with pytest.raises(UsageError, match="expected a number of at least 3"):
        inspect_layout(*model_and_tokenizer("bert"), wanted)


@pytest.mark.parametrize(
    ("given", "rows"),
    [(None, None), ("auto", None), ("auto:4", None), (8, 8), ("8", 8)],
)
def test_batch_sizes(given, rows):
    assert rows_at_most(given) == rows


@pytest.mark.parametrize("given", [0, -1, "many", 1.5, ""])
def test_a_wrong_batch_size_is_refused(given):
    with pytest.raises(UsageError, match="expected auto or a number"):
        rows_at_most(given)


@pytest.mark.case(5)
def test_a_decoder_without_padding_pads_with_the_end_of_text():
    model, tokenizer = model_and_tokenizer("gpt2")
    assert tokenizer.pad_token_id is None
    assert padding_id(model, tokenizer) == tokenizer.eos_token_id
    assert model.config.pad_token_id == tokenizer.eos_token_id


def test_the_models_own_padding_goes_first():
    model, tokenizer = model_and_tokenizer("roberta")
    tokenizer.pad_token = "[UNK]"
    assert padding_id(model, tokenizer) == model.config.pad_token_id == 1


@pytest.mark.case(5)
def test_nothing_to_pad_with_is_one_clear_error():
    model, tokenizer = model_and_tokenizer("gpt2")
    tokenizer.eos_token = tokenizer.unk_token = None
    with pytest.raises(UsageError, match=r"set pad_token in its tokenizer_config\.json"):
        padding_id(model, tokenizer)


@pytest.mark.case(6)
def test_only_inputs_that_the_model_takes_are_kept():
    tokenizer = make_tokenizer("distilbert", token_types=True)
    taken = tokenise(tokenizer, ["the word"], layout())
    assert set(taken.columns) == {"input_ids"}
    both = layout(accepted=frozenset({"input_ids", "attention_mask", "token_type_ids"}))
    assert tokenise(tokenizer, ["the word"], both).columns["token_type_ids"] == [[0] * 4]


@pytest.mark.case(7)
def test_a_long_text_is_cut_with_its_end_token_and_its_length_kept():
    tokenizer = make_tokenizer("bert")
    texts = ["the word " * 20, "light"]
    tokens = tokenise(tokenizer, texts, layout())
    assert tokens.lengths.tolist() == [42, 3]
    assert tokens.kept.tolist() == [8, 3]
    assert tokens.columns["input_ids"][0][-1] == tokenizer.sep_token_id
    assert tokens.columns["input_ids"][1] == tokenizer("light")["input_ids"]


def test_a_text_without_tokens_is_named():
    with pytest.raises(UsageError, match="a text has no tokens: ' '"):
        tokenise(make_tokenizer("gpt2"), ["word", " "], layout())


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=60),
    st.integers(1, 2000),
    st.none() | st.integers(1, 20),
    st.booleans(),
)
def test_batches_hold_every_text_once_and_keep_to_their_limits(lengths, budget, rows, equal):
    kept = np.array(sorted(lengths, reverse=True))
    start = 0
    while start < len(kept):
        count = next_batch(kept[start:], budget, rows, equal)
        batch = kept[start : start + count]
        assert len(batch) == count >= 1
        assert count == 1 or count * batch[0] <= budget
        assert rows is None or count <= rows
        assert not equal or len(set(batch)) == 1
        start += count
    assert start == len(kept)


def test_the_order_depends_on_the_texts_alone():
    texts = ["bb", "aa", "c", "dddd"]
    tokens = some_tokens(2, 2, 1, 4)
    assert [texts[row] for row in longest_first(texts, tokens)] == ["dddd", "aa", "bb", "c"]
    turned = some_tokens(4, 1, 2, 2)
    assert [texts[::-1][row] for row in longest_first(texts[::-1], turned)] == [
        "dddd",
        "aa",
        "bb",
        "c",
    ]


@pytest.mark.parametrize(
    ("side", "ids", "mask"),
    [
        ("right", [[1, 1, 1], [1, 9, 9]], [[1, 1, 1], [1, 0, 0]]),
        ("left", [[1, 1, 1], [9, 9, 1]], [[1, 1, 1], [0, 0, 1]]),
    ],
)
def test_padding_goes_no_further_than_the_longest(side, ids, mask):
    inputs, attention = pad(some_tokens(3, 7, 1), [0, 2], layout(side=side), CPU)
    assert inputs["input_ids"].tolist() == ids
    assert inputs["attention_mask"].tolist() == attention.tolist() == mask


def test_padding_to_a_multiple_stays_within_the_models_positions():
    inputs, _ = pad(some_tokens(5), [0], layout(multiple=8, max_length=100), CPU)
    assert inputs["input_ids"].shape == (1, 8)
    inputs, _ = pad(some_tokens(5), [0], layout(multiple=8, max_length=6), CPU)
    assert inputs["input_ids"].shape == (1, 6)


def test_without_an_attention_mask_nothing_is_padded():
    blind = layout(accepted=frozenset({"input_ids"}), multiple=8)
    assert blind.equal_lengths
    inputs, _ = pad(some_tokens(5, 5), [0, 1], blind, CPU)
    assert set(inputs) == {"input_ids"}
    assert inputs["input_ids"].shape == (2, 5)
