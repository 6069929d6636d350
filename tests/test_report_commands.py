"""The commands that make the records of a report again."""

from __future__ import annotations

import re

import pytest

from report_records import config, probe, records_of, run, sweep, write_run
from style_overlap.report import commands
from style_overlap.report.records import read
from style_overlap.report.study import findings


def test_the_command_of_a_sweep_is_read_back_as_the_same_recipe(tmp_path):
    yaml = pytest.importorskip("yaml")
    arguments = {"learning_rate": 1e-05, "warmup_steps": 0.06, "lr_scheduler_type": "linear",
                 "flag": True, "nothing": None, "steps": 7}  # fmt: skip
    sweep(tmp_path, "my model; rm -rf", ks=(2, 3), alphas=("0.0",), seeds=(0,), arguments=arguments)
    (command,) = commands.sweeps(findings(read([tmp_path])).studies)
    assert "--model 'my model; rm -rf'" in command
    assert "--k 2 3 " in command
    told = dict(re.findall(r"--set ([a-z_]+)=(\S+)", command))
    assert {name: yaml.safe_load(value) for name, value in told.items()} == arguments


def test_the_commands_of_probes_are_told(tmp_path):
    record = probe(config())
    found = findings(records_of(tmp_path, record))
    assert commands.probes(found.probes) == (
        "style-overlap probe somewhere --pooling cls --base --untrained --bow --unseen "
        "--contents 1200 --seeds 3",
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"config": {"layers": ["h", "3/mean"]}}, "--layer h --layer 3 --pooling mean "),
        ({"config": {"layers": ["h", "last"]}}, "somewhere --base"),
        ({"model": {"labels": []}, "config": {"layers": ["h", "last"]}}, "--layer h --layer last"),
        ({"model": {"labels": []}, "config": {"layers": ["last/mean"]}}, "somewhere --pooling"),
        ({"config": {"corpus": {"spec": "bible:KJV,WEB", "chunk_verses": 3}}},
         "--corpus bible:KJV,WEB --chunk-verses 3"),
        ({"config": {"corpus": {"spec": "bible", "chunk_verses": 5}}}, "--seeds 3"),
        ({"dtype": "bfloat16"}, "--dtype bfloat16"),
        ({"data_seed": 7}, "--data-seed 7"),
        ({"model": {"labels": []}, "config": {"layers": ["last"]}, "rows": [
            {"a": a, "b": b, "set": "seen", "source": "checkpoint", "features": "h"}
            for a, b in (("A", "B"), ("A", "C"), ("B", "C"))]}, "--k 3"),
    ],
)  # fmt: skip
def test_a_probe_of_other_layers_texts_or_numbers_says_so(changes, told):
    (command,) = commands.probes([probe(config(), **changes)])
    assert told in command
    options = ("--layer", "--corpus", "--chunk-verses", "--dtype", "--data-seed", "--k ")
    assert all((option in command) <= (option in told) for option in options)


def test_what_a_sweep_was_told_to_probe_is_in_its_command(tmp_path):
    record = run(config())
    record["config"]["probe"] = {"retrieval": False, "every": 0.5, "contents": 64, "seeds": 2}
    write_run(tmp_path, record)
    (command,) = commands.sweeps(findings(read([tmp_path])).studies)
    for told in ("--probe-every 0.5", "--probe-contents 64", "--probe-seeds 2", "--no-retrieval"):
        assert told in command
