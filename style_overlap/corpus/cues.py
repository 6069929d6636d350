"""What may tell styles apart besides style: cues, each as features that hold nothing else.

A cue turns texts into the input of a linear classifier: ``typography`` keeps punctuation and white
space and no letter, ``length`` two counts, ``function words`` and ``names`` some words and no
others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import scipy.sparse as sp

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_RUN = re.compile(r"\w+")
_ENDS = frozenset(".!?:\"'“”‘’(\n")
_GRAMS = (1, 2, 3)

_ENGLISH_FUNCTION_WORDS = """
a about above after again against all also although always am among an and another any are art
as at away be because been before behind being below beneath beside between beyond both but by
can cannot could dare did didst do does doest doeth done dost doth down during each either else
even ever every except few for from further had hadst has hast hath have having he hence her
here hereby hers herself him himself his hither how however i if in indeed into is it its itself
least less lest let many may me mightest might mine more moreover most much must my myself nay
near neither never nevertheless no none nor not nothing now o of off oft often on once one only
onto or other others ought our ours ourselves out over own past perhaps rather same save shall
shalt she should shouldest since so some such than that the thee their theirs them themselves
then thence there thereby therefore therein thereof thereto these they thine this thither those
thou though through throughout thus thy thyself till to together too toward towards under unless
until unto up upon us very was wast we were wert what whatever when whence where whereby
wherefore wherein whereof whether which while whither who whoever whom whose why will wilt with
within without would wouldest ye yea yes yet you your yours yourself yourselves n't don't
doesn't didn't can't couldn't won't wouldn't shouldn't isn't aren't wasn't weren't i'm i'll i'd
i've you're you'll you'd you've he's she's it's we're we'll we've they're they'll they've that's
there's what's let's just got gonna
"""

FUNCTION_WORDS = frozenset(_ENGLISH_FUNCTION_WORDS.split())
"""Function words of English, old and new."""

_ENGLISH = 0.2  # a smaller share of these than this, and the texts are in another language
_FREQUENT = 100  # words that stand in for function words there
_NAME = 0.5  # share of its uses inside a sentence in which a name is written with a capital
_FEWEST = 2  # uses from which a word's spelling can be judged


@dataclass(frozen=True)
class Cue:
    """One cue.

    Attributes:
        name: what it is called in tables.
        says: what it holds, in words.
        prepare: learns from the texts of all styles together (never from labels) how to turn texts
            into items; a text's features are the frequencies of its items.
    """

    name: str
    says: str
    prepare: Callable[[Sequence[str]], Callable[[str], list[str]]]


def _typography(texts: Sequence[str]) -> Callable[[str], list[str]]:
    def items(text: str) -> list[str]:
        marks = _RUN.sub("w", text)
        return [marks[i : i + n] for n in _GRAMS for i in range(len(marks) - n + 1)]

    return items


def _function_words(texts: Sequence[str]) -> Callable[[str], list[str]]:
    counts = Counter(word for text in texts for word in words(text))
    total = sum(counts.values())
    keep: Iterable[str] = FUNCTION_WORDS
    if sum(counts[word] for word in FUNCTION_WORDS) < _ENGLISH * total:
        named = names(texts)
        keep = [word for word, _ in counts.most_common() if word not in named][:_FREQUENT]
    return _only(frozenset(keep))


def _names(texts: Sequence[str]) -> Callable[[str], list[str]]:
    return _only(names(texts))


def _all_words(texts: Sequence[str]) -> Callable[[str], list[str]]:
    return words


def _only(keep: frozenset[str]) -> Callable[[str], list[str]]:
    return lambda text: [word for word in words(text) if word in keep]


def words(text: str) -> list[str]:
    """Lower-cased words, apostrophes inside of them kept."""
    return _WORD.findall(text.lower())


def names(texts: Iterable[str]) -> frozenset[str]:
    """Words that are mostly written with a capital inside a sentence: names of persons and gods.

    In a language that capitalises every noun these are all nouns.
    """
    capital: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for text in texts:
        for match in _WORD.finditer(text):
            word = match[0]
            before = text[: match.start()].rstrip(" ")[-1:]
            if not before or before in _ENDS:
                continue  # capitals at the start of a sentence say nothing
            every[word.lower()] += 1
            capital[word.lower()] += word[0].isupper()
    return frozenset(
        word
        for word, count in capital.items()
        if count >= _FEWEST and count > _NAME * every[word] and word not in FUNCTION_WORDS
    )


LENGTH = "length"

CUES = (
    Cue("typography", "punctuation and white space, no letters", _typography),
    Cue(LENGTH, "number of words and of characters", lambda texts: words),
    Cue("function words", "the, shall, thee ...", _function_words),
    Cue("names", "words written with a capital inside a sentence", _names),
    Cue("all words", "every word, without order", _all_words),
)
"""The cues of the audit, in the order of its table."""


def features(cue: Cue, texts: Sequence[str]) -> sp.csr_matrix | npt.NDArray[np.float64]:
    """Features of all texts, shape (texts, items).

    TF-IDF vectors of unit length for items, so that only ``length`` knows how long a text is.
    Document frequencies are taken of all texts given, labels are not looked at.
    """
    if cue.name == LENGTH:
        counts = np.array([[len(words(text)), len(text)] for text in texts], dtype=np.float64)
        logs = np.log1p(counts)
        spread = logs.std(axis=0)
        return np.asarray((logs - logs.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer: Any = TfidfVectorizer(analyzer=cue.prepare(texts), dtype=np.float64)
    try:
        return vectorizer.fit_transform(texts)
    except ValueError:  # no text has any item: nothing to tell styles apart by
        return np.zeros((len(texts), 1))
