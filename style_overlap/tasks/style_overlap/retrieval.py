"""Content retrieval as a harness task: how much content do a classifier's features hold?

Its documents are the held-out contents, one request for each of their texts. The harness embeds
them, and the texts of the contents that train the projectors, which belong to no document: a
``--limit`` shrinks the gallery and leaves the projectors what they are. When all features are
there, the first metric trains the projectors, and the others read off what was found.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance

from style_overlap.embedding import FEATURES, Embedding
from style_overlap.errors import UsageError
from style_overlap.probe.projectors import Settings
from style_overlap.probe.run import probe_vectors
from style_overlap.probe.summary import report
from style_overlap.tasks.style_overlap.gallery import RetrievalOptions, prepare
from style_overlap.tasks.style_overlap.task import CorpusTask, refuse_other_data

EMBED = "embed"
"""Type of the requests, and the model's method that answers them."""

_HIGHER_IS_BETTER = {"top1": True, "top1_cls": True, "recall_at_5": True, "median_rank": False}
METRICS = (*_HIGHER_IS_BETTER, "chance", "n", "limited")


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """What one document brings to the score.

    Attributes:
        row: the document's content, a row of the corpus.
        texts: features by content and version: the document's own, and in one document of a
            process those that the process has embedded for the projectors.
    """

    row: int
    texts: dict[tuple[int, str], Embedding] = field(default_factory=dict)

    def __repr__(self) -> str:
        """How much it is: the harness logs this of every document."""
        return f"Found({len(self.texts)} texts)"


