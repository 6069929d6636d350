"""What a report says, in order, before it becomes Markdown or HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING

from style_overlap.report import (
    commands,
    dynamics_plot,
    heatmaps,
    lineplots,
    retrieval_table,
    tables,
)
from style_overlap.report.matrix import Matrix
from style_overlap.report.retrieval import Curve
from style_overlap.report.study import Findings, Study, recipe_rows, short
from style_overlap.report.tables import Table
from style_overlap.report.trajectories import Trajectories
from style_overlap.report.wording import listed, printable
from style_overlap.results import digest, versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_READING = (
    "Rows of an accuracy matrix are the content overlap that the encoder was fine-tuned at, "
    "columns the overlap that it was evaluated at. An overlap of 0 means that every content is in "
    "one style only, so that content alone gives the style away; at 1 it says nothing. Accuracy "
    "that falls from left to right is accuracy that came from content."
)


@dataclass(frozen=True)
class Picture:
    """A figure and what it shows.

    Attributes:
        name: of its files, unique in a report.
        caption: what it shows, in words; for those who do not see it, too.
        draw: makes it.
    """

    name: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        slug: for links, unique in a report.
        title: heading.
        text: paragraphs.
        items: tables and pictures, in order.
        code: commands.
        folded: a table that few readers want.
    """

    slug: str
    title: str
    text: tuple[str, ...] = ()
    items: tuple[Table | Picture, ...] = ()
    code: tuple[str, ...] = ()
    folded: Table | None = None


@dataclass(frozen=True)
class Page:
    """A report."""

    title: str
    sections: tuple[Section, ...] = field(default_factory=tuple)


def page(found: Findings, command: str) -> Page:
    """The report of all findings.

    Args:
        found: what to report.
        command: what makes the same report again.
    """
    sections = [_overview(found), *_by_k(found), *map(_study, found.studies)]
    if found.absent:
        text = "A mean is over the seeds that are left, and is marked where they are fewer."
        items = (tables.absences(found.absent),)
        sections.append(Section("absent", "Missing, failed and degenerate", (text,), items))
    if found.left_out:
        rows = tuple(
            (printable(path, 200), printable(reason, 300))
            for path, reason in sorted(found.left_out.items())
        )
        table = Table("left_out", "Files and records in no figure.", ("file", "why"), rows)
        sections.append(Section("left-out", "Left out", (), (table,)))
    sections.append(_again(found, command))
    return Page("Cross-overlap evaluation", tuple(sections))


def _overview(found: Findings) -> Section:
    items: tuple[Table, ...] = (tables.overview(found.studies),) if found.studies else ()
    text = (_READING,) if found.studies else ("No fine-tuning has a usable record yet.",)
    return Section("overview", "Overview", text, items)


def _study(study: Study) -> Section:
    matrix, name = study.matrix, study.slug
    text = [f"Styles: {printable(listed(matrix.styles), 300)}."] if matrix.styles else []
    if study.is_baseline:
        text.append(f"What can be had without any encoder: a bag of words{_texts(matrix)}.")
    text += _cut(matrix)
    items: list[Table | Picture] = []
    if matrix.cells:
        items += [
            tables.accuracy(matrix),
            Picture(
                f"{name}-accuracy",
                f"Accuracy in %, {study.title}: rows alpha_train, columns alpha_eval.",
                lambda: heatmaps.accuracy(study.title, matrix),
            ),
            Picture(
                f"{name}-reliance",
                f"Accuracy against alpha_eval, {study.title}, fine-tuned at the lowest and at the "
                f"highest overlap{_spread(matrix.seeds)}{_beside(study)}.",
                lambda: lineplots.reliance(study.title, matrix, study.floor),
            ),
        ]
    else:
        text.append("No accuracy was measured.")
    if study.advantage.pairs:
        picture = Picture(
            f"{name}-hoa",
            f"High-overlap advantage in points, {study.title}: rows the lower overlap of a pair, "
            "columns the higher.",
            lambda: heatmaps.advantages(study.title, matrix, study.advantage),
        )
        items += [
            tables.advantages(matrix, study.advantage),
            picture,
            tables.tests(matrix, study.advantage),
        ]
    elif matrix.cells:
        text.append(f"No high-overlap advantage: {listed(study.advantage.reasons)}.")
    items += _retrieval(study)
    items += _dynamics(study)
    if study.giveaway:
        items.append(tables.giveaway(study.giveaway))
    recipe = tuple(recipe_rows({**matrix.recipe, "corpus texts": matrix.key.corpus}).items())
    settings = Table("settings", "Settings that all of its fine-tunings share.",
                     ("setting", "value"), recipe)  # fmt: skip
    return Section(name, study.title, tuple(text), tuple(items), folded=settings)


