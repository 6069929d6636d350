"""Which column of a table holds what: long (a text a row) or wide (a content a row)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from style_overlap.corpus.specs import Spec, did_you_mean
from style_overlap.errors import UsageError

CONTENT, STYLE, TEXT = "content_id", "style", "text"
"""Names of columns that need no option."""

ROW = "row"
"""``content=row`` counts the rows of a wide table that has no column of content ids."""

PLACES = ("order", "region", "group")
"""Options that name a column which holds one value a content."""

RESERVED_NAMES = (CONTENT, "group")  # columns of every corpus, and so no names of styles
_FORMS = (
    "a long table has the columns content_id, style and text, a wide one content_id and a column "
    "for each style. Name yours, for example content=id,style=author,text=body, or content=id for "
    "a wide table (content=row if it has no ids)"
)


@dataclass(frozen=True)
class Layout:
    """The columns of a table that is to be a parallel corpus.

    Attributes:
        content: column of content ids; None: the rows are counted.
        style: column of styles of a long table, None for a wide one.
        text: column of texts of a long table, None for a wide one.
        styles: classes, then reserved styles; None where the rows of a long table decide.
        reserved: those of ``styles`` that no classifier is trained on.
        places: option -> column for ``order``, ``region`` and ``group``.
    """

    content: str | None
    style: str | None
    text: str | None
    styles: tuple[str, ...] | None
    reserved: tuple[str, ...]
    places: dict[str, str]

    @property
    def wide(self) -> bool:
        """Whether each style has a column of its own."""
        return self.text is None


def resolve(columns: Sequence[str], file: str, spec: Spec) -> Layout:
    """Find the columns that a spec asks for.

    Args:
        columns: the table's header.
        file: its name, for messages.
        spec: options ``content``, ``style``, ``text``, ``classes``, ``reserved``, ``order``,
            ``region`` and ``group``.

    Raises:
        UsageError: a column is missing, or serves twice.
    """
    known = [name for name in columns if name]  # an unnamed one is an index that pandas wrote
    places = {}
    for option in PLACES:
        if (name := spec.one(option)) is not None:
            places[option] = _need(name, known, file, f"{option}=")
    classes, reserved = spec.several("classes"), spec.several("reserved") or ()
    long = bool(spec.one("style") or spec.one("text")) or {STYLE, TEXT} <= set(known)
    if long:
        style = _need(spec.one("style") or STYLE, known, file, "style=")
        text = _need(spec.one("text") or TEXT, known, file, "text=")
        content: str | None = _need(spec.one("content") or CONTENT, known, file, "content=")
        styles = None if classes is None else (*classes, *reserved)
        layout = Layout(content, style, text, styles, reserved, places)
        _once([style, text, str(content)], file)
    else:
        given = spec.one("content")
        if given == ROW and ROW not in known:
            content = None
        else:
            content = _need(given or CONTENT, known, file, "content=")
        taken = {content, *places.values(), *reserved}
        chosen = classes or tuple(name for name in known if name not in taken)
        styles = tuple(_need(name, known, file, "classes=") for name in (*chosen, *reserved))
        layout = Layout(content, None, None, styles, reserved, places)
        _once([*styles, *([content] if content else []), *set(places.values()) - {content}], file)
    if layout.styles is not None:
        check_styles(layout.styles, reserved, file)
    return layout


def check_styles(styles: Sequence[str], reserved: Sequence[str], file: str) -> None:
    """Refuse fewer than two classes, names given twice, and names of the corpus' own columns.

    Args:
        styles: classes and reserved styles.
        reserved: those that are no classes.
        file: for messages.
    """
    classes = [style for style in styles if style not in reserved]
    if len(set(styles)) < len(styles):
        twice = next(style for style in styles if styles.count(style) > 1)
        raise UsageError(f"{file}: {twice!r} is named twice in classes= and reserved=")
    if len(classes) < 2:
        raise UsageError(
            f"{file}: expected two or more classes, found {', '.join(classes) or 'none'}; {_FORMS}"
        )
    if taken := [style for style in styles if style in RESERVED_NAMES]:
        raise UsageError(
            f"{file}: no style can be called {taken[0]!r}, the name of a column of the corpus; "
            "choose the styles by classes="
        )


def need(name: str, columns: Iterable[str], file: str, option: str, more: str = "") -> str:
    """The name of a column, checked.

    Raises:
        UsageError: there is no such column; names one that is nearly it.
    """
    columns = list(columns)
    if name in columns:
        return name
    raise UsageError(
        f"{file}: no column {name!r}{did_you_mean(name, columns)} for {option}; its columns are "
        f"{', '.join(columns)}{more}"
    )


def _need(name: str, columns: Iterable[str], file: str, option: str) -> str:
    return need(name, columns, file, option, f"; {_FORMS}")


def _once(names: Sequence[str], file: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{file}: column {name!r} cannot serve two ends: {_FORMS}")
