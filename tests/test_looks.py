"""When a training is looked at, and at how much."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from style_overlap.errors import UsageError
from style_overlap.trainers.looks import LEAST, SHARE, Length, Looks, plan_looks, tell_cost

SPLITS = np.resize([0, 0, 1, 0, 0, 2, 0, 0, 0, 0], 6000)


def arguments(**fields: Any) -> Any:
    defaults = {
        "train_batch_size": 8, "gradient_accumulation_steps": 4, "world_size": 1, "max_steps": -1,
        "num_train_epochs": 3.0, "dataloader_drop_last": False, "bf16": False, "fp16": False,
        "fsdp": [], "deepspeed": None, "device": torch.device("cpu"),
    }  # fmt: skip
    return SimpleNamespace(**{**defaults, **fields})


def asked(every: float | None = None, steps: int | None = None, contents: int | None = None) -> Any:
    return {"probe_every": every, "probe_steps": steps, "probe_contents": contents}


def steps(every: float | None, number: int | None, total: int, epoch: int) -> tuple[int, ...]:
    return Looks(every, number, None, 10, None).steps(Length(total, epoch, 0))


@pytest.mark.parametrize(
    ("every", "number", "expected"),
    [
        (0.25, None, (0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50)),
        (1, None, (0, 20, 40, 50)),
        (0.3, None, (0, 6, 12, 18, 24, 30, 36, 42, 48, 50)),
        (9, None, (0, 50)),
        (None, 7, (0, 7, 14, 21, 28, 35, 42, 49, 50)),
        (None, 99, (0, 50)),
        (0.001, None, tuple(range(51))),
    ],
)
def test_looks_come_before_the_first_step_at_every_interval_and_after_the_last(
    every, number, expected
):
    assert steps(every, number, 50, 20) == expected


@given(every=st.floats(0.001, 5), total=st.integers(1, 500), epoch=st.integers(1, 200))
def test_no_two_looks_are_further_apart_than_was_asked_for(every, total, epoch):
    found = steps(every, None, total, epoch)
    assert (found[0], found[-1]) == (0, total)
    gaps = np.diff(found)
    assert (gaps > 0).all()
    assert gaps.max() <= max(every * epoch, 1) + 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Length(96, 32, 3000)),  # 1000 texts: 125 passes, 32 steps of 4
        ({"max_steps": 16}, Length(16, 32, 500)),
        ({"world_size": 2}, Length(48, 16, 3000)),
        ({"dataloader_drop_last": True, "train_batch_size": 300}, Length(3, 1, 3000)),
        ({"num_train_epochs": 0.1}, Length(4, 32, 125)),
    ],
)
def test_the_length_of_a_training_is_known_beforehand(fields, expected):
    assert Length.of(arguments(**fields), 1000) == expected


def texts(looks: Looks, versions: int = 4) -> int:
    train = round((SPLITS != 2).sum() * looks.contents / len(SPLITS))
    return (train + (looks.limit or 0)) * versions


@pytest.mark.parametrize("every", [0.25, 0.5, 1, 3])
@pytest.mark.parametrize("bf16", [False, True])
def test_the_budget_of_all_looks_is_a_share_of_the_training(every, bf16):
    settings = arguments(bf16=bf16)
    looks = plan_looks(asked(every), settings, 20_000, SPLITS, 4, 2)
    number = len(looks.steps(Length.of(settings, 20_000)))
    cost = number * texts(looks) / (60_000 * (2 if bf16 else 3))
    whole = looks.contents == len(SPLITS)
    assert cost <= SHARE * 1.02
    assert whole or cost > SHARE * 0.95, "the budget is used"
    assert plan_looks(asked(every), settings, 20_000, SPLITS, 4, 2) == looks


def test_more_looks_or_more_versions_leave_fewer_texts_to_each():
    one, four = (plan_looks(asked(every), arguments(), 10_000, SPLITS, 4, 2) for every in (1, 0.25))
    seven = plan_looks(asked(1), arguments(), 10_000, SPLITS, 7, 11)
    assert one.contents > four.contents
    assert one.limit > four.limit
    assert one.limit > seven.limit
    assert (one.seeds, seven.seeds) == (3, 1)


def test_below_a_least_number_of_contents_looks_cost_more_and_that_is_said(caplog):
    looks = plan_looks(asked(0.25), arguments(), 200, SPLITS, 4, 2)
    assert looks.limit == LEAST // 2
    assert texts(looks) == pytest.approx(LEAST * 4, abs=4)
    with caplog.at_level(logging.INFO):
        tell_cost(looks, 256, arguments(), 200)  # 13 looks of 256 against 600 texts 3 times
        tell_cost(looks, 256, arguments(), 20_000)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert caplog.messages[0].startswith(
        "13 looks at 256 texts each cost about 1.85 of the training, more than a third of it: "
        "ask for fewer looks, or train on more texts; no look is at fewer than 64 contents"
    )
    caplog.clear()
    tell_cost(
        plan_looks(asked(0.25, None, 500), arguments(), 200, SPLITS, 4, 2), 256, arguments(), 200
    )
    assert caplog.messages[0].endswith("fewer looks, or for fewer contents by --probe-contents")


def test_a_small_corpus_is_looked_at_whole():
    small = SPLITS[:50]
    looks = plan_looks(asked(1), arguments(), 40, small, 4, 2)
    assert (looks.contents, looks.limit) == (50, 5)


def test_contents_that_were_asked_for_leave_the_gallery_whole():
    looks = plan_looks(asked(0.25, None, 500), arguments(), 10_000, SPLITS, 4, 2)
    assert (looks.contents, looks.limit, looks.seeds) == (500, None, 3)
    with pytest.raises(UsageError, match="--probe-contents is 6001: the corpus has 6000"):
        plan_looks(asked(0.25, None, 6001), arguments(), 10_000, SPLITS, 4, 2)


@pytest.mark.parametrize("spread", [{"fsdp": ["full_shard"]}, {"deepspeed": "config.json"}])
def test_a_model_in_parts_cannot_be_looked_at(spread):
    with pytest.raises(UsageError, match="whole model in one process"):
        plan_looks(asked(0.25), arguments(**spread), 10_000, SPLITS, 4, 2)
