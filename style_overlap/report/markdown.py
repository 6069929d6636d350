"""A page as Markdown, with its figures beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from style_overlap.report.page import Page, Picture, Section
from style_overlap.report.tables import Table


def render(page: Page) -> str:
    """The page as GitHub-flavoured Markdown; names from records are text, never markup."""
    parts = [f"# {text(page.title)}", ""]
    for section in page.sections:
        parts += _section(section)
    return "\n".join(parts)


def text(raw: str) -> str:
    """Text that Markdown shows as it is."""
    raw = raw.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    escaped = re.sub(r"([\\`*_\[\]|~$#!])", r"\\\1", raw)
    return re.sub(r"(https?)://", r"\1:&#47;&#47;", escaped)  # no link that nobody meant


def _section(section: Section) -> Iterator[str]:
    yield f"## {text(section.title)}"
    yield ""
    for paragraph in section.text:
        yield text(paragraph)
        yield ""
    for block in section.code:
        yield from (f"    {line}" for line in block.splitlines())
        yield ""
    for item in section.items:
        yield from _picture(item) if isinstance(item, Picture) else _table(item)
    if section.folded is not None:
        yield "<details><summary>Settings</summary>"
        yield ""
        yield from _table(section.folded)
        yield "</details>"
        yield ""


def _picture(picture: Picture) -> Iterator[str]:
    yield f"![{text(picture.caption)}](figures/{picture.name}.svg)"
    yield ""


def _table(table: Table) -> Iterator[str]:
    yield text(table.caption)
    yield ""
    yield f"| {' | '.join(map(text, table.header))} |"
    yield "|" + " --- |" * len(table.header)
    for i, row in enumerate(table.rows):
        cells = [
            f"**{text(cell)}**" if cell and (j == 0 or (i, j) in table.emphasis) else text(cell)
            for j, cell in enumerate(row)
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    for note in table.notes:
        yield text(note)
        yield ""
