"""The leaderboard as one HTML page: no server, no request, readable without scripts too.

Names come from strangers. Everything is escaped by the template engine, and the page's own policy
(Content-Security-Policy) lets no other script or style run than the two whose hashes it names.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable
from importlib import resources
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from style_overlap.leaderboard.board import Board, Row
from style_overlap.leaderboard.curves import Chart, Point, chart
from style_overlap.leaderboard.tables import POINTS
from style_overlap.names import as_alpha

TITLE = "Style overlap leaderboard"

_SHADES = 6


def as_html(board: Board) -> str:
    """The page."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style, script = _file("page.css"), _file("page.js")
    rows = [_view(row, board["metrics"]) for row in board["rows"]]
    corpora = {row["corpus_value"]: f"{row['corpus']} ({row['corpus_value'][:8]})" for row in rows}
    return environment.from_string(_file("page.html.jinja")).render(
        title=TITLE,
        made_by=board["made_by"],
        metrics=board["metrics"],
        rows=rows,
        ks=sorted({row["k"] for row in rows}),
        corpora=sorted(corpora.items(), key=lambda item: item[1]),
        unknown=[_unknown(one) for one in board["unknown"]],
        left_out=board["left_out"],
        # Our own files, and the only parts that are not escaped.
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _view(row: Row, metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """A row as the template has it: texts, and values to sort by."""
    setting, size = row["setting"], row["parameters"]
    return {
        "id": row["id"],
        "encoder": row["encoder"],
        "k": setting["k"],
        "styles": ", ".join(setting["styles"]),
        "corpus": setting["corpus"] or setting["corpus_fingerprint"][:12],
        "corpus_value": setting["corpus_fingerprint"],
        "fingerprint": setting["corpus_fingerprint"],
        "setting_text": f"{setting['corpus_fingerprint'][:8]}, {_setting(setting)}",
        "base": row["base_model_fingerprint"],
        "recipe": row["recipe"][:8],
        "recipe_text": yaml.safe_dump(row["recipe_settings"], allow_unicode=True).strip(),
        "rank_value": "" if row["rank"] is None else row["rank"],
        "parameters_value": "" if size is None else size,
        "parameters_text": "" if size is None else _size(size),
        "figures": [_figure(row, metric) for metric in metrics],
        "seeds": row["seeds"],
        "notes": row["notes"],
        "alphas_eval": row["alphas_eval"],
        "matrix": _matrix(row),
        "charts": [one for one in _charts(row) if one is not None],
        "retrieval": [
            {**one, "text": f"{100 * one['mean']:.1f}", "sd_text": _percent(one["sd"])}
            for one in row["retrieval"]
        ],
        "sources": row["sources"],
    }


def _setting(setting: dict[str, Any]) -> str:
    contents = setting["contents"]
    amount = "all contents" if contents is None else f"{contents:,} contents"
    return f"{amount}, {setting['assignment']}"


def _size(parameters: int) -> str:
    for limit, unit in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if parameters >= limit:
            return f"{parameters / limit:.3g} {unit}"
    return str(parameters)


def _percent(value: float | None, sign: str = "") -> str:
    return "" if value is None else f"{100 * value:{sign}.1f}"


def _figure(row: Row, metric: dict[str, Any]) -> dict[str, Any]:
    figure, sign = row["figures"][metric["name"]], "+" if metric["name"] in POINTS else ""
    low, high = _percent(figure["low"], sign), _percent(figure["high"], sign)
    seeds, all_seeds = len(figure["seeds"]), len(row["seeds"])
    return {
        "title": metric["title"],
        "text": _percent(figure["value"], sign),
        "interval": f"[{low}, {high}]" if low and high else "",
        "sd": _percent(figure["sd"]),
        "seeds": f"{seeds} of {all_seeds} seeds" if seeds < all_seeds else "",
        "note": figure["note"] or "",
        "sort": "" if figure["value"] is None else f"{figure['value']:.9g}",
    }


def _matrix(row: Row) -> list[tuple[str, list[dict[str, Any]]]]:
    """Rows of the matrix; a cell is shaded by where it lies between chance and 100 %."""
    cells = {(cell["alpha_train"], cell["alpha_eval"]): cell for cell in row["cells"]}
    chance = 1 / row["setting"]["k"]
    found = []
    for train in row["alphas_train"]:
        line: list[dict[str, Any]] = []
        for test in row["alphas_eval"]:
            cell = cells.get((train, test))
            if cell is None:
                line.append({"text": "missing", "shade": "missing", "same": False, "few": ""})
                continue
            above = max(0.0, (cell["mean"] - chance) / (1 - chance))
            spread = f" ± {_percent(cell['sd'])}" if cell["sd"] is not None else ""
            n, seeds = cell["n"], len(row["seeds"])
            line.append(
                {
                    "text": _percent(cell["mean"]) + spread,
                    "shade": f"h{min(int(above * _SHADES), _SHADES - 1)}",
                    "same": train == test,
                    "few": f"{n} of {seeds} seeds" if n < seeds else "",
                }
            )
        found.append((train, line))
    return found


def _charts(row: Row) -> Iterable[Chart | None]:
    """Accuracy by test overlap, retrieval by training overlap, and what was seen in training."""
    yield chart(
        "Accuracy (%) on test texts of every overlap",
        "overlap of the test texts (alpha_eval)",
        "accuracy (%)",
        {
            f"train {alpha}": [
                (float(as_alpha(cell["alpha_eval"])), 100 * cell["mean"])
                for cell in row["cells"]
                if cell["alpha_train"] == alpha
            ]
            for alpha in row["alphas_train"][:_SHADES]
        },
        low=_below(cell["mean"] for cell in row["cells"]),
    )
    retrieval: dict[str, list[Point]] = {}
    for one in row["retrieval"]:
        if one["source"] == "checkpoint":
            point = (float(as_alpha(one["alpha_train"])), 100 * one["mean"])
            retrieval.setdefault(f"{one['features']} {one['set']}", []).append(point)
    yield chart(
        "Content retrieval (top-1, %) after training at every overlap",
        "overlap of the training texts (alpha_train)",
        "top-1 (%)",
        dict(list(retrieval.items())[:_SHADES]),
    )
    for one in row["looks"]:
        looked: dict[str, list[Point]] = {}
        for look in one["looks"]:
            found = {name.replace("_", " "): value for name, value in look["accuracy"].items()}
            for told in look["retrieval"]:
                if told.get("source", "checkpoint") == "checkpoint" and told["features"] == "h":
                    found[f"h {told['set']}"] = told["top1"]["mean"]
            for name, value in found.items():
                if value is not None:
                    looked.setdefault(name, []).append((float(look["epoch"]), 100 * value))
        yield chart(
            f"While it was trained at overlap {one['alpha_train']}, seed {one['seed']}",
            "epoch",
            "accuracy, top-1 (%)",
            dict(list(looked.items())[:_SHADES]),
        )


def _below(shares: Iterable[float]) -> float:
    """The round percentage below all of some shares: where an axis begins."""
    return min(90.0, 10.0 * math.floor(10 * min(shares)))


def _unknown(one: dict[str, Any]) -> dict[str, Any]:
    scores = ", ".join(f"{100 * acc:.1f} at {alpha}" for alpha, acc in sorted(one["acc"].items()))
    return {**one, "scores": scores}
