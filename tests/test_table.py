"""Tables as corpora: every form gives the same corpus, and bad rows are named and build nothing."""

from __future__ import annotations

import csv
import gzip
import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from style_overlap.corpus import load_corpus, parse_spec, rows, twins
from style_overlap.corpus.groups import content_groups
from style_overlap.errors import UsageError
from style_overlap.overlap import sample

EXAMPLE = Path(__file__).parent.parent / "examples" / "registers" / "registers.csv"
TEXTS = {
    "c1": ("The river is high, do not swim.", "Swimming is prohibited."),
    "c2": ('She said "no", and left.', "The proposal was declined."),
    "c3": ("Bread keeps\na week.", "The bread is to be consumed within a week."),
}
LONG = [(c, style, t[s]) for c, t in TEXTS.items() for s, style in enumerate(("plain", "formal"))]
WIDE = [(content, *texts) for content, texts in TEXTS.items()]
LONG_HEADER, WIDE_HEADER = ("content_id", "style", "text"), ("content_id", "plain", "formal")


def write_csv(path: Path, header, records, delimiter=",", end="\n", bom=""):
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(bom)
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        writer.writerow(header)
        writer.writerows(records)
    return path


def write_json(path: Path, header, records):
    text = "".join(json.dumps(dict(zip(header, r, strict=True))) + "\n" for r in records)
    path.write_text(text, encoding="utf-8")
    return path


def write_parquet(path: Path, header, records):
    columns = zip(*records, strict=True)
    pq.write_table(pa.table(dict(zip(header, map(list, columns), strict=True))), path)
    return path


def write_gzip(path: Path, header, records):
    plain = write_csv(path.with_name("plain.csv"), header, records)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    return path


def csv_text(folder: Path, *records: str, name: str = "texts.csv") -> str:
    path = folder / name
    path.write_text("content_id,style,text\n" + "".join(f"{r}\n" for r in records))
    return str(path)


@pytest.fixture
def load(tmp_path):
    return lambda spec, **options: load_corpus(str(spec), cache_dir=tmp_path / "cache", **options)


FORMS = {
    "long.csv": lambda path: write_csv(path, LONG_HEADER, LONG),
    "bom.csv": lambda path: write_csv(path, LONG_HEADER, LONG, bom="\ufeff"),
    "crlf.csv": lambda path: write_csv(
        path, LONG_HEADER, [(c, s, t.replace("\n", "\r\n")) for c, s, t in LONG], end="\r\n"
    ),
    "long.tsv": lambda path: write_csv(path, LONG_HEADER, LONG, delimiter="\t"),
    "long.jsonl": lambda path: write_json(path, LONG_HEADER, LONG),
    "long.parquet": lambda path: write_parquet(path, LONG_HEADER, LONG),
    "long.csv.gz": lambda path: write_gzip(path, LONG_HEADER, LONG),
    "wide.csv": lambda path: write_csv(path, WIDE_HEADER, WIDE),
    "wide.ndjson": lambda path: write_json(path, WIDE_HEADER, WIDE),
    "wide.parquet": lambda path: write_parquet(path, WIDE_HEADER, WIDE),
    "pandas.csv": lambda path: write_csv(
        path, ("", *WIDE_HEADER), [(row, *record) for row, record in enumerate(WIDE)]
    ),
}


@pytest.mark.case(29)
@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_table_is_the_same_corpus(load, tmp_path, name):
    reference = load(write_csv(tmp_path / "reference.csv", LONG_HEADER, LONG))
    corpus = load(FORMS[name](tmp_path / name))
    assert corpus.styles == ("plain", "formal")
    assert corpus.table.column_names == ["content_id", "group", "plain", "formal"]
    assert corpus.content_ids == ["c1", "c2", "c3"]
    assert corpus.texts("plain") == [plain for plain, _ in TEXTS.values()]
    assert corpus.groups.tolist() == [0, 1, 2]
    assert corpus.fingerprint == reference.fingerprint
    assert corpus.name == name.split(".")[0]


