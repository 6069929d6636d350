"""Content retrieval as a table: overlaps, then controls, chance and the trend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from style_overlap.names import as_alpha
from style_overlap.report.retrieval import CHECKPOINT, Curve
from style_overlap.report.study import Study
from style_overlap.report.tables import Table
from style_overlap.report.wording import (
    DASH,
    few,
    listed,
    number,
    p_value,
    percent,
    printable,
    seeds_text,
)
from style_overlap.stats import DRAWS, EXACT_ORDERS, MeanSd

SOURCES = {
    CHECKPOINT: "fine-tuned",
    "base": "before fine-tuning",
    "untrained": "untrained",
    "bag of words": "bag of words",
}
FEATURES = {"h": "h", "last/cls": "[CLS]"}


def retrieval(study: Study, curves: list[Curve], place: int) -> Table:
    """Top-1 against alpha_train, controls and trend below it.

    Args:
        study: that the curves belong to.
        curves: probed in one way.
        place: of this way among several.
    """
    tuned = [curve for curve in curves if curve.depends_on_alpha]
    controls = [curve for curve in curves if not curve.depends_on_alpha]
    columns = list(dict.fromkeys((c.features, c.set) for c in tuned))
    alphas = all_alphas(tuned, study.matrix.alphas_train)
    seeds = sorted({seed for curve in tuned for seed in curve.seeds})
    by_column = {(c.features, c.set): c for c in tuned}
    body: list[tuple[str, ...]] = []
    for alpha in alphas:
        why = study.matrix.why(alpha) or DASH
        loss = study.matrix.loss(alpha)
        told = DASH if loss.mean is None else f"{loss.mean:.3f}{few(loss, seeds)}"
        body.append((alpha, told, *(_top1(by_column[c].at(alpha), seeds, why) for c in columns)))
    for source in dict.fromkeys(curve.source for curve in controls):
        cells = [_control(controls, source, *column) for column in columns]
        body.append((SOURCES.get(source, printable(source)), "", *cells))
    body.append(("chance", "", *(_chance(by_column[c]) for c in columns)))
    trends = {column: by_column[column].trend() for column in columns}
    body.append(("ρ with α", "", *(number(trends[c].rho) for c in columns)))
    body.append(("p of a fall", "", *(p_value(trends[c].p_fall) for c in columns)))
    body.append(("falls at every step", "", *(_yes(trends[c].monotone) for c in columns)))
    if several := any(len(curve.seeds) > 1 for curve in tuned):
        each = {column: by_column[column].trend_within_seeds() for column in columns}
        body.append(("ρ within seeds", "", *(number(each[c].rho) for c in columns)))
        body.append(("p of a fall, within seeds", "", *(p_value(each[c].p_fall) for c in columns)))
    notes = [
        f"{DASH}: {reason}."
        for reason in dict.fromkeys(trend.reason for trend in trends.values() if trend.reason)
    ]
    short = [f"{trend.n} of the {len(alphas)} overlaps" for trend in trends.values()
             if trend.n < len(alphas)]  # fmt: skip
    if several:
        whole = len(alphas) * len(seeds)
        short += [f"{trend.n} of the {whole} fine-tunings" for trend in each.values()
                  if trend.n < whole]  # fmt: skip
    if short:
        notes.append(
            f"Some fine-tunings have no figure: ρ and p are of {listed(dict.fromkeys(short))}."
        )
    settings = curves[0].settings
    if settings.get("limit") is not None:
        notes.append(f"The gallery was limited to {printable(settings['limit'])} contents.")
    if settings.get("contents") is not None:
        contents = printable(settings["contents"])
        notes.append(f"Projectors were fitted on the training share of {contents} contents.")
    most = max((trend.n for trend in trends.values()), default=0)
    caption = (
        "Content retrieval, top-1 in % (mean over pairs of versions"
        + (", ± standard deviation over " if len(seeds) > 1 else ", ")
        + f"{seeds_text(seeds)}), with the loss at the end of fine-tuning. ρ: Spearman's rank "
        f"correlation of the means with α train; p: over {_orders(most)} orders."
    )
    if several:
        caption += (
            " Within seeds: the same over single fine-tunings, ranked among those of one seed, p "
            f"over {DRAWS:,} drawn orders within seeds; means of few seeds may fall at each step "
            "by chance."
        )
    header = (
        "α train",
        "loss",
        *(f"{features(f)}, {s}, N={by_column[f, s].n}" for f, s in columns),
    )
    name = "retrieval" if place == 0 else f"retrieval_{place + 1}"
    return Table(name, caption, header, tuple(body), tuple(notes))


def all_alphas(curves: Iterable[Curve], others: Iterable[str]) -> list[str]:
    """Every overlap of fine-tuning, ascending: those too that a curve has no point of."""
    return sorted({*others, *(alpha for curve in curves for alpha in curve.alphas)}, key=as_alpha)


def _orders(overlaps: int) -> str:
    return "all" if overlaps <= EXACT_ORDERS else f"{DRAWS:,} drawn"


def features(name: str) -> str:
    """A name of features as people write it."""
    return FEATURES.get(name, printable(name, 30))


def _control(controls: list[Curve], source: str, wanted: str, chosen: str) -> str:
    for curve in controls:
        # A bag of words has one kind of features, which stands beside all.
        fits = curve.features == wanted or source == "bag of words"
        if curve.source == source and curve.set == chosen and fits:
            level = curve.level()
            return percent(level.mean, level.sd)
    return DASH


def _top1(value: MeanSd, seeds: Sequence[int], why: str) -> str:
    return why if value.mean is None else percent(value.mean, value.sd) + few(value, seeds)


def _chance(curve: Curve) -> str:
    return percent(curve.chance, digits=2)


def _yes(value: bool | None) -> str:
    return DASH if value is None else "yes" if value else "no"