class RetrievalTask(CorpusTask):
    """Content retrieval between the versions of one set of pairs.

    ``dataset_kwargs`` holds the task's identity: ``set``, and ``k`` for seen pairs; ``metadata``
    what a user may override (:class:`RetrievalOptions`). After scoring, ``metadata`` also holds
    all that was found, as ``retrieval``: every pair, mean and sd over seeds, intervals.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        # After the check of the configured type; padding for several processes goes by this one.
        self.OUTPUT_TYPE = EMBED

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """Choose pairs, splits and documents."""
        metadata = self.config.metadata or {}
        identity = dataset_kwargs or {}
        self.options = RetrievalOptions.from_metadata(metadata)
        self.gallery = prepare(self.options, identity["set"], identity.get("k"))
        provenance = {
            **asdict(self.options),
            "corpus_fingerprint": self.gallery.corpus.fingerprint,
            "pairs": [list(pair) for pair in self.gallery.pairs],
            "styles": self.gallery.styles,
        }
        del provenance["assignment"]  # of no effect: all contents are in all versions
        refuse_other_data(metadata, provenance)
        self.config.metadata = {**metadata, **provenance}
        self.dataset = {"test": self.gallery.documents()}

    def build_all_requests(
        self,
        *,
        limit: int | None = None,
        samples: list[int] | None = None,
        rank: int = 0,
        world_size: int = 1,
        **_: Any,
    ) -> None:
        """Build this process's requests: its documents' texts, and its share of all others.

        They cost nothing to build, so a request cache is neither read nor written.

        Raises:
            UsageError: the model embeds nothing, or there are more processes than documents.
        """
        _refuse_model_without(EMBED)
        total = len(samples) if samples else min(limit or len(self.eval_docs), len(self.eval_docs))
        if total < world_size:
            raise UsageError(
                f"{world_size} processes share {total} documents of {self.config.task}: give "
                f"--limit {world_size} at least, or use fewer processes"
            )
        texts = self._texts()
        self._scored: tuple[list[Found], dict[str, Any]] | None = None
        self._instances = [
            request
            for number, doc in self.doc_iterator(
                rank=rank, limit=limit, samples=samples, world_size=world_size
            )
            for request in self._requests(doc, number, texts)
        ]
        # Of no document: it would have to be logged with one.
        self._others = [
            request
            for doc in self.gallery.documents(self.gallery.fitting[rank::world_size])
            for request in self._requests(doc, None, texts)
        ]
        self._instances += self._others

    def construct_requests(self, doc: dict[str, Any], ctx: str, **_: Any) -> list[Instance]:
        """The requests of one document: one a version."""
        return self._requests(doc, None, self._texts())

    def _texts(self) -> dict[str, list[str]]:
        return {version: self.gallery.corpus.texts(version) for version in self.gallery.versions}

    def _requests(
        self, doc: dict[str, Any], number: int | None, texts: dict[str, list[str]]
    ) -> list[Instance]:
        return [
            Instance(
                request_type=EMBED,
                doc=doc,
                arguments=(texts[version][doc["row"]], version, tuple(FEATURES)),
                idx=place,
                metadata=(self.config.task, number, 1),
            )
            for place, version in enumerate(doc["versions"])
        ]

    def process_results(
        self, doc: dict[str, Any], results: Sequence[Embedding]
    ) -> dict[str, Found | None]:
        """Features of one document under the name of every metric; they are scored together."""
        if "bypass" in self._metric_fn_list:
            return {"bypass": None}
        found = Found(doc["row"])
        for version, embedding in zip(doc["versions"], results, strict=True):
            found.texts[doc["row"], version] = embedding
        others, self._others = self._others, []
        for request in others:
            found.texts[request.doc["row"], request.args[1]] = request.resps[0]
        return dict.fromkeys(METRICS, found)

    def aggregation(self) -> dict[str, Callable[[list[Found]], Any]]:
        """Every metric reads its figure off one scoring."""
        if "bypass" in self._metric_fn_list:
            return super().aggregation()
        return {name: partial(self._figure, name) for name in METRICS}

    def higher_is_better(self) -> dict[str, bool]:
        """Of the metrics that are better one way; chance and n are not."""
        if "bypass" in self._metric_fn_list:
            return super().higher_is_better()
        return dict(_HIGHER_IS_BETTER)

    def _figure(self, name: str, items: list[Found]) -> float | int | None:
        # Processes hand over each metric's items in a list of its own, but the same items.
        if self._scored is None or not _same(self._scored[0], items):
            self._scored = (items, self._score(items))
        return self._scored[1][name]

    def _score(self, items: list[Found]) -> dict[str, float | int | None]:
        """Train projectors, retrieve, and leave all that was found in the metadata."""
        texts = {key: embedding for item in items for key, embedding in item.texts.items()}
        found = sorted({item.row for item in items})
        limited = len(found) < len(self.eval_docs)
        splits = self.gallery.limited_to(found)
        rows = np.flatnonzero(splits >= 0)
        settings, seeds = Settings(), list(range(self.options.probe_seeds))
        names = list(next(iter(texts.values())).vectors)  # h, then the body's last layer
        results = {
            name: probe_vectors(
                {
                    version: np.stack([texts[row, version].vectors[name] for row in rows.tolist()])
                    for version in self.gallery.versions
                },
                self.gallery.corpus.groups[rows],
                splits[rows],
                self.gallery.pairs,
                seeds=seeds,
                settings=settings,
            )
            for name in names
        }
        reports = {
            name: report(of, source="checkpoint", features=name, chosen=self.gallery.chosen)
            for name, of in results.items()
        }
        self.config.metadata = {
            **(self.config.metadata or {}),
            "limited": limited,
            "retrieval": {
                "corpus_fingerprint": self.gallery.corpus.fingerprint,
                "data_seed": self.options.data_seed,
                "contents": self.options.probe_contents,
                "limit": len(found) if limited else None,
                "seeds": seeds,
                "settings": asdict(settings),
                "dtype": next(iter(texts.values())).dtype,
                "rows": [row for rows_of, _ in reports.values() for row in rows_of],
                "summary": [summary for _, summary in reports.values()],
            },
        }
        h, cls = (reports[name][1] for name in names)
        return {
            "top1": h["top1"]["mean"],
            "top1_cls": cls["top1"]["mean"],
            "recall_at_5": h["recall_at_5"],
            "median_rank": h["median_rank"],
            "chance": h["chance"],
            "n": h["n"],
            "limited": int(limited),
        }


def _same(one: list[Found], other: list[Found]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _refuse_model_without(method: str) -> None:
    """Say that a model cannot do this before it has computed anything.

    The harness shows a task no model, and would find out when all other requests of the run are
    answered, maybe hours later. So the model is looked up where the harness builds requests; if it
    is not there, the harness says it in its own words and time.
    """
    frame = inspect.currentframe()
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("lm_eval."):
        frame = frame.f_back
    lm = frame.f_locals.get("lm") if frame is not None else None
    if lm is not None and not hasattr(lm, method):
        raise UsageError(
            f"{type(lm).__name__} gives no features of texts: run content_retrieval_* with "
            "--model style-encoder and a fine-tuned checkpoint"
        )