@pytest.mark.case(18)
def test_the_fingerprint_knows_texts_and_order_but_no_path(load, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    path = write_csv(tmp_path / "folder" / "a.csv", LONG_HEADER, LONG)
    one = load(path)
    monkeypatch.chdir(path.parent)
    assert load("a.csv").fingerprint == load("table:../folder/a.csv").fingerprint
    path.write_text(path.read_text().replace("prohibited", "forbidden"))
    changed = load(path)
    assert changed.texts("formal")[0] == "Swimming is forbidden."
    swapped = load("a.csv,classes=formal,plain")
    turned = load(write_csv(tmp_path / "b.csv", LONG_HEADER, LONG[::-1]))
    reserved = load(write_csv(tmp_path / "c.csv", (*WIDE_HEADER, "odd"), [(*r, "x") for r in WIDE]))
    assert len({c.fingerprint for c in (one, changed, swapped, turned, reserved)}) == 5
    assert str(tmp_path) not in json.dumps(dict(one.settings))


def test_columns_can_have_any_names_and_classes_any_order(load, tmp_path):
    path = write_csv(tmp_path / "a.csv", ("nr", "who", "body"), LONG)
    corpus = load(f"{path},content=nr,style=who,text=body,classes=formal,plain")
    assert corpus.styles == ("formal", "plain")
    assert corpus.texts("formal")[1] == "The proposal was declined."
    header, records = ("a,b", "x", "y"), [(1, "one", "two"), (2, "three", "four")]
    path = write_csv(tmp_path / "with,comma.csv", header, records)
    corpus = load(f"{str(path).replace(',', '%2C')},content=a%2Cb")
    assert (corpus.content_ids, corpus.styles) == (["1", "2"], ("x", "y"))


def test_reserved_styles_are_columns_and_no_classes(load, tmp_path):
    records = [(*record, f"casual {record[0]}") for record in WIDE]
    path = write_csv(tmp_path / "a.csv", (*WIDE_HEADER, "casual"), records)
    corpus = load(f"{path},reserved=plain")
    assert (corpus.styles, corpus.reserved) == (("formal", "casual"), ("plain",))
    assert corpus.texts("plain")[0] == TEXTS["c1"][0]
    again = load(f"{path},reserved=plain")  # now from the cache
    assert (again.styles, again.reserved) == (corpus.styles, corpus.reserved)
    styles = ("plain", "formal", "casual")
    long = [(c, s, t) for c, *texts in records for s, t in zip(styles, texts, strict=True)]
    path = write_csv(tmp_path / "long.csv", LONG_HEADER, long)
    assert load(f"{path},reserved=plain").fingerprint == corpus.fingerprint
    two = load(f"{path},classes=casual,plain")
    assert (two.styles, two.dropped["other_styles"]) == (("casual", "plain"), {"formal": 3})


def test_rows_can_stand_for_content_ids(load, tmp_path):
    path = write_csv(tmp_path / "a.csv", ("plain", "formal"), [record[1:] for record in WIDE])
    assert load(f"{path},content=row").content_ids == ["2", "3", "4"]


# Order, regions, groups


def test_contents_follow_the_order_column_by_number_and_then_the_regions(load, tmp_path):
    header = ("content_id", "A", "B", "place", "topic")
    records = [
        (f"c{place}", f"one {place} x{place}", f"two {place} x{place}", place, topic)
        for place, topic in [(10, "sea"), (9, "sea"), (2, "hill"), (30, "hill"), (1, "sea")]
    ]
    path = write_csv(tmp_path / "a.csv", header, records)
    spec = f"{path},classes=A,B"
    assert load(spec).content_ids == ["c10", "c9", "c2", "c30", "c1"]
    assert load(f"{spec},order=place").content_ids == ["c1", "c2", "c9", "c10", "c30"]
    by_topic = load(f"{spec},order=place,region=topic")
    assert by_topic.content_ids == ["c1", "c9", "c10", "c2", "c30"]
    assert by_topic.texts("B")[1] == "two 9 x9"
    assert load(f"{spec},region=topic").content_ids == ["c10", "c9", "c1", "c2", "c30"]
    words = [(*record[:3], f"p{record[3]}", record[4]) for record in records]
    path = write_csv(tmp_path / "b.csv", header, words)
    ids = load(f"{path},classes=A,B,order=place").content_ids
    assert ids == ["c1", "c10", "c2", "c30", "c9"], "sorted as text where there are no numbers"


def test_exclusive_pools_follow_the_regions(load):
    corpus = load(f"{EXAMPLE},region=topic")
    with EXAMPLE.open(newline="") as file:
        topic = {row["content_id"]: row["topic"] for row in csv.DictReader(file)}
    drawn = sample(corpus, 2, "0")
    of_style: dict[int, set[str]] = {0: set(), 1: set()}
    for split in drawn.splits.values():
        for content, style in zip(split.content, split.style, strict=True):
            of_style[int(style)].add(topic[corpus.content_ids[content]])
    assert sorted(map(sorted, of_style.values())) == [["home", "town"], ["outdoors", "work"]]


def test_a_group_column_keeps_contents_together(load, tmp_path):
    header = ("content_id", "A", "B", "document")
    records = [(f"c{n}", f"a{n} b{n}", f"a{n} d{n}", f"doc{n % 10}") for n in range(40)]
    corpus = load(f"{write_csv(tmp_path / 'a.csv', header, records)},group=document")
    assert corpus.styles == ("A", "B")
    assert corpus.groups.tolist() == [n % 10 for n in range(40)]


def test_a_content_has_one_region(load, tmp_path):
    header = (*LONG_HEADER, "topic")
    records = [(*record, "sea" if n != 3 else "hill") for n, record in enumerate(LONG)]
    path = write_csv(tmp_path / "a.csv", header, records)
    with pytest.raises(UsageError, match=r"row 5, column 'topic': 'hill' for 'c2', but 'sea' in r"):
        load(f"{path},region=topic")


# Bad rows


@pytest.mark.case(29)
@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        (["c1,A,x", "c1,B,y", "c1,A,z"], "", r"row 4, column 'content_id': 'c1' in A again.*row 2"),
        (["c1,A,x", "c1,B,y", "c2,A,z"], "", r"row 4, column 'content_id': 'c2' has no text in B"),
        (["c1,A,x", "c1,B,  "], "", r"row 3, column 'text': empty"),
        (["c1,A,x", ",B,y"], "", r"rows without content_id.*row 3, column 'content_id': empty"),
        (["c1,A,x", "c1,,y"], "", r"rows without style.*row 3, column 'style': empty"),
        (["c1,A,x", "c1,B,y,z"], "", r"row 3, column 'text': 4 fields, the header has 3"),
        (["c1,A,x", "c1,B"], "", r"row 3, column 'style': 2 fields"),
        (['c1,A,"x', "c1,B,y"], "", r"row 2.*quotation mark is opened and never closed.*quotes=no"),
        (["c1,A,x", 'c1,B,"y"z'], "", r"row 3 \(columns content_id, style, text\).*quotes=no"),
        (["c1,A,x", "c1,B,y\rz"], "", r"row 3.*lone carriage return"),
        (["c1,A,x", "c1,A,y"], "", r"two or more classes, found A"),
        (["c1,A,x", "c2,B,y"], ",missing=drop", "no content that every one of A, B has"),
        (["c1,A,x", "c1,group,y"], "", "no style can be called 'group'"),
        ([], "", "has no rows with texts"),
        (["c1,A,x", "c1,B,y"], ",classes=A,b", "no style 'b' in column 'style'.*did you mean 'B'"),
        (["c1,A,x", "c1,B,y"], ",classes=A,B,A", "names one of them twice"),
        (["c1,A,x", "c1,B,y"], ",classes=A,B,reserved=B", "'B' is named twice"),
        (["c1,A,x", "c1,B,y"], ",missing=ignore", "missing=ignore: expected error or drop"),
        (["c1,A,x", "c1,B,y"], ",order=place", "no column 'place' for order="),
        (["c1,A,x", "c1,B,y"], ",style=A", r"no column 'A' for style=; its columns are content_id"),
        (["c1,A,x", "c1,B,y"], ",text=style", "column 'style' cannot serve two ends"),
        (["c1,A,x", "c1,B,y"], ",regoin=x", "no option 'regoin' .did you mean 'region'"),
        (["c1,A,x", "c1,B,y"], ",region=a,b", "region=a,b: expected one value"),
        (["c1,A,x", "c1,B,y"], ",text=text,text=b", "text= is given twice"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_built(load, tmp_path, records, options, message):
    with pytest.raises(UsageError, match=rf"(?s){message}"):
        load(csv_text(tmp_path, *records) + options)
    left = [path.name for path in (tmp_path / "cache").rglob("*") if path.suffix != ".lock"]
    assert left in ([], ["corpus"])


@pytest.mark.case(29)
def test_of_many_bad_rows_the_count_and_the_first_five_are_told(load, tmp_path):
    records = [f"c{n},{style},text {n}" for n in range(30) for style in "AB"]
    records[10:34:2] = ["c5,A,"] * 12
    with pytest.raises(UsageError) as error:
        load(csv_text(tmp_path, *records))
    message = str(error.value)
    assert "texts.csv: empty texts (12, the first 5):" in message
    assert [n for n in range(100) if f"row {n}," in message] == [12, 14, 16, 18, 20]
    assert "missing=drop" in message
    records = [f"c{n},{style},text {n}" for n in range(30) for style in "AB"]
    with pytest.raises(UsageError, match=r"texts given twice \(60, the first 5\)"):
        load(csv_text(tmp_path, *records, *records))


@pytest.mark.case(29)
def test_a_table_with_other_columns_says_what_it_has_and_what_to_type(load, tmp_path):
    path = write_csv(tmp_path / "a.csv", ("nr", "who", "body"), LONG)
    with pytest.raises(UsageError, match=r"its columns are nr, who, body; .*content=id,style=auth"):
        load(path)
    with pytest.raises(UsageError, match=r"no column 'boddy' \(did you mean 'body'\?\) for text="):
        load(f"{path},content=nr,style=who,text=boddy")
    # taken for a wide one, its ids repeat
    path = write_csv(tmp_path / "b.csv", ("content_id", "who", "body"), LONG)
    with pytest.raises(UsageError, match=r"If this is a long table, name its columns: style="):
        load(path)


@pytest.mark.case(29)
@pytest.mark.parametrize(
    ("name", "begin", "message"),
    [
        (
            "a.csv",
            b"content_id,style,text\nc1,A,ok\nc1,B,",
            r"row 3, column 'text': a line of more",
        ),
        ("a.csv", b"", "row 1: a line of more"),
        ("a.jsonl", b'{"content_id": "c1", "text": "', "row 1, column 'text': a line of more"),
    ],
)
def test_a_line_of_a_gigabyte_is_refused_before_it_is_read(load, tmp_path, name, begin, message):
    with (tmp_path / name).open("wb") as file:
        file.write(begin)
        file.truncate(2**30)  # sparse: takes no space
    with pytest.raises(UsageError, match=message):
        load(tmp_path / name)


def test_a_quotation_mark_that_swallows_the_file_is_noticed_in_time(load, tmp_path, monkeypatch):
    monkeypatch.setattr("style_overlap.corpus.textrows.MAX_LINE", 2**16)
    records = ['c1,A,"never closed'] + [f"c{n},A,{'x' * 100}" for n in range(2000)]
    with pytest.raises(UsageError, match=r"row 2.*opened and never closed"):
        load(csv_text(tmp_path, *records))


@pytest.mark.case(29)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("content_id,style,text\nc1,A,x\n".encode("utf-16"), "is UTF-16: save it as UTF-8"),
        (b"content_id,style,text\nc1,A,x\nc1,B,caf\xe9\n", r"not UTF-8.*row 3, column 'text'"),
        (b"", "is empty"),
        (b"content_id,style,style,text\n", "the header has column 'style' twice"),
    ],
)
def test_files_of_other_encodings_and_broken_headers(load, tmp_path, data, message):
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(UsageError, match=rf"(?s){message}"):
        load(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"content_id": "c1", "style": "B", "text"', "row 2, column 'style'|row 2, column 'text'"),
        ("[1, 2]", "row 2, column '': a list, expected an object"),
        ('{"content_id": "c1", "style": "B", "text": 7}', "row 2, column 'text': 7"),
        ('{"content_id": "c1", "style": "B"}', "row 2, column 'text': empty"),
        ('{"content_id": "c1", "style": "B", "text": "\\ud800"}', "texts that cannot be kept"),
    ],
)
def test_json_lines_that_cannot_be_used(load, tmp_path, line, message):
    good = '{"content_id": "c1", "style": "A", "text": "x"}'
    (tmp_path / "a.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(UsageError, match=message):
        load(tmp_path / "a.jsonl")


def test_row_numbers_are_those_of_a_spreadsheet(load, tmp_path):
    text = 'content_id,style,text\nc1,A,"two\nlines"\n\nc1,B,y\nc2,A,z\nc2,B,\n'
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UsageError, match="row 6, column 'text': empty"):
        load(tmp_path / "a.csv")


