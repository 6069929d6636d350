"""Giveaway audit: planted cues are found, absent ones are chance, the floor falls as it should."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from typer.testing import CliRunner

from style_overlap import cli_corpus
from style_overlap.corpus import ParallelCorpus, load_corpus, parse_spec
from style_overlap.corpus.cleaning import clean
from style_overlap.corpus.cues import CUES, features, names
from style_overlap.corpus.floor import cross_overlap
from style_overlap.corpus.giveaway import RAW, USED, CueScore, audit, judge, raw_of, score_cue
from style_overlap.errors import UsageError
from style_overlap.names import ALPHAS

CUE = {cue.name: cue for cue in CUES}
WORDS = [f"w{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(200)]


def corpus_of(marks: Sequence[Callable[[str], str]], contents: int = 60) -> ParallelCorpus:
    """One text a content, the same words in every style but for what ``marks`` do to it."""
    import datasets

    rng = random.Random(0)
    texts = [
        " ".join(f"{word} {rng.choice(['the', 'and', 'of'])}" for word in rng.choices(WORDS, k=k))
        for k in (rng.randint(4, 15) for _ in range(contents))
    ]
    styles = tuple(f"style{number}" for number in range(len(marks)))
    columns = {
        "content_id": [f"c{row}" for row in range(contents)],
        "group": list(range(contents)),
        **{s: [mark(text) for text in texts] for s, mark in zip(styles, marks, strict=True)},
    }
    table = datasets.Dataset.from_dict(columns)
    return ParallelCorpus("planted", styles, (), table, "f", {"clean": False})


def scores_of(*marks: Callable[[str], str]) -> dict[str, float]:
    corpus = corpus_of(marks)
    texts = [corpus.texts(style) for style in corpus.styles]
    return {cue.name: score_cue(cue, texts, corpus.groups).accuracy for cue in CUES}


def plain(text: str) -> str:
    return f"{text}."


def test_the_same_texts_in_all_styles_are_told_apart_at_chance_exactly():
    for found in (scores_of(plain, plain), scores_of(plain, plain, plain)):
        k = 2 if found["length"] == pytest.approx(1 / 2) else 3
        assert found == pytest.approx(dict.fromkeys(found, 1 / k))


@pytest.mark.parametrize(
    ("mark", "told_by"),
    [
        (lambda text: f"{text}!", {"typography"}),
        (lambda text: text.replace(" ", "  ") + ".", {"typography", "length"}),
        (lambda text: text.replace(" ", " unto ", 2) + ".", {"function words", "all words"}),
        (lambda text: text.replace(" ", " Jehovah ", 2) + ".", {"names", "all words"}),
        (lambda text: text.replace(" ", " zebra ", 2) + ".", {"all words"}),
    ],
)
def test_a_planted_cue_is_found_by_what_holds_it_and_by_nothing_else(mark, told_by):
    found = scores_of(plain, mark)
    for cue, accuracy in found.items():
        if cue in told_by:
            assert accuracy > 0.9, cue
        elif cue != "length":  # two words more are a little longer
            assert accuracy < 0.65, cue


def test_length_is_found_by_counts_and_not_by_words():
    found = scores_of(lambda text: text, lambda text: f"{text} {text} {text}")
    assert found["length"] > 0.85
    for cue in ("function words", "names", "all words"):
        assert found[cue] == pytest.approx(0.5), cue


@pytest.mark.case(26)
def test_cleaning_takes_typography_away_and_leaves_words():
    corpus = corpus_of([plain, lambda text: f"[{text}]  *.", lambda text: f"`{text}`."])
    report = audit(corpus, None)
    assert report.scores["typography"][RAW].accuracy > 0.9
    assert report.scores["typography"][USED].accuracy == pytest.approx(1 / 3, abs=0.02)
    assert report.used == RAW
    assert any("clean=yes brings it to 33%" in sentence for sentence in report.verdict)
    texts = corpus.texts("style1")
    assert clean(texts[0]) == corpus.texts("style0")[0]


def test_no_content_that_is_tested_was_seen():
    # Each content has a word of its own, and an odd one is always style 1's: a classifier that
    # sees contents in training would know the label of both.
    corpus = corpus_of([lambda text: text, lambda text: text])
    texts = [[f"{t} own{r}" for r, t in enumerate(corpus.texts(s))] for s in corpus.styles]
    assert score_cue(CUE["all words"], texts, corpus.groups).accuracy == pytest.approx(0.5)
    # groups are not cut: twins with opposite labels would be learnt by heart
    groups = np.repeat(np.arange(30), 2)
    assert score_cue(CUE["all words"], texts, groups).accuracy == pytest.approx(0.5)


def test_names_are_what_is_written_with_a_capital_inside_sentences():
    texts = ["And Moses said, the LORD is with Moses. The LORD said", "so spake Jehovah, O Jehovah"]
    assert names(texts) == {"moses", "lord", "jehovah"}
    assert names(["The The The", "the the"]) == set()


def test_function_words_of_another_language_are_its_most_frequent_words():
    german = [f"der Hund und die Katze laufen{n} schnell{n}" for n in range(50)]
    matrix = features(CUE["function words"], german)
    assert matrix.shape[1] <= 100
    assert matrix.getnnz(axis=1).min() >= 3


def test_typography_keeps_white_space_and_no_letter():
    items = CUE["typography"].prepare([])("One  two,\nthree's")
    assert "w  " in items
    assert ",\n" in {item for item in items if len(item) == 2}
    assert "w'w" in items
    assert not any(character.isalpha() and character != "w" for item in items for character in item)


# The floor


def test_the_bag_of_words_falls_where_it_was_trained_on_content(invented):
    floor = cross_overlap(invented, 2)
    grid = [str(alpha) for alpha in map(float, ALPHAS)]
    assert list(floor.accuracy) == grid
    assert all(list(row) == grid for row in floor.accuracy.values())
    assert floor.texts == 20
    assert all(0 <= value <= 1 for row in floor.accuracy.values() for value in row.values())
    # styles have a mark of their own in these texts: trained on shared contents, it is found
    assert floor.accuracy["1.0"]["1.0"] > 0.9


def test_the_floor_of_the_default_corpus_has_the_shape_of_the_papers_table(bible):
    row = cross_overlap(bible, 2, alphas=(ALPHAS[0], ALPHAS[-1])).accuracy
    low, high = row["0.0"], row["1.0"]
    assert low["0.0"] > 0.92
    assert low["1.0"] < 0.65
    assert abs(high["0.0"] - high["1.0"]) < 0.05
    assert high["1.0"] > 0.75
    assert high["0.0"] - low["1.0"] > 0.1, "the high-overlap advantage of a bag of words"


def test_a_corpus_larger_than_needed_is_thinned_evenly(monkeypatch, invented):
    monkeypatch.setattr("style_overlap.corpus.floor.CONTENTS", 100)
    monkeypatch.setattr("style_overlap.corpus.giveaway.CONTENTS", 50)
    report = audit(invented, None, k=2)
    assert report.contents == 50
    assert 8 <= report.floor_texts <= 10, "a tenth of two styles' fifty"


# Verdict, record, picture


def scored(**accuracies: float) -> dict[str, dict[str, CueScore]]:
    given = {"function words": 0.5, "names": 0.5, "all words": 0.8, "length": 0.5}
    given |= {"typography": 0.5, **accuracies}
    return {cue: dict.fromkeys((RAW, USED), CueScore(a, 0.01)) for cue, a in given.items()}


def test_the_verdict_warns_of_artefacts_first_and_only_of_those_beyond_doubt():
    assert judge(scored(), RAW, 2)[0].startswith("Neither typography nor length gives the style a")
    assert judge(scored(length=0.56), RAW, 2)[0].startswith("Neither")
    warned = judge(scored(length=0.7, names=0.9), RAW, 2)
    assert warned[0].startswith("Warning: length alone tells the 2 styles apart at 70% (chance 50%")
    assert "Names alone reach 90%." in warned


def test_too_few_contents_are_an_error():
    with pytest.raises(UsageError, match="planted has 9 contents: at least 10"):
        audit(corpus_of([plain, plain], contents=9), None)
    with pytest.raises(UsageError, match="k is 3: expected 2 to 2"):
        audit(corpus_of([plain, plain]), None, k=3)


def test_the_state_before_cleaning_is_loaded_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setenv("STYLE_OVERLAP_CACHE", str(tmp_path / "cache"))
    rows = "".join(f"c{n},[one {n}] x,two {n} y!!\n" for n in range(12))
    (tmp_path / "a.csv").write_text("content_id,A,B\n" + rows)
    spec = f"{tmp_path / 'a.csv'},clean=yes"
    cleaned = load_corpus(spec)
    assert cleaned.texts("A")[0] == "one 0 x"
    raw = raw_of(parse_spec(spec), cleaned, 5)
    assert raw is not None
    assert raw.texts("A")[0] == "[one 0] x"
    assert audit(cleaned, raw).used == USED
    assert raw_of(parse_spec(str(tmp_path / "a.csv")), raw, 5) is None


def test_the_command_prints_a_table_and_writes_record_and_picture(tmp_path, monkeypatch):
    monkeypatch.setenv("STYLE_OVERLAP_CACHE", str(tmp_path / "cache"))
    rows = "".join(f"c{n},the one {n} x,a two {n} y!\n" for n in range(40))
    (tmp_path / "a.csv").write_text("content_id,A,B\n" + rows)
    command = ["audit", str(tmp_path / "a.csv"), "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(cli_corpus.app, command)
    assert result.exit_code == 0, result.output
    assert "Warning: typography alone tells the 2 styles apart at 100%" in result.output
    assert "alpha_train  eval 0.0" in result.output
    record = json.loads((tmp_path / "out" / "giveaway.json").read_text())
    assert record["scores"]["typography"]["raw"]["accuracy"] == 1
    assert record["styles"] == ["A", "B"]
    assert b"</svg>" in (tmp_path / "out" / "giveaway.svg").read_bytes()[-20:]
    assert (tmp_path / "out" / "giveaway.png").stat().st_size > 10_000
    result = CliRunner().invoke(cli_corpus.app, [*command[:2], "--json"])
    assert json.loads(result.stdout) == record
