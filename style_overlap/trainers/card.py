"""The model card of a checkpoint: what it is, what it was trained on, what it cannot do."""

from __future__ import annotations

from typing import Any

from huggingface_hub import EvalResult, ModelCardData
from jinja2 import Environment

from style_overlap.names import task_name

_CARD = """\
---
{{ metadata }}
---

# {{ k }} styles at content overlap {{ config.alpha }}

A classifier of {{ styles | join(", ") }}, fine-tuned by
[style-overlap](https://pypi.org/project/style-overlap/) from `{{ config.model }}` at a content
overlap of alpha = {{ config.alpha }}: 0 means that the content of a text gives its style away, 1
that it says nothing about it.

```python
from transformers import pipeline

classify = pipeline("text-classification", model="{{ place }}")
classify("And it came to pass")
```

## Data

Corpus `{{ config.corpus }}` (verses come in runs of {{ config.chunk_verses }}),
{{ config.assignment }} regions, data seed {{ config.data_seed }}: {{ data.sizes.train }} training,
{{ data.sizes.validation }} validation and {{ data.sizes.test }} test texts, disjoint by content.
Overlap measured in the training texts: {{ "%.3f" | format(data.realised_alpha.train) }}. A text is
a passage of one version of a parallel corpus, its label the version; the corpus' fingerprint is
`{{ data.corpus_fingerprint }}`.
{% if cut %}
Texts cut to {{ config.max_length }} tokens: {{ cut }}.
{% endif %}

## Training

Seed {{ config.seed }}, {{ steps }}; texts of at most {{ config.max_length or "all" }} tokens.
{% if arguments %}

{% for name, value in arguments %}
- `{{ name }}`: {{ value }}
{% endfor %}
{% endif %}

## Results at the overlap of the training

| split | accuracy | macro-F1 | ties |
|---|---|---|---|
{% for split in ("validation", "test") %}
{% set m = metrics[split] %}
| {{ split }} | {{ "%.3f" | format(m.accuracy) }} | {{ "%.3f" | format(m.macro_f1) }} \
| {{ "%.3f" | format(m.tie_rate) }} |
{% endfor %}

{% if degenerate %}
**Degenerate:** {{ degenerate }}.

{% endif %}
Accuracy here is no measure of style alone: at a low overlap a classifier may well have learned
which passages belong to which style. `style-overlap evaluate {{ place }}` scores it at every
overlap.

## Limits

- Fine-tuned on the texts above and nothing else. It always answers with one of its {{ k }} styles,
  for a text of any other kind too, and its scores are no probabilities that anyone has checked.
- Test texts come from the corpus that it was trained on: the figures say nothing about others.
{% if config.alpha != "1.0" %}
- Content and style went together in the training texts (alpha = {{ config.alpha }}): it may answer
  by topic.
{% endif %}
- The licence of `{{ config.model }}` applies to its weights.
"""

_TOLD = ("num_train_epochs", "learning_rate", "per_device_train_batch_size", "weight_decay",
         "warmup_steps", "lr_scheduler_type")  # fmt: skip


def model_card(record: dict[str, Any], place: str = "PATH") -> str:
    """Markdown of the README of a checkpoint, from its record.

    Args:
        record: the checkpoint's ``style_overlap.json``.
        place: where a reader finds it: a hub id, or a word that stands for a folder.
    """
    config, data, metrics = record["config"], record["data"], record["metrics"]
    dataset = task_name(config["k"], config["alpha"])
    metadata = ModelCardData(
        library_name="transformers",
        pipeline_tag="text-classification",
        tags=["style-overlap", "style-classification"],
        base_model=config["model"] if _is_hub_id(config["model"]) else None,
        model_name=f"{dataset}_seed{config['seed']}",
        eval_results=[
            EvalResult(
                task_type="text-classification",
                dataset_type=config["corpus"],
                dataset_name=dataset,
                dataset_config=f"k={config['k']}, alpha={config['alpha']}, "
                f"data seed {config['data_seed']}, {config['assignment']}",
                dataset_split="test",
                dataset_revision=data["corpus_fingerprint"][:12],
                metric_type=kind,
                metric_name=f"{title}, matched overlap",
                metric_value=round(metrics["test"][name], 4),
            )
            for kind, name, title in (
                ("accuracy", "accuracy", "Accuracy"),
                ("f1", "macro_f1", "Macro-F1"),
            )
        ],
    )
    cut = [f"{s} {n['count']} of {n['of']}" for s, n in record["truncated"].items() if n["count"]]
    chosen = config.get("arguments") or {}
    epochs, steps = metrics.get("epochs"), metrics.get("steps")
    template = Environment(trim_blocks=True, autoescape=False).from_string(_CARD)
    return template.render(
        metadata=metadata.to_yaml(),
        place=place,
        steps=f"{epochs:g} epochs, {steps} steps" if epochs else f"{steps} steps",
        arguments=[(name, chosen[name]) for name in _TOLD if name in chosen],
        k=config["k"],
        styles=data["styles"],
        config=config,
        data=data,
        metrics=metrics,
        cut=", ".join(cut),
        degenerate=record["degenerate"],
    )


def _is_hub_id(model: str) -> bool:
    return model.count("/") == 1 and not model.startswith((".", "/", "~", "package:"))
