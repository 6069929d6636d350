"""The one string that names a corpus: ``kind:body,option=value,option=value``.

Commas part everything, a piece without ``=`` goes on with the list before it, and no character has
a meaning to a shell, so that a spec needs no quotes:

    bible                                       the default corpus
    bible:KJV,WEB,reserved=YLT                  two classes, and a version never trained on
    texts.csv                                   a table, known by its ending
    table:texts.csv,content=id,style=author     the same, with the names of its columns
    verses:ebible/corpus,classes=eng-asv,eng-web
    folders:carlson,classes=KJV,YLT

Inside a name, a comma is written ``%2C``, ``=`` ``%3D`` and, before one of these, ``%`` ``%25``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from style_overlap.errors import UsageError

ENDINGS = tuple(
    ending + packed
    for ending in (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
    for packed in ("", ".gz")
    if ending + packed != ".parquet.gz"
)
"""Endings by which a bare path is known to be a table."""

VREF = "vref.txt"
"""A folder that holds this file holds verses, a line each."""

_OPTION = re.compile(r"\s*([A-Za-z_]+)\s*=(.*)", re.DOTALL)
_YES_NO = {"yes": True, "no": False}


@dataclass(frozen=True)
class Spec:
    """A corpus specification, taken apart.

    Attributes:
        text: as it was typed.
        kind: which source reads it.
        body: what follows the colon: names of versions, a path or an id; None without a colon.
        options: values by option, in the order given.
    """

    text: str
    kind: str
    body: str | None
    options: Mapping[str, tuple[str, ...]]

    def several(self, option: str) -> tuple[str, ...] | None:
        """The list of an option, None where it is not given.

        Raises:
            UsageError: a value is given twice.
        """
        values = self.options.get(option)
        if values is not None and len(set(values)) < len(values):
            raise UsageError(f"{self.text}: {option}={','.join(values)} names one of them twice")
        return values

    def one(self, option: str) -> str | None:
        """The single value of an option, None where it is not given.

        Raises:
            UsageError: several values, or an empty one.
        """
        values = self.options.get(option)
        if values is not None and len(values) != 1:
            raise UsageError(
                f"{self.text}: {option}={','.join(values)}: expected one value, for example "
                f"{option}=NAME (a comma inside a name is written %2C)"
            )
        return values[0] if values else None

    def choice(self, option: str, choices: tuple[str, ...], default: str) -> str:
        """One of a few words."""
        value = self.one(option) or default
        if value not in choices:
            raise UsageError(f"{self.text}: {option}={value}: expected {' or '.join(choices)}")
        return value

    def flag(self, option: str, default: bool) -> bool:
        """``yes`` or ``no``."""
        return _YES_NO[self.choice(option, tuple(_YES_NO), "yes" if default else "no")]

    def but(self, **options: str) -> Spec:
        """The same with other options."""
        changed = {**self.options, **{name: (value,) for name, value in options.items()}}
        parts = [self.kind if self.body is None else f"{self.kind}:{_encode(self.body)}"]
        for name, values in changed.items():
            parts.append(f"{name}={','.join(map(_encode, values))}")
        return Spec(",".join(parts), self.kind, self.body, changed)

    def need_body(self, what: str, example: str) -> str:
        """The body, where a source cannot do without."""
        if not self.body:
            raise UsageError(f"corpus {self.text!r} names no {what}: type for example {example}")
        return self.body

    def path(self, what: str, example: str) -> Path:
        """The body as a path that exists.

        Raises:
            UsageError: none is given or there is no such path; names one that is nearly it.
        """
        path = Path(self.need_body(what, example)).expanduser()
        if not path.exists():
            raise UsageError(no_path(path, what))
        return path


def no_path(path: Path, what: str) -> str:
    """Why there is no such path: what is there instead."""
    where = path.parent
    if not where.is_dir():
        return f"no {what} {path}: there is no folder {where} (seen from {Path.cwd()})"
    near = did_you_mean(path.name, (entry.name for entry in where.iterdir()))
    return f"no {what} {path} (seen from {Path.cwd()}){near}"


def parse(text: str, options: Mapping[str, Iterable[str]]) -> Spec:
    """Take a spec apart.

    Args:
        text: what was typed.
        options: the options of every kind of source.

    Raises:
        UsageError: no such kind, or an option that the kind does not have.
    """
    pieces = str(text).split(",")
    kind, body = _kind(pieces[0], text, options)
    values: dict[str, list[str]] = {}
    parts = [] if body is None else [body]
    current = parts
    for piece in pieces[1:]:
        match = _OPTION.fullmatch(piece)
        if match:
            option = match[1]
            if option not in options[kind]:
                known = ", ".join(options[kind])
                raise UsageError(
                    f"{text}: {kind} has no option {option!r}"
                    f"{did_you_mean(option, options[kind])}; its options are {known}"
                )
            if option in values:
                raise UsageError(f"{text}: {option}= is given twice")
            current = values[option] = []
            piece = match[2]
        current.append(piece)
    return Spec(
        text=str(text),
        kind=kind,
        body=_decode(",".join(parts)) if parts else None,
        options={
            option: tuple(_decode(value.strip()) for value in found if value.strip())
            for option, found in values.items()
        },
    )


def _kind(head: str, text: str, kinds: Iterable[str]) -> tuple[str, str | None]:
    """(kind, body) of a spec's first piece."""
    kind, colon, rest = head.partition(":")
    if kind in kinds:
        return kind, rest if colon else None
    path = Path(_decode(head)).expanduser()
    if head and path.is_dir():
        return ("verses" if (path / VREF).is_file() else "folders"), head
    if head.lower().endswith(ENDINGS) and path.exists():
        return "table", head
    if head.lower().endswith(ENDINGS) and not colon:
        raise UsageError(no_path(path, "file"))
    raise UsageError(
        f"no corpus {str(text)!r}: the sources are {', '.join(sorted(kinds))}"
        f"{did_you_mean(kind, kinds) if colon else ''}; type bible, or bible:KJV,WEB,YLT to "
        f"choose the translations and their order, or the path of a table"
    )


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """`` (did you mean NAME?)``, or nothing where no name is near."""
    lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    return f" (did you mean {lower[near[0]]!r}?)" if near else ""


def _encode(text: str) -> str:
    return re.sub("[%,=]", lambda found: f"%{ord(found[0]):02X}", text)


def _decode(text: str) -> str:
    return re.sub("%(25|2C|3D)", lambda found: chr(int(found[1], 16)), text, flags=re.IGNORECASE)
