"""The arguments of ``--model style-encoder``: those it takes, and those the harness adds."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from style_overlap.errors import UsageError

MODEL_ARGS = (
    "pretrained",
    "dtype",
    "batch_size",
    "max_batch_size",
    "device",
    "max_length",
    "revision",
    "trust_remote_code",
)
"""What ``--model_args`` may name."""

HARNESS_ARGS = ("batch_size", "max_batch_size", "device")
"""What the harness passes from its own command line."""


def merged(given: Mapping[str, Any], harness: Mapping[str, Any]) -> dict[str, Any]:
    """``--model_args`` and the harness's own options; the former win.

    A batch size of 1 among the latter is the harness's default, not a wish, and read as auto.
    """
    options = {k: v for k, v in harness.items() if k in HARNESS_ARGS and v is not None}
    if str(options.get("batch_size")) == "1":
        options["batch_size"] = "auto"
    return {**options, **given}


def refuse_unknown(unknown: Iterable[str]) -> None:
    """Name arguments that the model does not take, with the likely ones.

    Raises:
        UsageError: there is one.
    """
    for name in unknown:
        near = difflib.get_close_matches(name, MODEL_ARGS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(
            f"--model_args has {name!r}, which style-encoder does not know: {hint}"
            f"It takes {', '.join(MODEL_ARGS)}; settings of the tasks go to --metadata"
        )