def test_quotes_can_be_part_of_the_texts(load, tmp_path):
    (tmp_path / "a.tsv").write_text('content_id\tA\tB\nc1\t"No," he said\tno\nc2\t6"\tsix inch\n')
    with pytest.raises(UsageError, match="quotes=no"):
        load(tmp_path / "a.tsv")
    assert load(f"{tmp_path / 'a.tsv'},quotes=no").texts("A") == ['"No," he said', '6"']


def test_incomplete_contents_are_left_out_and_listed_when_asked(load, tmp_path):
    records = ["c1,A,x", "c1,B,y", "c2,A,z", "c3,B,", "c3,A,w", "c4,B,v", "c4,A,u"]
    corpus = load(csv_text(tmp_path, *records) + ",missing=drop")
    assert corpus.content_ids == ["c1", "c4"]
    assert corpus.texts("A") == ["x", "u"]
    missing = {"count": 2, "ids": ["c2", "c3"], "by_version": {"A": 0, "B": 2}}
    assert corpus.dropped["missing"] == missing
    path = write_csv(tmp_path / "w.csv", WIDE_HEADER, [("c1", "x", "y"), ("c2", "", "z")])
    corpus = load(f"{path},missing=drop")
    assert corpus.content_ids == ["c1"]
    assert corpus.dropped["missing"]["ids"] == ["c2"]
    assert corpus.dropped["missing"]["by_version"] == {"plain": 1}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.text("abcé日", min_size=1, max_size=3),
        st.sets(st.sampled_from("ABC"), min_size=1),
        min_size=1,
        max_size=20,
    ),
    st.randoms(),
)
def test_any_table_gives_the_contents_that_all_styles_have(tmp_path, styles_of, rng):
    records = [(c, s, f"text of {c} in {s}") for c, styles in styles_of.items() for s in styles]
    rng.shuffle(records)
    path = write_csv(tmp_path / "a.csv", LONG_HEADER, records)
    expected = list(dict.fromkeys(c for c, _, _ in records if styles_of[c] == {"A", "B", "C"}))
    spec = f"{path},classes=A,B,C,missing=drop,stray=ignore"
    if not expected:
        with pytest.raises(UsageError):
            load_corpus(spec, cache_dir=tmp_path / "cache")
        return
    corpus = load_corpus(spec, cache_dir=tmp_path / "cache")
    assert corpus.content_ids == expected
    for style in "ABC":
        assert corpus.texts(style) == [f"text of {c} in {style}" for c in expected]


