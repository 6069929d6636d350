"""``corpus check``: the alignment audit of whatever a spec names, before anything is left out."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from style_overlap.corpus import bible, table, verses
from style_overlap.corpus.audit import examine
from style_overlap.corpus.books import TITLES
from style_overlap.corpus.evidence import AlignmentReport, Block
from style_overlap.corpus.references import split, verse_name
from style_overlap.corpus.specs import Spec


def check(spec: Spec) -> AlignmentReport:
    """Audit a corpus' alignment.

    Versions of pythonbible that are otherwise refused by name are read as well, where they are
    installed, so that the evidence can be seen.

    Raises:
        UsageError: the source is missing or faulty.
    """
    if spec.kind in table.OPTIONS:
        return _check_table(spec)
    if spec.kind == "bible":
        return check_verses(bible.read_any(spec.body, spec.several("reserved")))
    return check_verses(verses.find(spec).read().verses)


def check_verses(texts: Block) -> AlignmentReport:
    """Audit verses.

    Args:
        texts: version -> verse number -> text.
    """
    numbers = {number for found in texts.values() for number, text in found.items() if text}
    return examine(
        lambda: [texts],
        lambda number: verse_name(number, TITLES),
        places=len(numbers),
        book=lambda number: TITLES[split(number)[0]],
    )


def _check_table(spec: Spec) -> AlignmentReport:
    from style_overlap.corpus.aligned import examine_table

    with tempfile.TemporaryDirectory(prefix="style-overlap-", ignore_cleanup_errors=True) as folder:
        pivoted = table.read(spec, table.find(spec), Path(folder), drop=True)
        report = examine_table(pivoted.texts, pivoted.styles)
    # the audit saw contents that every style has; coverage is of all
    missing = pivoted.index.dropped["missing"]
    places = report.places + missing["count"]
    versions = {}
    for style, found in report.versions.items():
        texts = places - missing["by_version"].get(style, 0)
        versions[style] = replace(
            found,
            texts=texts,
            coverage=texts / places,
            empty=pivoted.staged.incomplete.get(style, 0),
        )
    return replace(report, places=places, versions=versions)
