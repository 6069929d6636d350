"""The two sources that read verse archives.

- ``verses:DIR``: one text file per version, all with as many lines as ``vref.txt``, which names
  the verse of each line (``GEN 1:1``). An empty line: the version lacks the verse; ``<range>``: its
  words stand with the verse before. This is the eBible corpus.
- ``folders:DIR``: ``DIR/version/book/chapter.txt``, a line such as ``12 And God said`` for each
  verse. This is Carlson's archive.

Both become what the default corpus is made of: cleaned, checked for alignment, cut into passages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from style_overlap.corpus import archives, cleaning, headings
from style_overlap.corpus.archives import Archive
from style_overlap.corpus.books import TITLES, book_number
from style_overlap.corpus.specs import VREF, Spec, did_you_mean, no_path
from style_overlap.corpus.store import RULES, Recipe
from style_overlap.errors import UsageError
from style_overlap.results import digest, file_digest

OPTIONS = {
    "verses": ("classes", "reserved", "exclude", "clean", "vref"),
    "folders": ("classes", "reserved", "exclude", "clean"),
}

MANY = 20
"""More versions than this, and the spec has to choose."""


@dataclass(frozen=True)
class Collection:
    """An archive that has been found and not yet read.

    Attributes:
        styles: classes in label order.
        reserved: versions that are never trained on.
        digests: of the files, by version.
        read: reads the chosen versions.
    """

    styles: tuple[str, ...]
    reserved: tuple[str, ...]
    digests: Mapping[str, str]
    read: Callable[[], Archive]


def find(spec: Spec) -> Collection:
    """The archive that a spec names.

    Raises:
        UsageError: there is none, or it lacks a version that the spec names.
    """
    policy = cleaning.clean if spec.flag("clean", True) else cleaning.keep
    books = excluded_books(spec)
    if spec.kind == "verses":
        folder = spec.path("folder", "verses:ebible/corpus,classes=eng-asv,eng-web")
        vref = _find_vref(folder, spec.one("vref"))
        there = {path.stem: path for path in sorted(folder.glob("*.txt")) if path.name != VREF}
        styles, reserved = _choose(list(there), spec)
        files = {name: there[name] for name in (*styles, *reserved)}
        digests = {name: file_digest(path) for name, path in files.items()}
        digests[VREF] = file_digest(vref)
        read = partial(archives.read_lines, vref, files, policy)
    else:
        folder = spec.path("folder", "folders:bibles,classes=KJV,YLT")
        there = {path.name: path for path in sorted(folder.iterdir()) if archives.has_books(path)}
        styles, reserved = _choose(list(there), spec)
        files = {name: there[name] for name in (*styles, *reserved)}
        digests = {name: _folder_digest(path) for name, path in files.items()}
        read = partial(archives.read_folders, files, policy)
    return Collection(styles, reserved, digests, lambda: _without(read(), books))


def recipe(spec: Spec, chunk_verses: int) -> Recipe:
    """What it takes to build ``verses:DIR`` or ``folders:DIR``."""
    collection = find(spec)
    settings = {
        "source": "verses",
        "styles": list(collection.styles),
        "reserved": list(collection.reserved),
        "chunk_verses": chunk_verses,
        "clean": spec.flag("clean", True),
        "exclude": sorted(excluded_books(spec)),
        "rules": RULES,
    }
    name = re.sub(r"\W+", "-", Path(str(spec.body)).resolve().name)[:40] or "verses"
    return Recipe(
        name=name,
        styles=collection.styles,
        reserved=collection.reserved,
        settings=settings,
        build=partial(_build, collection, chunk_verses),
        sources=collection.digests,
    )


def excluded_books(spec: Spec) -> frozenset[int]:
    """Numbers of the books that ``exclude=`` names."""
    numbers = set()
    for name in spec.several("exclude") or ():
        number = book_number(name)
        if number is None:
            near = did_you_mean(name, TITLES.values())
            raise UsageError(f"exclude={name}: no book of the Bible{near}")
        numbers.add(number)
    return frozenset(numbers)


def _build(
    collection: Collection, chunk_verses: int, scratch: Path
) -> tuple[dict[str, Sequence[Any]], dict[str, Any]]:
    from style_overlap.corpus import chunks  # scipy, which a warm start does not need

    archive = collection.read()
    numbers = set().union(*archive.verses.values())
    titled = [number for number in numbers if headings.is_titled_psalm_start(number)]
    excluded = {**archive.excluded, "psalm_title": titled}
    return chunks.parallel_chunks(archive.verses, chunk_verses, TITLES, excluded)


def _choose(there: Sequence[str], spec: Spec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(classes, reserved versions), by default all there are and none."""
    if not there:
        layout = "text files" if spec.kind == "verses" else "folders version/book/chapter.txt"
        raise UsageError(f"{spec.body} holds no versions: expected {layout}")
    reserved = spec.several("reserved") or ()
    classes = spec.several("classes")
    if classes is None:
        classes = tuple(name for name in there if name not in reserved)
        if len(classes) > MANY:
            raise UsageError(
                f"{spec.body} has {len(there)} versions: choose some, for example "
                f"classes={','.join(classes[:2])}"
            )
    archives.versions_among(there, (*classes, *reserved), str(spec.body))
    if len(classes) < 2 or set(classes) & set(reserved):
        raise UsageError(
            f"{spec.text}: expected two or more classes that are not reserved, found "
            f"{', '.join(classes) or 'none'}"
        )
    return classes, reserved


def _find_vref(folder: Path, given: str | None) -> Path:
    """The file that names the verse of each line."""
    if given is not None:
        path = Path(given).expanduser()
        if not path.is_file():
            raise UsageError(no_path(path, "vref file"))
        return path
    # in the eBible corpus the texts are in corpus/ and the list in metadata/
    places = (folder / VREF, folder.parent / "metadata" / VREF, folder.parent / VREF)
    for path in places:
        if path.is_file():
            return path
    raise UsageError(
        f"no {VREF} in {folder}, {places[1].parent} or {folder.parent}: say where the file is that "
        "names the verse of each line, by vref=PATH"
    )


def _folder_digest(folder: Path) -> str:
    files = sorted(folder.glob("*/*.txt"))
    return digest([[path.relative_to(folder).as_posix(), file_digest(path)] for path in files])


def _without(archive: Archive, books: frozenset[int]) -> Archive:
    """The archive without some books."""
    if not books:
        return archive
    verses = {
        version: {n: text for n, text in texts.items() if n // 1_000_000 not in books}
        for version, texts in archive.verses.items()
    }
    excluded = {
        reason: [n for n in numbers if n // 1_000_000 not in books]
        for reason, numbers in archive.excluded.items()
    }
    return Archive(verses, excluded)
