"""The harness's ConfigurableTask, taught where its documents come from."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from lm_eval.api import samplers
from lm_eval.api.task import ConfigurableTask

from style_overlap.errors import UsageError
from style_overlap.model_folders import training_record
from style_overlap.overlap import SAMPLING
from style_overlap.results import digest
from style_overlap.tasks.style_overlap import docs


class CorpusTask(ConfigurableTask):
    """A task on a parallel corpus; ``class: !function`` in a base file names a kind of it."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        # The factory hands the class over with the configuration; TaskConfig has no such field.
        super().__init__(config={k: v for k, v in (config or {}).items() if k != "class"})

    def fewshot_docs(self) -> None:
        """None while the task is built: its thousands of training documents are rarely needed."""


class StyleTask(CorpusTask):
    """A k-way style classification task at one content overlap.

    ``dataset_kwargs`` holds the task's identity, k and alpha; ``metadata`` what a user may
    override (:class:`~style_overlap.tasks.style_overlap.docs.DataOptions`). After the documents
    are built, ``metadata`` also tells how: the realised overlap and the fingerprints reach the
    results file with the task's configuration.
    """

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """Build the documents of the three splits."""
        identity = dataset_kwargs or {}
        k, alpha = int(identity["k"]), str(identity["alpha"])
        options = docs.DataOptions.from_metadata(self.config.metadata or {})
        corpus, drawn = docs.draw(options, k, alpha)
        self.provenance = {
            "corpus": options.corpus,
            "chunk_verses": options.chunk_verses,
            "data_seed": options.data_seed,
            "assignment": options.assignment,
            "sampling": SAMPLING,
            "corpus_fingerprint": corpus.fingerprint,
            "data_fingerprint": drawn.fingerprint,
            "realised_alpha": drawn.realised,
            "contents_per_style": drawn.n,
            "shared_contents": drawn.n_shared,
            "styles": list(corpus.styles[:k]),
        }
        refuse_other_data(self.config.metadata or {}, self.provenance)
        self.config.metadata = {**(self.config.metadata or {}), **self.provenance}
        self.dataset = {name: docs.documents(corpus, drawn, name) for name in drawn.splits}

    @property
    def sampler(self) -> samplers.ContextSampler:
        """Draws few-shot examples from the training split, which it reads at the first draw."""
        if self._sampler is None:
            self._sampler = samplers.ContextSampler(list(self.training_docs()))
            self._sampler.set_rnd(self._fewshot_seed)
        return self._sampler

    _sampler: samplers.ContextSampler | None = None
    _fewshot_seed: int | None = None

    def set_fewshot_seed(self, seed: int | None = None) -> None:
        """Seed the draws of few-shot examples."""
        self.fewshot_rnd = random.Random(seed)
        self._fewshot_seed, self._sampler = seed, None

    def build_all_requests(self, *, tokenizer_name: str = "", **kwargs: Any) -> None:
        """Build requests; a request cache is told which data they were built from."""
        data = digest([self.provenance, self.VERSION, self._fewshot_seed])
        super().build_all_requests(tokenizer_name=f"{tokenizer_name}-{data[:16]}", **kwargs)

    def process_results(self, doc: dict[str, Any], results: Any) -> dict[str, Any]:
        """Metrics of one document; with ``--predict_only`` there are none."""
        if "bypass" in self._metric_fn_list:
            return {"bypass": None}
        return super().process_results(doc, results)


def refuse_other_data(metadata: dict[str, Any], task: dict[str, Any]) -> None:
    """Refuse to score a checkpoint of ours on data that it may have been trained on.

    Splits depend on the corpus and on the data seed: the test passages of one seed are training
    passages of another.

    Args:
        metadata: a task's; ``pretrained`` may be a checkpoint of ours.
        task: the options that the task's data depend on, and ``corpus_fingerprint``.

    Raises:
        UsageError: the checkpoint's record names other data, with the options to type.
    """
    checkpoint = str(metadata.get("pretrained", ""))
    if not Path(checkpoint).is_dir():
        return
    found = training_record(checkpoint)
    trained, texts = found.get("config", {}), found.get("data", {}).get("corpus_fingerprint")
    keys = set(docs.OPTIONS) & trained.keys() & task.keys()
    if texts == task["corpus_fingerprint"]:
        keys -= {"corpus", "chunk_verses"}  # one corpus by two paths
    if differing := {k: trained[k] for k in sorted(keys) if trained[k] != task[k]}:
        told = ", ".join(f"{k}={v}" for k, v in differing.items())
        raise UsageError(
            f"{checkpoint} was fine-tuned on other data ({told}), whose training passages may "
            f"be among this task's test passages: add --metadata '{json.dumps(differing)}'"
        )
