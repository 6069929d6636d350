"""Write a report: Markdown, HTML, CSV, LaTeX and figures, from records alone."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from style_overlap.errors import UsageError
from style_overlap.report import figures, html, latex, markdown, sheets
from style_overlap.report.page import Page, Picture, page
from style_overlap.report.records import Records
from style_overlap.report.study import Findings, findings
from style_overlap.report.tables import Table
from style_overlap.results import write_text

_FOLDERS = ("figures", "tables", "data")
_LIST = "data/files.txt"


def write(records: Records, output: Path, command: str) -> Findings:
    """Write the report of some records; the same records give the same bytes.

    It is made beside the files of an earlier report and put in their place once it is whole; those
    that it has no more are removed.

    Args:
        records: see :func:`style_overlap.report.records.read`.
        output: folder, made if it does not exist: ``report.html``, ``report.md``, ``figures/``,
            ``tables/`` (LaTeX) and ``data/`` (CSV, and the list of all these files).
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
    with _replacing(output) as made:
        _write(found, made, command)
    return found


def _write(found: Findings, folder: Path, command: str) -> None:
    whole = page(found, command)
    drawings = _draw(whole, folder / "figures")
    for section in whole.sections:
        for item in section.items:
            if isinstance(item, Table):
                name = item.name if item.name == section.slug else f"{section.slug}-{item.name}"
                write_text(folder / "tables" / f"{name}.tex", latex.render(item, name))
    for name, text in sheets.sheets(found).items():
        write_text(folder / "data" / name, text)
    write_text(folder / "report.md", markdown.render(whole))
    write_text(folder / "report.html", html.render(whole, drawings))


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


@contextlib.contextmanager
def _replacing(output: Path) -> Iterator[Path]:
    """A folder whose files come into ``output`` if nothing fails; else all there stays as it is."""
    there = output.is_dir()
    try:
        output.mkdir(parents=True, exist_ok=True)
        # Inside, and not beside it: only so is it sure to lie on the same file system.
        with tempfile.TemporaryDirectory(dir=output, prefix=".report-") as name:
            made = Path(name)
            yield made
            files = sorted(path.relative_to(made).as_posix() for path in made.rglob("*.*"))
            write_text(made / _LIST, "".join(f"{file}\n" for file in files))
            _move(made, output, [*files, _LIST])
    except OSError as error:
        raise UsageError(f"cannot write to {output}: {error.strerror}") from error
    finally:
        if not there:
            with contextlib.suppress(OSError):
                output.rmdir()  # only if it is empty


def _move(made: Path, output: Path, files: Iterable[str]) -> None:
    """Put the files of a report into a folder and remove what an earlier one has there beyond."""
    files = list(files)
    for file in files:
        if (output / file).is_dir():
            raise UsageError(f"{output / file} is a folder: move it away, or give another --output")
    for folder in _FOLDERS:
        (output / folder).mkdir(exist_ok=True)
    old = _listed(output)
    for file in files:
        os.replace(made / file, output / file)
    for file in old - set(files):
        (output / file).unlink()


def _listed(output: Path) -> set[str]:
    """The files of an earlier report in its folders that are still there."""
    try:
        names = (output / _LIST).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return set()
    return {
        name for name in names if str(Path(name).parent) in _FOLDERS and (output / name).is_file()
    }
