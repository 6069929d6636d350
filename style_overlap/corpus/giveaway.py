"""Giveaway audit: how far can styles be told by what is neither style nor content?

For each cue (``cues``) a logistic regression is cross-validated over contents: a content is in one
fold with all its styles and its near-duplicates, so that no content that is tested was seen. All
styles have all contents, so content says nothing and chance is 1/k.

And the floor of the whole exercise: the cross-overlap matrix of TF-IDF and logistic regression on
the same samples that encoders get. An encoder that falls like a bag of words reads like one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from style_overlap.corpus.cleaning import clean
from style_overlap.corpus.cues import CUES, LENGTH, Cue, features
from style_overlap.corpus.parallel import ParallelCorpus
from style_overlap.corpus.specs import Spec
from style_overlap.errors import UsageError
from style_overlap.results import SCHEMA

FOLDS = 5
CONTENTS = 1000
"""Contents that the cues are judged on; of more, as many spread evenly."""

ARTEFACTS = ("typography", LENGTH)
"""Cues that are neither style nor content in any reading: traces of the source."""

NOTICEABLE = 0.1
"""Part of the way from chance to 1 from which a cue is worth a warning."""

FEW_TEXTS = 100
"""Fewer test texts than this make a matrix of noise: five points and more either way."""

RAW, USED = "raw", "cleaned"


@dataclass(frozen=True)
class CueScore:
    """How well one cue tells the styles apart.

    Attributes:
        accuracy: cross-validated, on contents unseen in training.
        stderr: its standard error over contents.
    """

    accuracy: float
    stderr: float


@dataclass(frozen=True)
class GiveawayReport:
    """The audit of one corpus.

    Attributes:
        corpus: its name.
        fingerprint: of the corpus.
        styles: the classes that were told apart.
        contents: contents that the cues were judged on.
        chance: 1/k.
        used: which state of the texts the corpus has, ``raw`` or ``cleaned``.
        scores: cue -> state -> score.
        floor: accuracies of TF-IDF and logistic regression by alpha_train, then alpha_eval.
        floor_texts: texts that these rest on, at least.
        verdict: sentences for people.
    """

    corpus: str
    fingerprint: str
    styles: tuple[str, ...]
    contents: int
    chance: float
    used: str
    scores: dict[str, dict[str, CueScore]]
    floor: dict[str, dict[str, float]]
    floor_texts: int
    verdict: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As its record."""
        return {"schema": SCHEMA, "kind": "giveaway", **asdict(self)}


def raw_of(spec: Spec, corpus: ParallelCorpus, chunk_verses: int) -> ParallelCorpus | None:
    """The corpus of a spec before cleaning; None if it is not cleaned.

    Args:
        spec: what the corpus was loaded from.
        corpus: the corpus.
        chunk_verses: consecutive verses in one content.
    """
    from style_overlap.corpus import load_corpus

    # the default corpus was cleaned before there was a setting for it
    if not corpus.settings.get("clean", True):
        return None
    return load_corpus(spec.but(clean="no").text, chunk_verses=chunk_verses)


def audit(
    corpus: ParallelCorpus, raw: ParallelCorpus | None, *, k: int | None = None, seed: int = 0
) -> GiveawayReport:
    """Audit a corpus.

    Args:
        corpus: as it is used.
        raw: the same without cleaning; None if ``corpus`` itself is not cleaned.
        k: number of classes, the first k; by default all of them, five at most.
        seed: data seed of the cross-overlap matrix.

    Raises:
        UsageError: too few contents to hold some out.
    """
    from style_overlap.corpus.floor import cross_overlap

    k = min(len(corpus.styles), 5) if k is None else k
    if not 2 <= k <= len(corpus.styles):
        raise UsageError(f"k is {k}: expected 2 to {len(corpus.styles)}")
    styles = corpus.styles[:k]
    if len(np.unique(corpus.groups)) < 2 * FOLDS:
        raise UsageError(
            f"{corpus.name} has {len(corpus)} contents: at least {2 * FOLDS} that are no "
            "near-duplicates are needed to hold some out"
        )
    states = _states(corpus, raw, styles)
    scores: dict[str, dict[str, CueScore]] = {
        cue.name: {
            state: score_cue(cue, texts, groups) for state, (texts, groups) in states.items()
        }
        for cue in CUES
    }
    used = RAW if raw is None else USED
    floor = cross_overlap(corpus, k, seed)
    return GiveawayReport(
        corpus=corpus.name,
        fingerprint=corpus.fingerprint,
        styles=styles,
        contents=len(states[used][1]),
        chance=1 / k,
        used=used,
        scores=scores,
        floor=floor.accuracy,
        floor_texts=floor.texts,
        verdict=judge(scores, used, k) + _few(floor.texts),
    )


