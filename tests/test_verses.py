"""Verse archives: two layouts, one corpus; faults are named, what does not fit is left out."""

from __future__ import annotations

import os
import re
import tarfile
from pathlib import Path

import pytest

from style_overlap.corpus import bible as bible_source
from style_overlap.corpus import cleaning, load_corpus
from style_overlap.corpus.books import CODES, TITLES, book_number
from style_overlap.corpus.references import split, verse_name
from style_overlap.errors import UsageError

# An archive of Carlson's Bibles (version/book/book<chapter>.txt, a verse a line), if any
CARLSON = os.environ.get("CARLSON_BIBLES", "")
VERSIONS = ("KJV", "ASV", "WEB")
BOOKS = {8: "Ruth", 32: "Jonah", 50: "Phillipians", 64: "3John"}  # with Carlson's spelling


@pytest.fixture(scope="module")
def verses() -> dict[str, dict[int, str]]:
    """A few small books."""
    read = {name: bible_source.read_verses(bible_source.VERSIONS[name]) for name in VERSIONS}
    return {
        name: {number: text for number, text in texts.items() if split(number)[0] in BOOKS}
        for name, texts in read.items()
    }


def write_folders(folder: Path, verses: dict[str, dict[int, str]]) -> Path:
    for version, texts in verses.items():
        for number, text in texts.items():
            book, chapter, verse = split(number)
            path = folder / version / BOOKS[book] / f"{BOOKS[book]}{chapter}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(f"{verse} {text} \n")
    return folder


def write_lines(folder: Path, verses: dict[str, dict[int, str]]) -> Path:
    codes = {number: code for code, number in CODES.items()}
    numbers = sorted(set().union(*verses.values()))
    folder.mkdir(parents=True, exist_ok=True)
    names = (f"{codes[b]} {c}:{v}" for b, c, v in map(split, numbers))
    (folder / "vref.txt").write_text("".join(f"{name}\n" for name in names))
    for version, texts in verses.items():
        lines = "".join(f"{texts.get(number, '')}\n" for number in numbers)
        (folder / f"{version}.txt").write_text(lines)
    return folder


@pytest.fixture
def load(tmp_path):
    return lambda spec, **options: load_corpus(str(spec), cache_dir=tmp_path / "cache", **options)


def test_both_layouts_are_one_corpus(load, tmp_path, verses):
    lines, folders = write_lines(tmp_path / "l", verses), write_folders(tmp_path / "f", verses)
    corpus = load(f"verses:{lines},classes=KJV,WEB,reserved=ASV")
    other = load(f"folders:{folders},classes=KJV,WEB,reserved=ASV")
    assert corpus.fingerprint == other.fingerprint
    assert (corpus.styles, corpus.reserved) == (("KJV", "WEB"), ("ASV",))
    assert corpus.content_ids[0] == "Ruth 1:1-5"
    expected = " ".join(verses["WEB"][8_001_000 + verse] for verse in range(1, 6))
    assert corpus.texts("WEB")[0] == expected
    assert {content_id.rsplit(" ", 1)[0] for content_id in corpus.content_ids} == {
        "Ruth", "Jonah", "Philippians", "3 John",
    }  # fmt: skip
    assert corpus.dropped["misaligned"]["ids"] == ["Philippians 1:16", "Philippians 1:17"]


def test_a_bare_folder_is_known_by_what_is_in_it(load, tmp_path, verses):
    lines, folders = write_lines(tmp_path / "l", verses), write_folders(tmp_path / "f", verses)
    assert load(lines).fingerprint == load(folders).fingerprint
    assert load(lines).styles == ("ASV", "KJV", "WEB"), "by name where the spec does not say"
    assert load(lines, chunk_verses=7).content_ids[0] == "Ruth 1:1-7"


@pytest.mark.case(18)
def test_the_fingerprint_knows_texts_and_choices_and_no_path(load, tmp_path, verses):
    one = load(write_lines(tmp_path / "one", verses))
    two = load(write_lines(tmp_path / "two", verses))
    assert one.fingerprint == two.fingerprint
    path = tmp_path / "two" / "KJV.txt"
    path.write_text(path.read_text().replace("Jonah", "Jonas"))
    changed = load(tmp_path / "two")
    assert "Jonas" in changed.texts("KJV")[changed.content_ids.index("Jonah 1:1-5")]
    others = [f"{tmp_path / 'one'},classes=WEB,KJV,ASV", f"{tmp_path / 'one'},exclude=jonah"]
    corpora = [one, changed, *map(load, others), load(tmp_path / "one", chunk_verses=4)]
    assert len({corpus.fingerprint for corpus in corpora}) == 5


