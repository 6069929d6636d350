"""Write a report: Markdown, HTML, CSV, LaTeX and figures, from records alone."""

from __future__ import annotations

from pathlib import Path

from tqdm import tqdm

from style_overlap.errors import UsageError
from style_overlap.report import figures, html, latex, markdown, sheets
from style_overlap.report.page import Page, Picture, page
from style_overlap.report.records import Records
from style_overlap.report.study import Findings, findings
from style_overlap.report.tables import Table
from style_overlap.results import write_text


def write(records: Records, output: Path, command: str) -> Findings:
    """Write the report of some records; the same records give the same bytes.

    Args:
        records: see :func:`style_overlap.report.records.read`.
        output: folder, made if it does not exist: ``report.html``, ``report.md``, ``figures/``,
            ``tables/`` (LaTeX) and ``data/`` (CSV).
        command: what the reader types to make the report again.

    Raises:
        UsageError: nothing to report, or a folder that cannot be written to.
    """
    if not records:
        told = [f"{path}: {reason}" for path, reason in list(records.failed.items())[:3]]
        raise UsageError(
            "no records to report: make them with `style-overlap sweep` or "
            "`style-overlap evaluate DIR`" + "".join(f"; {line}" for line in told)
        )
    found = findings(records)
    whole = page(found, command)
    drawings = _draw(whole, output / "figures")
    for section in whole.sections:
        for item in section.items:
            if isinstance(item, Table):
                name = item.name if item.name == section.slug else f"{section.slug}-{item.name}"
                write_text(output / "tables" / f"{name}.tex", latex.render(item, name))
    for name, text in sheets.sheets(found).items():
        write_text(output / "data" / name, text)
    write_text(output / "report.md", markdown.render(whole))
    write_text(output / "report.html", html.render(whole, drawings))
    return found


def _draw(whole: Page, folder: Path) -> dict[str, str]:
    """Write every figure; returns them as elements for the page, by name."""
    pictures = [item for section in whole.sections for item in section.items
                if isinstance(item, Picture)]  # fmt: skip
    drawings = {}
    for picture in tqdm(pictures, desc="figures", leave=False, disable=None):
        figure = picture.draw()
        drawn = figures.svg(figure)
        figures.save(figure, folder / picture.name, drawn)
        drawings[picture.name] = figures.inline(drawn, picture.name, picture.caption)
    return drawings