def _states(
    corpus: ParallelCorpus, raw: ParallelCorpus | None, styles: Sequence[str]
) -> dict[str, tuple[list[list[str]], npt.NDArray[np.int64]]]:
    """Texts by style and groups of some contents, before and after cleaning."""
    if raw is None:
        rows = _thin(len(corpus))
        texts = [_take(corpus, style, rows) for style in styles]
        cleaned = [[clean(text) for text in column] for column in texts]
        return {RAW: (texts, corpus.groups[rows]), USED: (cleaned, corpus.groups[rows])}
    found = {}
    for state, source in ((RAW, raw), (USED, corpus)):
        rows = _thin(len(source))
        found[state] = ([_take(source, style, rows) for style in styles], source.groups[rows])
    return found


def _thin(n: int) -> npt.NDArray[np.int64]:
    return np.unique(np.linspace(0, n - 1, min(n, CONTENTS)).astype(np.int64))


def _take(corpus: ParallelCorpus, style: str, rows: npt.NDArray[np.int64]) -> list[str]:
    return list(corpus.table.select(rows)[style])


def score_cue(cue: Cue, texts: Sequence[Sequence[str]], groups: npt.NDArray[np.int64]) -> CueScore:
    """Cross-validate one cue.

    Args:
        cue: the cue.
        texts: texts of each style, the same contents in the same order, shape (k, n).
        groups: content groups, shape (n,); no group is cut by a fold.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    k, n = len(texts), len(groups)
    x = features(cue, [text for column in texts for text in column])
    style, group = np.repeat(np.arange(k), n), np.tile(groups, k)
    right = np.zeros(k * n)
    for train, test in GroupKFold(FOLDS).split(style, groups=group):
        model = LogisticRegression(max_iter=300).fit(x[train], style[train])
        right[test] = credit(model.decision_function(x[test]), style[test])
    per_content = right.reshape(k, n).mean(axis=0)  # the texts of a content are not independent
    stderr = float(per_content.std(ddof=1) / np.sqrt(n))
    return CueScore(accuracy=float(per_content.mean()), stderr=stderr)


def credit(scores: npt.NDArray[np.float64], gold: npt.NDArray[np.int64]) -> Any:
    """Credit of each example, ties shared: a text without items is a draw of all classes."""
    from style_overlap.scoring import tie_credit

    if scores.ndim == 1:  # two classes: one score, for the second
        scores = np.stack([-scores, scores], axis=1)
    return tie_credit(scores, gold)


def judge(scores: Mapping[str, Mapping[str, CueScore]], used: str, k: int) -> tuple[str, ...]:
    """The audit in sentences, warnings first."""
    chance, verdict = 1 / k, []
    for cue in ARTEFACTS:
        score = scores[cue][used]
        if _gain(score, chance) >= NOTICEABLE:
            more = ""
            if used == RAW and scores[cue][USED].accuracy < score.accuracy - 2 * score.stderr:
                more = f"; clean=yes brings it to {scores[cue][USED].accuracy:.0%}"
            verdict.append(
                f"Warning: {cue} alone tells the {k} styles apart at {score.accuracy:.0%} "
                f"(chance {chance:.0%}){more}. A classifier may read that and no style."
            )
    if not verdict:
        verdict.append(
            f"Neither {' nor '.join(ARTEFACTS)} gives the style away (chance {chance:.0%})."
        )
    for cue, what in (("names", "Names"), ("function words", "Function words")):
        score = scores[cue][used]
        if _gain(score, chance) >= NOTICEABLE:
            verdict.append(f"{what} alone reach {score.accuracy:.0%}.")
    words = scores["all words"][used]
    verdict.append(f"A bag of all words reaches {words.accuracy:.0%}: an encoder should do better.")
    return tuple(verdict)


def _few(texts: int) -> tuple[str, ...]:
    if texts >= FEW_TEXTS:
        return ()
    return (f"The matrix rests on {texts} test texts a cell: too few to read anything into it.",)


def _gain(score: CueScore, chance: float) -> float:
    """Part of the way from chance to 1 that is beyond doubt (two standard errors)."""
    return (score.accuracy - 2 * score.stderr - chance) / (1 - chance)
