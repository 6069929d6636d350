from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import AutoModelForSequenceClassification

from style_overlap.errors import UsageError
from style_overlap.heads import find_head, inspect_head, is_causal, pool, watching
from tiny_models import ARCHITECTURES, DECODERS, make_config, make_tokenizer


@pytest.fixture(params=ARCHITECTURES)
def classifier(request):
    """(architecture, model, inputs, mask) of a batch of two texts, one of them padded."""
    arch = request.param
    torch.manual_seed(0)
    config = make_config(arch, make_tokenizer(arch), num_labels=3, pad_token_id=1)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    ids = torch.tensor([[2, 40, 41, 42, 43, 44], [2, 50, 51, 1, 1, 1]])
    mask = (ids != 1).long()
    inputs = {"input_ids": ids}
    if arch != "fnet":
        inputs["attention_mask"] = mask
    return arch, model, inputs, mask


@torch.no_grad()
def pass_through(model, inputs, mask, pad_id):
    """(head, h, the model's own logits) of one forward pass."""
    head = inspect_head(model, inputs, mask, pad_id)
    with watching(model, head.layer) as seen:
        logits = model(**inputs).logits
    return head, head.h(seen, inputs, mask), logits


@torch.no_grad()
def test_h_times_the_heads_weights_are_the_models_logits(classifier):
    _, model, inputs, mask = classifier
    head, h, expected = pass_through(model, inputs, mask, pad_id=1)
    assert h.shape == (2, head.layer.in_features)
    bias = 0 if head.layer.bias is None else head.layer.bias
    torch.testing.assert_close(h @ head.layer.weight.T + bias, expected)
    torch.testing.assert_close(head.logits(h), expected)


def test_the_pooling_rule_is_found_with_a_head_that_says_nothing(classifier):
    arch, model, inputs, mask = classifier
    before = inspect_head(model, inputs, mask, pad_id=1).rule
    for parameter in find_head(model, 3).parameters():
        nn.init.zeros_(parameter)
    assert inspect_head(model, inputs, mask, pad_id=1).rule == before
    assert (before is None) == (arch not in ("gpt2", "llama", "eurobert"))


def test_inspecting_leaves_the_model_as_it_was(classifier):
    _, model, inputs, mask = classifier
    with torch.no_grad():
        before = model(**inputs).logits
        inspect_head(model, inputs, mask, pad_id=1)
        assert torch.equal(model(**inputs).logits, before)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@torch.no_grad()
@pytest.mark.parametrize("pooling", ["bos", "mean", "late"])
def test_every_pooling_of_one_architecture(pooling):
    torch.manual_seed(0)
    tokenizer = make_tokenizer("eurobert")
    config = make_config("eurobert", tokenizer, num_labels=2, classifier_pooling=pooling)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    ids = torch.tensor([[2, 40, 41, 42], [2, 50, 0, 0]])
    mask = (ids != 0).long()
    inputs = {"input_ids": ids, "attention_mask": mask}
    head, h, expected = pass_through(model, inputs, mask, pad_id=0)
    torch.testing.assert_close(head.logits(h), expected)


@torch.no_grad()
def test_a_text_that_ends_in_the_padding_token_is_pooled_as_the_model_does():
    torch.manual_seed(0)
    config = make_config("gpt2", make_tokenizer("gpt2"), num_labels=2, pad_token_id=3)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    ids = torch.tensor([[40, 41, 42, 3], [50, 3, 3, 3]])  # 3 ends the texts and pads the second
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    inputs = {"input_ids": ids, "attention_mask": mask}
    head, h, expected = pass_through(model, inputs, mask, pad_id=3)
    assert head.rule == "last token that is not padding"
    torch.testing.assert_close(head.logits(h), expected)


def test_the_last_layer_with_k_outputs_is_the_head():
    body, head = nn.Linear(3, 3), nn.Linear(3, 3)
    assert find_head(nn.Sequential(body, nn.Tanh(), head, nn.Linear(3, 5)), 3) is head


def test_a_model_without_such_a_layer_is_refused():
    with pytest.raises(UsageError, match="no linear layer with 4 outputs"):
        find_head(nn.Sequential(nn.Linear(3, 3)), 4)


def test_logits_that_are_made_after_the_head_are_refused():
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(
        make_config("bert", make_tokenizer("bert"), num_labels=2)
    ).eval()
    original = model.forward

    def scaled(**inputs):
        output = original(**inputs)
        output.logits = output.logits * 3
        return output

    model.forward = scaled
    ids = torch.tensor([[2, 40, 41]])
    with pytest.raises(UsageError, match="expected a head that ends in a linear layer"):
        inspect_head(model, {"input_ids": ids}, torch.ones_like(ids), pad_id=0)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_decoders_are_told_from_encoders(arch):
    torch.manual_seed(0)
    config = make_config(arch, make_tokenizer(arch), num_labels=2, pad_token_id=1)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    with torch.inference_mode():
        found = is_causal(model, {"input_ids": torch.tensor([[2, 40, 41, 42, 43]])})
    assert found == (arch in DECODERS)


def test_pooling_reads_no_padding():
    states = torch.arange(12.0).reshape(2, 3, 2)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    assert pool(states, mask, "cls").tolist() == [[0, 1], [6, 7]]
    assert pool(states, mask, "last").tolist() == [[4, 5], [8, 9]]
    assert pool(states, mask, "mean").tolist() == [[2, 3], [7, 8]]
    left = mask.flip(1)
    assert pool(states, left, "cls")[1].tolist() == [8, 9]
    assert pool(states, left, "last")[1].tolist() == [10, 11]
