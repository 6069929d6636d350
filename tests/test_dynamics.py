"""Looks at a training while it runs, on tiny encoders and invented texts."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import TrainerCallback

from conftest import QUICK, make_corpus
from style_overlap import probing
from style_overlap.encoder import Encoder, Feature
from style_overlap.errors import UsageError
from style_overlap.overlap import sample
from style_overlap.probe import probe, probe_vectors, seen_pairs, unseen_pairs
from style_overlap.probe.options import ProbeOptions
from style_overlap.probe.projectors import Settings
from style_overlap.probe.summary import summarise
from style_overlap.results import RECORD_NAME, file_digest, read_json
from style_overlap.scoring import accuracy
from style_overlap.trainers.classifier import TrainingError, TrainSettings, train
from style_overlap.trainers.data import draw
from style_overlap.trainers.dynamics import Viewpoint
from style_overlap.trainers.folder import PLAN_NAME
from style_overlap.trainers.looks import Looks
from style_overlap.trainers.start import load_encoder
from style_overlap.trainers.watch import DYNAMICS_NAME, Watch
from tiny_models import make_encoder
from train_run import command, run

CORPUS = make_corpus(200)
LEARNS = {**QUICK, "learning_rate": 2e-3}


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / DYNAMICS_NAME).read_text().splitlines()]


def steps(folder: Path) -> list[int]:
    return [line["step"] for line in lines(folder)]


def weights(folder: Path) -> str:
    return file_digest(folder / "model.safetensors")


def as_if_killed(settings: TrainSettings, output: Path, *, before_step: int) -> TrainSettings:
    """A copy of a finished run's folder as a kill would have left it."""
    shutil.copytree(settings.output, output)
    plan = {**read_json(output / RECORD_NAME), "kind": "training"}
    (output / PLAN_NAME).write_text(json.dumps(plan))
    (output / RECORD_NAME).unlink()
    (output / "model.safetensors").unlink()
    for folder in output.glob("checkpoint-*"):
        if int(folder.name.split("-")[1]) >= before_step:
            shutil.rmtree(folder)
    return replace(settings, output=output)


def size_of_weights(model: Any) -> dict[str, Any]:
    """A look that tells only which weights were looked at."""
    size = sum(float(parameter.detach().abs().double().sum()) for parameter in model.parameters())
    return {"accuracy": {"matched": size, "fully_shared": None}, "retrieval": []}


