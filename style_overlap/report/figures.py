"""What all figures share: how they look, and how they are written.

Readable in grey and by colour-blind people: every line has its own marker and dashes besides its
colour, heat maps rise evenly in lightness and hold their numbers.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from style_overlap.report.wording import printable
from style_overlap.results import write_bytes, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1f2023"
"""Text, axes and all that is neither data nor background; on a page, the page's own ink."""

ALPHA_TRAIN = r"fine-tuned at content overlap $\alpha_\mathrm{train}$"
FINE_TUNED = r"fine-tuned at $\alpha_\mathrm{train}$"
ALPHA_EVAL = r"evaluated at content overlap $\alpha_\mathrm{eval}$"

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "style-overlap",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "figure.titlesize": 11.0,
    "mathtext.fontset": "dejavusans",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
}


_UNDATED = {"Date": None, "Creator": None}

Dashes: TypeAlias = str | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class Mark:
    """How a line is told from others: any one of the three is enough."""

    color: str
    marker: str
    dashes: Dashes


MARKS = (
    Mark("#0072b2", "o", "-"),
    Mark("#d55e00", "s", "--"),
    Mark("#009e73", "^", "-."),
    Mark("#b0508f", "D", ":"),
    Mark("#7a6a00", "v", (0, (5, 1, 1, 1, 1, 1))),
    Mark("#5b5bd6", "P", (0, (7, 2))),
)
"""Colours of Okabe and Ito, three of them darker: they have to stand out on white and on black."""


def mark(number: int) -> Mark:
    """How the line of that number looks: each round of colours has them on other markers."""
    turned = MARKS[(number + number // len(MARKS)) % len(MARKS)]
    return Mark(MARKS[number % len(MARKS)].color, turned.marker, turned.dashes)


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the report's style, whatever the user's own matplotlib settings say."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes: that is no news on a terminal.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        defaults = matplotlib.rcParamsDefault.items()
        matplotlib.rcParams.update({k: v for k, v in defaults if not k.startswith("backend")})
        matplotlib.rcParams.update(_STYLE)
        yield


def plain(name: object) -> str:
    """A name from a record as matplotlib draws it literally: a dollar begins no formula."""
    return printable(name).replace("$", r"\$")


def heading(figure: Figure, *lines: str) -> None:
    """What a figure shows, a line each, broken where the figure is too narrow for it."""
    width = int(11 * figure.get_size_inches()[0])  # characters
    broken = [part for one in lines for part in textwrap.wrap(plain(one), width)]
    figure.suptitle("\n".join(broken), fontsize=10)


def alpha_axis(axes: Axes, alphas: Sequence[float], label: str) -> None:
    """A horizontal axis of overlaps, from 0 to 1 whichever there are."""
    axes.set_xlim(-0.05, 1.05)
    axes.set_xticks(sorted({0.0, 1.0, *alphas}) if len(alphas) < 3 else list(alphas))
    axes.set_xlabel(label)


def percent_axis(axes: Axes, label: str, low: float = 0, high: float = 100) -> None:
    """A vertical axis in percent."""
    axes.set_ylim(low - 2, high + 2)
    axes.set_ylabel(label)
    tidy(axes)


def tidy(axes: Axes) -> None:
    """A quiet frame and horizontal guide lines."""
    axes.grid(axis="y", color="#9a9a9a", alpha=0.35, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def svg(figure: Figure) -> str:
    """A figure as SVG without a background; the same figure gives the same bytes.

    Its layout is settled from here on: solving it again for every file takes longer than drawing.
    """
    buffer = io.StringIO()
    with drawing():
        if (engine := figure.get_layout_engine()) is not None:
            engine.execute(figure)
            figure.set_layout_engine("none")
        figure.savefig(buffer, format="svg", transparent=True, metadata=_UNDATED)
    return buffer.getvalue()


def save(figure: Figure, path: Path, drawn: str | None = None) -> list[Path]:
    """Write a figure as SVG and PNG beside each other.

    Args:
        figure: what to write.
        path: of the files, without their suffixes.
        drawn: the figure as ``svg`` gives it, if it is at hand.
    """
    drawn = drawn or svg(figure)
    files = [path.with_name(f"{path.name}.{kind}") for kind in ("svg", "png")]
    end = drawn.index(">", drawn.index("<svg")) + 1
    paper = '\n <rect width="100%" height="100%" fill="#ffffff"/>'
    write_text(files[0], drawn[:end] + paper + drawn[end:])
    pixels = io.BytesIO()
    with drawing():
        figure.savefig(
            pixels, format="png", dpi=150, facecolor="white", metadata={"Software": None}
        )
    write_bytes(files[1], pixels.getvalue())
    return files


def inline(drawn: str, prefix: str, title: str) -> str:
    """A figure as an ``<svg>`` element for a page: its ink is the page's, its ids are its own.

    Args:
        drawn: the figure as ``svg`` gives it.
        prefix: unique on the page.
        title: what a screen reader says.
    """
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"\s*<metadata>.*?</metadata>", "", drawn, count=1, flags=re.DOTALL)
    # Only tags are changed: in text, < is an entity.
    drawn = re.sub("<[^<>]+>", lambda tag: _own(tag[0], prefix), drawn)
    head, rest = drawn.split(">", 1)
    size = re.search(r'width="([\d.]+)pt"', head)
    width = 4 / 3 * float(size[1]) if size else 600  # points to pixels
    head = re.sub(r' (width|height)="[\d.]+pt"', "", head)
    # Narrow screens scroll sooner than that they shrink letters beyond reading.
    fit = f"width:{width:.0f}px;max-width:100%;min-width:{0.85 * width:.0f}px"
    label = escape(title, quote=True)
    named = f'<svg role="img" aria-label="{label}" style="{fit}"'
    return f"{head.replace('<svg', named, 1)}>{rest}"


def _own(tag: str, prefix: str) -> str:
    """A tag whose ids and links are those of its own drawing."""
    return re.sub(r'(\bid="|\bhref="#|url\(#)', rf"\g<1>{prefix}-", tag).replace(
        INK, "currentColor"
    )
