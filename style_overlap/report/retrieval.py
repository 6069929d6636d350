"""Content retrieval against alpha_train, from evaluation and probe records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from style_overlap import stats
from style_overlap.names import alpha_text, as_alpha
from style_overlap.report.matrix import Key, Training, key_of, recipe_of, unusable
from style_overlap.report.records import Records
from style_overlap.report.wording import span
from style_overlap.results import digest
from style_overlap.stats import MeanSd, Trend

CHECKPOINT = "checkpoint"
"""Source of a curve that depends on alpha_train; all others are controls."""

SOURCES = (CHECKPOINT, "base", "untrained", "bag of words")
SETS = ("seen", "unseen")
ROUNDING = 0.005
"""Top-1 may differ so much between two passes of the same texts: rounding, which batches that are
made up otherwise do otherwise, decides over a text or two."""

_GALLERY = ("contents", "limit", "seeds", "settings", "dtype")


@dataclass(frozen=True)
class Curve:
    """Top-1 of one kind of features on one set of pairs, against alpha_train.

    Attributes:
        key: of the matrix that the fine-tunings make.
        gallery: how it was probed: hash of the settings.
        source: ``checkpoint`` or a control.
        features: ``h``, ``last/cls``, ...
        set: ``seen`` or ``unseen`` pairs, or the two versions that were chosen.
        settings: how it was probed.
        recipe: how the fine-tunings were made.
        found: the summary of each fine-tuning.
    """

    key: Key
    gallery: str
    source: str
    features: str
    set: str
    settings: dict[str, Any] = field(compare=False)
    recipe: dict[str, Any] = field(compare=False)
    found: dict[Training, dict[str, Any]] = field(compare=False, default_factory=dict)

    @property
    def depends_on_alpha(self) -> bool:
        """Whether this is a fine-tuned checkpoint's, and no control's."""
        return self.source == CHECKPOINT

    @property
    def alphas(self) -> list[str]:
        """Overlaps of fine-tuning, ascending."""
        return sorted({alpha for alpha, _ in self.found}, key=as_alpha)

    @property
    def seeds(self) -> list[int]:
        """Seeds of fine-tuning."""
        return sorted({seed for _, seed in self.found})

    @property
    def n(self) -> str:
        """Contents in the gallery: one number, or the range over seeds.

        Each data seed draws a test split of its own, and groups of contents stay whole, so that
        splits differ by a few.
        """
        return gallery_sizes(self.found.values())

    @property
    def chance(self) -> float | None:
        """Top-1 of features that say nothing, about 1 / n; mean over fine-tunings."""
        return mean_chance(self.found.values())

    @property
    def pairs(self) -> int:
        """Pairs of versions in the mean."""
        return max((int(row.get("pairs") or 1) for row in self.found.values()), default=0)

    def at(self, alpha: str) -> MeanSd:
        """Top-1 over fine-tuning seeds."""
        return stats.mean_sd([self.top1(training) for training in self.found
                              if training[0] == alpha])  # fmt: skip

    def level(self) -> MeanSd:
        """Top-1 of a control, which does not depend on alpha_train: over seeds."""
        by_seed = {seed: self.top1((alpha, seed)) for alpha, seed in self.found}
        return stats.mean_sd(list(by_seed.values()))

    def top1(self, training: Training) -> float:
        """Top-1 after one fine-tuning, mean over pairs and probe seeds; NaN if undefined."""
        mean = self.found[training]["top1"].get("mean")
        return float("nan") if mean is None else float(mean)

    def trend(self) -> Trend:
        """Does it fall as alpha_train grows? Over the means of seeds: exact for up to 8."""
        means = [self.at(alpha).mean for alpha in self.alphas]
        values = [float("nan") if mean is None else mean for mean in means]
        return stats.trend([as_alpha(alpha) for alpha in self.alphas], values)

    def trend_within_seeds(self) -> Trend:
        """The same over single fine-tunings, those of one seed against each other.

        Means of few seeds may fall at each step by chance. Fine-tunings of one seed share their
        test split, so only their order can tell of the overlap.
        """
        points = sorted(self.found)
        return stats.trend(
            [as_alpha(alpha) for alpha, _ in points],
            [self.top1(training) for training in points],
            blocks=[seed for _, seed in points],
        )


def gallery_sizes(rows: Iterable[Mapping[str, Any]]) -> str:
    """Contents in the galleries of some summaries: one number, or from the least to the most."""
    return span(int(row["n"]) for row in rows)


def mean_chance(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """Top-1 of features that say nothing, mean over summaries; None where none knows it."""
    known = [row["chance"] for row in rows if row.get("chance")]
    return sum(known) / len(known) if known else None


def curves(records: Records) -> tuple[list[Curve], dict[str, str]]:
    """Every curve of some records, and the records that are in none, with the reason.

    Limited, degenerate and foreign fine-tunings are left out, as in matrices. Two records of one
    point that disagree: the later one is left out and named.
    """
    found: dict[Curve, Curve] = {}
    left_out: dict[str, str] = {}
    for path, record in sorted({**records.evaluations, **records.probes}.items()):
        parts = (
            [record] if record["kind"] == "probe" else list(record.get("retrieval", {}).values())
        )
        if not parts or record.get("dynamics"):  # these are points of a trajectory
            continue
        degenerate = record["checkpoint"].get("degenerate")
        if reason := unusable(record) or (degenerate and f"degenerate: {degenerate}"):
            if record["kind"] == "probe":  # of evaluations the matrices tell
                left_out[path] = reason
            continue
        for part in parts:
            for row in part["summary"]:
                if told := _add(found, record, part, row):
                    left_out[path] = told
    return sorted(found.values(), key=_order), left_out


def _add(
    found: dict[Curve, Curve], record: Mapping[str, Any], part: Mapping[str, Any], row: Any
) -> str | None:
    trained = record["checkpoint"]["config"]
    settings = {name: part.get(name) for name in _GALLERY}
    shape = (row["source"], row["features"], _set(row, part["rows"]))
    new = Curve(
        key_of(record), digest(settings), *shape, settings, recipe_of(trained, record["config"])
    )
    curve = found.setdefault(new, new)
    training = (alpha_text(trained["alpha"]), int(trained["seed"]))
    mine, theirs = (of["top1"].get("mean") for of in (row, curve.found.setdefault(training, row)))
    if mine == theirs or (None not in (mine, theirs) and abs(mine - theirs) <= ROUNDING):
        return None
    return (
        f"another record has alpha_train={training[0]}, seed={training[1]}, {row['features']} of "
        f"{row['source']} on {new.set} versions with another top-1"
    )


def _set(row: Mapping[str, Any], pairs: list[Any]) -> str:
    """The set of a summary: pairs that were chosen are told by their versions."""
    if row["set"] in SETS or not pairs:
        return str(row["set"])
    return f"{pairs[0]['a']}, {pairs[0]['b']}"


def _order(curve: Curve) -> tuple[Any, ...]:
    source = _place(SOURCES, curve.source)
    return (curve.key, curve.gallery, source, *order_of(curve.features, curve.set))


def order_of(features: str, chosen: str) -> tuple[Any, ...]:
    """What to sort features and sets of pairs by: h and the seen versions come first."""
    return features != "h", features, _place(SETS, chosen)


def _place(known: tuple[str, ...], name: str) -> tuple[int, str]:
    return (known.index(name) if name in known else len(known), name)
