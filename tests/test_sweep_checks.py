"""What a sweep refuses before any cell fails for it."""

from __future__ import annotations

import shutil

import pytest
from typer.testing import CliRunner

from style_overlap.cli import app
from style_overlap.corpus import load_corpus
from style_overlap.errors import UsageError
from style_overlap.model_folders import model_fingerprint
from style_overlap.results import read_json, write_json
from style_overlap.sweep import checks
from style_overlap.sweep.checks import check_data, check_encoders, check_weights
from style_overlap.sweep.command import Summary, show_end, show_plan, sweep
from style_overlap.sweep.jobs import Job
from style_overlap.sweep.plan import extend_plan, read_plan
from sweep_cells import bare_plan, make_plan, write_corpus, write_done


def refused(*words: object) -> str:
    """What `style-overlap sweep` says of input that it refuses."""
    found = CliRunner().invoke(app, ["sweep", *map(str, words)])
    assert isinstance(found.exception, UsageError), found.output
    return str(found.exception)


# The command line.


@pytest.mark.parametrize("name", ["--k", "--alphas", "--seeds"])
def test_an_empty_variable_of_the_shell_does_not_mean_the_defaults(name, tmp_path):
    told = refused("--model", "baseline:tfidf", name, "", "--output", tmp_path / "runs")
    assert told == f"{name} is empty: give one value or more, or leave it out"


@pytest.mark.parametrize("after", [["--dry-run"], []])
def test_a_forgotten_value_is_told_by_the_name_of_its_option(after):
    assert refused("--model", "baseline:tfidf", "--seeds", *after) == (
        "--seeds is followed by no value"
    )


def test_a_plan_takes_no_options_that_it_already_holds(tmp_path):
    path = tmp_path / "plan.json"
    write_json(path, bare_plan().to_json())
    told = refused("--plan", path, "--set", "max_steps=1", "--dropout", "0", "--k", "3")
    assert "leave out --dropout, --k, --set" in told


# Plans.


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"alphas_eval": []}, "expected overlaps"),
        ({"alphas_eval": ["x"]}, "alphas_eval: alpha is x"),
        ({"alphas_eval": "0.5"}, "alphas_eval"),
        ({"alphas_eval": ["1.0", "0.0"]}, "expected overlaps, ascending"),
        ({"cells": []}, "has no cells"),
        ({"cells": {}}, "has no cells"),
        ({"cells": [bare_plan(1).to_json()["cells"][0]] * 2}, "one of them twice"),
        ({"cells": [{**bare_plan(1).to_json()["cells"][0], "texts": "many"}]}, "changed by hand"),
        ({"cells": [{**bare_plan(1).to_json()["cells"][0], "extra": 1}]}, "no whole plan"),
    ],
)
def test_a_plan_that_could_not_be_run_is_refused_with_its_file_and_what_to_do(
    tmp_path, changes, told
):
    path = tmp_path / "plan.json"
    write_json(path, {**bare_plan().to_json(), **changes})
    with pytest.raises(UsageError, match=told) as error:
        read_plan(path)
    assert str(error.value).startswith(str(path))
    assert "plan again with style-overlap sweep" in str(error.value)


def test_a_damaged_plan_says_what_to_do(tmp_path):
    (tmp_path / "plan.json").write_text('{"kind": "pl')
    with pytest.raises(UsageError, match=r"not valid JSON.*plan again.*records of runs stay"):
        extend_plan(tmp_path, bare_plan())


def test_a_wrong_share_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(UsageError, match="--part"):
        sweep(bare_plan(), tmp_path / "runs", lambda _: None, part="9/8")
    assert not (tmp_path / "runs").exists()


def test_an_empty_share_is_told(tmp_path, capsys):
    show_end(Summary(()), tmp_path)
    assert "the plan has fewer cells than shares" in capsys.readouterr().out


def test_a_file_is_no_folder_of_runs_for_a_dry_run_either(tmp_path):
    (tmp_path / "file").touch()
    for runs in (tmp_path / "file", tmp_path / "file" / "runs"):
        with pytest.raises(UsageError, match=r"file is a file: give a folder for --output"):
            show_plan(bare_plan(), runs, keep="last", parallel=1, retry_failed=False)
        with pytest.raises(UsageError, match=r"file is a file: give a folder for --output"):
            extend_plan(runs, bare_plan())


def test_a_plan_is_not_run_on_other_texts_than_it_was_made_for(tmp_path, monkeypatch):
    spec = write_corpus(tmp_path)
    plan, path = make_plan(spec, ["baseline:tfidf"]), tmp_path / "plan.json"
    monkeypatch.setattr(  # without the memory of a process
        checks, "corpus_of", lambda name, verses: load_corpus(name, chunk_verses=verses)
    )
    check_data(plan, path)
    texts = tmp_path / "texts.csv"
    texts.write_text(texts.read_text().replace("mark0", "other0"))
    with pytest.raises(UsageError, match=r"plan\.json: the texts of .* have changed"):
        check_data(plan, path)


# Encoders.


def test_one_encoder_spelled_in_several_ways_is_one_cell(corpus, encoder, tmp_path, monkeypatch):
    shutil.copytree(encoder, tmp_path / "enc")
    monkeypatch.chdir(tmp_path)
    plan = make_plan(corpus, ["enc", "enc/", "./enc"], alphas=(0,))
    assert [cell.config["model"] for cell in plan.cells] == ["enc"]


def test_an_encoder_without_weights_is_refused_before_its_cells_fail(corpus, encoder, tmp_path):
    shutil.copytree(encoder, tmp_path / "enc")
    plan = make_plan(corpus, [str(tmp_path / "enc")], alphas=(0,))
    check_encoders(plan)
    (tmp_path / "enc" / "model.safetensors").unlink()
    with pytest.raises(UsageError, match=r"enc' holds no weights"):
        check_encoders(plan)


def test_an_encoder_of_the_hub_without_a_network_is_refused_in_one_line():
    with pytest.raises(UsageError, match=r"model 'org/some-encoder': there is no folder") as error:
        check_encoders(bare_plan())
    assert "\n" not in str(error.value)


def test_an_encoder_that_was_replaced_is_not_mixed_with_the_old_one(corpus, encoder, tmp_path):
    plan, runs = make_plan(corpus, [str(encoder)], alphas=(0,)), tmp_path / "runs"
    extend_plan(runs, plan)
    check_weights(runs, plan)  # nothing is finished
    job = Job(plan.cells[0], runs, ())
    write_done(job)
    record = read_json(job.record)
    record["training"]["base_model_fingerprint"] = model_fingerprint(encoder)
    write_json(job.record, record)
    check_weights(runs, plan)
    record["training"]["base_model_fingerprint"] = "of other weights"
    write_json(job.record, record)
    with pytest.raises(UsageError, match="holds other weights than those"):
        check_weights(runs, plan)
