"""Parallel texts: the same contents in several styles.

``load_corpus("bible")`` is the default corpus, built from pip packages;
``load_corpus("texts.csv")`` and the other specs of ``specs`` read your own. What is built is kept
in the cache. A further kind of source is one entry in ``SOURCES``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from style_overlap.corpus import bible, specs, store, table, verses
from style_overlap.corpus.parallel import ParallelCorpus
from style_overlap.corpus.specs import Spec
from style_overlap.errors import UsageError

__all__ = [
    "DEFAULT_CHUNK_VERSES",
    "MAX_CHUNK_VERSES",
    "SOURCES",
    "ParallelCorpus",
    "Source",
    "load_corpus",
    "parse_spec",
    "recipe_of",
]

DEFAULT_CHUNK_VERSES = 5
"""Verses in one content, where contents are made of verses."""

MAX_CHUNK_VERSES = 50
"""Longest chunk that can be asked for; longer ones would leave out most chapters."""


@dataclass(frozen=True)
class Source:
    """A kind of source.

    Attributes:
        recipe: what turns a spec and a chunk length into a recipe.
        options: names of the options that its specs may have.
        verses: whether its contents are runs of verses, so that there is a chunk length.
    """

    recipe: Callable[[Spec, int], store.Recipe]
    options: tuple[str, ...]
    verses: bool


def _bible(spec: Spec, chunk_verses: int) -> store.Recipe:
    return bible.recipe(
        spec.body,
        chunk_verses,
        reserved=spec.several("reserved"),
        cleaned=spec.flag("clean", True),
    )


SOURCES: dict[str, Source] = {
    "bible": Source(_bible, ("reserved", "clean"), verses=True),
    "table": Source(table.recipe, table.OPTIONS["table"], verses=False),
    "hub": Source(table.recipe, table.OPTIONS["hub"], verses=False),
    "verses": Source(verses.recipe, verses.OPTIONS["verses"], verses=True),
    "folders": Source(verses.recipe, verses.OPTIONS["folders"], verses=True),
}
"""Kind of source, the part of a spec before the colon."""


def parse_spec(spec: str) -> Spec:
    """Take a spec apart.

    Raises:
        UsageError: no such source, or an option that it does not have.
    """
    return specs.parse(str(spec), {kind: source.options for kind, source in SOURCES.items()})


def recipe_of(spec: Spec, chunk_verses: int = DEFAULT_CHUNK_VERSES) -> store.Recipe:
    """The recipe of a spec.

    Raises:
        UsageError: as ``load_corpus``.
    """
    # bool is an int: chunk_verses=True would pass for 1
    if type(chunk_verses) is not int or not 1 <= chunk_verses <= MAX_CHUNK_VERSES:
        raise UsageError(
            f"chunk_verses is {chunk_verses!r}: expected a whole number of verses from 1 to "
            f"{MAX_CHUNK_VERSES}, for example 5"
        )
    source = SOURCES[spec.kind]
    if not source.verses and chunk_verses != DEFAULT_CHUNK_VERSES:
        raise UsageError(
            f"chunk_verses is {chunk_verses}, but {spec.text} is made of rows and not of verses: "
            "its contents are what they are; leave the option out"
        )
    return source.recipe(spec, chunk_verses)


def load_corpus(
    spec: str = "bible",
    *,
    chunk_verses: int = DEFAULT_CHUNK_VERSES,
    cache_dir: str | os.PathLike[str] | None = None,
) -> ParallelCorpus:
    """Load a corpus from the cache; the first call builds it.

    Args:
        spec: ``bible``, ``bible:KJV,WEB,YLT``, a table such as ``texts.csv``, or another source
            with its options; see ``specs`` and docs/own-corpus.md.
        chunk_verses: consecutive verses in one content, 1 to 50; for sources made of verses.
        cache_dir: root of the cache; by default ``$STYLE_OVERLAP_CACHE``, else
            ``$XDG_CACHE_HOME/style_overlap``, else ``~/.cache/style_overlap``.

    Raises:
        UsageError: the spec or the chunk length cannot be used, the source is missing, faulty or
            not aligned, or the cache folder cannot be written to.
    """
    return store.load(recipe_of(parse_spec(spec), chunk_verses), store.cache_root(cache_dir))
