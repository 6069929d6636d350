"""Readers of verse archives: a verse per line beside a vref file, or folders version/book/chapter.

Lines are checked as they are read: a verse that cannot be placed is a fault of a row, told with
its file and line, and no part of an archive with faults is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from style_overlap.corpus.books import CODES, TITLES, book_number
from style_overlap.corpus.faults import Faults
from style_overlap.corpus.lines import MAX_LINE, Lines, LineTooLongError
from style_overlap.corpus.references import number_of
from style_overlap.corpus.specs import did_you_mean
from style_overlap.errors import UsageError

RANGE = "<range>"
"""What stands in the line of a verse whose words stand with the verse before."""

_REFERENCE = re.compile(r"([A-Z0-9]{3}) (\d{1,3}):(\d{1,3})")
_VERSE_LINE = re.compile(r"(\d{1,3})(?:[\s.:]+(.*))?", re.DOTALL)
_CHAPTER = re.compile(r"(\d{1,3})\Z")


@dataclass
class Archive:
    """The verses of some versions.

    Attributes:
        verses: version -> verse number -> text; empty where the version leaves the verse out.
        excluded: verses that are left out of all versions, by reason.
    """

    verses: dict[str, dict[int, str]] = field(default_factory=dict)
    excluded: dict[str, list[int]] = field(default_factory=dict)


def read_lines(vref: Path, files: dict[str, Path], policy: Callable[[str], str]) -> Archive:
    """Versions of one verse per line.

    Args:
        vref: the verse of each line.
        files: text file by version.
        policy: what is done to every text.

    Raises:
        UsageError: a line of ``vref`` that names no verse, or a file of another length.
    """
    numbers = _read_vref(vref)
    archive = Archive()
    merged: set[int] = set()
    for version, path in files.items():
        faults = Faults(path.name)
        texts = [text for _, text in _lines(path, faults)]
        faults.stop()
        if len(texts) != len(numbers):
            raise UsageError(
                f"{path.name} has {len(texts)} lines, {vref.name} {len(numbers)}: expected a line "
                "for each verse, empty where the version lacks it"
            )
        verses = archive.verses[version] = {}
        before = 0
        for number, text in zip(numbers, texts, strict=True):
            if text.strip() == RANGE:
                # nobody can tell where in the words of the verse before this one begins
                merged |= {number, before} - {0}
            verses[number] = "" if text.strip() == RANGE else policy(text)
            before = number if text.strip() != RANGE else before
    archive.excluded["merged"] = sorted(merged)
    return archive


def _read_vref(path: Path) -> list[int]:
    faults = Faults(path.name)
    numbers: list[int] = []
    seen: dict[int, int] = {}
    for row, line in _lines(path, faults):
        match = _REFERENCE.fullmatch(line.strip())
        if match is None or match[1] not in CODES:
            what = f"{line.strip()[:40]!r}, expected a verse such as 'GEN 1:1'"
            faults.add("lines that name no verse", row, "vref", what)
            continue
        number = number_of(CODES[match[1]], int(match[2]), int(match[3]))
        if number in seen:
            what = f"{line.strip()} again, first in row {seen[number]}"
            faults.add("verses given twice", row, "vref", what)
        seen[number] = row
        numbers.append(number)
    faults.stop()
    return numbers


def read_folders(folders: dict[str, Path], policy: Callable[[str], str]) -> Archive:
    """Versions of a folder per book and a file per chapter, a numbered verse per line.

    Args:
        folders: folder by version.
        policy: what is done to every text.

    Raises:
        UsageError: a folder that is no book, a file that is no chapter, or lines without a verse
            number, all of them of a version in one message.
    """
    archive = Archive()
    repeated: set[int] = set()
    for version, folder in folders.items():
        verses = archive.verses[version] = {}
        for path, book, chapter in _chapters(folder):
            faults = Faults(f"{version}/{path.parent.name}/{path.name}")
            for row, line in _lines(path, faults):
                match = _VERSE_LINE.fullmatch(line.strip())
                if match is None:
                    if line.strip():
                        what = f"{line.strip()[:40]!r}, expected a number and a text"
                        faults.add("lines without a verse number", row, "verse", what)
                    continue
                number = number_of(book, chapter, int(match[1]))
                if number in verses:  # which of the two is the verse?
                    repeated.add(number)
                verses[number] = policy(match[2] or "")
            faults.stop()
    archive.excluded["repeated"] = sorted(repeated)
    return archive


def has_books(folder: Path) -> bool:
    """Whether a folder holds books in folders: whether it may be a version."""
    return folder.is_dir() and any(folder.glob("*/*.txt"))


def _chapters(folder: Path) -> Iterator[tuple[Path, int, int]]:
    """(file, book, chapter) of a version's chapters."""
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        book = book_number(place.name)
        if book is None:
            near = did_you_mean(place.name, TITLES.values())
            raise UsageError(f"{folder.name}/{place.name} is no book of the Bible{near}")
        for path in sorted(place.glob("*.txt")):
            match = _CHAPTER.search(path.stem)
            if match is None:
                raise UsageError(
                    f"{folder.name}/{place.name}/{path.name}: expected a name that ends in the "
                    f"chapter, such as {place.name}1.txt"
                )
            yield path, book, int(match[1])


def _lines(path: Path, faults: Faults) -> Iterator[tuple[int, str]]:
    lines = Lines(path)
    row = 0
    try:
        for row, line in enumerate(lines, 1):
            if lines.undecodable:
                lines.undecodable = False
                faults.add("lines that are not UTF-8", row, "text", "other bytes")
            yield row, line
    except LineTooLongError:
        raise UsageError(
            f"{path.name}: row {row + 1}, column 'text': a line of more than "
            f"{MAX_LINE // 2**20} MiB: expected a verse a line"
        ) from None


def versions_among(found: Sequence[str], classes: Sequence[str], where: str) -> None:
    """Check that versions exist.

    Raises:
        UsageError: one does not; names one that is nearly it, and those there are.
    """
    for name in classes:
        if name not in found:
            there = ", ".join(found[:20]) + (" ..." if len(found) > 20 else "")
            raise UsageError(
                f"{where} has no version {name!r}{did_you_mean(name, found)}; there are {there}"
            )
