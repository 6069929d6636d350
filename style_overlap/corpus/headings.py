"""Words that stand beside a verse in some editions of the Bible and are no part of it.

Some packages print headings inside of verses: psalm numbers and titles at the end of the
psalm before, the letters of acrostic poems, the speakers of the Song of Songs. Psalm titles are a
case of their own: some versions carry them in verse 1 with nothing to tell them from the verse.
"""

from __future__ import annotations

import re

from style_overlap.corpus.references import split

SONG, PSALMS, PROVERBS, LAMENTATIONS, JOB = 22, 19, 20, 25, 18

UNTITLED_PSALMS = frozenset(
    {1, 2, 10, 33, 43, 71, 91, 99}
    | set(range(93, 98))
    | set(range(104, 108))
    | set(range(111, 120))
    | set(range(135, 138))
    | set(range(146, 151))
)
"""The 34 psalms that begin without a title; in all others verse 1 is left out for every version."""

PLACEHOLDERS = frozenset(
    {
        "Not available",
        "dummy verses inserted by amos",
        "empty verses content detected by amos",
    }
)
"""What DARBY and WEB have in the place of verses that they leave out."""

_LETTERS = (
    "ALEPH BETH BEIT BET GIMEL DALETH DALED DALET HEY HE WAW VAV VAU ZAYIN ZAIN CHETH CHET HETH HET"
    " TETH TET YOD YUD JOD KAPH KAF CAPH LAMED MEM NUN SAMEKH SAMECH AYIN AIN PEY PE TZADDI TZADI"
    " TZADE KOPH QOPH KUF RESH SCHIN SHIN SIN TAV TAU"
)
_LETTER = rf"(?:{'|'.join(sorted(_LETTERS.split(), key=len, reverse=True))})"
# The letter may be glued to the words around it: "blamelessWho", "afraidAYINuntil", "LAMEDWhy".
_ACROSTIC = re.compile(
    rf"(?<![A-Z])(?:SIN (?:AND|and) SHIN|{_LETTER})\.?(?=[A-Z][a-z]|[AIO]\b|[^A-Za-z]|[a-z]|$)"
)
_PSALM = re.compile(r"\s*(?:BOOK [IV]+)?\s*(?:Psalm \d+\b.*)?\Z", re.DOTALL)
_SPEAKER = re.compile(r"(?<![A-Za-z])(?:Beloved|Lover|Friends)(?=[A-Z]|\s|\Z)")
_NUMBER = re.compile(r"\A\d+(?=[A-Z])")


def strip_headings(verse: int, text: str) -> str:
    """The text of one verse without headings of the edition.

    Args:
        verse: its number.
        text: the verse as the package gives it, not yet cleaned.

    Returns:
        The verse; empty where the edition leaves it out.
    """
    book = split(verse)[0]
    if text.strip() in PLACEHOLDERS:
        return ""
    if text[:1].isdigit():
        text = _NUMBER.sub("", text)
    if book in (JOB, PSALMS):  # Psalm 1 is announced at the end of Job
        text = _PSALM.sub("", text)
    if book in (PSALMS, PROVERBS, LAMENTATIONS):
        text = _ACROSTIC.sub(" ", text)
    if book == SONG:
        text = _SPEAKER.sub(" ", text)
    return text


def is_titled_psalm_start(verse: int) -> bool:
    """Whether the verse is the first of a psalm that has a title."""
    book, chapter, number = split(verse)
    return book == PSALMS and number == 1 and chapter not in UNTITLED_PSALMS
