"""Files from strangers: parsed strictly, within bounds, and checked against the shipped schema."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NoReturn

MAX_BYTES = 64 * 2**20
"""No file that is read here is larger: a record of 10,000 contents at six overlaps has 3 MB."""

SCHEMA_FILE = "records.schema.json"

_DIGITS = 40  # no number that anybody measured has more; some parsers take quadratic time


class Refused(ValueError):  # noqa: N818 (reads as what happened to the file)
    """A file that is not used, and why."""


def parse(data: bytes) -> Any:
    """JSON without NaN, infinities, repeated keys, endless numbers or endless nesting.

    Raises:
        Refused: anything else.
    """
    if len(data) > MAX_BYTES:
        raise Refused(f"larger than {MAX_BYTES // 2**20} MB")
    try:
        return json.loads(
            data.decode("utf-8"),
            parse_constant=_constant,
            parse_int=_int,
            parse_float=_float,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise Refused("not valid JSON: nested too deeply") from None
    except Refused:
        raise
    except ValueError as error:
        raise Refused(f"not valid JSON: {str(error)[:120]}") from None


def check(value: Any, kind: str) -> None:
    """Check a value against ``$defs/kind`` of the shipped schema.

    Raises:
        Refused: it does not fit; the message names the field and what was expected.
    """
    from jsonschema.exceptions import best_match

    version = value.get("schema") if isinstance(value, dict) else None
    if "schema" in schema()["$defs"][kind].get("required", ()) and version != 1:
        raise Refused(f"schema version {str(version)[:20]}: this version of style-overlap reads 1")
    fault = best_match(_validator(kind).iter_errors(value))
    if fault is not None:
        place = ".".join(str(part)[:60] for part in fault.absolute_path) or "the file"
        raise Refused(f"no {kind} as the schema has it: {place}: {_told(fault)}")


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of all files that a leaderboard reads or writes."""
    return json.loads(resources.files(__package__).joinpath(SCHEMA_FILE).read_text("utf-8"))


@cache
def _validator(kind: str) -> Any:
    from jsonschema import Draft202012Validator

    whole = schema()
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": whole["$defs"]})


def _told(fault: Any) -> str:
    """The message, without the value if that is long: it may be the whole file."""
    told = str(fault.message)
    if len(told) <= 160:
        return told
    wanted = f"{fault.validator} {str(fault.validator_value)[:80]}"
    return f"{str(fault.instance)[:40]}... does not fit {wanted}"


def _constant(name: str) -> NoReturn:
    raise Refused(f"not valid JSON: {name} is no number")


def _int(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise Refused(f"not valid here: a number of {len(digits)} digits")
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > _DIGITS:
        raise Refused(f"not valid here: a number of {len(digits)} digits")
    return float(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused("not valid here: an object has one key twice")
    return found