def test_texts_are_cleaned_unless_the_spec_says_no(load, tmp_path, verses):
    marked = {v: {n: f'[{t.replace(" the ", "  the ")}]"' for n, t in texts.items()}
              for v, texts in verses.items()}  # fmt: skip
    folder = write_lines(tmp_path / "l", marked)
    clean, raw = load(folder), load(f"{folder},clean=no")
    assert clean.texts("KJV")[0] == " ".join(verses["KJV"][8_001_000 + v] for v in range(1, 6))
    assert raw.texts("KJV")[0].startswith("[Now it came to pass in  the days")
    assert clean.content_ids == raw.content_ids


@pytest.mark.case(27)
def test_verses_that_are_missing_merged_or_given_twice_are_dropped_for_all(load, tmp_path, verses):
    kjv = {**verses["KJV"], 8_001_003: "", 32_001_005: "<range>"}
    folder = write_lines(tmp_path / "l", {**verses, "KJV": kjv})
    dropped = load(folder).dropped
    assert dropped["missing"]["ids"] == ["Ruth 1:3", "Jonah 1:5"]
    assert dropped["missing"]["by_version"] == {"ASV": 0, "KJV": 2, "WEB": 0}
    assert dropped["merged"]["ids"] == ["Jonah 1:4"], "nobody knows where in it verse 5 begins"
    folder = write_folders(tmp_path / "f", verses)
    with (folder / "ASV" / "Jonah" / "Jonah1.txt").open("a") as file:
        file.write("3 This verse is here twice\n")
    corpus = load(folder)
    assert corpus.dropped["repeated"]["ids"] == ["Jonah 1:3"]
    assert not any("here twice" in text for text in corpus.texts("ASV"))


def test_books_can_be_left_out(load, tmp_path, verses):
    folder = write_folders(tmp_path / "f", verses)
    corpus = load(f"{folder},exclude=Philippians,3 john")
    assert {content_id.split()[0] for content_id in corpus.content_ids} == {"Ruth", "Jonah"}
    with pytest.raises(UsageError, match=r"exclude=Jonas: no book.*did you mean 'Jonah'"):
        load(f"{folder},exclude=Jonas")


@pytest.mark.case(27)
def test_a_version_that_slipped_is_refused(load, tmp_path, verses):
    numbers = sorted(verses["ASV"])
    texts = [verses["ASV"][number] for number in numbers]
    slipped = dict(zip(numbers, texts[1:] + texts[:1], strict=True))
    folder = write_lines(tmp_path / "l", {**verses, "ASV": slipped})
    with pytest.raises(UsageError, match="ASV is not aligned with the other versions"):
        load(folder)
    assert load(f"{folder},classes=KJV,WEB").styles == ("KJV", "WEB")


# Faults of archives


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (
            "vref.txt",
            lambda t: t.replace("RUT 1:2", "RUT one"),
            r"row 2, .*'RUT one', expected a v",
        ),
        ("vref.txt", lambda t: t.replace("RUT 1:2", "RTU 1:2"), r"row 2, column 'vref': 'RTU 1:2'"),
        (
            "vref.txt",
            lambda t: t.replace("RUT 1:2\n", "RUT 1:1\n"),
            r"RUT 1:1 again, first in row 1",
        ),
        ("KJV.txt", lambda t: t + "\n", r"KJV.txt has \d+ lines, vref.txt \d+"),
    ],
)
def test_lines_that_cannot_be_placed(load, tmp_path, verses, file, change, message):
    path = write_lines(tmp_path / "l", verses) / file
    path.write_text(change(path.read_text()))
    with pytest.raises(UsageError, match=message):
        load(tmp_path / "l")


def test_lines_that_are_not_utf_8_are_named(load, tmp_path, verses):
    path = write_lines(tmp_path / "l", verses) / "KJV.txt"
    path.write_bytes(path.read_bytes().replace(b"Naomi", b"Na\xf6mi", 1))
    with pytest.raises(UsageError, match=r"(?s)KJV.txt: lines that are not UTF-8 \(1\).*row 2,"):
        load(tmp_path / "l")


def test_folders_that_cannot_be_placed(load, tmp_path, verses):
    folder = write_folders(tmp_path / "f", verses)
    bad = folder / "KJV" / "Jonah" / "Jonah1.txt"
    text = bad.read_text()
    bad.write_text(text + "a line without number\n")
    with pytest.raises(UsageError, match=r"KJV/Jonah/Jonah1.txt: lines without a verse number"):
        load(folder)
    bad.write_text(text)
    bad.rename(bad.with_name("Jonah.txt"))
    with pytest.raises(
        UsageError, match=r"KJV/Jonah/Jonah.txt: expected a name that ends in the c"
    ):
        load(folder)
    (folder / "KJV" / "Jonah").rename(folder / "KJV" / "Jonahh")
    with pytest.raises(UsageError, match=r"KJV/Jonahh is no book .*did you mean 'Jonah'"):
        load(folder)