class Told(TrainerCallback):
    """What the trainer's own loggers are told."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, dict[str, float]]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self.rows.append((state.global_step, dict(logs)))


@pytest.fixture
def quick_fits(monkeypatch) -> None:
    """Projectors that are hardly trained, where what they find does not matter."""
    quick = partial(probe_vectors, settings=Settings(epochs=1))
    monkeypatch.setattr("style_overlap.probe.run.probe_vectors", quick)


@pytest.fixture(scope="module")
def looked_at(encoder, tmp_path_factory) -> tuple[TrainSettings, dict[str, Any], Told]:
    """A classifier in bf16 that was looked at every half epoch, and what its loggers were told."""
    settings = TrainSettings(
        model=str(encoder), k=2, alpha="0.4", output=tmp_path_factory.mktemp("looked") / "run",
        max_length=64, dtype="bf16", probe_every=0.5, keep_checkpoints=True,
        arguments={
            **LEARNS, "logging_steps": 1, "save_strategy": "steps", "save_steps": 7,
            "save_total_limit": 9,
        },
    )  # fmt: skip
    told = Told()
    return settings, train(settings, corpus=CORPUS, callbacks=[told]).record, told


# What a look says


def test_every_look_has_accuracy_and_both_features_of_seen_and_unseen_pairs(looked_at):
    settings, record, _ = looked_at
    assert record["metrics"]["steps"] == 20
    found = lines(settings.output)
    assert [(line["step"], line["epoch"]) for line in found] == [(0, 0), (10, 0.5), (20, 1)]
    for line in found:
        assert list(line) == ["step", "epoch", "loss", "accuracy", "retrieval"]
        told = [(row["source"], row["features"], row["set"]) for row in line["retrieval"]]
        assert told == [
            ("checkpoint", features, name)
            for features in ("h", "last/cls")
            for name in ("seen", "unseen")
        ]
        assert {row["n"] for row in line["retrieval"]} == {record["looks"]["limit"]}
        assert not any("interval" in row for row in line["retrieval"])
        assert set(line["accuracy"]) == {"matched", "fully_shared"}


def test_the_loss_of_a_look_is_the_mean_since_the_look_before(looked_at):
    settings, record, _ = looked_at
    losses = [row["loss"] for row in record["log"]]
    first, middle, last = lines(settings.output)
    assert first["loss"] is None
    assert middle["loss"] == pytest.approx(np.mean(losses[:10]))
    assert last["loss"] == pytest.approx(np.mean(losses[10:]))


def test_the_last_look_is_what_the_standalone_probe_says_of_the_checkpoint_in_fp32(looked_at):
    settings, record, _ = looked_at
    encoder = Encoder.load(settings.output, dtype="fp32", device="cpu")
    sets = {"seen": seen_pairs(["KJV", "ASV"]), "unseen": unseen_pairs(CORPUS)}
    features = {"h": Feature(), "last/cls": Feature("last", "cls")}
    found = probe(
        encoder, CORPUS, [*sets["seen"], *sets["unseen"]], features.values(),
        contents=record["looks"]["contents"], limit=record["looks"]["limit"],
    )  # fmt: skip
    for row in lines(settings.output)[-1]["retrieval"]:
        pairs = sets[row["set"]]
        results = [r for r in found[features[row["features"]]] if (r.a, r.b) in pairs]
        expected = summarise(results)
        assert {name: row[name] for name in ("top1", "recall_at_5", "n")} == {
            name: expected[name] for name in ("top1", "recall_at_5", "n")
        }


@pytest.mark.parametrize("finished", [True, False])
def test_a_kept_checkpoint_probed_afterwards_says_what_the_look_at_its_step_said(
    looked_at, tmp_path, monkeypatch, finished
):
    settings, record, _ = looked_at
    loaded = []
    load = Encoder.load
    monkeypatch.setattr(Encoder, "load", lambda *a, **o: loaded.append(load(*a, **o)) or loaded[-1])
    monkeypatch.setattr(probing, "load_corpus", lambda spec, chunk_verses: CORPUS)
    looks = record["looks"]
    options = ProbeOptions(
        unseen=True, contents=looks["contents"], limit=looks["limit"], seeds=looks["seeds"]
    )
    folder = settings.output
    if not finished:
        folder = as_if_killed(settings, tmp_path / "again", before_step=99).output
    probe_of = probing.Probing(options, dtype="fp32", device="cpu").run
    found = probe_of(str(folder / "checkpoint-20"))
    look = lines(settings.output)[-1]
    assert found["dynamics"] == {name: look[name] for name in look if name != "loss"}
    texts = Viewpoint(settings, CORPUS, draw(settings, CORPUS), Looks(**looks)).texts
    assert loaded[0].texts_passed == len(set(texts)), "no text passes twice"
    earlier = probe_of(str(folder / "checkpoint-7"))["dynamics"]
    assert (earlier["step"], earlier["epoch"]) == (7, 7 / 20)
    if finished:
        assert probe_of(str(folder))["dynamics"] is None


@pytest.mark.parametrize(("name", "alpha"), [("matched", "0.4"), ("fully_shared", "1")])
def test_accuracy_is_that_of_the_test_split_of_its_overlap(looked_at, name, alpha):
    settings, record, _ = looked_at
    encoder = Encoder.load(settings.output, dtype="fp32", device="cpu")
    test = sample(CORPUS, 2, alpha, 0).splits["test"]
    columns = [CORPUS.texts(style) for style in ("KJV", "ASV")]
    texts = [columns[s][c] for s, c in zip(test.style, test.content, strict=True)]
    assert record["looks"]["limit"] == 20, "all test contents are in the gallery"
    found = lines(settings.output)[-1]["accuracy"][name]
    assert found == pytest.approx(accuracy(encoder.logits(texts), test.style))


def test_the_trainers_own_loggers_are_told(looked_at):
    settings, _, told = looked_at
    looks = [(step, logs) for step, logs in told.rows if "eval_matched_accuracy" in logs]
    assert [step for step, _ in looks] == [0, 10, 20]
    last = lines(settings.output)[-1]
    assert looks[-1][1]["eval_fully_shared_accuracy"] == last["accuracy"]["fully_shared"]
    assert looks[-1][1]["eval_top1_unseen_last_cls"] == last["retrieval"][-1]["top1"]["mean"]
    losses = [step for step, logs in told.rows if "loss" in logs]
    assert losses == list(range(1, 21)), "no log is lost to a look"


@pytest.mark.usefixtures("quick_fits")
def test_a_corpus_without_two_reserved_versions_has_no_unseen_pair(settings):
    settings = replace(settings, k=3, probe_steps=99, arguments={**QUICK, "max_steps": 2})
    train(settings, corpus=replace(CORPUS, reserved=("NHEB",)))
    last = lines(settings.output)[-1]
    assert [(row["set"], row["pairs"]) for row in last["retrieval"]] == [("seen", 3)] * 2


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.parametrize("arch", ["gpt2", "deberta-v2", "modernbert", "fnet"])
def test_other_architectures_train_on_after_a_look(arch, tmp_path):
    settings = TrainSettings(
        model=str(make_encoder(tmp_path / arch, arch)), k=2, alpha="0.2", output=tmp_path / "run",
        max_length=None, probe_steps=9, arguments={**QUICK, "max_steps": 2},
    )  # fmt: skip
    train(settings, corpus=CORPUS)
    assert steps(settings.output) == [0, 2]
    features = {row["features"] for row in lines(settings.output)[0]["retrieval"]}
    assert features == {"h", "last/last" if arch == "gpt2" else "last/cls"}


# What a look leaves alone


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.parametrize("arguments", [{}, {"train_sampling_strategy": "random"}])
def test_weights_are_the_same_with_looks_and_without(settings, tmp_path, arguments):
    arguments = {**LEARNS, **arguments, "max_steps": 12}
    settings = replace(settings, arguments={**arguments, "logging_steps": 1})
    without = train(settings, corpus=CORPUS).record
    settings = replace(
        settings, output=tmp_path / "looked", probe_steps=5,
        arguments={**arguments, "logging_steps": 4},
    )  # fmt: skip
    with_looks = train(settings, corpus=CORPUS).record
    assert steps(settings.output) == [0, 5, 10, 12]
    losses = [row["loss"] for row in without["log"]]
    expected = [np.mean(losses[:5]), np.mean(losses[5:10]), np.mean(losses[10:])]
    assert [line["loss"] for line in lines(settings.output)[1:]] == pytest.approx(expected)
    assert with_looks["model_fingerprint"] == without["model_fingerprint"]
    differing = {name for name in without if with_looks[name] != without[name]}
    assert differing <= {"config", "looks", "time", "log", "metrics"}
    assert with_looks["metrics"]["test"] == without["metrics"]["test"]
    assert with_looks["time"]["seconds"] > with_looks["time"]["looks_seconds"] > 0
    assert (without["looks"], without["time"]["looks_seconds"]) == (None, 0)


@pytest.mark.usefixtures("quick_fits")
def test_random_states_mode_and_forward_of_the_model_are_as_before(settings):
    model, tokenizer, _ = load_encoder(settings.model, ("KJV", "ASV"), 0)
    model.train()
    forward = model.forward

    def wrapped(*args: Any, **options: Any) -> Any:
        raise AssertionError("the trainer's forward pass is not a look's")

    model.forward = wrapped
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    states = (torch.get_rng_state(), np.random.get_state(), random.getstate())
    viewpoint = Viewpoint(settings, CORPUS, draw(settings, CORPUS), Looks(1, None, None, 50, 20))
    viewpoint.look(model, tokenizer, 64)
    assert torch.equal(states[0], torch.get_rng_state())
    assert all(map(np.array_equal, states[1], np.random.get_state()))
    assert states[2] == random.getstate()
    assert all(module.training for module in model.modules())
    assert model.forward is wrapped
    assert forward.__func__ is type(model).forward
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


# Options


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probe_every": 0.5, "probe_steps": 5}, "give one of them"),
        ({"probe_every": 0.0}, r"--probe-every is 0\.0"),
        ({"probe_every": float("nan")}, "--probe-every is nan"),
        ({"probe_steps": 0}, "--probe-steps is 0"),
        ({"probe_contents": 50}, "--probe-contents says at what"),
        ({"probe_every": 1, "probe_contents": 201}, "--probe-contents is 201"),
        ({"probe_every": 1, "probe_contents": 9}, "1 contents to stop their training"),
    ],
)
def test_looks_that_cannot_be_had_are_refused_before_anything_is_written(settings, change, message):
    with pytest.raises(UsageError, match=message):
        train(replace(settings, **change), corpus=CORPUS)
    assert not settings.output.exists()


def test_a_finished_run_is_handed_back_to_who_asks_for_its_looks_or_for_none(looked_at):
    settings, record, _ = looked_at
    before = (settings.output / DYNAMICS_NAME).read_bytes()
    for change in ({}, {"probe_every": None}):
        again = train(replace(settings, **change), corpus=CORPUS)
        assert again.already_done
        assert again.record["looks"] == record["looks"]
    assert (settings.output / DYNAMICS_NAME).read_bytes() == before


def test_looks_that_come_too_late_are_one_line_that_says_what_to_do(looked_at, settings):
    looked, _, _ = looked_at
    with pytest.raises(UsageError) as error:
        train(replace(looked, probe_every=None, probe_steps=5), corpus=CORPUS)
    assert "trained with --probe-every 0.5 and not with --probe-steps 5" in str(error.value)
    assert f"style-overlap probe {looked.output}/checkpoint-*" in str(error.value)
    settings = replace(settings, arguments={**QUICK, "max_steps": 1})
    train(settings, corpus=CORPUS)
    with pytest.raises(
        UsageError, match=r"without looks and not with --probe-every 0\.25"
    ) as error:
        train(replace(settings, probe_every=0.25), corpus=CORPUS)
    assert str(error.value).endswith(f"style-overlap probe {settings.output}")
    assert not (settings.output / DYNAMICS_NAME).exists()


# Stops


@pytest.mark.parametrize(("before_step", "ahead"), [(20, 1), (0, 3)])
def test_taken_up_again_it_drops_what_lies_ahead_and_repeats_no_look(
    looked_at, tmp_path, monkeypatch, before_step, ahead
):
    """From step 14, with the look at 20 ahead, or from the start."""
    settings, record, _ = looked_at
    again = as_if_killed(settings, tmp_path / "again", before_step=before_step)
    look, taken = Viewpoint.look, []
    monkeypatch.setattr(Viewpoint, "look", lambda *args: taken.append(1) or look(*args))
    result = train(again, corpus=CORPUS)
    assert len(taken) == ahead
    for name in (DYNAMICS_NAME, "model.safetensors"):
        assert file_digest(again.output / name) == file_digest(settings.output / name)
    assert result.record["looks"] == record["looks"]
    assert result.record["log"] == record["log"]


def test_a_run_that_lost_its_looks_or_asks_for_others_is_not_taken_up(looked_at, tmp_path):
    settings, _, _ = looked_at
    again = as_if_killed(settings, tmp_path / "again", before_step=20)
    with pytest.raises(UsageError, match=r"interrupted, trained with --probe-every 0\.5 and not w"):
        train(replace(again, probe_every=None), corpus=CORPUS)
    path = again.output / DYNAMICS_NAME
    whole = path.read_text()
    path.write_text(whole.split("\n", 1)[1])
    with pytest.raises(UsageError, match="lacks the look at step 0"):
        train(again, corpus=CORPUS)
    path.write_text(whole[:50])
    with pytest.raises(UsageError, match="is no list of looks"):
        train(again, corpus=CORPUS)


def test_the_budget_of_a_run_stays_what_it_was_when_it_began(looked_at, tmp_path):
    settings, _, _ = looked_at
    again = as_if_killed(settings, tmp_path / "again", before_step=20)
    plan = read_json(again.output / PLAN_NAME)
    other = {**plan["looks"], "limit": 7}
    (again.output / PLAN_NAME).write_text(json.dumps({**plan, "looks": other}))
    assert train(again, corpus=CORPUS).record["looks"] == other
    assert [line["retrieval"][0]["n"] for line in lines(again.output)] == [20, 20, 7]


def test_an_early_stop_is_looked_at_too_with_the_last_weights_and_not_the_best(
    settings, tmp_path, monkeypatch
):
    """Also if a kill came between the last checkpoint and its look."""
    monkeypatch.setattr(Viewpoint, "look", lambda _self, model, *_: size_of_weights(model))
    settings = replace(
        settings, early_stopping=1, probe_steps=15, keep_checkpoints=True, dtype="fp32",
        arguments={
            **QUICK, "num_train_epochs": 30, "learning_rate": 1e-7, "save_total_limit": 9,
        },
    )  # fmt: skip
    record = train(settings, corpus=CORPUS).record
    stopped = record["metrics"]["steps"]
    assert stopped < 600
    assert stopped % 15, "no look was due at the last step"
    sizes = {
        step: size_of_weights(Encoder.load(folder, dtype="fp32", device="cpu").model)["accuracy"]
        for step, folder in ((stopped, settings.output / f"checkpoint-{stopped}"),
                             ("best", settings.output))
    }  # fmt: skip
    assert sizes[stopped] != sizes["best"]
    last = lines(settings.output)[-1]
    assert (last["step"], last["accuracy"]) == (stopped, sizes[stopped])
    without = replace(settings, output=tmp_path / "without", probe_steps=None)
    assert train(without, corpus=CORPUS).record["model_fingerprint"] == record["model_fingerprint"]
    whole = (settings.output / DYNAMICS_NAME).read_bytes()
    again = as_if_killed(settings, tmp_path / "again", before_step=999)
    (again.output / DYNAMICS_NAME).write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    assert train(again, corpus=CORPUS).record["metrics"] == record["metrics"]
    assert weights(again.output) == record["model_fingerprint"]
    assert (again.output / DYNAMICS_NAME).read_bytes() == whole


def test_weights_that_are_not_finite_stop_with_the_step(settings, monkeypatch):
    def broken(_self: Any, model: Any, *_: Any) -> Any:
        with torch.no_grad():
            model.classifier.weight[0, 0] = float("nan")
        raise UsageError("something about its logits")

    monkeypatch.setattr(Viewpoint, "look", broken)
    with pytest.raises(TrainingError, match="not finite after step 0 of 20: give a lower"):
        train(replace(settings, probe_every=1), corpus=CORPUS)


@pytest.mark.parametrize(("look_takes", "warned"), [(40, False), (60, True)])
def test_looks_that_took_more_than_a_third_of_the_rest_of_the_training_say_so(
    tmp_path, monkeypatch, caplog, look_takes, warned
):
    """By a clock that only looks and steps move on."""
    now = [1000.0]
    monkeypatch.setattr(
        "style_overlap.trainers.watch.time", SimpleNamespace(monotonic=lambda: now[0])
    )

    def look(*_: Any) -> dict[str, Any]:
        now[0] += look_takes
        return {"accuracy": {}, "retrieval": []}

    peers = SimpleNamespace(from_first=lambda act: act())
    watch = Watch(SimpleNamespace(look=look), Looks(None, 9, None, 50, 20), tmp_path, peers)
    watch.trainer = SimpleNamespace(model=None, log=lambda logs: None)
    arguments = SimpleNamespace(gradient_accumulation_steps=1)
    state = SimpleNamespace(max_steps=10, global_step=0, epoch=0, log_history=[])
    watch.on_train_begin(arguments, state, None, train_dataloader=range(10))
    now[0] += 300
    state.global_step = 10
    watch.on_log(arguments, state, None, logs={"train_loss": 1.0})
    with caplog.at_level(logging.WARNING):
        watch.on_train_end(arguments, state, None)
    told = "looks took 120.0 s, more than a third of the 300.0 s of the rest of the training"
    assert [told in message for message in caplog.messages] == [True] * warned


@pytest.mark.slow
@pytest.mark.case(10)
@pytest.mark.parametrize(
    ("arguments", "kill_at", "found"),
    [
        ({"save_strategy": "steps", "save_steps": 7}, 17, [0, 10]),
        ({"save_strategy": "steps", "save_steps": 4, "gradient_accumulation_steps": 2}, 10, [0, 5]),
        ({"num_train_epochs": 2}, 36, [0, 10, 20, 30]),  # saved at the end of an epoch, at 20
    ],
)
def test_killed_and_started_again_it_leaves_the_same_looks(
    settings, tmp_path, arguments, kill_at, found
):
    settings = replace(settings, probe_every=0.5, arguments={**LEARNS, **arguments})
    whole = train(replace(settings, output=tmp_path / "whole"), corpus=CORPUS)
    assert run(settings, "--kill-at", kill_at).returncode == -signal.SIGKILL
    assert steps(settings.output) == found
    result = train(settings, corpus=CORPUS)
    assert not result.already_done
    for name in (DYNAMICS_NAME, "model.safetensors"):
        assert file_digest(result.output / name) == file_digest(whole.output / name)
    assert {**result.record, "time": None} == {**whole.record, "time": None}


@pytest.mark.slow
def test_of_two_processes_one_looks_and_the_other_waits(settings, tmp_path):
    settings = replace(
        settings, dropout=0.0, dtype="fp32", probe_every=0.5,
        arguments={**LEARNS, "train_sampling_strategy": "sequential"},
    )  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = ["-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={port}"]
    done = subprocess.run(
        [sys.executable, *launch, *command(settings)[1:]], capture_output=True, text=True,
        timeout=180, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    in_one = {**settings.arguments, "per_device_train_batch_size": 16}
    alone = replace(settings, output=tmp_path / "alone", arguments=in_one)
    train(alone, corpus=CORPUS)
    assert steps(settings.output) == steps(alone.output) == [0, 5, 10]
    both, one = lines(settings.output), lines(alone.output)
    assert both[0] == one[0]
    losses = [line["loss"] for line in both[1:]]
    assert losses == pytest.approx([line["loss"] for line in one[1:]], rel=1e-3)
