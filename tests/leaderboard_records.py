"""Records for the tests of the leaderboard: invented scores, in the shape that the tools write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from style_overlap.results import digest, write_json

GRID = ("0.0", "1.0")
STYLES = ("KJV", "ASV", "WEB", "YLT", "DARBY")


def acc_of(alpha_train: str, alpha_eval: str) -> float:
    """Invented, in the shape that the protocol expects."""
    train, test = float(alpha_train), float(alpha_eval)
    return 0.95 - 0.1 * train - (1 - train) * 0.3 * test


def task(acc: float, alpha: str, *, seed: int = 0, k: int = 2, contents: int = 200,
         draw: int = 0, corpus: str = "f" * 64) -> dict[str, Any]:  # fmt: skip
    """One task's part of an evaluation, with as many right answers as ``acc`` asks for."""
    right = np.zeros(contents)
    right[: round(acc * contents)] = 1
    np.random.default_rng([draw, seed]).shuffle(right)
    return {
        "alpha_eval": alpha,
        "acc": float(right.mean()),
        "acc_stderr": float(right.std(ddof=1) / contents**0.5),
        "corpus_fingerprint": corpus,
        "data_fingerprint": digest([corpus, k, alpha, seed]),
        "styles": list(STYLES[:k]),
        "credit": {f"Book {i // 50}:{i % 50}": [float(c), 1] for i, c in enumerate(right)},
    }


def evaluation(
    encoder: str = "org/enc",
    alpha: str = "0.0",
    *,
    seed: int = 0,
    k: int = 2,
    lift: float = 0.0,
    grid: Sequence[str] = GRID,
    accuracies: Mapping[str, float] | None = None,
    contents: int = 200,
    corpus: str = "f" * 64,
    recipe: Mapping[str, Any] | None = None,
    **parts: Any,
) -> dict[str, Any]:
    """An evaluation record; ``lift`` is added to every accuracy, ``parts`` replace its parts."""
    told = accuracies or {a: acc_of(alpha, a) + lift for a in grid}
    trained = {"model": encoder, "k": k, "alpha": alpha, "seed": seed, "data_seed": seed,
               "contents": None, "corpus": "bible", "chunk_verses": 5, "assignment": "contiguous",
               "max_length": 256, "dtype": "auto",
               "arguments": {"learning_rate": 1e-5, **(recipe or {})}}  # fmt: skip
    data = {"corpus_fingerprint": corpus, "styles": list(STYLES[:k])}
    record = {
        "schema": 1,
        "kind": "evaluation",
        "checkpoint": {"name": "runs/x", "config": trained, "data": data, "degenerate": None},
        "model": {"model_fingerprint": digest([encoder, alpha, seed, k]),
                  "model_num_parameters": 22_713_986},
        "config": {"k": k, "limit": None, "assignment": "contiguous", "data_seed": seed},
        "tasks": {
            f"style_overlap_k{k}_a{a}": task(
                acc, a, seed=seed, k=k, contents=contents, corpus=corpus
            )
            for a, acc in told.items()
        },
    }  # fmt: skip
    return {**record, **parts}


def summary(mean: float, chosen: str = "seen", features: str = "h", n: int = 288) -> dict[str, Any]:
    """One row of what a probe found."""
    return {"source": "checkpoint", "features": features, "set": chosen, "pairs": 1, "n": n,
            "chance": 1 / n, "top1": {"mean": mean, "sd": None, "n": 1},
            "interval": {"low": mean - 0.02, "high": mean + 0.02}}  # fmt: skip


def retrieval(*rows: dict[str, Any], corpus: str = "f" * 64, **changes: Any) -> dict[str, Any]:
    """What a probe found, as a part of an evaluation."""
    return {"corpus_fingerprint": corpus, "data_seed": 0, "contents": None, "limit": None,
            "seeds": [0, 1, 2], "settings": {"dim": 256}, "dtype": "float32", "rows": [],
            "summary": list(rows), **changes}  # fmt: skip