def test_batches_of_any_size_give_the_same_corpus(load, tmp_path, monkeypatch):
    records = [(f"c{n}", style, f"{style} says {n}") for style in "AB" for n in range(50)]
    path = write_csv(tmp_path / "a.csv", LONG_HEADER, records)
    whole = load(f"{path},stray=ignore")
    monkeypatch.setattr(rows, "BATCH", 7)
    monkeypatch.setattr("style_overlap.corpus.pivot._SLICE", 11)
    pieces = load_corpus(f"{path},stray=ignore", cache_dir=tmp_path / "other")
    assert pieces.fingerprint == whole.fingerprint
    assert pieces.texts("B")[49] == "B says 49"


# Alignment of tables


def parallel_rows(n: int = 60) -> list[tuple[str, str, str]]:
    rng = random.Random(0)
    words = [f"word{number}" for number in range(200)]
    found = []
    for row in range(n):
        shared = rng.sample(words, 6)
        found.append((f"c{row}", " ".join([*shared, "indeed"]), " ".join(["well", *shared[::-1]])))
    return found


def test_a_column_that_slipped_by_a_row_is_refused_with_three_examples(load, tmp_path):
    good = parallel_rows()
    slipped = [
        (content, one, good[(row + 1) % len(good)][2]) for row, (content, one, _) in enumerate(good)
    ]
    path = write_csv(tmp_path / "a.csv", WIDE_HEADER, slipped)
    with pytest.raises(UsageError, match="plain and formal are not aligned with each oth") as error:
        load(path)
    assert str(error.value).count("plain at c") + str(error.value).count("formal at c") == 3
    assert "stray=ignore" in str(error.value)
    assert len(load(f"{path},stray=ignore")) == len(good)
    assert len(load(write_csv(tmp_path / "b.csv", WIDE_HEADER, good))) == len(good)