def test_versions_that_are_not_there(load, tmp_path, verses):
    folder = write_lines(tmp_path / "l", verses)
    with pytest.raises(UsageError, match=r"has no version 'KJB' \(did you mean 'KJV'\?\); there a"):
        load(f"{folder},classes=KJB,WEB")
    with pytest.raises(UsageError, match="two or more classes that are not reserved, found WEB"):
        load(f"{folder},reserved=KJV,ASV")
    for number in range(21):
        (folder / f"v{number:02}.txt").write_text("")
    with pytest.raises(UsageError, match="has 24 versions: choose some, for example classes=ASV"):
        load(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no versions: expected folders version/book"):
        load(tmp_path / "empty")


def test_the_vref_file_is_found_where_the_ebible_corpus_has_it(load, tmp_path, verses):
    folder = write_lines(tmp_path / "corpus", verses)
    reference = load(folder)
    (tmp_path / "metadata").mkdir()
    (folder / "vref.txt").rename(tmp_path / "metadata" / "vref.txt")
    assert load(f"verses:{folder}").fingerprint == reference.fingerprint
    (tmp_path / "metadata" / "vref.txt").rename(tmp_path / "list.txt")
    with pytest.raises(UsageError, match=r"no vref\.txt in .*by vref=PATH"):
        load(f"verses:{folder}")
    assert (
        load(f"verses:{folder},vref={tmp_path / 'list.txt'}").fingerprint == reference.fingerprint
    )
    with pytest.raises(UsageError, match=r"no vref file .*did you mean 'list\.txt'"):
        load(f"verses:{folder},vref={tmp_path / 'lst.txt'}")


def test_books_are_pythonbibles_and_are_found_by_many_names():
    import pythonbible

    assert {b.value: b.title for b in pythonbible.Book}.items() <= TITLES.items()
    for name in ("1 John", "1john", "1JN", "1_John", "1John"):
        assert book_number(name) == 62
    assert book_number("SongofSolomon") == book_number("Song of Songs") == 22
    assert book_number("Jonas") is None
    assert len(set(CODES.values())) == len(CODES) == len(TITLES)


# The archive itself


@pytest.fixture(scope="module")
def carlson(tmp_path_factory) -> Path:
    if not CARLSON:
        pytest.skip("CARLSON_BIBLES names no archive")
    folder = tmp_path_factory.mktemp("carlson")
    with tarfile.open(CARLSON) as archive:
        wanted = [m for m in archive if re.match(r"(DRA|KJV|BBE)/(Psalms|Ruth|John|Mark)", m.name)]
        archive.extractall(folder, members=wanted, filter="data")
    return folder


@pytest.mark.case(27)
def test_psalms_counted_as_in_the_vulgate_are_refused_and_can_be_left_out(load, carlson):
    with pytest.raises(UsageError, match="DRA is not aligned with the other versions") as error:
        load(f"folders:{carlson},classes=KJV,BBE,DRA")
    assert "Psalms" in str(error.value)
    corpus = load(f"folders:{carlson},classes=KJV,BBE,DRA,exclude=Psalms")
    assert {content_id.split()[0] for content_id in corpus.content_ids} == {"Ruth", "John", "Mark"}
    by_version = corpus.dropped["misaligned"]["by_version"]
    assert by_version["DRA"] == max(by_version.values())
    assert "John 1:38" in corpus.dropped["repeated"]["ids"]
    assert verse_name(43_001_038, TITLES) == "John 1:38"


# Options of the default corpus


def test_the_default_corpus_can_reserve_other_versions_and_stay_uncleaned():
    default = bible_source.recipe(None, 5)
    assert bible_source.recipe(None, 5, reserved=["NHEB", "RWEBSTER"]).settings == default.settings
    assert "clean" not in default.settings, "older caches and fingerprints stay valid"
    raw = bible_source.recipe(None, 5, cleaned=False)
    assert raw.settings == {**default.settings, "clean": False}
    other = bible_source.recipe("KJV,WEB", 5, reserved=["ylt"])
    assert (other.styles, other.reserved) == (("KJV", "WEB"), ("YLT",))
    assert other.settings["spec"] == "bible:KJV,WEB,reserved=YLT"
    assert bible_source.recipe("KJV,WEB", 5, reserved=[]).reserved == ()


def test_a_verse_that_is_nothing_but_marks_is_empty_before_and_after_cleaning():
    assert (cleaning.clean("[] *"), cleaning.keep("[] *")) == ("", "")
    assert cleaning.keep(" [a]  b ") == "[a]  b"
