"""What the ``corpus`` commands print and draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from style_overlap.corpus.evidence import AlignmentReport, refusal_text
from style_overlap.corpus.giveaway import RAW, USED, GiveawayReport
from style_overlap.corpus.natural import Overlap
from style_overlap.corpus.partial import Plan
from style_overlap.report import heatmaps
from style_overlap.report.figures import ALPHA_EVAL, drawing, heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STRAYS = 10  # places listed of each version; --output and --json have all of them


def alignment(report: AlignmentReport) -> str:
    """The alignment audit: a row for each version, then what is wrong."""
    header = ["version", "texts", "coverage", "empty", "fit", "fits neighbour", "strays", "uneven"]
    rows = [
        [
            version,
            f"{found.texts:,}",
            f"{found.coverage:.1%}",
            str(found.empty),
            "–" if found.fit is None else f"{found.fit:.2f}",
            "–" if found.neighbour_share is None else f"{found.neighbour_share:.2%}",
            str(found.strays),
            str(found.uneven),
        ]
        for version, found in report.versions.items()
    ]
    lines = [_table(header, rows), ""]
    if report.compared < report.places:
        lines += [f"Looked at {report.compared:,} of {report.places:,} places.", ""]
    for what, by_version in (("strays", report.strays), ("uneven", report.uneven)):
        for version, names in by_version.items():
            if names:
                more = f" and {len(names) - _STRAYS} more" if len(names) > _STRAYS else ""
                lines.append(f"{what} in {version}: {', '.join(names[:_STRAYS])}{more}")
    lines += report.notes
    lines += [f"REFUSED {refusal_text(refusal)}" for refusal in report.refused]
    if not report.refused:
        lines.append(f"aligned: {', '.join(report.versions)}")
    return "\n".join(lines)


def giveaway(report: GiveawayReport) -> str:
    """The giveaway audit: a row for each cue, the floor, the verdict."""
    header = ["accuracy (%) of", RAW, USED]
    rows = [
        [
            cue,
            *(
                f"{100 * s[state].accuracy:.1f} ± {100 * s[state].stderr:.1f}"
                for state in header[1:]
            ),
        ]
        for cue, s in report.scores.items()
    ]
    columns = sorted({column for row in report.floor.values() for column in row})
    floor = [
        [alpha, *(f"{100 * row[c]:.1f}" if c in row else "–" for c in columns)]
        for alpha, row in report.floor.items()
    ]
    return "\n".join(
        [
            f"{report.corpus}: {', '.join(report.styles)}; {report.contents:,} contents, "
            f"cross-validated on unseen ones; chance {100 * report.chance:.1f}; the corpus is "
            f"{report.used}",
            "",
            _table(header, rows),
            "",
            f"TF-IDF and logistic regression, accuracy (%) on {report.floor_texts:,} test texts:",
            "",
            _table(["alpha_train", *(f"eval {column}" for column in columns)], floor),
            "",
            *report.verdict,
        ]
    )


def overlap(found: Overlap) -> str:
    """The overlap of a labelled data set."""
    lines = [
        f"{found.examples:,} examples, {found.contents:,} contents, {found.styles} styles, "
        f"H(S) = {found.entropy:.3f} bits"
    ]
    if found.alpha is not None:
        interval = ""
        if found.low is not None and found.high is not None:
            interval = f" [{found.low:.3f}, {found.high:.3f}], bootstrap over {found.over}"
        lines.append(
            f"alpha = {found.alpha:.3f}{interval} ({found.correction}; without correction "
            f"{found.plug_in:.3f})"
        )
        if found.note:
            lines.append(f"Note: {found.note}.")
    return "\n".join([*lines, found.sentence()])


def plans(every: Sequence[Plan], chosen: Plan) -> str:
    """What is possible for each number of styles."""
    rows = [
        [
            f"{plan.k}{' *' if plan.styles == chosen.styles else ''}",
            f"{plan.n:,}",
            f"{plan.n_shared:,}",
            f"{plan.n_shared / plan.n:.3f}",
            f"{plan.in_common:,}",
            ", ".join(plan.styles),
        ]
        for plan in every
    ]
    header = ["k", "n per style", "shared", "alpha", "contents in common", "styles"]
    return _table(header, rows) + "\n* chosen"


def summary(found: dict[str, Any]) -> str:
    """A corpus at a glance."""
    per_style = ", ".join(f"k={k}: {n:,}" for k, n in found["per_style"].items())
    lines = [
        f"{found['name']}: {found['contents']:,} contents in {', '.join(found['styles'])}"
        + (f"; reserved {', '.join(found['reserved'])}" if found["reserved"] else ""),
        f"contents per style: {per_style}",
        f"near-duplicates: {found['near_duplicates']:,} contents",
        "words per text: " + ", ".join(f"{s} {n:.0f}" for s, n in found["words"].items()),
        f"fingerprint: {found['fingerprint']}",
    ]
    for reason, entry in found["dropped"].items():
        if isinstance(entry, dict) and entry.get("count"):
            lines.append(f"left out, {reason}: {entry['count']:,} ({', '.join(entry['ids'])} ...)")
    example = dict(found["example"])
    lines += ["", str(example.pop("content_id"))]
    lines += [f"  {style}: {text}" for style, text in example.items()]
    return "\n".join(lines)


def giveaway_figure(report: GiveawayReport) -> Figure:
    """The giveaway audit in one picture: cues beside the bag-of-words matrix."""
    from matplotlib.figure import Figure

    with drawing():
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        _bars(left, report)
        _floor(right, report)
        heading(figure, f"{report.corpus}: {', '.join(report.styles)}")
    return figure


def _bars(axes: Axes, report: GiveawayReport) -> None:
    cues = list(report.scores)
    places = np.arange(len(cues))
    for shift, state, color, hatch in ((-0.2, RAW, "#b0b0b0", "//"), (0.2, USED, "#00336f", "")):
        values = [100 * report.scores[cue][state].accuracy for cue in cues]
        errors = [200 * report.scores[cue][state].stderr for cue in cues]
        bars = axes.barh(
            places + shift, values, 0.38, xerr=errors, color=color, hatch=hatch, label=state
        )
        axes.bar_label(bars, fmt="%.0f", padding=6, fontsize=8)
    chance = 100 * report.chance
    axes.axvline(chance, color="black", linestyle="--", linewidth=1)
    above = axes.get_xaxis_transform()  # whatever the number of cues
    axes.text(chance, 1.01, "chance", transform=above, ha="center", va="bottom", fontsize=8)
    axes.set_yticks(places, cues)
    axes.invert_yaxis()
    axes.set_xlim(0, 108)
    axes.set_xlabel("accuracy on unseen contents (%), two standard errors")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncol=2, frameon=False, fontsize=9)


def _floor(axes: Axes, report: GiveawayReport) -> None:
    rows = list(report.floor)
    columns = sorted({column for row in report.floor.values() for column in row})
    values = np.array([[100 * report.floor[r].get(c, np.nan) for c in columns] for r in rows])
    values = values.reshape(len(rows), len(columns))
    chance = 100 * report.chance
    heatmaps.cells(axes, values, chance, 100)
    heatmaps.ticks(axes, columns, rows)
    axes.set_xlabel(ALPHA_EVAL)
    axes.set_ylabel(r"trained at $\alpha_\mathrm{train}$")
    axes.set_title("bag of words: accuracy (%)")
    for (i, j), value in np.ndenumerate(values):
        if not np.isnan(value):
            heatmaps.write_number(axes, i, j, f"{value:.1f}", value < (chance + 100) / 2)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; the first is set left, the others right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for cells in (header, *rows):
        first, *others = [
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join(lines)
