"""Records of any origin as observations of one shape: who was asked what, and what came out.

Which row an observation belongs to is read from its fields alone, never from a file's name. Two
observations share a row only if everything is equal that a figure may depend on, but for the
overlap and the seeds of the training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from style_overlap.leaderboard.strict import Refused
from style_overlap.names import alpha_text
from style_overlap.results import digest

# Differ within a row, or are told by fingerprints: one corpus may lie at many paths.
_NOT_RECIPE = ("model", "k", "alpha", "seed", "data_seed", "corpus", "chunk_verses")
_SETTING = ("assignment", "contents")

MOST_PASSAGES = 10_000_000
"""Of one test set: what is said to have more would only fill the memory."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What was asked: figures of one setting can be compared with each other.

    Attributes:
        k: number of styles.
        styles: their names in label order.
        corpus: its specification, for people.
        corpus_fingerprint: what it is.
        assignment: which contents a style owns.
        contents: training texts were thinned to those of so many contents; None for all.
        sampling: version of the sampler.
    """

    k: int
    styles: tuple[str, ...]
    corpus: str
    corpus_fingerprint: str
    assignment: str
    contents: int | None
    sampling: int

    @property
    def key(self) -> str:
        """Hash of all but the corpus' specification."""
        return digest([self.k, self.styles, self.corpus_fingerprint, self.assignment,
                       self.contents, self.sampling])[:12]  # fmt: skip


@dataclass(frozen=True)
class Training:
    """Which checkpoint: the encoder, how it was fine-tuned, at which overlap, with which seed.

    Attributes:
        encoder: name of what was fine-tuned.
        base: fingerprint of its weights, where the record has it.
        recipe: settings of the training, but for those in ``Setting``, the overlap and the seeds.
        alpha: overlap that it was trained at.
        seed: of the training, with that of the data behind it where it is another.
    """

    encoder: str
    base: str | None
    recipe: Mapping[str, Any]
    alpha: str
    seed: str


@dataclass(frozen=True, eq=False)
class Observation:
    """What one file says of one checkpoint.

    Attributes:
        source: the file.
        setting, training: who was asked what.
        parameters: of the model, where known.
        scores: by alpha_eval.
        retrieval: what was probed, each with the hash of how it was probed.
    """

    source: str
    setting: Setting
    training: Training
    parameters: int | None
    scores: dict[str, Score]
    retrieval: tuple[tuple[str, Record], ...] = ()

    @property
    def row(self) -> str:
        """Hash of all that rows are told apart by, but for the encoder's weights."""
        return digest([self.training.encoder, self.training.recipe, self.setting.key])[:12]


@dataclass(frozen=True, eq=False)
class Score:
    """One accuracy.

    Attributes:
        acc: accuracy.
        stderr: as the harness gives it: it takes passages for independent.
        test: fingerprint of the test set.
        credit: sum of credits and number of passages of every content; None where unknown.
    """

    acc: float
    stderr: float | None
    test: str
    credit: dict[str, tuple[float, int]] | None


@dataclass(frozen=True)
class Unknown:
    """A model of a results file that no record tells the training of: listed, never ranked."""

    source: str
    name: str
    k: int
    corpus_fingerprint: str
    acc: dict[str, float]
    why: str


Seen: TypeAlias = "Observation | Unknown | tuple[str, str]"
"""An observation, a model of unknown training, or a file that counts for nothing and why."""


def guarded(source: str, make: Callable[[], Iterable[Seen]]) -> Iterator[Seen]:
    """What a file says, up to where it is refused, and then the reason."""
    try:
        yield from make()
    except Refused as reason:
        yield source, str(reason)


def usable(
    checkpoint: Record, k: int, assignment: str, data_seed: int | None, corpus: str
) -> Record:
    """The settings of a training, if figures of it count.

    Raises:
        Refused: an unknown or degenerate training, or one on other data than was scored.
    """
    trained = checkpoint.get("config")
    if not trained:
        raise Refused("not trained by style-overlap: its alpha_train is not known")
    if checkpoint.get("degenerate"):
        raise Refused(f"degenerate: {checkpoint['degenerate']}")
    if trained["k"] != k:
        raise Refused(f"trained on {trained['k']} styles, scored on {k}")
    seed = trained.get("data_seed", trained["seed"])
    if data_seed not in (None, seed) or trained.get("assignment", assignment) != assignment:
        raise Refused(
            "trained on other regions or splits (data seed or assignment) than it was scored on: "
            "test texts may have been training texts"
        )
    if (checkpoint.get("data") or {}).get("corpus_fingerprint", corpus) != corpus:
        raise Refused("trained on another corpus than it was scored on")
    return trained


def setting_of(
    trained: Record, k: int, styles: tuple[str, ...], corpus: str, sampling: int
) -> Setting:
    """What a checkpoint was asked."""
    contents = trained.get("contents")
    thinned = int(contents) if isinstance(contents, (int, float)) else None
    return Setting(
        k=int(k),
        styles=styles,
        corpus=str(trained.get("corpus", "")),
        corpus_fingerprint=corpus,
        assignment=str(trained.get("assignment", "contiguous")),
        contents=thinned,
        sampling=int(sampling),
    )


def training_of(trained: Record, base: str | None) -> Training:
    """Which checkpoint a training configuration describes."""
    seed = int(trained["seed"])
    data_seed = int(trained.get("data_seed", seed))
    return Training(
        encoder=trained["model"],
        base=base,
        recipe={k: v for k, v in trained.items() if k not in (*_NOT_RECIPE, *_SETTING)},
        alpha=alpha_text(trained["alpha"]),
        seed=str(seed) if seed == data_seed else f"{seed}/{data_seed}",
    )


def probed(body: Record, corpus: str) -> Iterator[tuple[str, Record]]:
    """(hash of how it was probed, summary) of what was probed, but for a limited gallery."""
    if body["limit"] is not None or body["corpus_fingerprint"] != corpus:
        return
    how = digest([body.get(key) for key in ("contents", "settings", "dtype", "seeds")])[:12]
    for row in body["summary"]:
        if row["top1"]["mean"] is not None:
            yield how, row
