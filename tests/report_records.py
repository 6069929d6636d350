"""Invented records in the formats that real runs write, with planted figures."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np

from style_overlap.names import alpha_text
from style_overlap.report.records import read
from style_overlap.results import digest, write_json, write_text

STYLES = ("KJV", "ASV", "WEB", "YLT", "DARBY")
VERSIONS = {"python": "3.11.7", "style-overlap": "0.1.0", "numpy": "2.4.6"}
GRID = ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0")


def planted_accuracy(k: int, alpha: str, column: str, noise: float = 0.0) -> float:
    """Falls with alpha_eval where alpha_train is low; flat where it is high."""
    train, evaluated = float(alpha), float(column)
    top = 0.95 - 0.09 * train
    return min(1.0, max(0.0, top - (1 - train) * (0.5 - 0.05 * k) * evaluated + noise))


def config(model="enc/tiny", k=2, alpha="0.0", seed=0, **changes) -> dict[str, Any]:
    return {
        "model": model, "k": k, "alpha": alpha, "seed": seed, "data_seed": seed,
        "contents": 1200, "corpus": "bible", "chunk_verses": 5, "assignment": "contiguous",
        "max_length": 128, "early_stopping": None, "dropout": 0.0, "dtype": "auto",
        "arguments": {"learning_rate": 0.0003, "num_train_epochs": 2.0}, **changes,
    }  # fmt: skip


def evaluation(
    trained: dict[str, Any],
    *,
    degenerate: str | None = None,
    noise: float = 0.0,
    retrieval: dict[str, Any] | None = None,
    columns=GRID,
    contents: int = 60,
) -> dict[str, Any]:
    k, alpha, seed = trained["k"], trained["alpha"], trained["seed"]
    rng = np.random.default_rng([seed, k, int(10 * float(alpha))])
    tasks = {}
    for column in columns:
        share = planted_accuracy(k, alpha, column, noise + 0.01 * rng.normal())
        credit = {f"Book {c}:1": [float(rng.random() < share), 1] for c in range(contents)}
        tasks[f"style_overlap_k{k}_a{column}"] = {
            "alpha_eval": column, "realised_alpha": float(column), "corpus_fingerprint": "corpus",
            "data_fingerprint": digest([k, column, seed]), "styles": list(STYLES[:k]),
            "acc": share, "acc_stderr": 0.01, "macro_f1": share, "tie_rate": 0.0,
            "documents": contents, "credit": credit,
        }  # fmt: skip
    return {
        "schema": 1, "kind": "evaluation",
        "checkpoint": {
            "name": "somewhere", "config": dict(trained), "degenerate": degenerate,
            "data": data(k),
            "metrics": {"train_loss": 0.1 + 0.3 * float(alpha) + 0.01 * seed, "epochs": 2.0},
        },
        "model": {"labels": list(STYLES[:k]), "model_fingerprint": digest(trained)},
        "config": {"k": k, "limit": None, "data_seed": seed, "assignment": trained["assignment"],
                   "corpus": "bible", "chunk_verses": 5},
        "tasks": tasks, "retrieval": retrieval or {}, "versions": VERSIONS,
    }  # fmt: skip


def data(k: int) -> dict[str, Any]:
    return {"corpus_fingerprint": "corpus", "styles": list(STYLES[:k])}


def summary(mean: float | None, features="h", chosen="seen", source="checkpoint", n=576):
    return {
        "source": source, "features": features, "set": chosen, "pairs": 1, "n": n, "chance": 1 / n,
        "top1": {"mean": mean, "sd": 0.01, "n": 3}, "recall_at_5": mean, "median_rank": 1.0,
        "interval": {"low": 0.1, "high": 0.9, "level": 0.95, "n_contents": n, "reason": None},
    }  # fmt: skip


def top1(alpha: str, features: str, chosen: str, k: int, seed: int, progress: float = 1.0) -> float:
    fall = {"h": 0.75, "last/cls": 0.35}[features] * (0.4 + 0.6 * float(alpha)) * progress
    wobble = 0.02 * np.sin(7 * seed + k + 3 * float(alpha))
    return float(np.clip(0.98 - fall - 0.03 * k + 0.08 * (chosen == "unseen") + wobble, 0.002, 1))


def retrieval(trained: dict[str, Any], *, controls: bool = True) -> dict[str, Any]:
    k, alpha, seed = trained["k"], trained["alpha"], trained["seed"]
    rows = []
    for chosen in ("seen", "unseen"):
        rows += [
            summary(top1(alpha, features, chosen, k, seed), features, chosen)
            for features in ("h", "last/cls")
        ]
        if controls:
            rows += [
                summary(0.985, "last/cls", chosen, "base"),
                summary(0.71, "last/cls", chosen, "untrained"),
                summary(0.93, "tf-idf", chosen, "bag of words"),
            ]
    return {
        "corpus_fingerprint": "corpus", "data_seed": seed, "contents": 1200, "limit": None,
        "seeds": [0, 1, 2], "settings": {"epochs": 40}, "dtype": "float32",
        "rows": [], "summary": rows,
    }  # fmt: skip


def probe(trained: dict[str, Any], **changes) -> dict[str, Any]:
    checkpoint = {key: evaluation(trained)["checkpoint"][key]
                  for key in ("name", "config", "data", "degenerate", "metrics")}  # fmt: skip
    return {
        "schema": 1, "kind": "probe", "checkpoint": checkpoint,
        "model": {"labels": list(STYLES[: trained["k"]])}, "config": {"layers": ["h", "last/cls"]},
        **retrieval(trained), "versions": VERSIONS, **changes,
    }  # fmt: skip


def looks(trained: dict[str, Any], count: int = 9) -> list[dict[str, Any]]:
    k, alpha, seed = trained["k"], trained["alpha"], trained["seed"]
    made = []
    for index in range(count):
        part = index / (count - 1)
        won = 1 - np.exp(-5 * part)
        accuracy = {
            "matched": 1 / k + won * (planted_accuracy(k, alpha, alpha) - 1 / k),
            "fully_shared": 1 / k + won * (planted_accuracy(k, alpha, "1.0") - 1 / k),
        }
        rows = [
            summary(top1(alpha, features, chosen, k, seed, won), features, chosen)
            for features in ("h", "last/cls")
            for chosen in ("seen", "unseen")
        ]
        for row in rows:
            del row["interval"]
        made.append(
            {"step": 15 * index, "epoch": 2 * part, "accuracy": accuracy, "retrieval": rows,
             "loss": None if index == 0 else 0.1 + 0.6 * np.exp(-4 * part) + 0.02 * seed}
        )  # fmt: skip
    return made


def run(trained: dict[str, Any], **changes) -> dict[str, Any]:
    asked = {**trained, "probe": {"retrieval": True}}
    return {
        "schema": 1, "kind": "run", "cell": digest(asked), "config": asked, "status": "done",
        "error": None, "training": {"config": trained, "data": data(trained["k"]),
                                    "degenerate": None},
        "evaluation": evaluation(trained, retrieval={"content_retrieval": retrieval(trained)}),
        "dynamics": [], "versions": VERSIONS, **changes,
    }  # fmt: skip


def failed(trained: dict[str, Any], error: str) -> dict[str, Any]:
    return run(trained, status="failed", error=error, evaluation=None, training=None)


def write_run(runs: Path, record: dict[str, Any]) -> Path:
    c = record["config"]
    path = runs / f"k{c['k']}-a{alpha_text(c['alpha'])}-s{c['seed']}-{record['cell'][:6]}/run.json"
    write_json(path, record)
    return path


def write_dynamics(folder: Path, trained: dict[str, Any], lines: list[dict[str, Any]]) -> Path:
    write_json(folder / "style_overlap.json", {
        "schema": 1, "kind": "checkpoint", "config": trained, "data": data(trained["k"]),
        "degenerate": None,
    })  # fmt: skip
    write_text(folder / "dynamics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return folder / "dynamics.jsonl"


def write_plan(runs: Path, cells: list[dict[str, Any]]) -> None:
    asked = [{**cell, "probe": {"retrieval": True}} for cell in cells]
    write_json(runs / "plan.json", {
        "schema": 1, "kind": "plan", "alphas_eval": list(GRID),
        "cells": [{"id": digest(cell), "folder": "x", "config": cell, "data": "d", "texts": 9}
                  for cell in asked],
    })  # fmt: skip


def sweep(runs, model="org/tiny", ks=(2,), alphas=GRID, seeds=(0, 1), **changes):
    cells = [config(model, k, a, s, **changes) for k in ks for a in alphas for s in seeds]
    for cell in cells:
        write_run(runs, run(cell))
    return cells


def records_of(tmp_path, *made):
    for number, record in enumerate(made):
        folder = "evaluations" if record["kind"] == "evaluation" else "probes"
        write_json(tmp_path / f"{number:02}" / folder / "a.json", record)
    return read([tmp_path])


def texts(drawn: str) -> set[str]:
    root = ElementTree.fromstring(drawn)
    return {"".join(element.itertext()) for element in root.iter() if element.tag.endswith("text")}
