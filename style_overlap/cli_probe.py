"""The command ``style-overlap probe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from style_overlap.cli_options import Device
from style_overlap.errors import UsageError


def probe(
    checkpoints: Annotated[
        list[str] | None,
        typer.Argument(help="Classifiers or encoders: folders, hub ids, or package:NAME."),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="The same, as an option; repeatable.")
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            help="h (what the head's last layer reads), last, or a layer's number; repeatable. "
            "By default h and the last layer of a classifier, else the last layer."
        ),
    ] = None,
    pooling: Annotated[
        str | None, typer.Option(help="cls, mean or last; by default the encoder's own.")
    ] = None,
    unseen: Annotated[
        bool, typer.Option("--unseen", help="The reserved versions too, never trained on.")
    ] = False,
    versions: Annotated[
        tuple[str, str] | None, typer.Option(help="These two versions instead.")
    ] = None,
    k: Annotated[
        int | None, typer.Option(help="Pairs of the first k styles, where no classes say which.")
    ] = None,
    base: Annotated[
        bool, typer.Option("--base", help="Beside it: the encoder before fine-tuning.")
    ] = False,
    untrained: Annotated[
        bool, typer.Option("--untrained", help="Beside it: the same architecture, untrained.")
    ] = False,
    bow: Annotated[bool, typer.Option("--bow", help="Beside it: a bag of words.")] = False,
    contents: Annotated[
        int | None,
        typer.Option(help="Train projectors on this many contents, thinned evenly; all if unset."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Contents in the gallery at most, for a quick look.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of probe seeds.")] = 3,
    data_seed: Annotated[
        int | None, typer.Option(help="Seed of the splits; the checkpoint's own if unset.")
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(help="Parallel corpus; the checkpoint's own if unset.")
    ] = None,
    chunk_verses: Annotated[int | None, typer.Option(help="Verses per passage; as above.")] = None,
    max_length: Annotated[
        int | None, typer.Option(help="Word pieces per passage; as the checkpoint's tokenizer.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder of the records; by default in a fine-tuned checkpoint's own."),
    ] = None,
    dtype: Annotated[str, typer.Option(help="fp32, or bf16, which blurs what h holds.")] = "fp32",
    device: Device = None,
) -> None:
    """How much content can be read off the features: retrieve each text in another version."""
    specs = [*(checkpoints or []), *(model or [])]
    if not specs:
        raise UsageError("which model? Give a checkpoint's folder, a hub id or package:NAME")
    from style_overlap.model_folders import training_record
    from style_overlap.probe.options import ProbeOptions
    from style_overlap.probing import Probing, save
    from style_overlap.report import probe_table
    from style_overlap.results import PROBES

    probing = Probing(
        ProbeOptions(
            layers=tuple(layer or ()),
            pooling=pooling,  # type: ignore[arg-type]  # checked by Probing
            unseen=unseen,
            pair=versions,
            k=k,
            base=base,
            untrained=untrained,
            bow=bow,
            corpus=corpus,
            chunk_verses=chunk_verses,
            data_seed=data_seed,
            contents=contents,
            limit=limit,
            seeds=seeds,
        ),
        dtype=dtype,
        device=device,
        max_length=max_length,
    )
    records, paths = [], []
    for spec in specs:
        records.append(probing.run(spec))
        folder = output or (Path(spec) / PROBES if training_record(spec) else None)
        if folder is not None:
            paths.append(save(records[-1], folder))
    probe_table.show(records)
    for path in paths:
        typer.echo(f"record: {path}")
