"""The gate: worse by more than noise, or not comparable, or fine."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer import Typer
from typer.testing import CliRunner

from leaderboard_records import GRID, evaluation, harness, save
from style_overlap import cli_leaderboard
from style_overlap.errors import UsageError
from style_overlap.leaderboard import board as boards
from style_overlap.leaderboard import gate as gates
from style_overlap.leaderboard.entries import assemble
from style_overlap.leaderboard.sources import gather
from style_overlap.results import write_json


def make(folder, *records):
    return boards.board(assemble(gather([save(folder, *records)])))


def worsened(record, wrong, alpha_eval="1.0", better=0):
    """The record with so many right answers gone at one overlap, and some wrong ones right."""
    one = record["tasks"][f"style_overlap_k2_a{alpha_eval}"]
    right = [content for content, (credit, _) in one["credit"].items() if credit]
    wrongs = [content for content, (credit, _) in one["credit"].items() if not credit]
    for content in right[:wrong]:
        one["credit"][content][0] = 0.0
    for content in wrongs[:better]:
        one["credit"][content][0] = 1.0
    one["acc"] = float(np.mean([credit for credit, _ in one["credit"].values()]))
    return record


def both(**changes):
    return [evaluation(alpha=alpha, **changes) for alpha in GRID]


@pytest.fixture
def old(tmp_path):
    return make(tmp_path / "old", *both())


def compare(new, old, *drops):
    return gates.compare(new, old, gates.parse_drops(drops))


def verdict(gate, metric):
    (found,) = [one for one in gate.verdicts if one.metric == metric]
    return found


def test_the_same_leaderboard_passes(old):
    gate = compare(old, old)
    assert gate.exit_code == 0
    assert [one.metric for one in gate.verdicts] == ["acc_1_1", "acc_0_0", "acc_0_1"]
    assert "unchanged" in gates.as_text(gate)


def test_a_sure_fall_fails_and_says_where(tmp_path, old):
    low, high = both()
    gate = compare(make(tmp_path / "new", low, worsened(high, 12)), old)
    found = verdict(gate, "acc_1_1")
    assert gate.exit_code == 1
    assert found.fall.drop == pytest.approx(12 / 200)
    assert 0 < found.fall.low < found.fall.drop < found.fall.high
    text = gates.as_text(gate)
    assert text.startswith("WORSE")
    assert "85.0 -> 79.0" in text
    assert "worse on Book" in text
    assert verdict(gate, "acc_0_0").word == "ok"


def test_contents_that_change_places_are_noise(tmp_path, old):
    """As many contents got better as worse, but for two: the fall is there, and not sure."""
    low, high = both()
    gate = compare(make(tmp_path / "new", low, worsened(high, 22, better=20)), old)
    found = verdict(gate, "acc_1_1")
    assert found.fall.drop == pytest.approx(2 / 200)
    assert found.fall.low < 0
    assert found.word == "within noise"
    assert gate.exit_code == 0


def test_pairing_finds_what_two_intervals_would_hide(tmp_path, old):
    low, high = both()
    new = make(tmp_path / "new", low, worsened(high, 8))
    mine, theirs = (board["rows"][0]["figures"]["acc_1_1"] for board in (new, old))
    assert mine["high"] > theirs["low"]
    assert compare(new, old).exit_code == 1


def test_a_sure_fall_within_what_is_allowed_passes(tmp_path, old):
    low, high = both()
    new = make(tmp_path / "new", low, worsened(high, 8))
    assert compare(new, old, "acc=0.05").exit_code == 0
    assert compare(new, old, "acc=0.05", "acc_1_1=0.03").exit_code == 1
    assert compare(new, old, "acc_0_0=0").exit_code == 0


def test_more_content_reliance_is_worse_and_less_is_not(tmp_path, old):
    low, high = both()
    new = make(tmp_path / "new", worsened(low, 20), high)
    found = verdict(compare(new, old, "reliance=0.01"), "reliance")
    assert found.failed
    assert found.fall.drop == pytest.approx(0.1)
    assert compare(old, new, "reliance=0").exit_code == 0


@pytest.mark.parametrize(
    ("records", "told"),
    [
        (lambda: both(recipe={"learning_rate": 1}), "another recipe"),
        (lambda: both(corpus="b" * 64), "another corpus or setting"),
        (lambda: both(encoder="org/other"), "not in the new leaderboard"),
        (lambda: both()[:1], "missing now: no score at alpha_train 1.0"),
        (lambda: both(seed=1), "was measured with seed 0, which the new leaderboard lacks"),
    ],
)
def test_what_cannot_be_compared_is_2_and_says_why(tmp_path, old, records, told):
    gate = compare(make(tmp_path / "new", *records()), old)
    assert gate.exit_code == 2
    assert told in gates.as_text(gate)


def test_other_test_texts_cannot_be_compared(tmp_path, old):
    low, high = both()
    for record in (low, high):
        for one in record["tasks"].values():
            one["data_fingerprint"] = "other" + one["alpha_eval"]
    gate = compare(make(tmp_path / "new", low, high), old)
    assert gate.exit_code == 2
    assert "other test texts" in gates.as_text(gate)


def test_worse_counts_before_not_comparable(tmp_path, old):
    both_rows = make(tmp_path / "o", *both(), *both(encoder="org/gone"))
    low, high = both()
    assert compare(make(tmp_path / "n", low, worsened(high, 30)), both_rows).exit_code == 1


def test_a_new_encoder_is_told_and_does_no_harm(tmp_path, old):
    gate = compare(make(tmp_path / "new", *both(), *both(encoder="org/new")), old)
    assert gate.exit_code == 0
    assert "new            org/new" in gates.as_text(gate)


def test_results_of_the_harness_are_compared_unpaired_and_said_to_be(tmp_path):
    def board(name, *records):
        for record in records:
            alpha = record["checkpoint"]["config"]["alpha"]
            told = harness(record, training=record["checkpoint"])
            write_json(tmp_path / name / f"results_{alpha}.json", told)
        return boards.board(assemble(gather([tmp_path / name])))

    low, high = both()
    old = board("old", low, high)
    fell = board("new", low, worsened(both()[1], 60))
    gate = compare(fell, old)
    assert gate.exit_code == 1
    assert "not paired" in gates.as_text(gate)
    assert compare(board("close", low, worsened(both()[1], 6)), old).exit_code == 0


@pytest.mark.parametrize("given", ["acc", "acc=x", "acc=nan", "acc=-1", "acc=2", "hoa=0.1", "=1"])
def test_a_wrong_allowance_names_what_there_is(given):
    with pytest.raises(UsageError, match="acc"):
        gates.parse_drops([given])


def test_false_alarms_are_rare_when_nothing_changed(old):
    """Two models of the same quality: independent answers, the same chance of being right."""
    rng = np.random.default_rng(0)

    def answers():
        board = json.loads(json.dumps(old))
        credit = board["rows"][0]["credit"]["1.0 1.0"]["0"]
        credit["sums"] = " ".join(str(int(right)) for right in rng.random(200) < 0.7)
        return board

    drops = gates.parse_drops(["acc_1_1=0"])
    found = [gates.compare(answers(), answers(), drops).verdicts[0] for _ in range(80)]
    assert sum(one.fall.drop > 0 for one in found) > 20
    assert sum(one.failed for one in found) <= 7  # 2.5 %: more than 7 of 80 has p = 0.0004


@pytest.fixture
def program():
    app = Typer(pretty_exceptions_enable=False)
    cli_leaderboard.register(app)
    return app


def test_the_command_exits_with_the_verdict_and_writes_the_step_summary(
    tmp_path, old, program, monkeypatch
):
    paths = []
    for name, wrong in (("old", 0), ("new", 30)):
        low, high = both(encoder="org/<b>|x")
        board = make(tmp_path / f"runs-{name}", low, worsened(high, wrong))
        write_json(tmp_path / f"{name}.json", board)
        paths.append(str(tmp_path / f"{name}.json"))
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    run = CliRunner().invoke(program, ["gate", paths[1], "--baseline", paths[0]])
    assert run.exit_code == 1, run.output
    assert "WORSE" in run.output
    told = summary.read_text()
    assert told.startswith("before\n## Style overlap gate")
    assert "| WORSE |" in told
    assert "<b>" not in told.replace(r"\<b\>", "")
    assert CliRunner().invoke(program, ["gate", paths[0], "--baseline", paths[0]]).exit_code == 0


def test_a_credit_list_that_was_tampered_with_is_not_compared(old):
    new = json.loads(json.dumps(old))
    credit = new["rows"][0]["credit"]["1.0 1.0"]["0"]
    credit["sums"] = credit["sums"][2:]
    gate = compare(new, old)
    assert "broken record" in gates.as_text(gate)
    assert gate.exit_code == 2