def test_single_strays_stay_unless_the_spec_says_otherwise(load, tmp_path):
    records = parallel_rows()
    first, second = records[10], records[11]
    records[10], records[11] = (*first[:2], second[2]), (*second[:2], first[2])
    path = write_csv(tmp_path / "a.csv", WIDE_HEADER, records)
    assert len(load(path)) == 60
    corpus = load(f"{path},stray=drop")
    assert corpus.dropped["misaligned"]["ids"] == ["c10", "c11"]
    assert len(corpus) == 58
    assert not {"c10", "c11"} & set(corpus.content_ids)
    assert corpus.texts("formal")[10] == records[12][2]


def test_styles_without_a_word_in_common_are_not_called_misaligned(load, tmp_path):
    records = [(f"c{n}", f"eins{n} zwei{n}", f"un{n} deux{n}") for n in range(60)]
    assert len(load(write_csv(tmp_path / "a.csv", WIDE_HEADER, records))) == 60


# Near-duplicates of large tables


def test_sketches_find_equal_texts_and_most_half_equal_ones(monkeypatch):
    rng = random.Random(0)
    words = [f"w{number}" for number in range(5000)]
    texts = [" ".join(rng.choices(words, k=30)) for _ in range(400)]
    texts += [text.upper() + "!" for text in texts[:100]]  # 400-499: the same words
    for text in texts[100:200]:  # 500-599: two thirds of it
        texts.append(" ".join([*text.split()[:20], *rng.choices(words, k=10)]))
    other = [text.replace("w", "v") for text in texts]
    table = pa.table({"A": texts, "B": other})
    exact = twins.near_duplicates(table, ["A", "B"])
    assert exact.tolist() == content_groups({"A": texts, "B": other}).tolist()
    monkeypatch.setattr(twins, "IN_MEMORY", 0)
    monkeypatch.setattr(twins, "_SLICE", 64)
    found = twins.near_duplicates(table, ["A", "B"])
    assert found[400:500].tolist() == list(range(100))
    assert np.mean(found[500:600] == np.arange(100, 200)) > 0.85
    assert (found[:400] == np.arange(400)).all(), "nothing else is called a twin"


