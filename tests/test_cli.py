"""The command line in this process: what a hurried user types, and what comes of it."""

from __future__ import annotations

import os
import sys

import pytest

from style_overlap import cli
from style_overlap.results import write_json
from tiny_models import make_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A tiny encoder without a head."""
    return make_encoder(tmp_path_factory.mktemp("encoder") / "bert", "bert")


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the entry point; gives exit code, output and errors."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["style-overlap", *map(str, words)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return run


def training(encoder, output, *more, alpha="0", k="2"):
    return ("train", "--model", encoder, "--k", k, "--alpha", alpha, "--output", output, *more)


@pytest.mark.case(28)
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"alpha": "1.5"}, "alpha is 1.5: expected a number from 0 to 1"),
        ({"alpha": "-0.1"}, "alpha is -0.1: expected a number from 0 to 1"),
        ({"alpha": "nan"}, "alpha is nan"),
        ({"k": "9"}, "k is 9: expected 2 to 5"),
        ({"encoder": "./nowhere"}, "./nowhere"),
        ({"encoder": "package:no_such_package"}, "no_such_package"),
        ({"more": ("--set", "learnig_rate=1")}, "did you mean learning_rate"),
        ({"more": ("--set", "seed=1")}, "use --seed"),
        ({"more": ("--settings", "./nowhere.yaml")}, "cannot read nowhere.yaml"),
        ({"more": ("--corpus", "bible:KJV,BBE")}, "BBE is refused"),
        ({"more": ("--chunk-verses", "0")}, "chunk_verses is 0"),
        ({"more": ("--assignment", "sorted")}, "contiguous or random"),
        ({"more": ("--seed", "-1")}, "--seed is -1"),
        ({"more": ("--dtype", "int3")}, "int3"),
    ],
)
def test_a_wrong_training_is_one_line_exit_code_2_and_no_folder(
    run, encoder, tmp_path, changes, told
):
    changes = {"encoder": encoder, **changes}
    more = changes.pop("more", ())
    code, _, errors = run(*training(changes.pop("encoder"), tmp_path / "x", *more, **changes))
    assert code == 2
    assert errors.splitlines()[-1].startswith("error: ")
    assert told in errors.splitlines()[-1]
    assert not (tmp_path / "x").exists()


def test_an_output_that_is_no_folder_is_told(run, encoder, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, errors = run(*training(encoder, tmp_path / "file" / "x"))
    assert (code, "cannot write to" in errors) == (2, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_told(run, encoder, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o555)
    code, _, errors = run(*training(encoder, tmp_path / "locked" / "x"))
    assert (code, "cannot write to" in errors) == (2, True)


def test_what_cannot_be_evaluated_is_told(run, encoder, tmp_path):
    for words, told in (
        ((encoder,), "no trained classification head"),
        (("./nowhere",), "./nowhere"),
        ((tmp_path,), "config.json"),
        ((encoder, "--alpha", "2"), "alpha is 2"),
    ):
        code, _, errors = run("evaluate", *words)
        assert code == 2
        assert told in errors.splitlines()[-1]
        assert "Traceback" not in errors


def test_a_report_of_nothing_is_told_and_makes_nothing(run, tmp_path):
    write_json(tmp_path / "evaluations" / "x.json", {"kind": "something else"})
    code, _, errors = run("report", tmp_path, "--output", tmp_path / "report")
    assert (code, "style-overlap evaluate DIR" in errors) == (2, True)
    assert not (tmp_path / "report").exists()


def test_a_report_needs_a_folder_with_a_name(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, errors = run("report", tmp_path, "--output", "")
    assert (code, "it is empty" in errors) == (2, True)
    assert not list(tmp_path.iterdir())


@pytest.mark.case(22)
def test_a_task_file_has_the_one_name_of_its_overlap(run, tmp_path):
    code, output, _ = run("task", "--k", "3", "--alpha", "0.350", "--output", tmp_path)
    assert code == 0
    path = tmp_path / "style_overlap_k3_a0.35.yaml"
    assert output.strip().endswith(f"--tasks {path}")
    assert 'alpha: "0.35"' in path.read_text()
    assert run("task", "--k", "3", "--alpha", "7", "--output", tmp_path)[0] == 2
    assert run("task", "--k", "1", "--alpha", "0", "--output", tmp_path)[0] == 2


def test_an_interrupt_says_that_the_same_command_goes_on(run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("style_overlap.results.write_text", interrupt)
    code, _, errors = run("task", "--k", "3", "--alpha", "0.5")
    assert code == 130
    assert errors.strip() == (
        "interrupted: train and sweep go on where they stopped when the command is given again"
    )


def test_an_unknown_command_and_a_missing_option_are_told(run):
    assert run("trian")[0] == 2
    code, _, errors = run("train", "--k", "2")
    assert (code, "--model" in errors) == (2, True)
