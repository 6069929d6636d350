"""Tables of any size: CSV, TSV, JSON lines, Parquet, or a data set of the Hugging Face hub.

Long (``content_id, style, text``) or wide (a column for each style); ``layout`` tells which. The
texts stream through, see ``staging`` and ``pivot``; rows that cannot be used are told all at once,
and then nothing is built. Unlike verse numbers, content ids were given by someone who had these
texts in mind, so single texts that look out of place stay unless the spec says ``stray=drop``; a
style that is misaligned as a whole is refused all the same, unless it says ``stray=ignore``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from style_overlap.codes import first_rows
from style_overlap.corpus import cleaning
from style_overlap.corpus.evidence import refusal_text
from style_overlap.corpus.layout import PLACES, Layout, resolve
from style_overlap.corpus.rows import Rows, open_file, open_hub
from style_overlap.corpus.specs import ENDINGS, Spec
from style_overlap.corpus.store import RULES, Recipe
from style_overlap.errors import UsageError
from style_overlap.results import file_digest

if TYPE_CHECKING:
    import pyarrow as pa

    from style_overlap.corpus.pivot import Index
    from style_overlap.corpus.staging import Staged

_SHARED = ("content", "style", "text", *PLACES, "classes", "reserved", "missing", "stray", "clean")
OPTIONS = {"table": (*_SHARED, "quotes"), "hub": ("revision", "split", "config", *_SHARED)}

_COMMIT = re.compile(r"[0-9a-f]{40}")
_STRAY = ("keep", "drop", "ignore")


@dataclass(frozen=True)
class Found:
    """A table that has been found and not yet read.

    Attributes:
        name: what the corpus is to be called.
        open: opens the table at its start.
        digests: what tells it from any other, made when it is asked for: it reads the file.
    """

    name: str
    open: Callable[[], Rows]
    digests: Callable[[], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Pivoted:
    """A table as parallel texts on disk, before anything is said about their alignment.

    Attributes:
        texts: ``content_id``, then a column for each style; mapped from disk.
        styles: its styles, the classes first.
        staged, layout, index: what the texts are copied from.
    """

    texts: pa.Table
    styles: list[str]
    staged: Staged
    layout: Layout
    index: Index


def find(spec: Spec) -> Found:
    """The table that a spec names.

    Raises:
        UsageError: there is none, or the spec does not say which state of it.
    """
    if spec.kind == "hub":
        return _find_on_hub(spec)
    path = spec.path("file", "table:texts.csv,content=id,style=author,text=body")
    if not path.is_file() or not path.name.lower().endswith(ENDINGS):
        raise UsageError(f"{path} is no table: expected a file that ends in {', '.join(ENDINGS)}")
    return Found(
        name=_safe(path.name.split(".")[0]),
        open=partial(open_file, path, quotes=spec.flag("quotes", True)),
        digests=lambda: {"sha256": file_digest(path)},
    )


def _find_on_hub(spec: Spec) -> Found:
    name = spec.need_body("data set", "hub:owner/name,revision=COMMIT,content=id")
    revision = spec.one("revision")
    if revision is None or not _COMMIT.fullmatch(revision):
        raise UsageError(
            f"{spec.text}: expected revision= and the 40 hex digits of a commit, as listed on the "
            "data set's page under Files: a branch moves, and results with it"
        )
    split, config = spec.one("split") or "train", spec.one("config")
    return Found(
        name=_safe(name.split("/")[-1]),
        open=partial(open_hub, name, revision, split, config),
        digests=lambda: {"hub": name},
    )


def recipe(spec: Spec, chunk_verses: int) -> Recipe:
    """What it takes to build a table; the chunk length is no concern of it."""
    found = find(spec)
    reserved = spec.several("reserved") or ()
    spec.choice("stray", _STRAY, "keep")  # before any work
    # The texts are in the fingerprint, with the order of contents and classes. How they came to be
    # so is not: the same texts in another file format are the same corpus.
    settings = {
        "source": "table",
        "reserved": list(reserved),
        "clean": spec.flag("clean", False),
        "rules": RULES,
    }
    return Recipe(
        name=found.name,
        styles=None,
        reserved=reserved,
        settings=settings,
        build=partial(_build, spec, found),
        sources={**found.digests(), "options": {k: list(v) for k, v in spec.options.items()}},
    )


def read(spec: Spec, found: Found, scratch: Path, *, drop: bool) -> Pivoted:
    """Read a table into a folder.

    Args:
        spec: of the kind ``table`` or ``hub``.
        found: what it names.
        scratch: an empty folder.
        drop: whether contents that lack a style are left out; else they are an error.

    Raises:
        UsageError: the columns are not there, or rows cannot be used.
    """
    from style_overlap.corpus import pivot, staging  # Arrow, which a warm start does not need

    policy = cleaning.clean if spec.flag("clean", False) else str
    rows = found.open()
    layout = resolve(rows.columns, rows.file, spec)
    staged = staging.stage(rows, layout, scratch / "staged.arrow", policy, drop)
    index = pivot.index(staged, layout, rows.file, drop)
    texts = pivot.write(staged, layout, index.rows, scratch / "texts.arrow")
    return Pivoted(texts, staged.styles, staged, layout, index)


def _build(spec: Spec, found: Found, scratch: Path) -> tuple[pa.Table, dict[str, Any]]:
    import numpy as np
    import pyarrow as pa

    from style_overlap.corpus import pivot, twins
    from style_overlap.corpus.aligned import examine_table, find_strays

    drop = spec.choice("missing", ("error", "drop"), "error") == "drop"
    pivoted = read(spec, found, scratch, drop=drop)
    texts, groups, dropped = pivoted.texts, pivoted.index.groups, dict(pivoted.index.dropped)
    if pivoted.staged.other:
        dropped["other_styles"] = dict(pivoted.staged.other)
    stray = spec.choice("stray", _STRAY, "keep")
    if stray != "ignore":
        report = examine_table(texts, pivoted.styles)
        if report.refused:
            advice = "or add stray=ignore if you know better"
            raise UsageError(f"{refusal_text(report.refused[0])}, {advice}")
    if stray == "drop":
        gone, dropped["misaligned"] = find_strays(texts, pivoted.styles)
        if len(gone):
            rows = np.delete(pivoted.index.rows, gone, axis=0)
            groups = None if groups is None else np.delete(groups, gone)
            texts = pivot.write(pivoted.staged, pivoted.layout, rows, scratch / "aligned.arrow")
    if groups is None:
        groups = twins.near_duplicates(texts, pivoted.styles)
    texts = texts.add_column(1, "group", pa.array(first_rows(groups), pa.int64()))
    return texts, dropped


def _safe(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-")[:40] or "table"
