"""The figures behind the tables as tidy CSV: one observation a row, unrounded, shares from 0 to 1.

A cell that is empty has no value.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from style_overlap.report.study import Findings, Study
from style_overlap.report.wording import literal, printable
from style_overlap.results import digest

Rows = Iterable[Sequence[object]]

_STUDY = ("study", "encoder", "k", "styles", "corpus_fingerprint")
_TEST = ("n", "mean", "sd", "share_positive", "t", "p_t", "cohen_d", "p_sign_flip", "p_relabel")


def sheets(found: Findings) -> dict[str, str]:
    """Every sheet by the name of its file."""
    studies = found.studies
    return {
        "accuracy.csv": _csv(
            (*_STUDY, "alpha_train", "alpha_eval", "seed", "accuracy"), _accuracy(studies)
        ),
        "hoa.csv": _csv(
            (*_STUDY, "alpha_low", "alpha_high", "hoa_mean", "hoa_sd", "seeds"), _hoa(studies)
        ),
        "hoa_tests.csv": _csv(
            (*_STUDY, *_TEST, "seeds_sd", "by_training", "by_training_sd", "by_test_sets",
             "interval_low", "interval_high", "contents", "reason"),
            _tests(studies),
        ),
        "retrieval.csv": _csv(
            (*_STUDY, "gallery", "source", "features", "set", "n", "pairs", "chance",
             "alpha_train", "seed", "top1", "top1_probe_sd", "recall_at_5", "median_rank",
             "train_loss"),
            _retrieval(studies),
        ),
        "trend.csv": _csv(
            (*_STUDY, "gallery", "source", "features", "set", "n", "points", "overlaps", "rho",
             "p_fall", "monotone", "reason"),
            _trend(studies),
        ),
        "dynamics.csv": _csv(
            (*_STUDY, "gallery", "n", "chance", "alpha_train", "step", "epoch", "measure", "mean",
             "sd", "seeds"),
            _dynamics(studies),
        ),
        "absent.csv": _csv(
            ("encoder", "k", "alpha_train", "seed", "why"),
            ((one.encoder, one.k, one.alpha, one.seed, one.why) for one in found.absent),
        ),
    }  # fmt: skip


def _csv(header: Sequence[str], rows: Rows) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([[_cell(value) for value in row] for row in rows])
    return buffer.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return "" if value is None else value
    return literal(printable(value, 300))


def _name(study: Study) -> tuple[object, ...]:
    key = study.matrix.key
    return study.slug, key.encoder, key.k, " ".join(key.styles), key.corpus


def _accuracy(studies: Iterable[Study]) -> Iterator[Sequence[object]]:
    for study in studies:
        matrix = study.matrix
        for row in matrix.alphas_train:
            for column in matrix.alphas_eval:
                for seed, accuracy in sorted(matrix.cells.get((row, column), {}).items()):
                    yield *_name(study), row, column, seed, accuracy


def _hoa(studies: Iterable[Study]) -> Iterator[Sequence[object]]:
    for study in studies:
        for (low, high), value in study.advantage.pairs.items():
            yield *_name(study), low, high, value.mean, value.sd, value.n


def _tests(studies: Iterable[Study]) -> Iterator[Sequence[object]]:
    for study in studies:
        found = study.advantage
        test, training, interval = asdict(found.test), found.training, found.interval
        parts = (found.mean.sd, training.mean, training.sd, found.test_sets.mean)
        told = (interval.low, interval.high, interval.n_contents, "; ".join(found.reasons))
        yield *_name(study), *(test[name] for name in _TEST), *parts, *told


def _retrieval(studies: Iterable[Study]) -> Iterator[Sequence[object]]:
    for study in studies:
        for curve in study.curves:
            for training, row in sorted(curve.found.items()):
                top1 = row["top1"]
                yield (
                    *_name(study), curve.gallery[:12], curve.source, curve.features, curve.set,
                    row["n"], curve.pairs, row.get("chance"), *training, top1.get("mean"),
                    top1.get("sd"), row.get("recall_at_5"), row.get("median_rank"),
                    study.matrix.losses.get(training),
                )  # fmt: skip


def _trend(studies: Iterable[Study]) -> Iterator[Sequence[object]]:
    for study in studies:
        for curve in study.curves:
            if curve.depends_on_alpha:
                for points, trend in (
                    ("means", curve.trend()),
                    ("within seeds", curve.trend_within_seeds()),
                ):
                    yield (
                        *_name(study), curve.gallery[:12], curve.source, curve.features, curve.set,
                        curve.n, points, trend.n, trend.rho, trend.p_fall, trend.monotone,
                        trend.reason,
                    )  # fmt: skip


def _dynamics(studies: Iterable[Study]) -> Iterator[Sequence[object]]:
    for study in studies:
        for found in study.trajectories:
            gallery = (digest(found.gallery)[:12], found.n, found.chance)
            for alpha in found.alphas:
                for measure in found.measures():
                    for step, epoch, value in found.series(alpha, measure):
                        told = (value.mean, value.sd, value.n)
                        yield (
                            *_name(study), *gallery, alpha, step, epoch, "/".join(measure), *told,
                        )  # fmt: skip
