"""What can be wrong with the contents of a table: told with the rows where it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from style_overlap.corpus.faults import SHOWN, Faults
from style_overlap.corpus.layout import ROW, Layout
from style_overlap.corpus.staging import Staged

if TYPE_CHECKING:
    import pyarrow as pa

LISTED = 1000
"""Most ids in one list of what was left out; counts are always whole."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coded:
    """A table as small integers.

    Attributes:
        content: number of each row's content, by order of first appearance, shape (rows,).
        label: number of each row's style, shape (rows,); zeros for a wide table.
        order: the rows sorted by content, then by label, shape (rows,).
        numbers: the rows' numbers in the table, shape (rows,).
        names: content ids by number.
        styles: styles by label.
        layout: the table's columns.
    """

    content: Ints
    label: Ints
    order: Ints
    numbers: Ints
    names: pa.Array
    styles: list[str]
    layout: Layout

    @property
    def column(self) -> str:
        """The column of content ids."""
        return self.layout.content or ROW

    def name(self, row: int) -> str:
        """Content id of a row, quoted."""
        return repr(self.names[self.content[row]].as_py())


def find_repeated(coded: Coded, faults: Faults) -> None:
    """Texts of one content in one style that are given more than once."""
    sorted_content, sorted_label = coded.content[coded.order], coded.label[coded.order]
    places = np.flatnonzero((np.diff(sorted_content) == 0) & (np.diff(sorted_label) == 0))
    if not len(places):
        return
    kind, advice = "texts given twice", "Every content may have one text in each style."
    if coded.layout.wide:
        advice += " If this is a long table, name its columns: style=...,text=..."
    by_row = np.argsort(coded.numbers[coded.order[places + 1]], kind="stable")
    for place in places[by_row][:SHOWN]:
        before, row = coded.order[place], coded.order[place + 1]
        style = "" if coded.layout.wide else f" in {coded.styles[coded.label[row]]}"
        what = f"{coded.name(row)}{style} again, first in row {coded.numbers[before]}"
        faults.add(kind, int(coded.numbers[row]), coded.column, what, advice)
    faults.more(kind, len(places))


def find_incomplete(coded: Coded, whole: npt.NDArray[np.bool_], faults: Faults) -> None:
    """Contents that lack a style.

    Args:
        coded: the table.
        whole: whether a content has every style, by its number.
        faults: takes what is found.
    """
    kind = "contents without a style"
    advice = "Add missing=drop to leave out contents that not every style has."
    partial = np.flatnonzero(~whole)
    if not len(partial):
        return
    starts = np.searchsorted(coded.content[coded.order], partial[:SHOWN])
    for number, start in zip(partial[:SHOWN], starts, strict=True):
        row = coded.order[start]
        has = set(coded.label[coded.content == number].tolist())
        lacks = [style for label, style in enumerate(coded.styles) if label not in has]
        what = f"{coded.name(row)} has no text in {', '.join(lacks[:SHOWN])}"
        faults.add(kind, int(coded.numbers[row]), coded.column, what, advice)
    faults.more(kind, len(partial))


def find_differing(
    coded: Coded, option: str, codes: Ints, values: pa.Array, faults: Faults
) -> None:
    """Contents whose rows disagree on their order, region or group.

    Args:
        coded: the table.
        option: which of them.
        codes: each row's value, an index into ``values``, shape (rows,).
        values: the values.
        faults: takes what is found.
    """
    order = coded.order
    places = np.flatnonzero((np.diff(coded.content[order]) == 0) & (np.diff(codes[order]) != 0))
    if not len(places):
        return
    kind = f"contents with more than one {option}"
    for place in places[:SHOWN]:
        before, row = order[place], order[place + 1]
        what = (
            f"{values[codes[row]].as_py()!r} for {coded.name(row)}, but "
            f"{values[codes[before]].as_py()!r} in row {coded.numbers[before]}"
        )
        faults.add(kind, int(coded.numbers[row]), coded.layout.places[option], what)
    faults.more(kind, len(places))


def missing(coded: Coded, whole: npt.NDArray[np.bool_], staged: Staged) -> dict[str, Any]:
    """What was left out since not every style has it: count, ids, and how many each style lacks."""
    partial = np.flatnonzero(~whole)
    ids = [*staged.left_out[:LISTED], *coded.names.take(partial[:LISTED]).to_pylist()]
    lacking = dict(staged.incomplete)
    if not coded.layout.wide:
        has = np.bincount(coded.label[~whole[coded.content]], minlength=len(coded.styles))
        lacking = {style: int(len(partial) - has[s]) for s, style in enumerate(coded.styles)}
    count = len(partial) + len(staged.left_out)
    return {"count": count, "ids": ids[:LISTED], "by_version": lacking}