def _retrieval(study: Study) -> Iterator[Table | Picture]:
    galleries = dict.fromkeys(curve.gallery for curve in study.curves)
    for place, gallery in enumerate(galleries):
        curves = [curve for curve in study.curves if curve.gallery == gallery]
        yield retrieval_table.retrieval(study, curves, place)
        if any(curve.depends_on_alpha for curve in curves):
            yield Picture(
                f"{study.slug}-retrieval" + (f"-{place + 1}" if place else ""),
                f"Content retrieval against alpha_train, {study.title}: a line for each set of "
                "versions" + _shaded(curves) + "; thin lines are controls.",
                lambda curves=curves: lineplots.retrieval(curves, study.matrix),  # type: ignore[misc]
            )


def _dynamics(study: Study) -> Iterator[Picture]:
    for place, looks in enumerate(study.trajectories):
        if not looks.measures():
            continue
        yield Picture(
            f"{study.slug}-dynamics" + (f"-{place + 1}" if place else ""),
            f"Training dynamics, {study.title}: retrieval (N={looks.n}), accuracy and loss by "
            f"epoch, a column for each alpha_train{_shaded([looks])}.",
            lambda looks=looks: dynamics_plot.dynamics(looks),  # type: ignore[misc]
        )


def _shaded(curves: Sequence[Curve | Trajectories]) -> str:
    return _spread(max((curve.seeds for curve in curves), key=len))


def _spread(seeds: Sequence[int]) -> str:
    return ", shaded by one standard deviation over seeds" if len(seeds) > 1 else ", one seed"


def _beside(study: Study) -> str:
    """The bag of words beside an encoder: what it was trained on, if that is something else."""
    if study.floor is None:
        return ""
    mine = study.matrix
    if study.floor.recipe.get("contents") == mine.recipe.get("contents"):
        return ", beside a bag of words of the same texts, which it reads to their end"
    encoder = f" (the encoder on {mine.trained_on})" if mine.trained_on else ""
    return f", beside a bag of words{_texts(study.floor)}{encoder}"


def _texts(floor: Matrix) -> str:
    trained = f" trained on {floor.trained_on} texts" if floor.trained_on else ""
    return f"{trained}, scored on the test texts of the encoders, which it reads to their end"


def _cut(matrix: Matrix) -> list[str]:
    """How many of the passages were scored on their beginning only, where records tell it."""
    totals: dict[str, list[int]] = {}
    for by_style in matrix.cut.values():
        for style, told in by_style.items():
            total = totals.setdefault(style, [0, 0])
            total[0] += told["count"]
            total[1] += told["of"]
    known = {style: total for style, total in totals.items() if total[1]}
    if not known:
        return []
    ordered = [style for style in (*matrix.styles, *known) if style in known]
    shares = listed(
        f"{printable(style)} {100 * known[style][0] / known[style][1]:.0f} %"
        for style in dict.fromkeys(ordered)
    )
    at = matrix.recipe.get("max_length")
    length = f" at {printable(at)} word pieces" if at is not None else ""
    return [f"Passages cut{length}, of all that were scored or retrieved: {shares}."]


def _by_k(found: Findings) -> list[Section]:
    """Retrieval of one encoder and recipe at several k, in one figure."""
    families: dict[str, list[Curve]] = {}
    for study in found.studies:
        for curve in study.curves:
            if curve.depends_on_alpha:
                recipe = {k: v for k, v in curve.recipe.items() if k != "k"}
                family = digest([recipe, curve.key.corpus, curve.gallery])
                families.setdefault(family, []).append(curve)
    sections = []
    for family, curves in families.items():
        ks = sorted({curve.key.k for curve in curves})
        if len(ks) > 1:
            name = short(curves[0].key.encoder)
            picture = Picture(
                f"retrieval-by-k-{family[:6]}",
                f"Content retrieval against alpha_train, {name}: a line for each k"
                + _shaded(curves)
                + ".",
                lambda curves=curves: lineplots.retrieval_by_k(curves),  # type: ignore[misc]
            )
            title = f"Content retrieval by k: {name}"
            sections.append(Section(f"by-k-{family[:6]}", title, (), (picture,)))
    return sections


def _again(found: Findings, command: str) -> Section:
    rows = [
        (package, listed(f"{version} ({count})" for version, count in counts.items()))
        for package, counts in found.versions.items()
    ]
    drawn = {name: metadata.version(name) for name in ("matplotlib", "scipy", "jinja2")}
    told = listed(f"{name} {version}" for name, version in {**versions(), **drawn}.items())
    table = Table("versions", "Versions that the records were made with (number of records).",
                  ("package", "version"), tuple(rows))  # fmt: skip
    return Section(
        "again",
        "Make it again",
        ("The records, RUNS being the folder of runs, and then this report:",
         f"This report was made with {told}."),
        (table,) if rows else (),
        code=(*commands.sweeps(found.studies), *commands.probes(found.probes), command),
    )  # fmt: skip
