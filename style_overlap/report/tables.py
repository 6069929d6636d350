"""Tables as data: the same rows go to Markdown, HTML and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from style_overlap.bootstrap import Interval
from style_overlap.report.absent import Absent
from style_overlap.report.advantage import Advantage
from style_overlap.report.matrix import Matrix
from style_overlap.report.matrix_text import positive, rows
from style_overlap.report.records import Record
from style_overlap.report.study import Study, short
from style_overlap.report.wording import (
    DASH,
    few,
    interval,
    listed,
    number,
    p_value,
    percent,
    points,
    printable,
    seeds_text,
)
from style_overlap.stats import DRAWS, EXACT_ORDERS, EXACT_PAIRS, MeanSd


@dataclass(frozen=True)
class Table:
    """A table; its first column names the rows.

    Attributes:
        name: for files and links, unique within a study.
        caption: what it shows, with units.
        header: names of the columns.
        rows: cells as text.
        notes: what a reader has to know of single cells.
        emphasis: (row, column) of cells that stand out, such as a diagonal.
    """

    name: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    emphasis: frozenset[tuple[int, int]] = frozenset()


def overview(studies: Iterable[Study]) -> Table:
    """A row for each study: the corners of the matrix and the advantage."""
    header = (
        "encoder", "seeds", "low → low", "low → high", "high → low", "high → high",
        "advantage (95 %)", "by training", "d", "pairs > 0", "p (t)", "p (relabel)",
    )  # fmt: skip
    body = []
    for study in studies:
        matrix, found = study.matrix, study.advantage
        corners = _corners(matrix)
        body.append(
            (
                study.title,
                listed(matrix.seeds) or DASH,
                *(percent(corner.mean, corner.sd) for corner in corners),
                points(MeanSd(found.test.mean, None, found.test.n)) + _within(found.interval),
                points(found.training),
                number(found.test.cohen_d),
                positive(found.test),
                p_value(found.test.p_t),
                p_value(found.test.p_relabel),
            )
        )
    notes = (
        "low → high: fine-tuned at the lowest overlap and evaluated at the highest. Advantage: "
        "mean over all pairs of overlaps of Acc(train high, eval low) − Acc(train low, eval high), "
        "with its interval over contents (of these fine-tunings, not of others). By training: what "
        "of it is there on one and the same test set, the classifier of the higher overlap minus "
        "that of the lower, mean over both; the rest is how much easier the test set at the lower "
        "overlap is, which equal classifiers show too.",
    )
    return Table("overview", "Accuracy in %, advantage in points.", header, tuple(body), notes)


def accuracy(matrix: Matrix) -> Table:
    """Acc(alpha_train, alpha_eval), the diagonal (matched overlaps) standing out."""
    columns = matrix.alphas_eval
    body = tuple((row, *cells) for row, cells in rows(matrix))
    diagonal = {(i, columns.index(row[0]) + 1) for i, row in enumerate(body) if row[0] in columns}
    spread = "mean ± standard deviation over " if len(matrix.seeds) > 1 else ""
    caption = (
        f"Accuracy in % on the test split of each evaluated overlap, {spread}"
        f"{seeds_text(matrix.seeds)}; chance {100 / matrix.k:.1f}."
    )
    header = ("α train", *(f"eval {alpha}" for alpha in columns))
    notes = () if len(matrix.seeds) > 1 else ("One seed: no standard deviation.",)
    return Table("accuracy", caption, header, body, notes, frozenset(diagonal))


def advantages(matrix: Matrix, found: Advantage) -> Table:
    """High-overlap advantage of each pair: rows the lower overlap, columns the higher."""
    alphas = matrix.alphas_both

    def cell(low: str, high: str) -> str:
        if (low, high) in found.pairs:
            value = found.pairs[low, high]
            return points(value) + few(value, matrix.seeds)
        return matrix.why(low, high) or DASH if float(low) < float(high) else ""

    body = tuple((low, *(cell(low, high) for high in alphas[1:])) for low in alphas[:-1])
    return Table(
        "hoa",
        "High-overlap advantage in points, Acc(train high, eval low) − Acc(train low, eval high), "
        + ("mean ± standard deviation over seeds." if len(matrix.seeds) > 1 else "one seed."),
        ("low α", *(f"high {alpha}" for alpha in alphas[1:])),
        body,
    )


def tests(matrix: Matrix, found: Advantage) -> Table:
    """The tests over pairs."""
    test = found.test
    body = (
        ("pairs", str(test.n)),
        ("mean advantage, points", points(MeanSd(test.mean, found.mean.sd, found.mean.n))),
        ("of it by training at the higher overlap", points(found.training)),
        ("of it by the easier test set", points(found.test_sets)),
        ("95 % interval over contents", interval(found.interval)),
        ("pairs above 0", positive(found.test)),
        ("t, one-sided paired", number(test.t)),
        ("p, t-test", p_value(test.p_t)),
        ("Cohen's d", number(test.cohen_d)),
        (f"p, sign flips{_drawn(test.n > EXACT_PAIRS)}", p_value(test.p_sign_flip)),
        (
            f"p, overlaps relabelled{_drawn(len(matrix.alphas_both) > EXACT_ORDERS)}",
            p_value(test.p_relabel),
        ),
    )
    notes = [f"{DASH}: {reason}." for reason in found.reasons]
    if test.n and test.p_relabel is None:
        notes.append(
            f"{DASH}: overlaps are relabelled only where every pair of at least three is there."
        )
    if matrix.absent:
        notes.append("Some fine-tunings are absent: the figures are of those that are there.")
    caption = (
        "Is there a high-overlap advantage? The t-test and the sign flips take pairs for "
        "independent; pairs share rows and columns, which relabelling the overlaps in every order "
        "allows for. No test tells what training does from what an easier test set does: the two "
        "parts do, ± standard deviation over seeds."
    )
    return Table("hoa_tests", caption, ("statistic", "value"), body, tuple(notes))


def _drawn(sampled: bool) -> str:
    return f" ({DRAWS:,} drawn)" if sampled else ""


def giveaway(audit: Record) -> Table:
    """What tells the styles apart without an encoder, by an audit of the corpus."""
    scores = {cue: states[audit["used"]] for cue, states in audit["scores"].items()}
    body = [
        (printable(cue), f"{percent(one['accuracy'])} ± {percent(one['stderr'])}")
        for cue, one in sorted(scores.items(), key=lambda item: -item[1]["accuracy"])
    ]
    body.append(("chance", percent(audit["chance"])))
    caption = (
        "For scale, what gives the styles away without an encoder: logistic regression on one kind "
        "of cue, accuracy in % on contents that it has not seen ± standard error, all styles of "
        "all contents."
    )
    return Table("giveaway", caption, ("cue", "accuracy"), tuple(body))


def absences(absent: Iterable[Absent]) -> Table:
    """Fine-tunings without a usable figure."""
    body = tuple(
        (short(one.encoder), str(one.k), one.alpha, str(one.seed), printable(one.why, 200))
        for one in absent
    )
    header = ("encoder", "k", "α train", "seed", "why")
    return Table("absent", "Fine-tunings that are in no mean.", header, body)


def _corners(matrix: Matrix) -> list[MeanSd]:
    """Accuracy at the lowest and highest overlaps of fine-tuning and of evaluation."""
    none = MeanSd(None, None, 0)
    rows, columns = matrix.alphas_train, matrix.alphas_eval
    if not matrix.cells:
        return [none] * 4
    low = [matrix.at((rows[0], column)) for column in (columns[0], columns[-1])]
    high = [matrix.at((rows[-1], column)) for column in (columns[0], columns[-1])]
    return [*low, *(high if len(rows) > 1 else [none, none])]


def _within(found: Interval) -> str:
    return "" if found.low is None else f" ({interval(found)})"
