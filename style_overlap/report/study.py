"""All that is known of each encoder, k, corpus and recipe: what every kind of page is made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from style_overlap.names import BASELINE, TFIDF
from style_overlap.report.absent import Absent, absent
from style_overlap.report.advantage import Advantage
from style_overlap.report.matrix import Matrices, Matrix, build, key_of
from style_overlap.report.records import Record, Records
from style_overlap.report.retrieval import Curve, curves
from style_overlap.report.trajectories import Trajectories, trajectories
from style_overlap.report.wording import listed, printable
from style_overlap.results import digest

_PATHS = ("package:", BASELINE)


@dataclass(frozen=True)
class Study:
    """One encoder, k, corpus and recipe.

    Attributes:
        slug: name for files, unique in a report.
        title: name for people: encoder, k and, where two studies share both, what differs.
        matrix: accuracies; without cells if none was measured.
        advantage: high-overlap advantage of the matrix.
        curves: retrieval against alpha_train.
        trajectories: looks in training, an entry for each kind of gallery.
        floor: the bag-of-words matrix of the same k, styles and corpus, None if there is none.
        probe: what a sweep was told to probe, None if no sweep made these records.
        giveaway: what tells the same styles of the same corpus apart, by an audit, None if there
            was none.
    """

    slug: str
    title: str
    matrix: Matrix
    advantage: Advantage
    curves: tuple[Curve, ...] = ()
    trajectories: tuple[Trajectories, ...] = ()
    floor: Matrix | None = None
    probe: dict[str, Any] | None = None
    giveaway: Record | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether this is a floor for scale and no encoder."""
        return self.matrix.encoder.startswith(BASELINE)


@dataclass(frozen=True)
class Findings:
    """What a report tells.

    Attributes:
        studies: encoders first, then baselines.
        absent: fine-tunings without a usable figure.
        left_out: records that are in no figure, and why, by file.
        versions: how many records were made with each version of each package.
        probes: the records of ``style-overlap probe``.
    """

    studies: tuple[Study, ...]
    absent: tuple[Absent, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    versions: dict[str, dict[str, int]] = field(default_factory=dict)
    probes: tuple[Record, ...] = ()

    @property
    def matrices(self) -> Matrices:
        """The matrices, for a terminal."""
        return Matrices(tuple(s.matrix for s in self.studies if s.matrix.cells), self.left_out)


def findings(records: Records) -> Findings:
    """Sort records into studies and compute every statistic once."""
    matrices = build(records.evaluations)
    found_curves, lost_curves = curves(records)
    looks, lost_looks = trajectories(records)
    known = {matrix.key: matrix for matrix in matrices.matrices}
    for key, recipe in [*((c.key, c.recipe) for c in found_curves),
                        *((t.key, t.recipe) for t in looks)]:  # fmt: skip
        known.setdefault(key, Matrix(key, recipe))
    filled, missing = absent(records, (known[key] for key in sorted(known)))
    titles = _titles(filled)
    probes = {
        key_of(records.evaluations[path]): run["config"].get("probe")
        for path, run in records.runs.items()
        if path in records.evaluations and records.evaluations[path]["checkpoint"]["config"]
    }
    studies = [
        Study(
            slug=slug,
            title=title,
            matrix=matrix,
            advantage=Advantage(matrix),
            curves=tuple(curve for curve in found_curves if curve.key == matrix.key),
            trajectories=tuple(t for t in looks if t.key == matrix.key),
            floor=_floor(matrix, filled),
            probe=probes.get(matrix.key),
            giveaway=next(
                (
                    audit
                    for _, audit in sorted(records.giveaways.items())
                    if (audit["fingerprint"], tuple(audit["styles"]))
                    == (matrix.key.corpus, matrix.styles)
                ),
                None,
            ),
        )
        for matrix, (slug, title) in zip(filled, titles, strict=True)
    ]
    return Findings(
        tuple(sorted(studies, key=lambda study: study.is_baseline)),
        tuple(missing),
        {**records.failed, **lost_looks, **lost_curves, **matrices.left_out},
        _versions(records),
        tuple(record for _, record in sorted(records.probes.items())),
    )


def short(encoder: str) -> str:
    """An encoder's name without folder or organisation; what a baseline is."""
    if encoder == TFIDF:
        return "bag of words (TF-IDF)"
    name = printable(encoder)
    for prefix in _PATHS:
        name = name.removeprefix(prefix)
    parts = [part for part in name.split("/") if part]
    return parts[-1] if parts else name or "encoder"


def recipe_rows(recipe: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Settings as a flat table of texts."""
    rows: dict[str, str] = {}
    for name, value in sorted(recipe.items()):
        if isinstance(value, Mapping):
            rows |= recipe_rows(value, f"{prefix}{name}.")
        else:
            rows[printable(f"{prefix}{name}")] = printable(value)
    return rows


def _titles(matrices: Iterable[Matrix]) -> list[tuple[str, str]]:
    matrices = list(matrices)
    slugs = [_slug(matrix) for matrix in matrices]
    titles = []
    for matrix, slug in zip(matrices, slugs, strict=True):
        name = short(matrix.encoder)
        alike = [
            other
            for other in matrices
            if (short(other.encoder), other.k) == (name, matrix.k) and other is not matrix
        ]
        differs = _differences(matrix, alike)
        title = f"{name}, k={matrix.k}" + (f" ({differs})" if differs else "")
        several = slugs.count(slug) > 1
        titles.append((f"{slug}-{digest(matrix.key)[:6]}" if several else slug, title))
    return titles


def _slug(matrix: Matrix) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", short(matrix.encoder).lower()).strip("-")[:40]
    return f"{name or 'encoder'}-k{matrix.k}"


def _differences(matrix: Matrix, alike: list[Matrix]) -> str:
    """What tells a matrix from others of the same name and k."""
    mine = {**recipe_rows(matrix.recipe), "corpus texts": matrix.key.corpus[:8]}
    mine["styles"] = listed(matrix.styles)
    others = [
        {**recipe_rows(m.recipe), "corpus texts": m.key.corpus[:8], "styles": listed(m.styles)}
        for m in alike
    ]
    names = [name for name in mine if any(other.get(name) != mine[name] for other in others)]
    return printable(listed(f"{name.split('.')[-1]} {mine[name]}" for name in names))


def _floor(matrix: Matrix, matrices: Iterable[Matrix]) -> Matrix | None:
    """The floor that an encoder's matrix stands on: of as many contents, if there is one."""
    if matrix.encoder.startswith(BASELINE):
        return None
    same = ("k", "styles", "corpus")
    contents = matrix.recipe.get("contents")
    fitting = [
        other
        for other in matrices
        if other.encoder.startswith(BASELINE)
        and other.cells
        and all(getattr(other.key, name) == getattr(matrix.key, name) for name in same)
        and other.recipe.get("assignment") == matrix.recipe.get("assignment")
    ]
    return min(fitting, key=lambda other: other.recipe.get("contents") != contents, default=None)


def _versions(records: Records) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for record in (*records.evaluations.values(), *records.probes.values()):
        told = record.get("versions")
        for package, version in (told if isinstance(told, dict) else {}).items():
            counts.setdefault(printable(package), Counter())[printable(version)] += 1
    return {package: dict(sorted(counts[package].items())) for package in sorted(counts)}