def test_short_texts_are_twins_of_none_but_their_like(monkeypatch):
    monkeypatch.setattr(twins, "IN_MEMORY", 0)
    table = pa.table({"A": ["", "yes", "yes", "no one there"], "B": ["x", "", "yes", "?"]})
    assert twins.near_duplicates(table, ["A", "B"]).tolist() == [0, 1, 2, 3]


# Specs


@pytest.mark.parametrize("chunk_verses", [1, 10])
def test_a_chunk_length_makes_no_sense_for_rows(load, chunk_verses):
    with pytest.raises(UsageError, match="made of rows and not of verses"):
        load(EXAMPLE, chunk_verses=chunk_verses)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tabel:texts.csv", "did you mean 'table'"),
        ("table:", "names no file: type for example table:texts.csv"),
        ("table", "names no file"),
        ("nowhere/texts.csv", "there is no folder nowhere"),
        ("table:pyproject.toml", "is no table: expected a file that ends in .csv"),
        ("bible:KJV,ASV,reserved=KJV", "expected versions that are no classes"),
        ("bible:KJV,ASV,reserved=NIV", "no translation 'NIV'"),
        ("bible:KJV,ASV,clean=maybe", "clean=maybe: expected yes or no"),
        ("bible:KJV,ASV,order=x", "bible has no option 'order'"),
        ("hub:owner/name", "40 hex digits of a commit"),
        ("hub:owner/name,revision=main", "40 hex digits of a commit"),
    ],
)
def test_specs_that_cannot_be_used_say_what_to_type(load, monkeypatch, spec, message):
    monkeypatch.chdir(EXAMPLE.parent.parent.parent)
    with pytest.raises(UsageError, match=message):
        load(spec)


