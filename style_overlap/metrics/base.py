"""What the metrics have in common: tables in, nothing written to disk."""

from __future__ import annotations

import os
from typing import Any

import datasets
import evaluate
import numpy as np
import numpy.typing as npt

SCORES = """
Args:
    predictions: scores of the k classes for every example, shape (n, k): logits, probabilities
        or log-likelihoods, the higher the likelier.
    references: labels, shape (n,), from 0 to k - 1.
"""


class TableMetric(evaluate.Metric):
    """A metric of tables, one row an example.

    ``evaluate`` keeps the examples in an Arrow file below the home folder, locked by name. Here
    they stay in memory, so that processes do not meet in a file and a read-only home does no harm;
    only a metric that is shared out over processes (``num_process`` > 1) has to use files.
    """

    def __init__(self, *args: Any, num_process: int = 1, **options: Any) -> None:
        """Take the arguments of ``evaluate.Metric``; ``keep_in_memory`` follows ``num_process``."""
        options["keep_in_memory"] = num_process == 1
        self.keep_in_memory = num_process == 1
        super().__init__(*args, num_process=num_process, **options)

    def _build_data_dir(self) -> str:
        if not self.keep_in_memory:
            return super()._build_data_dir()
        return os.path.join(self._data_dir_root, self.name, self.config_name)

    def compute(
        self, *, predictions: Any = None, references: Any = None, **options: Any
    ) -> dict[str, float] | None:
        """The metric of these examples, or of those added before; see ``evaluate.Metric``."""
        if predictions is not None:
            predictions = table(predictions)
        return super().compute(predictions=predictions, references=references, **options)


def info(description: str, inputs: str = SCORES, references: Any = None) -> evaluate.MetricInfo:
    """Description and input types of a metric.

    Args:
        description: what it is.
        inputs: what it takes.
        references: type of one reference; by default a label.
    """
    return evaluate.MetricInfo(
        description=description,
        citation="",
        inputs_description=inputs,
        features=datasets.Features(
            {
                "predictions": datasets.Sequence(datasets.Value("float64")),
                "references": references or datasets.Value("int64"),
            }
        ),
    )


def arrays(
    predictions: Any, references: Any
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Scores of shape (n, k) and labels of shape (n,).

    Raises:
        ValueError: no example, rows of different lengths, or a label outside 0 to k - 1.
    """
    scores = table(predictions)
    labels = np.asarray(references, dtype=np.int64)
    if scores.ndim != 2 or not len(scores):
        raise ValueError(f"predictions have shape {scores.shape}: expected scores of shape (n, k)")
    if labels.min() < 0 or labels.max() >= scores.shape[1]:
        raise ValueError(
            f"references go from {labels.min()} to {labels.max()}: expected labels from 0 to "
            f"{scores.shape[1] - 1}, as there are {scores.shape[1]} scores for every example"
        )
    return scores, labels


def table(predictions: Any) -> npt.NDArray[np.float64]:
    """Rows of numbers, a tensor's too, as an array.

    Raises:
        ValueError: rows of different lengths.
    """
    if hasattr(predictions, "detach"):  # a tensor, of whatever type and wherever it lies
        predictions = predictions.detach().float().cpu().numpy()
    try:
        return np.asarray(predictions, dtype=np.float64)
    except ValueError:
        raise ValueError("predictions are no table: expected rows of one length") from None
