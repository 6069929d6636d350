"""The commands that make the records of a report again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from style_overlap.report.matrix import Recipe
from style_overlap.report.study import Study
from style_overlap.report.wording import printable
from style_overlap.results import digest

_OPTIONS = (
    "contents", "corpus", "chunk_verses", "assignment", "max_length", "early_stopping", "dropout",
    "dtype",
)  # fmt: skip
_OF_BASELINES = ("contents", "corpus", "chunk_verses", "assignment")


def sweeps(studies: Iterable[Study]) -> tuple[str, ...]:
    """One command for all k of an encoder and recipe."""
    groups: dict[str, list[Study]] = {}
    for study in studies:
        recipe = {name: value for name, value in study.matrix.recipe.items() if name != "k"}
        parts = [recipe, study.probe, study.matrix.alphas_train, _seeds(study)]
        groups.setdefault(digest(parts), []).append(study)
    return tuple(_sweep(group) for group in groups.values())


def probes(records: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """One command for all checkpoints that were probed in one way."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for record in records:
        named = groups.setdefault(_probed(record), [])
        if (name := printable(record["checkpoint"].get("name"), 300)) not in named:
            named.append(name)
    return tuple(
        " ".join(shlex.quote(word) for word in ("style-overlap", "probe", *names, *options))
        for options, names in groups.items()
    )


def _probed(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The options of a probe."""
    trained = record["checkpoint"].get("config") or {}
    sources = {row["source"] for row in record["summary"]}
    sets = {row["set"] for row in record["summary"]}
    words = _features(record)
    words += [f"--{name}" for name in ("base", "untrained") if name in sources]
    words += ["--bow"] if "bag of words" in sources else []
    words += ["--unseen"] if "unseen" in sets else []
    if "chosen" in sets and record["rows"]:
        words += ["--versions", record["rows"][0]["a"], record["rows"][0]["b"]]
    elif not (record.get("model") or {}).get("labels"):
        seen = {row[side] for row in record["rows"] if row["set"] == "seen" for side in "ab"}
        words += ["--k", str(len(seen))] if len(seen) > 2 else []
    for name in ("contents", "limit"):
        words += [f"--{name}", str(record[name])] if record.get(name) is not None else []
    if isinstance(record.get("seeds"), list):
        words += ["--seeds", str(len(record["seeds"]))]
    words += _corpus(record, trained)
    if record.get("dtype") not in (None, "float32"):
        words += ["--dtype", str(record["dtype"])]
    return tuple(printable(word, 300) for word in words)


def _features(record: Mapping[str, Any]) -> list[str]:
    """Which layers, where they are not those that a probe takes by itself, and how pooled."""
    names = (record.get("config") or {}).get("layers")
    parts = [str(name).partition("/") for name in (names if isinstance(names, list) else [])]
    layers, pooled = [part[0] for part in parts], [part[2] for part in parts if part[2]]
    default = ["h", "last"] if (record.get("model") or {}).get("labels") else ["last"]
    words = [w for layer in layers for w in ("--layer", layer)] if layers != default else []
    return [*words, *(["--pooling", pooled[0]] if pooled else [])]


def _corpus(record: Mapping[str, Any], trained: Mapping[str, Any]) -> list[str]:
    """The corpus and its splits, where they are not those that the checkpoint was trained on."""
    told = (record.get("config") or {}).get("corpus")
    told = told if isinstance(told, Mapping) else {}
    found = {"corpus": told.get("spec"), "chunk_verses": told.get("chunk_verses"),
             "data_seed": record.get("data_seed")}  # fmt: skip
    own = {"corpus": "bible", "chunk_verses": 5, "data_seed": 0, **trained}
    return [
        word
        for name, value in found.items()
        if value is not None and value != own[name]
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


def _sweep(studies: list[Study]) -> str:
    study = studies[0]
    recipe = study.matrix.recipe
    words = [
        ["style-overlap", "sweep", "--model", study.matrix.encoder],
        ["--k", *map(str, sorted({s.matrix.k for s in studies}))],
        ["--alphas", *study.matrix.alphas_train],
        ["--seeds", *map(str, _seeds(study))],
    ]
    words += [
        [f"--{name.replace('_', '-')}", str(recipe[name])]
        for name in (_OF_BASELINES if study.is_baseline else _OPTIONS)
        if recipe.get(name) is not None
    ]
    if not study.is_baseline:
        words += [["--set", setting] for setting in _arguments(recipe)]
        words += _probe(study.probe)
    words.append(["--output", "RUNS"])
    return " \\\n  ".join(" ".join(shlex.quote(printable(w, 300)) for w in part) for part in words)


def _arguments(recipe: Recipe) -> list[str]:
    arguments = recipe.get("arguments")
    if not isinstance(arguments, Mapping):
        return []
    return [f"{name}={_yaml(value)}" for name, value in sorted(arguments.items())]


def _yaml(value: Any) -> str:
    """As ``--set`` reads it back."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and "e" in repr(value) and "." not in repr(value):
        return repr(value).replace("e", ".0e")  # YAML takes 1e-05 for a word
    return str(value)


def _probe(probe: Mapping[str, Any] | None) -> list[list[str]]:
    if not isinstance(probe, Mapping):
        return []
    words = []
    if probe.get("every") is not None:
        words.append(["--probe-every", str(probe["every"])])
    if probe.get("contents") is not None:
        words.append(["--probe-contents", str(probe["contents"])])
    if probe.get("seeds") is not None:
        words.append(["--probe-seeds", str(probe["seeds"])])
    if probe.get("retrieval") is False:
        words.append(["--no-retrieval"])
    return words


def _seeds(study: Study) -> list[int]:
    return sorted({*study.matrix.seeds, *(seed for _, seed in study.matrix.absent)})
