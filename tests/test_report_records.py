"""Reading whatever lies in a folder of runs."""

from __future__ import annotations

import copy
import json

import pytest

from report_records import (
    config,
    evaluation,
    failed,
    looks,
    probe,
    run,
    summary,
    write_dynamics,
    write_plan,
    write_run,
)
from style_overlap.errors import UsageError
from style_overlap.report.records import read
from style_overlap.results import write_json

CELL = config()


def write_evaluation(folder, record, name="k2-0123456789ab.json"):
    write_json(folder / "evaluations" / name, record)
    return str(folder / "evaluations" / name)


def test_every_kind_of_record_is_found_at_any_depth(tmp_path):
    scored = write_evaluation(tmp_path / "a" / "b", evaluation(CELL))
    write_json(tmp_path / "a" / "b" / "probes" / "x.json", probe(CELL))
    seen = write_dynamics(tmp_path / "c", CELL, looks(CELL))
    cell = write_run(tmp_path / "runs", run(config(alpha="0.2")))
    bad = write_run(tmp_path / "runs", failed(config(alpha="0.4"), "no memory"))
    write_plan(tmp_path / "runs", [CELL])
    found = read([tmp_path])
    assert set(found.evaluations) == {scored, str(cell)}
    assert set(found.probes) == {str(tmp_path / "a/b/probes/x.json")}
    assert set(found.dynamics) == {str(seen)}
    assert found.dynamics[str(seen)].config == CELL
    assert len(found.dynamics[str(seen)].looks) == 9
    assert set(found.runs) == {str(cell), str(bad)}
    assert set(found.plans) == {str(tmp_path / "runs" / "plan.json")}
    assert found.failed == {}


def test_a_record_is_read_by_its_own_name_too(tmp_path):
    path = write_evaluation(tmp_path, evaluation(CELL), "anything.json")
    assert list(read([path]).evaluations) == [path]


def test_a_record_that_evaluate_wrote_into_a_folder_of_the_users_choice_is_found(tmp_path):
    write_json(tmp_path / "mine" / "k2-0123456789ab.json", evaluation(CELL))
    assert len(read([tmp_path]).evaluations) == 1


def test_the_same_content_twice_counts_once(tmp_path):
    record = run(CELL, dynamics=looks(CELL))
    folder = write_run(tmp_path, record).parent
    again = {**copy.deepcopy(record["evaluation"]), "versions": {"numpy": "1"}}
    again["checkpoint"]["name"] = "moved/elsewhere"
    write_evaluation(folder, again)
    write_dynamics(folder, CELL, looks(CELL))
    found = read([tmp_path, folder])
    assert (len(found.evaluations), len(found.dynamics)) == (1, 1)
    assert found.failed == {}


def test_foreign_files_are_passed_over_in_folders_and_told_when_given(tmp_path):
    write_json(tmp_path / "run.json", {"kind": "something else"})
    write_json(tmp_path / "evaluations" / "list.json", [1, 2])
    write_json(tmp_path / "config.json", {"model_type": "bert"})
    assert not read([tmp_path])
    assert read([tmp_path]).failed == {}
    write_json(tmp_path / "cell" / "run.json", [1, 2])
    assert list(read([tmp_path]).failed) == [str(tmp_path / "cell" / "run.json")]
    given = tmp_path / "config.json"
    assert read([given]).failed == {str(given): "not a record of style-overlap"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not valid JSON"),
        ('{"kind": "evaluation", "schema": 1, "x": NaN}', "NaN is no number"),
        ("[" * 100_000, "not valid JSON"),
        ('{"kind": "evaluation", "schema": ' + "9" * 10_000 + "}", "not valid JSON"),
        ("\xff", "not valid JSON"),
        ("", "not valid JSON"),
    ],
)
def test_a_broken_file_is_named_and_the_rest_is_read(tmp_path, text, told):
    good = write_evaluation(tmp_path / "good", evaluation(CELL))
    bad = tmp_path / "bad" / "run.json"
    bad.parent.mkdir()
    bad.write_text(text, encoding="latin-1")
    found = read([tmp_path])
    assert list(found.evaluations) == [good]
    assert told in found.failed[str(bad)]


def changed(path, value):
    record = evaluation(CELL)
    *parents, last = path
    place = record
    for key in parents:
        place = place[key]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value
    return record


def retrieval_of(**changes):
    return {"corpus_fingerprint": "corpus", "rows": [], "summary": [{**summary(0.5), **changes}]}


TASK = ("tasks", "style_overlap_k2_a0.2")


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("schema",), 99, "schema 99"),
        (("schema",), KeyError, "schema None"),
        (("tasks",), {}, "tasks is empty"),
        (("tasks",), "x", "tasks is of the wrong kind (str)"),
        ((*TASK, "acc"), 1.5, "acc is 1.5: expected a number from 0 to 1"),
        ((*TASK, "acc"), "high", "acc is high"),
        ((*TASK, "acc"), True, "acc is True"),
        ((*TASK, "acc"), KeyError, "acc is missing"),
        ((*TASK, "alpha_eval"), "2", "alpha_eval"),
        ((*TASK, "styles"), [1, 2], "expected names"),
        ((*TASK, "credit"), {"Gen 1:1": [5, 1]}, "expected [sum, number]"),
        ((*TASK, "credit"), {"Gen 1:1": [0, 10**9]}, "expected [sum, number]"),
        ((*TASK, "credit"), {"Gen 1:1": [0, 0]}, "expected [sum, number]"),
        ((*TASK, "credit"), {"Gen 1:1": [0, 1.5]}, "expected [sum, number]"),
        (("model", "truncated"), {"KJV": 3}, "model.truncated.KJV"),
        (("model", "truncated"), {"KJV": {"count": "x", "of": 1}}, "model.truncated.KJV.count"),
        (("retrieval",), {"t": retrieval_of(pairs="x")}, "summary[0].pairs is x"),
        (("retrieval",), {"t": retrieval_of(pairs=0)}, "summary[0].pairs is 0"),
        (("checkpoint", "config", "seed"), None, "config.seed is None"),
        (("checkpoint", "config", "model"), 3, "config.model is of the wrong kind"),
        (("checkpoint", "config", "k"), 10**400, "config.k"),
        (("checkpoint",), KeyError, "checkpoint is missing"),
        (("retrieval",), {"t": {"summary": [{}]}}, "retrieval.t."),
    ],
)
def test_a_record_that_is_not_what_it_says_is_named_and_left_out(tmp_path, path, value, told):
    bad = tmp_path / "evaluations" / "bad.json"
    bad.parent.mkdir()
    bad.write_text(json.dumps(changed(path, value)))
    found = read([tmp_path])
    assert not found.evaluations
    assert told in found.failed[str(bad)]


def test_a_line_that_is_being_written_is_left_out_and_a_broken_one_before_it_is_told(tmp_path):
    path = write_dynamics(tmp_path / "a", CELL, looks(CELL))
    path.write_text(path.read_text()[:-40])
    assert len(read([tmp_path]).dynamics[str(path)].looks) == 8
    path.write_text('{"step": 0}\n' + path.read_text())
    assert "line 1" in read([tmp_path]).failed[str(path)]


def test_looks_at_a_training_that_goes_on_are_told(tmp_path):
    path = write_dynamics(tmp_path, CELL, looks(CELL))
    (tmp_path / "style_overlap.json").unlink()
    assert "has not finished" in read([tmp_path]).failed[str(path)]


def test_a_path_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="nowhere does not exist"):
        read([tmp_path / "nowhere"])
