"""Entries -> leaderboard.json: rows with figures, ranks, and what the gate needs to pair runs."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from style_overlap import __version__, stats
from style_overlap.errors import UsageError
from style_overlap.leaderboard import strict
from style_overlap.leaderboard.entries import Cell, Entries, Entry
from style_overlap.leaderboard.figures import METRICS, PLAIN, SHIFTED, STYLE, Figure, figures
from style_overlap.leaderboard.ranks import RANKED_BY, Bounds, ranks
from style_overlap.leaderboard.strict import Refused
from style_overlap.results import SCHEMA, digest, to_json

Row = dict[str, Any]
Board = dict[str, Any]

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # controls, text direction, surrogates


def board(found: Entries) -> Board:
    """The leaderboard as data: what ``leaderboard.json`` holds, and every page shows.

    Raises:
        UsageError: not a single row; the message lists why each file is left out.
    """
    if not found.entries:
        raise UsageError(_nothing(found))
    told = {entry.id: figures(entry) for entry in found.entries}
    ranked = _ranks(found.entries, told)
    tests: dict[str, Any] = {}
    rows = [_row(entry, told[entry.id], ranked[entry.id], tests) for entry in found.entries]
    rows.sort(key=_order)
    value = {
        "schema": SCHEMA,
        "kind": "leaderboard",
        "made_by": f"style-overlap {__version__}",
        "ranked_by": RANKED_BY,
        "metrics": [
            {"name": m.name, "title": m.title, "description": m.short, "better": m.better}
            for m in METRICS
        ],
        "rows": rows,
        "tests": tests,
        "unknown": [asdict(one) for one in found.unknown],
        "left_out": [{"source": source, "reason": reason} for source, reason in found.left_out],
    }
    return printable(to_json(value))


def read(path: Path) -> Board:
    """A leaderboard, checked.

    Raises:
        UsageError: there is none, or it is not one that this version reads.
    """
    try:
        value = strict.parse(path.read_bytes())
        strict.check(value, "leaderboard")
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; expected a leaderboard.json that "
            "`style-overlap leaderboard` has written"
        ) from error
    except Refused as fault:
        raise UsageError(f"{path} is not used: {fault}") from fault
    ids = [row["id"] for row in value["rows"]]
    if len(set(ids)) < len(ids):
        raise UsageError(f"{path} is not used: two of its rows claim to be the same one")
    return value


def printable(value: Any) -> Any:
    """The value with every invisible character of its texts made visible.

    Names come from strangers: a character that turns the direction of writing would show one name
    as another.
    """
    if isinstance(value, str):
        return "".join("\ufffd" if unicodedata.category(c) in _HIDDEN else c for c in value)
    if isinstance(value, dict):
        return {printable(key): printable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [printable(item) for item in value]
    return value


def _ranks(entries: Iterable[Entry], told: dict[str, dict[str, Figure]]) -> dict[str, int | None]:
    """Ranks within each setting."""
    by_setting: dict[str, list[str]] = {}
    for entry in entries:
        by_setting.setdefault(entry.setting.key, []).append(entry.id)
    found: dict[str, int | None] = {}
    for group in by_setting.values():
        bounds = [_bounds(told[one][RANKED_BY]) for one in group]
        found |= dict(zip(group, ranks(bounds), strict=True))
    return found


def _bounds(figure: Figure) -> Bounds | None:
    if figure.value is None or figure.low is None or figure.high is None:
        return None
    return figure.low, figure.high


def _row(entry: Entry, told: dict[str, Figure], rank: int | None, tests: dict[str, Any]) -> Row:
    setting = entry.setting
    return {
        "id": entry.id,
        "encoder": entry.training.encoder,
        "base_model_fingerprint": entry.training.base,
        "parameters": entry.parameters,
        "setting": {"id": setting.key, **asdict(setting)},
        "recipe": digest(entry.training.recipe)[:12],
        "recipe_settings": dict(entry.training.recipe),
        "rank": rank,
        "seeds": entry.seeds,
        "alphas_train": entry.alphas_train,
        "alphas_eval": entry.alphas_eval,
        "figures": {name: asdict(figure) for name, figure in told.items()},
        "cells": [_cell(entry, cell) for cell in sorted(entry.cells)],
        "credit": {
            " ".join(cell): credit
            for cell in (PLAIN, SHIFTED, STYLE)
            if (credit := _credit(entry, cell, tests))
        },
        "retrieval": _retrieval(entry),
        "looks": [
            {"alpha_train": alpha, "seed": seed, "looks": list(looks)}
            for (alpha, seed), looks in sorted(entry.looks.items())
        ],
        "notes": entry.notes,
        "sources": entry.sources,
    }


def _cell(entry: Entry, cell: Cell) -> dict[str, Any]:
    by_seed = entry.cells[cell]
    told = stats.mean_sd([score.acc for score in by_seed.values()])
    seeds = entry.seeds_of([cell])
    return {"alpha_train": cell[0], "alpha_eval": cell[1], "seeds": seeds, **asdict(told)}


def _credit(entry: Entry, cell: Cell, tests: dict[str, Any]) -> dict[str, Any]:
    """Sums of credit by seed, in the order of the test set's contents, which are told once."""
    found = {}
    for seed, score in sorted(entry.cells.get(cell, {}).items()):
        if score.credit is None:
            continue
        contents = sorted(score.credit)
        passages = " ".join(str(score.credit[content][1]) for content in contents)
        test = {"contents": contents, "passages": passages}
        if tests.setdefault(score.test, test) != test:
            continue  # another set of contents under one fingerprint: nothing to pair it with
        sums = " ".join(f"{round(score.credit[content][0], 6):g}" for content in contents)
        found[seed] = {"test": score.test, "sums": sums}
    return found


def _retrieval(entry: Entry) -> list[dict[str, Any]]:
    """Mean over seeds of every source, set of features and set of pairs, by alpha_train."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for (alpha, _), rows in entry.retrieval.items():
        for row in rows:
            key = (row["source"], row["features"], row["set"], alpha)
            found.setdefault(key, []).append(row)
    return [
        {
            **dict(zip(("source", "features", "set", "alpha_train"), key, strict=True)),
            **asdict(stats.mean_sd([row["top1"]["mean"] for row in rows])),
            "gallery": sorted({int(row["n"]) for row in rows}),
        }
        for key, rows in sorted(found.items())
    ]


def _order(row: Row) -> tuple[Any, ...]:
    """Settings apart; within one the best first, rows without a score last."""
    setting, value = row["setting"], row["figures"][RANKED_BY]["value"]
    rank = row["rank"] if row["rank"] is not None else 10**9
    return (setting["k"], setting["corpus"], setting["id"], rank,
            value is None, -(value or 0), row["encoder"], row["id"])  # fmt: skip


def _nothing(found: Entries) -> str:
    reasons = [*found.left_out, *((one.source, one.why) for one in found.unknown)]
    told = "".join(f"\n  {printable(f'{one}: {why}')}" for one, why in reasons[:20])
    return (
        "no row for a leaderboard: expected records of `style-overlap sweep` or `style-overlap "
        f"evaluate`, or a results_*.json of lm-eval beside the checkpoint's record{told}"
    )
