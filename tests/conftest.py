"""Fixtures that all tests share. Nothing here, or in any test, reaches a network."""

from __future__ import annotations

import os

# Before any library is imported: the hub is never asked.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# One thread each: tiny models gain nothing from more, and tests that run side by side would wait
# for each other's.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from style_overlap.corpus import ParallelCorpus

if TYPE_CHECKING:
    from style_overlap.trainers.settings import TrainSettings

# The same examples in every run; others by `pytest --hypothesis-profile default`.
hypothesis.settings.register_profile("same", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("same")

STYLES = ("KJV", "ASV", "WEB", "YLT", "DARBY")
RESERVED = ("NHEB", "RWEBSTER")
QUICK = {"learning_rate": 5e-3, "per_device_train_batch_size": 8, "num_train_epochs": 1}
"""Arguments of a fine-tuning of a second or two."""


def hear_interrupts() -> None:
    """``preexec_fn`` of a process that a test interrupts: under nohup, or in a shell's background,
    the tests ignore Ctrl-C, and so would all that they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def make_corpus(
    contents: int = 200, styles: tuple[str, ...] = STYLES, *, seed: int = 0
) -> ParallelCorpus:
    """Invented parallel texts: a topic word that drifts along the canonical order (content), and a
    mark of the style's own."""
    import datasets

    rng = random.Random(seed)
    words = [f"w{i}" for i in range(60)]
    columns: dict[str, list[str]] = {style: [] for style in (*styles, *RESERVED)}
    for row in range(contents):
        shared = [f"topic{row * 10 // contents}", *rng.choices(words, k=6)]
        for number, style in enumerate(columns):
            text = shared.copy()
            text.insert(rng.randrange(len(text)), f"mark{number}")
            columns[style].append(" ".join(text))
    table = datasets.Dataset.from_dict(
        {
            "content_id": [f"Book {1 + row // 50}:{row % 50 + 1}" for row in range(contents)],
            "group": list(range(contents)),
            **columns,
        }
    )
    return ParallelCorpus(
        name="invented",
        styles=styles,
        reserved=RESERVED,
        table=table,
        fingerprint=f"invented-{contents}-{seed}-{'-'.join(styles)}",
        settings={"spec": "invented"},
    )


@pytest.fixture(scope="session")
def invented() -> ParallelCorpus:
    """200 invented contents in the default corpus' styles."""
    return make_corpus()


@pytest.fixture(scope="session")
def bible() -> ParallelCorpus:
    """The real default corpus."""
    from style_overlap.corpus import load_corpus

    return load_corpus("bible")


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> Path:
    """A tiny encoder, as a fine-tuning starts from."""
    from tiny_models import make_encoder

    return make_encoder(tmp_path_factory.mktemp("encoder") / "bert", initializer_range=0.05)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> str:
    """Invented texts in a file, for sweeps: its spec."""
    from sweep_cells import write_corpus

    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def settings(encoder, tmp_path) -> TrainSettings:
    """A fine-tuning of a second or two."""
    from style_overlap.trainers.settings import TrainSettings

    return TrainSettings(
        model=str(encoder), k=2, alpha="0.4", output=tmp_path / "run", max_length=64,
        arguments=QUICK,
    )  # fmt: skip
