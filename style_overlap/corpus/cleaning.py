"""One policy that takes the source's typography out of a text and leaves its words in.

Editions mark the same things in different ways: added words stand in square brackets, emphasis in
asterisks, speech in straight, curly or back-quotes or in none at all. A classifier that sees
those marks learns the file format instead of the style. So every version goes through ``clean``:

========================  =====================================================================
removed                   square and curly brackets, asterisks, daggers, pilcrows, quotation
                          marks, invisible characters, repeated and wrapped white space
made one                  dashes (``--`` with a space on either side), hyphens, apostrophes,
                          ellipses, ligatures, the spaces around punctuation
kept                      every letter and digit in order, capitals, accents, ``. , ; : ! ?``,
                          parentheses, apostrophes inside words and after a plural (``sons'``)
========================  =====================================================================

Punctuation stays because it is the translator's own; quotation marks go because half of the
default versions were printed without any.
"""

from __future__ import annotations

import re

_GLYPHS = str.maketrans(
    {
        **dict.fromkeys("`´‘’‚‛′ʼ", "'"),
        **dict.fromkeys('"“”„‟″«»‹›¶§', " "),
        **dict.fromkeys("[]{}*†‡\u00ad\u200b\u200c\u200d\u2060\ufeff", None),
        **dict.fromkeys("‐‑", "-"),
        **dict.fromkeys("—―", "--"),
        "…": "...",
        "æ": "ae",
        "Æ": "Ae",
        "œ": "oe",
        "Œ": "Oe",
        "ﬁ": "fi",
        "ﬂ": "fl",
    }
)

_GLYPH = re.compile(f"[{re.escape(''.join(map(chr, _GLYPHS)))}]")

# An apostrophe belongs to a word inside of it ("father's") and between a plural and the thing
# owned ("sons' wives"). Everywhere else the glyph is a quotation mark.
_QUOTE = re.compile(r"(?<!\w)'|(?<!s)'(?!\w)|(?<=s)'(?!\s*\w)")
_EN_DASH = re.compile(r"(?<=\w)–(?=\w)")
_BROKEN_HYPHEN = re.compile(r"(?<=\w)(?:- | -)(?=\w)")  # "half- [tribe]", "corner -[stone]"
_DASH = re.compile(r"\s*(?:--+|–|(?<![\w-])-(?!-)|-\Z)\s*")
_SPACE_BEFORE = re.compile(r" (?=[,.;:!?)])")
_STOPS = re.compile(r"\.{4,}")
_DOUBLE_STOP = re.compile(r"(?<!\.)\.\.(?!\.)")
# Lost line ends ("thanksgiving.I will") and lost spaces ("the LORD(for"); "3:16" is left alone.
_SPACE_LOST = re.compile(r"([,.;:!?)])(?=[^\W\d_])")
_SPACE_LOST_OPENING = re.compile(r"(?<=[\w,.;:!?])\((?=\w)")


def clean(text: str) -> str:
    """The text without its source's typography; cleaning twice changes nothing more.

    Letters and digits come out as they went in, except for ligatures, which are spelled out.
    """
    if _GLYPH.search(text):
        text = text.translate(_GLYPHS)
    if "'" in text:
        text = _QUOTE.sub(" ", text)
    text = " ".join(text.split())
    if "-" in text or "–" in text:
        text = _EN_DASH.sub("-", text)
        text = _BROKEN_HYPHEN.sub("-", text)
        text = " ".join(_DASH.sub(" -- ", text).split())
    text = _SPACE_BEFORE.sub("", text)
    if ".." in text:
        text = _STOPS.sub("...", text)
        text = _DOUBLE_STOP.sub(".", text)
    if _SPACE_LOST.search(text):
        text = _SPACE_LOST.sub(r"\1 ", text)
    if "(" in text:
        text = _SPACE_LOST_OPENING.sub(" (", text.replace("( ", "("))
    return text


def keep(text: str) -> str:
    """The text as it is, or nothing where ``clean`` would leave nothing of it."""
    text = text.strip()
    return text if clean(text) else ""
