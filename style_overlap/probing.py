"""Probe checkpoints and their controls: one record per checkpoint.

The record of a checkpoint holds its own rows and those of the controls that were asked for: the
encoder that it was fine-tuned from, the same architecture untrained, and a bag of words. Controls
that several checkpoints share are computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from style_overlap.checkpoints import HeadKind, is_classifier
from style_overlap.corpus import ParallelCorpus, load_corpus
from style_overlap.encoder import Encoder, Feature
from style_overlap.errors import UsageError
from style_overlap.model_folders import training_record, training_step
from style_overlap.probe import seen_pairs, unseen_pairs, untrained
from style_overlap.probe.gallery import Found, Gallery, Pair
from style_overlap.probe.options import ProbeOptions
from style_overlap.probe.run import check_versions
from style_overlap.probe.summary import feature_name
from style_overlap.results import SCHEMA, checkpoint_part, digest, save_record, versions
from style_overlap.trainers.dynamics import look, scored_splits


class Probing:
    """Probes checkpoint after checkpoint; what they share is loaded and computed once."""

    def __init__(self, options: ProbeOptions, **load: Any) -> None:
        """Probe by these options.

        Args:
            options: what and how.
            **load: options of :meth:`style_overlap.encoder.Encoder.load`, such as ``device``.
        """
        self.options, self.load = options, load
        self._corpora: dict[tuple[str, int], ParallelCorpus] = {}
        self._controls: dict[str, Found] = {}

    def run(self, spec: str) -> dict[str, Any]:
        """The record of one checkpoint.

        Args:
            spec: folder, hub id or ``package:NAME``: a classifier, an encoder, or a
                sentence-transformers folder.

        Raises:
            UsageError: a model or a version that is not there, features that the model has not,
                or a data seed that the checkpoint was not trained with.
        """
        options = self.options
        trained = training_record(spec)
        settings = trained.get("config", {})
        corpus = self._corpus(settings)
        data_seed = self._data_seed(spec, settings)
        encoder = self._encoder(spec)
        sets = self._sets(spec, encoder, corpus)
        check_versions(corpus, [pair for pairs in sets.values() for pair in pairs])
        wants = options.wants(encoder)
        gallery = Gallery(
            corpus,
            sets,
            data_seed=data_seed,
            contents=options.contents,
            limit=options.limit,
            seeds=range(options.seeds),
            settings=options.settings,
        )
        notes: list[str] = []
        max_length = encoder.max_length
        read = [[feature_name(want) for want in wants], max_length]
        # First, since texts may have no words, which is seen at once.
        bow = (
            [self._control(["bow", gallery.identity], gallery.bag_of_words)] if options.bow else []
        )
        found, dynamics = _look(spec, trained, encoder, gallery, wants)
        parts = [found]
        if options.base:
            parts.append(self._base(spec, settings, wants, max_length, gallery, notes))
        if options.untrained:
            parts.append(
                self._control(
                    ["untrained", settings.get("model", spec), *read, gallery.identity],
                    lambda: gallery.encoder("untrained", untrained(encoder), wants),
                )
            )
        parts += bow
        rows, summary = ([row for part in parts for row in part[side]] for side in (0, 1))
        texts = {version: corpus.texts(version) for version in gallery.versions}
        return {
            "schema": SCHEMA,
            "kind": "probe",
            "checkpoint": checkpoint_part(spec, trained),
            "model": {
                "labels": list(encoder.labels),
                "model_fingerprint": encoder.model_fingerprint,
                "max_length": max_length,
                "truncated": {
                    version: int(encoder.truncated([column[row] for row in gallery.rows]).sum())
                    for version, column in texts.items()
                },
            },
            "config": {"corpus": corpus.settings, "layers": [feature_name(w) for w in wants]},
            "corpus_fingerprint": corpus.fingerprint,
            "data_seed": data_seed,
            "contents": options.contents,
            "limit": options.limit,
            "seeds": list(range(options.seeds)),
            "settings": asdict(options.settings),
            "dtype": str(encoder.dtype).removeprefix("torch."),
            "rows": rows,
            "summary": summary,
            "dynamics": dynamics,
            "notes": notes,
            "versions": versions(),
        }

    def _corpus(self, settings: dict[str, Any]) -> ParallelCorpus:
        spec = self.options.corpus or settings.get("corpus") or "bible"
        verses = self.options.chunk_verses or settings.get("chunk_verses") or 5
        key = (spec, verses)
        if key not in self._corpora:
            self._corpora[key] = load_corpus(spec, chunk_verses=verses)
        return self._corpora[key]

    def _data_seed(self, spec: str, settings: dict[str, Any]) -> int:
        """The checkpoint's own: other splits would test projectors on what it was trained on."""
        own, asked = settings.get("data_seed"), self.options.data_seed
        if own is not None and asked is not None and own != asked:
            raise UsageError(
                f"{spec} was fine-tuned with data seed {own}, so some of the contents held out by "
                f"data seed {asked} are its training contents: leave out --data-seed"
            )
        return int(own if own is not None else asked or 0)

    def _encoder(self, spec: str) -> Encoder:
        if is_classifier(spec):
            return Encoder.load(spec, **self.load)
        return Encoder.load(
            spec, head="untuned" if "h" in self.options.layers else False, **self.load
        )

    def _sets(self, spec: str, encoder: Encoder, corpus: ParallelCorpus) -> dict[str, list[Pair]]:
        if self.options.pair:
            return {"chosen": [self.options.pair]}
        labels, k = list(encoder.labels), self.options.k
        known = set(corpus.styles) | set(corpus.reserved)
        if not set(labels) <= known or len(labels) < 2:
            labels = list(corpus.styles[: k or 2])
        elif k not in (None, len(labels)):
            raise UsageError(
                f"--k is {k}, and {spec} has {len(labels)} classes, {', '.join(labels)}, which are "
                "the versions that it has seen: leave out --k, or name other versions by --versions"
            )
        sets = {"seen": seen_pairs(labels)}
        if self.options.unseen:
            sets["unseen"] = unseen_pairs(corpus)
            if not sets["unseen"]:
                raise UsageError(
                    f"corpus {corpus.name!r} reserves no two versions: leave out --unseen, or name "
                    "two by --versions"
                )
        return sets

    def _base(
        self,
        spec: str,
        settings: dict[str, Any],
        wants: list[Feature],
        max_length: int | None,
        gallery: Gallery,
        notes: list[str],
    ) -> Found:
        model = settings.get("model")
        if model is None:
            raise UsageError(
                f"--base: nothing in {spec} says what it was fine-tuned from; give that encoder as "
                "one more checkpoint instead"
            )

        def probed() -> Found:
            load = {**self.load, "max_length": max_length}
            head: HeadKind = "untuned" if Feature() in wants else False
            try:
                encoder = Encoder.load(model, head=head, **load)
            except UsageError as error:
                if not head or "lacks the weights" not in str(error):
                    raise
                encoder = Encoder.load(model, head=False, **load)
            known = [want for want in wants if want != Feature() or encoder.labels]
            return gallery.encoder("base", encoder, known)

        names = [feature_name(want) for want in wants]
        found = self._control(["base", model, names, max_length, gallery.identity], probed)
        if Feature() in wants and not any(row["features"] == "h" for row in found[1]):
            notes.append(f"{model} has no h before fine-tuning: what feeds the head is new")
        return found

    def _control(self, identity: list[Any], probed: Callable[[], Found]) -> Found:
        """What was found of a control, which checkpoints of one identity share."""
        key = digest(identity)
        if key not in self._controls:
            self._controls[key] = probed()
        return self._controls[key]


def _look(
    spec: str,
    trained: dict[str, Any],
    encoder: Encoder,
    gallery: Gallery,
    wants: list[Feature],
) -> tuple[Found, dict[str, Any] | None]:
    """What the probe of a checkpoint found, and its line of the dynamics of its training.

    There is none of a checkpoint from elsewhere than the middle of a training of ours, nor on
    another corpus than that of the training. It has no loss: that is a mean since the look before.
    """
    step, data = training_step(spec), trained.get("data") or {}
    if step is None or data.get("corpus_fingerprint") != gallery.corpus.fingerprint:
        return gallery.encoder("checkpoint", encoder, wants), None
    found, line = look(encoder, gallery, wants, scored_splits(gallery.corpus, trained["config"]))
    return found, {"step": step[0], "epoch": step[1], **line}


def save(record: dict[str, Any], folder: Path) -> Path:
    """Write a record: its name is a hash of what was probed and how."""
    keys = ("corpus_fingerprint", "data_seed", "contents", "limit", "seeds", "settings", "dtype")
    sources = [[row["source"], row["features"], row["set"]] for row in record["summary"]]
    identity = [record["model"], {key: record[key] for key in keys}, sources]
    return save_record(record, folder, identity)
