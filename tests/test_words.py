"""Numbers of words: many texts at once give what each gives alone."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from style_overlap.corpus.words import Vocabulary, split_words, word_ids

texts = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    "aAİ', -\t\n\x1c\x85\u2003\u200b"
)


@given(st.lists(texts))
@example(["", "In the  beginning,", " \n", "the END"])
def test_words_are_numbered_in_order_of_first_use(texts):
    vocabulary = Vocabulary()
    words, starts = word_ids(texts, vocabulary)
    assert starts[0] == 0
    names = list(vocabulary)
    found = [[names[number] for number in words[start:end]] for start, end in pairwise(starts)]
    assert found == [split_words(text) for text in texts]
    assert names == list(dict.fromkeys(word for text in found for word in text))
