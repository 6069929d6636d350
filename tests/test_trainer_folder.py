"""The output folder of a fine-tuning: finished, interrupted, shared, somebody else's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from transformers import TrainerCallback

from conftest import QUICK, hear_interrupts, make_corpus
from style_overlap.errors import UsageError
from style_overlap.results import file_digest, read_json, write_json
from style_overlap.trainers.classifier import train
from style_overlap.trainers.folder import LOCK_NAME, PLAN_NAME
from tiny_models import make_encoder
from train_run import command, run

CORPUS = make_corpus(200)


SAME_ORDER = {**QUICK, "learning_rate": 1e-3, "train_sampling_strategy": "sequential"}


def curve(record) -> list[tuple[float, float]]:
    return [(row["loss"], row["grad_norm"]) for row in record["log"]]


def weights(folder: Path) -> str:
    return file_digest(folder / "model.safetensors")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# The folder


@pytest.mark.case(9)
def test_a_finished_run_is_handed_back_and_not_repeated(settings):
    first = train(settings, corpus=CORPUS)
    stamp = (first.output / "model.safetensors").stat().st_mtime_ns
    again = train(settings, corpus=CORPUS)
    assert (first.already_done, again.already_done) == (False, True)
    assert again.record == json.loads(json.dumps(first.record))
    assert "already done" in again.summary()
    assert (first.output / "model.safetensors").stat().st_mtime_ns == stamp


@pytest.mark.case(9)
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 2, "data_seed": 0}, ["seed is 0 there, 2 here"]),
        ({"alpha": "0.6"}, ['alpha is "0.4" there, "0.6" here']),
        (
            {"arguments": {**QUICK, "learning_rate": 1e-4, "weight_decay": 0.2}},
            ["arguments.learning_rate is 0.005 there, 0.0001 here", "arguments.weight_decay"],
        ),
        ({"arguments": {**QUICK, "adam_beta2": 0.9}}, ["adam_beta2 is unset there, 0.9 here"]),
    ],
)
def test_other_settings_are_refused_by_name_and_overwrite_nothing(settings, change, named):
    train(settings, corpus=CORPUS)
    before = {path: file_digest(path) for path in settings.output.iterdir()}
    with pytest.raises(UsageError, match="other settings") as error:
        train(replace(settings, **change), corpus=CORPUS)
    assert all(part in str(error.value) for part in named)
    assert str(error.value).count(" there, ") == len(named), "nothing else is named"
    assert {path: file_digest(path) for path in settings.output.iterdir()} == before


def test_other_weights_or_other_texts_under_the_same_names_are_refused(settings, tmp_path):
    model = shutil.copytree(settings.model, tmp_path / "model")
    settings = replace(settings, model=str(model))
    train(settings, corpus=CORPUS)
    with pytest.raises(UsageError, match="fingerprint of the data"):
        train(settings, corpus=replace(CORPUS, fingerprint="other"))
    moved = shutil.move(model, tmp_path / "moved")
    assert train(replace(settings, model=str(moved)), corpus=CORPUS).already_done
    make_encoder(model, seed=1, initializer_range=0.05)
    with pytest.raises(UsageError, match="weights of the model"):
        train(settings, corpus=CORPUS)


@pytest.mark.parametrize("where", ["folder", "file"])
def test_a_place_that_holds_something_else_is_refused(settings, where):
    if where == "folder":
        settings.output.mkdir()
        (settings.output / "thesis.tex").write_text("mine")
        message = r"other files, thesis\.tex"
    else:
        settings.output.write_text("mine")
        message = "is a file"
    with pytest.raises(UsageError, match=message):
        train(settings, corpus=CORPUS)
    assert names(settings.output.parent) == {"run"}
    if where == "folder":
        assert names(settings.output) == {"thesis.tex"}


def test_what_cannot_be_trained_is_refused_before_anything_is_written(settings, tmp_path):
    for change, message in [
        ({"model": str(tmp_path / "nowhere")}, "no model folder"),
        ({"k": 6}, "k is 6"),
        ({"alpha": "1.1"}, "alpha is 1.1"),
        ({"seed": -1}, "--seed is -1"),
        ({"contents": 201}, "--contents is 201"),
        ({"contents": 3}, "--contents is 3"),
        ({"dropout": 1.0}, "--dropout is 1.0"),
        ({"early_stopping": 0}, "--early-stopping is 0"),
        ({"max_length": 0}, "--max-length is 0: expected a whole number of at least 3"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"arguments": {"eval_strategy": "sometimes"}}, "TrainingArguments: sometimes"),
    ]:
        with pytest.raises(UsageError, match=message):
            train(replace(settings, **change), corpus=CORPUS)
    assert not settings.output.exists()


def test_a_hub_id_without_a_network_is_one_line(settings):
    settings = replace(settings, model="nobody/nothing-at-all")
    with pytest.raises(UsageError, match="nobody/nothing-at-all"):
        train(settings, corpus=CORPUS)


# Interruptions, in processes of their own


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.case(10)
@pytest.mark.parametrize(
    ("saving", "kill_at", "resumes_at"),
    [
        ({}, 36, 20),  # an epoch of 20 steps, saved at its end, killed in the middle of the next
        ({"save_strategy": "steps", "save_steps": 7}, 33, 28),
        ({"save_strategy": "steps", "save_steps": 7, "gradient_accumulation_steps": 2}, 16, 14),
        ({"save_strategy": "steps", "save_steps": 7, "train_sampling_strategy": "random"}, 33, 28),
    ],
)
def test_killed_in_the_middle_of_an_epoch_it_ends_with_the_same_weights(
    settings, tmp_path, saving, kill_at, resumes_at
):
    settings = replace(settings, arguments={**QUICK, "num_train_epochs": 2, **saving})
    whole = train(replace(settings, output=tmp_path / "whole"), corpus=CORPUS)
    assert run(settings, "--kill-at", kill_at).returncode == -signal.SIGKILL
    assert names(settings.output) >= {f"checkpoint-{resumes_at}", PLAN_NAME}
    assert "style_overlap.json" not in names(settings.output)
    result = train(settings, corpus=CORPUS)
    assert not result.already_done
    assert weights(result.output) == weights(whole.output)
    assert {**result.record, "time": None} == {**whole.record, "time": None}
    assert names(result.output) == names(whole.output)


@pytest.mark.case(10)
def test_a_training_in_several_attempts_tells_the_time_of_all(settings):
    class Break(TrainerCallback):
        def on_epoch_begin(self, args, state, control, **_):
            if state.global_step:
                raise KeyboardInterrupt

    settings = replace(settings, arguments={**QUICK, "num_train_epochs": 2})
    with pytest.raises(KeyboardInterrupt):
        train(settings, corpus=CORPUS, callbacks=[Break()])
    plan = read_json(settings.output / PLAN_NAME)
    assert plan["time"]["seconds"] > 0
    write_json(settings.output / PLAN_NAME, {**plan, "time": {"seconds": 5000.0}})
    with pytest.raises(KeyboardInterrupt):  # before another checkpoint
        train(settings, corpus=CORPUS, callbacks=[Break()])
    assert train(settings, corpus=CORPUS).record["time"]["seconds"] >= 5000


@pytest.mark.case(10)
@pytest.mark.parametrize("damage", ["state", "weights", "optimizer", "missing"])
def test_a_checkpoint_that_a_kill_left_in_parts_is_passed_over(settings, tmp_path, damage):
    saving = {"save_strategy": "steps", "save_steps": 7, "save_total_limit": 2}
    settings = replace(settings, arguments={**QUICK, **saving}, keep_checkpoints=True)
    whole = train(settings, corpus=CORPUS)
    broken = replace(settings, output=shutil.copytree(settings.output, tmp_path / "broken"))
    last = broken.output / "checkpoint-20"
    (broken.output / "style_overlap.json").rename(broken.output / PLAN_NAME)
    plan = read_json(broken.output / PLAN_NAME)
    (broken.output / PLAN_NAME).write_text(json.dumps({**plan, "kind": "training"}))
    shutil.copytree(broken.output / "checkpoint-14", last, dirs_exist_ok=True)
    file = {
        "state": "trainer_state.json", "weights": "model.safetensors",
        "optimizer": "optimizer.pt", "missing": "rng_state.pth",
    }[damage]  # fmt: skip
    if damage == "missing":
        (last / file).unlink()
    else:
        content = (last / file).read_bytes()
        (last / file).write_bytes(content[: len(content) // 2])
    again = train(replace(broken, keep_checkpoints=False), corpus=CORPUS)
    assert weights(again.output) == weights(whole.output)
    assert not list(again.output.glob("checkpoint-*"))


@pytest.mark.case(10)
def test_killed_after_an_early_stop_it_does_not_train_on(settings, tmp_path):
    settings = replace(
        settings,
        early_stopping=1,
        keep_checkpoints=True,
        arguments={**QUICK, "num_train_epochs": 30, "learning_rate": 1e-7},
    )
    whole = train(settings, corpus=CORPUS)
    stopped_at = whole.record["metrics"]["epochs"]
    assert stopped_at < 30
    record = settings.output / "style_overlap.json"
    plan = {**read_json(record), "kind": "training"}
    (settings.output / PLAN_NAME).write_text(json.dumps(plan))
    record.unlink()
    (settings.output / "model.safetensors").unlink()
    again = train(settings, corpus=CORPUS)
    assert again.record["metrics"] == whole.record["metrics"]
    assert weights(again.output) == whole.record["model_fingerprint"]


@pytest.mark.slow
@pytest.mark.case(9)
def test_of_two_processes_on_one_folder_the_second_gets_one_line(settings, tmp_path):
    whole = train(replace(settings, output=tmp_path / "whole"), corpus=CORPUS)
    ready = tmp_path / "ready"
    first = subprocess.Popen(command(settings, "--wait-at", 5, "--ready", ready))
    wait_for(ready.exists)
    with pytest.raises(UsageError, match="another process is training into"):
        train(settings, corpus=CORPUS)
    second = run(settings)
    assert second.returncode == 1
    lines = second.stderr.strip().splitlines()
    assert [line for line in lines if line.startswith("error:")] == lines[-1:]
    ready.unlink()
    assert first.wait(timeout=60) == 0
    assert weights(settings.output) == weights(whole.output)
    assert LOCK_NAME not in names(settings.output)


def test_a_plan_that_another_process_is_writing_is_not_taken_for_somebody_elses_file(settings):
    settings.output.mkdir()
    (settings.output / f".{PLAN_NAME}.a1b2c3").touch()
    assert not train(settings, corpus=CORPUS).already_done


@pytest.mark.slow
@pytest.mark.case(10)
def test_ctrl_c_leaves_a_folder_that_the_same_command_goes_on_with(settings, tmp_path):
    settings = replace(settings, arguments={**QUICK, "save_strategy": "steps", "save_steps": 4})
    whole = train(replace(settings, output=tmp_path / "whole"), corpus=CORPUS)
    ready = tmp_path / "ready"
    process = subprocess.Popen(
        command(settings, "--wait-at", 10, "--ready", ready), preexec_fn=hear_interrupts
    )
    wait_for(ready.exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert names(settings.output) >= {"checkpoint-8", PLAN_NAME}
    assert weights(train(settings, corpus=CORPUS).output) == weights(whole.output)


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["torch.distributed.run", "accelerate.commands.launch"])
def test_two_processes_share_the_steps_and_one_writes(settings, tmp_path, launcher):
    settings = replace(settings, dropout=0.0, dtype="fp32", arguments=SAME_ORDER)
    in_one = {**SAME_ORDER, "per_device_train_batch_size": 16}
    alone = train(replace(settings, output=tmp_path / "alone", arguments=in_one), corpus=CORPUS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = {
        "torch.distributed.run": ["--nproc_per_node=2", f"--master_port={port}"],
        "accelerate.commands.launch": [
            "--multi_gpu", "--num_processes=2", "--num_machines=1", "--mixed_precision=no",
            "--dynamo_backend=no", f"--main_process_port={port}",
        ],
    }[launcher]  # fmt: skip
    start = [sys.executable, "-m", launcher, *flags, *command(settings)[1:]]
    for already in (False, True)[: 2 if "torch" in launcher else 1]:
        done = subprocess.run(
            start, capture_output=True, text=True, timeout=180,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("(already done)") == int(already)
    record = read_json(settings.output / "style_overlap.json")
    assert record["compute"]["processes"] == 2
    assert record["compute"]["effective_batch"] == 16
    assert record["metrics"]["steps"] == 10  # 160 texts
    np.testing.assert_allclose(curve(record), curve(alone.record), rtol=1e-3)
    for split in ("validation", "test"):
        assert record["metrics"][split] == pytest.approx(alone.record["metrics"][split], abs=0.051)
    assert {path.suffix for path in settings.output.iterdir()} == {".json", ".safetensors", ".md"}
    with pytest.raises(UsageError, match="processes is 2 there, 1 here"):
        train(settings, corpus=CORPUS)
