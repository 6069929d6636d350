"""A corpus at a glance."""

from __future__ import annotations

from typing import Any

import numpy as np

from style_overlap.corpus.parallel import ParallelCorpus
from style_overlap.corpus.specs import did_you_mean
from style_overlap.errors import UsageError

_LOOKED_AT = 5000  # contents whose words are counted; of more, as many spread evenly
_FIRST = 10  # ids of what was left out


def summarise(corpus: ParallelCorpus, content: str | None = None) -> dict[str, Any]:
    """Sizes, lengths, what was left out, and one content in all styles.

    Args:
        corpus: the corpus.
        content: id of the content to show; by default the one in the middle.

    Raises:
        UsageError: there is no such content.
    """
    n = len(corpus)
    row = n // 2
    if content is not None:
        ids = corpus.content_ids
        if content not in ids:
            near = did_you_mean(content, ids)
            raise UsageError(
                f"{corpus.name} has no content {content!r}{near}; ids look like {ids[n // 2]!r}"
            )
        row = ids.index(content)
    styles = (*corpus.styles, *corpus.reserved)
    rows = np.unique(np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(np.int64))
    looked_at = corpus.table.select(rows)
    words = {
        style: float(np.mean([len(text.split()) for text in looked_at[style]])) for style in styles
    }
    sizes = np.unique(corpus.groups, return_counts=True)[1]
    shown = corpus.table[row]
    return {
        "name": corpus.name,
        "styles": list(corpus.styles),
        "reserved": list(corpus.reserved),
        "contents": n,
        "per_style": {str(k): n // k for k in range(2, len(corpus.styles) + 1)},
        "near_duplicates": int(sizes[sizes > 1].sum()),
        "words": words,
        "fingerprint": corpus.fingerprint,
        "dropped": {reason: _entry(entry) for reason, entry in corpus.dropped.items()},
        "example": {"content_id": shown["content_id"], **{style: shown[style] for style in styles}},
    }


def _entry(entry: Any) -> Any:
    if isinstance(entry, dict) and "ids" in entry:
        return {**entry, "ids": entry["ids"][:_FIRST]}
    return entry
