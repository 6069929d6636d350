"""Features of texts, as the harness's retrieval tasks ask for them and get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from style_overlap.encoder import LOGITS, Encoder, Feature
from style_overlap.errors import UsageError
from style_overlap.probe.summary import feature_name
from style_overlap.questions import TextRequest

FEATURES = {"h": Feature(), "last": Feature("last")}
"""What can be asked for: the head's input, and the body's last layer.

Of that the first token is taken, or the last one where each token sees only those before it."""


@dataclass(frozen=True, eq=False, repr=False)
class Embedding:
    """Features of one text.

    Attributes:
        vectors: by the feature's full name, ``h``, ``last/cls`` or ``last/last``, shape (d,).
        dtype: number format that they were computed in.
    """

    vectors: Mapping[str, npt.NDArray[np.float32]]
    dtype: str

    def __repr__(self) -> str:
        """Names and sizes: the harness logs this of every text, and vectors would fill its logs."""
        sizes = ", ".join(f"{name}: {len(vector)}" for name, vector in self.vectors.items())
        return f"Embedding({sizes}, {self.dtype})"


def embeddings(encoder: Encoder, requests: Sequence[TextRequest]) -> list[Embedding]:
    """Features of the requests' texts, in their order; each text is passed once.

    Raises:
        UsageError: a feature that is not one of ``FEATURES``.
    """
    features: dict[str, Any] = {}
    for name in dict.fromkeys(name for request in requests for name in request.features):
        if name not in FEATURES:
            raise UsageError(f"there is no feature {name!r}: expected {' or '.join(FEATURES)}")
        features[name] = encoder.settled(FEATURES[name])
    texts = list(dict.fromkeys(request.text for request in requests))
    # Logits come at no cost, and classification tasks of the same run will ask for them.
    found = encoder.forward(texts, [LOGITS, *features.values()])
    row = {text: number for number, text in enumerate(texts)}
    dtype = str(encoder.dtype).removeprefix("torch.")
    return [
        Embedding(
            {
                feature_name(features[name]): found[features[name]][row[request.text]]
                for name in request.features
            },
            dtype,
        )
        for request in requests
    ]
