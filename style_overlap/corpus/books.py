"""Books of the Bible by number, title and the codes that verse archives use."""

from __future__ import annotations

import re

_TABLE = """
GEN Genesis|EXO Exodus|LEV Leviticus|NUM Numbers|DEU Deuteronomy|JOS Joshua|JDG Judges|RUT Ruth
1SA 1 Samuel|2SA 2 Samuel|1KI 1 Kings|2KI 2 Kings|1CH 1 Chronicles|2CH 2 Chronicles|EZR Ezra
NEH Nehemiah|EST Esther|JOB Job|PSA Psalms|PRO Proverbs|ECC Ecclesiastes|SNG Song of Songs
ISA Isaiah|JER Jeremiah|LAM Lamentations|EZK Ezekiel|DAN Daniel|HOS Hosea|JOL Joel|AMO Amos
OBA Obadiah|JON Jonah|MIC Micah|NAM Nahum|HAB Habakkuk|ZEP Zephaniah|HAG Haggai|ZEC Zechariah
MAL Malachi|MAT Matthew|MRK Mark|LUK Luke|JHN John|ACT Acts|ROM Romans|1CO 1 Corinthians
2CO 2 Corinthians|GAL Galatians|EPH Ephesians|PHP Philippians|COL Colossians|1TH 1 Thessalonians
2TH 2 Thessalonians|1TI 1 Timothy|2TI 2 Timothy|TIT Titus|PHM Philemon|HEB Hebrews|JAS James
1PE 1 Peter|2PE 2 Peter|1JN 1 John|2JN 2 John|3JN 3 John|JUD Jude|REV Revelation|1ES 1 Esdras
TOB Tobit|WIS Wisdom of Solomon|SIR Ecclesiasticus|1MA 1 Maccabees|2MA 2 Maccabees|JDT Judith
ESG Esther Greek|BAR Baruch|LJE Letter of Jeremiah|S3Y Song of the Three Young Men|SUS Susanna
BEL Bel and the Dragon|3MA 3 Maccabees|4MA 4 Maccabees|2ES 2 Esdras|MAN Prayer of Manasseh
PS2 Psalm 151|ODA Odes|PSS Psalms of Solomon|JSA Joshua A|JDB Judges B|TBS Tobit S|SST Susanna Th
DNT Daniel Th|BLT Bel Th|EZA Apocalypse of Ezra|5EZ 5 Ezra|6EZ 6 Ezra|DAG Daniel Greek
PS3 Psalms 152-155|2BA 2 Baruch|LBA Letter of Baruch|JUB Jubilees|ENO Enoch|1MQ 1 Meqabyan
2MQ 2 Meqabyan|3MQ 3 Meqabyan|REP Reproof|4BA 4 Baruch|LAO Laodiceans
"""

_ENTRIES = [entry.split(" ", 1) for entry in _TABLE.strip().replace("\n", "|").split("|")]

TITLES = {number: title for number, (_, title) in enumerate(_ENTRIES, 1)}
"""Title by number; 1 to 72 are pythonbible's numbers and titles."""

CODES = {code: number for number, (code, _) in enumerate(_ENTRIES, 1)}
"""Number by the three-letter code of USFM, which the eBible corpus uses."""

_ALIASES = {
    "songofsolomon": CODES["SNG"],
    "canticles": CODES["SNG"],
    "psalm": CODES["PSA"],
    "phillipians": CODES["PHP"],  # so it is spelled in Carlson's archive
    "apocalypse": CODES["REV"],
    "revelationofjohn": CODES["REV"],
    "sirach": CODES["SIR"],
    "wisdom": CODES["WIS"],
}
_BY_NAME = {
    **{re.sub(r"\W", "", title).lower(): number for number, title in TITLES.items()},
    **{code.lower(): number for code, number in CODES.items()},
    **_ALIASES,
}


def book_number(name: str) -> int | None:
    """Number of a book by its title or code, whatever the case and spaces; None if unknown."""
    return _BY_NAME.get(re.sub(r"[\W_]", "", name).lower())
