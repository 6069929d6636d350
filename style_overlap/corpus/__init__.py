"""Parallel texts: the same contents in several styles.

``load_corpus("bible")`` is the default corpus, built from pip packages and kept in the cache.
A further kind of source is one entry in ``SOURCES``.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from style_overlap.corpus import bible, store
from style_overlap.corpus.parallel import ParallelCorpus
from style_overlap.errors import UsageError

__all__ = ["MAX_CHUNK_VERSES", "SOURCES", "ParallelCorpus", "load_corpus"]

MAX_CHUNK_VERSES = 50
"""Longest chunk that can be asked for; longer ones would leave out most chapters."""

SOURCES: dict[str, Callable[[str | None, int], store.Recipe]] = {"bible": bible.recipe}
"""Kind of source -> what turns the rest of the spec and the chunk length into a recipe. A spec is
``kind`` (the rest is None) or ``kind:rest``."""


def load_corpus(
    spec: str = "bible",
    *,
    chunk_verses: int = 5,
    cache_dir: str | os.PathLike[str] | None = None,
) -> ParallelCorpus:
    """Load a corpus from the cache; the first call builds it.

    Args:
        spec: ``bible``, or ``bible:KJV,WEB,YLT`` for other classes in that order.
        chunk_verses: consecutive verses in one content, 1 to 50.
        cache_dir: root of the cache; by default ``$STYLE_OVERLAP_CACHE``, else
            ``$XDG_CACHE_HOME/style_overlap``, else ``~/.cache/style_overlap``.

    Raises:
        UsageError: the spec or the chunk length cannot be used, a text package is missing, or
            the cache folder cannot be written to.
    """
    # bool is an int: chunk_verses=True would pass for 1
    if type(chunk_verses) is not int or not 1 <= chunk_verses <= MAX_CHUNK_VERSES:
        raise UsageError(
            f"chunk_verses is {chunk_verses!r}: expected a whole number of verses from 1 to "
            f"{MAX_CHUNK_VERSES}, for example 5"
        )
    kind, colon, rest = str(spec).partition(":")
    if kind not in SOURCES:
        raise UsageError(
            f"no corpus {str(spec)!r}: the sources are {', '.join(sorted(SOURCES))}; "
            "type bible, or bible:KJV,WEB,YLT to choose the translations and their order"
        )
    return store.load(
        SOURCES[kind](rest if colon else None, chunk_verses), store.cache_root(cache_dir)
    )