def harness(record: dict[str, Any], **config: Any) -> dict[str, Any]:
    """What lm-eval's own results file says of the model of an evaluation record."""
    trained = record["checkpoint"]["config"]
    results, configs, counts = {}, {}, {}
    for name, one in record["tasks"].items():
        results[name] = {"acc,none": one["acc"], "acc_stderr,none": one["acc_stderr"]}
        configs[name] = {
            "dataset_kwargs": {"k": trained["k"], "alpha": one["alpha_eval"]},
            "metadata": {"corpus_fingerprint": one["corpus_fingerprint"], "version": 1.0,
                         "data_fingerprint": one["data_fingerprint"], "styles": one["styles"],
                         "data_seed": trained["data_seed"], "assignment": "contiguous"},
        }  # fmt: skip
        counts[name] = {"original": len(one["credit"]), "effective": len(one["credit"])}
    return {"results": results, "configs": configs, "n-samples": counts,
            "config": {"model": "style-encoder", "limit": None, **record["model"], **config},
            "lm_eval_version": "0.4.13", "model_source": "style-encoder",
            "model_name": "somewhere/else"}  # fmt: skip


def checkpoint(record: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The checkpoint's record that belongs to an evaluation record."""
    return {"schema": 1, "kind": "checkpoint", "config": record["checkpoint"]["config"],
            "data": record["checkpoint"]["data"], "degenerate": None,
            "base_model_fingerprint": "base", **changes,
            "model_fingerprint": record["model"]["model_fingerprint"]}  # fmt: skip


def save(folder: Path, *records: dict[str, Any]) -> Path:
    """Write evaluation records where ``style-overlap evaluate`` would."""
    for number, record in enumerate(records):
        write_json(folder / f"run{number}" / "evaluations" / "k2-0.json", record)
    return folder


def many(folder: Path) -> Path:
    """A folder of runs that fills a page: encoders, ks, corpora, seeds, faults."""
    grid = ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0")
    records = []
    for encoder, lift in (("FacebookAI/roberta-large", 0.03), ("package:minilm", -0.02),
                          ("baseline:tfidf", -0.15)):  # fmt: skip
        whole = encoder.startswith("FacebookAI")
        for seed in (0, 1, 2) if whole else (0,):
            for alpha in grid if whole else GRID:
                found = retrieval(
                    summary(max(0.02, 0.6 - 0.5 * float(alpha) + lift), "seen"),
                    summary(max(0.02, 0.8 - 0.5 * float(alpha) + lift), "unseen"),
                    summary(max(0.02, 0.9 - 0.4 * float(alpha) + lift), "seen", "last/cls"),
                )
                records.append(
                    evaluation(encoder, alpha, seed=seed, grid=grid, lift=lift + 0.004 * seed,
                               retrieval={"content_retrieval_k2": found})
                )  # fmt: skip
    for alpha in GRID:
        records.append(evaluation("FacebookAI/roberta-large", alpha, k=3))
        records.append(evaluation("package:minilm", alpha, corpus="a" * 64, contents=400))
    records.append(evaluation("package:half-done", "0.0"))
    limited = evaluation("package:minilm", "1.0", seed=7)
    limited["config"]["limit"] = 10
    records.append(limited)
    save(folder, *records)
    looks = [
        {"step": 30 * i, "epoch": 0.25 * i, "loss": 0.7 - 0.05 * i,
         "accuracy": {"matched": 0.5 + 0.05 * i, "fully_shared": 0.5 + 0.02 * i},
         "retrieval": [summary(0.9 / (1 + i), "seen"), summary(0.95 / (1 + 0.3 * i), "unseen")]}
        for i in range(9)
    ]  # fmt: skip
    write_json(folder / "run0" / "style_overlap.json", checkpoint(records[0]))
    (folder / "run0" / "dynamics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in looks))
    return folder
