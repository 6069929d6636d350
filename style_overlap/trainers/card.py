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

classify = pipeline("text-classification", model="PATH")
classify("And it came to pass")
```

## Data

Corpus `{{ config.corpus }}` (verses come in runs of {{ config.chunk_verses }}),
{{ config.assignment }} regions, data seed {{ config.data_seed }}: {{ data.sizes.train }} training,
{{ data.sizes.validation }} validation and {{ data.sizes.test }} test texts, disjoint by content.
Overlap measured in the training texts: {{ "%.3f" | format(data.realised_alpha.train) }}.
{% if cut %}
Texts cut to {{ config.max_length }} tokens: {{ cut }}.
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
which passages belong to which style. `style-overlap evaluate PATH` scores it at every overlap.

## Limits

Trained on the texts above and nothing else; it always answers with one of its {{ k }} styles. The
licence of `{{ config.model }}` applies to its weights.

"""


def model_card(record: dict[str, Any]) -> str:
    """Markdown of the README of a checkpoint, from its record."""
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
                dataset_split="test",
                metric_type=kind,
                metric_value=round(metrics["test"][name], 4),
            )
            for kind, name in (("accuracy", "accuracy"), ("f1", "macro_f1"))
        ],
    )
    cut = [f"{s} {n['count']} of {n['of']}" for s, n in record["truncated"].items() if n["count"]]
    template = Environment(trim_blocks=True, autoescape=False).from_string(_CARD)
    return template.render(
        metadata=metadata.to_yaml(),
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
