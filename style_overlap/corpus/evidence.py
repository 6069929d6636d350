"""What the alignment audit reports, and the passages side by side that prove it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Block = Mapping[str, Mapping[int, str]]
"""Some neighbouring places: version -> place -> text. No text, or an empty one: it has none."""

Namer = Callable[[int], str]
"""What a place is called."""

EXAMPLES = 3


@dataclass(frozen=True)
class VersionReport:
    """One version.

    Attributes:
        texts: places where it has a text.
        coverage: these over the places that any version has.
        empty: places where its text is empty.
        fit: median cosine of its texts to the other versions' at the same place.
        neighbour_share: share of its texts that fit the place before or after better than their
            own.
        strays: texts that clearly do, and their like.
        uneven: texts far longer or shorter than the other versions' at the place.
    """

    texts: int
    coverage: float
    empty: int
    fit: float | None
    neighbour_share: float | None
    strays: int
    uneven: int


@dataclass(frozen=True)
class Example:
    """Two versions side by side.

    Attributes:
        place: where.
        text: what the refused version says there.
        peer: another version.
        peer_text: what that says there.
        fits: the place that the text fits better, None if no neighbour.
        there: what the other version says at that place.
    """

    place: str
    text: str
    peer: str
    peer_text: str
    fits: str | None
    there: str | None


@dataclass(frozen=True)
class Refusal:
    """Something that is misaligned as a whole.

    Attributes:
        version: the version.
        part: the book, None if it is all of the version.
        share: misaligned share of it.
        examples: three places.
        other: the other version where there are only two: the texts cannot say which is wrong.
    """

    version: str
    part: str | None
    share: float
    examples: tuple[Example, ...]
    other: str | None = None


@dataclass(frozen=True)
class AlignmentReport:
    """What the audit found.

    Attributes:
        places: places that any version has.
        compared: of these, places that were looked at.
        versions: report by version.
        strays: names of the misaligned places, by version.
        uneven: names of the places of uneven length, by version.
        refused: what is misaligned as a whole.
        notes: what the audit cannot tell.
    """

    places: int
    compared: int
    versions: dict[str, VersionReport]
    strays: dict[str, list[str]]
    uneven: dict[str, list[str]]
    refused: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def examples(
    version: str,
    strays: Sequence[tuple[int, int | None]],
    blocks: Callable[[], Iterable[Block]],
    name: Namer,
) -> tuple[Example, ...]:
    """Three places of a version beside another version, evenly spread.

    Args:
        version: whose texts are wrong.
        strays: its misaligned places, each with the place that the text fits, None if no neighbour.
        blocks: all texts.
        name: what a place is called.
    """
    step = max(len(strays) / EXAMPLES, 1)
    chosen = [strays[int((number + 0.5) * step)] for number in range(min(EXAMPLES, len(strays)))]
    found = []
    left = dict(chosen)
    for block in blocks():
        mine = block[version]
        for place in [place for place in left if mine.get(place)]:
            fits = left.pop(place)
            peers = [v for v, texts in block.items() if v != version and texts.get(place)]
            if not peers:
                continue
            peer = block[peers[0]]
            other = fits if fits is not None and peer.get(fits) else None
            found.append(
                Example(
                    place=name(place),
                    text=mine[place],
                    peer=peers[0],
                    peer_text=peer[place],
                    fits=None if other is None else name(other),
                    there=None if other is None else peer[other],
                )
            )
        if not left:
            break
    return tuple(found)


def refusal_text(refusal: Refusal) -> str:
    """A refusal in words, with its examples."""
    part = f" in {refusal.part}" if refusal.part else ""
    if refusal.other:
        what = f"{refusal.version} and {refusal.other} are not aligned with each other{part}"
    else:
        what = f"{refusal.version} is not aligned with the other versions{part}"
    lines = [
        f"{what}: {refusal.share:.0%} of the passages say what another place says. Side by side:"
    ]
    for example in refusal.examples:
        lines += [
            f"  {example.place}",
            f"    {refusal.version}: {_short(example.text)}",
            f"    {example.peer}: {_short(example.peer_text)}",
        ]
        if example.fits is not None and example.there is not None:
            lines.append(f"    {example.peer} at {example.fits}: {_short(example.there)}")
    leave = f"Leave {refusal.version}{f' or {refusal.other}' if refusal.other else ''} out"
    if refusal.part:
        lines.append(f"{leave}, or the book for all versions: exclude={refusal.part}")
    else:
        lines.append(f"{leave}, or give a text that is in order")
    return "\n".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:97] + "..."