def test_a_file_of_nearly_that_name_is_suggested(load):
    with pytest.raises(UsageError, match=r"did you mean 'registers\.csv'"):
        load(EXAMPLE.with_name("register.csv"))


names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)


def quote(name: str) -> str:
    return name.replace("%", "%25").replace(",", "%2C").replace("=", "%3D")


@example("100%", ["content=", "a,b", "%2C"])
@given(names, st.lists(names, min_size=1, max_size=3, unique=True))
def test_a_spec_says_the_same_after_it_is_written_again(body, classes):
    spec = parse_spec("table:x.csv").but(content="c")
    parsed = parse_spec(spec.text)
    assert (parsed.body, parsed.one("content")) == ("x.csv", "c")
    spec = parse_spec(f"table:{quote(body)},reserved=,classes={','.join(map(quote, classes))}")
    again = parse_spec(spec.but(clean="yes").text)
    assert again.body == spec.body == body
    assert list(again.several("classes")) == list(spec.several("classes")) == classes
    assert again.several("reserved") == ()
    assert again.flag("clean", False)


def test_a_data_set_of_the_hub_is_read_at_its_commit(load, monkeypatch):
    import datasets

    asked = []

    def load_dataset(name, config, *, revision, split):
        asked.append((name, config, revision, split))
        return datasets.Dataset.from_list([dict(zip(WIDE_HEADER, r, strict=True)) for r in WIDE])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    commit = "0123456789abcdef0123456789abcdef01234567"
    corpus = load(f"hub:owner/name,revision={commit},split=test")
    assert asked == [("owner/name", None, commit, "test")]
    assert (corpus.name, corpus.texts("plain")[2]) == ("name", "Bread keeps\na week.")
    load(f"hub:owner/name,revision={commit},split=test")
    assert len(asked) == 1, "asked again though it is in the cache"

    def fails(*args, **kwargs):
        raise ConnectionError("no network")

    monkeypatch.setattr(datasets, "load_dataset", fails)
    with pytest.raises(UsageError, match=r"cannot load owner/other at .*no network"):
        load(f"hub:owner/other,revision={commit}")


def test_the_tasks_take_a_table(tmp_path, monkeypatch):
    from style_overlap.tasks.style_overlap.docs import DataOptions, documents, draw

    monkeypatch.setenv("STYLE_OVERLAP_CACHE", str(tmp_path))
    options = DataOptions.from_metadata({"corpus": f"{EXAMPLE},region=topic", "pretrained": "x"})
    corpus, drawn = draw(options, 2, "0.4")
    found = documents(corpus, drawn, "train")
    assert set(found["style"]) == {"plain", "formal"}
    assert len(found) == len(drawn.splits["train"])


def test_the_example_has_forty_contents_in_three_registers(load):
    corpus = load(f"{EXAMPLE},region=topic")
    assert (len(corpus), corpus.styles) == (40, ("plain", "formal", "casual"))
    assert len(np.unique(corpus.groups)) == 40
