"""The command ``style-overlap train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from style_overlap.cli_options import (
    Assignment,
    ChunkVerses,
    Contents,
    Corpus,
    Dropout,
    DType,
    EarlyStopping,
    MaxLength,
    Set,
    Settings,
)


def train(
    model: Annotated[str, typer.Option(help="Encoder: folder, hub id, or package:NAME.")],
    k: Annotated[int, typer.Option(help="Number of styles, the first k of the corpus.")],
    alpha: Annotated[str, typer.Option(help="Content overlap to train at, 0 to 1.")],
    output: Annotated[Path, typer.Option(help="Folder of the checkpoint.")],
    seed: Annotated[int, typer.Option(help="Seed of head, batch order and dropout.")] = 0,
    data_seed: Annotated[
        int | None, typer.Option(help="Seed of regions, splits and pools; as --seed if unset.")
    ] = None,
    contents: Contents = None,
    corpus: Corpus = "bible",
    chunk_verses: ChunkVerses = 5,
    assignment: Assignment = "contiguous",
    max_length: MaxLength = 256,
    early_stopping: EarlyStopping = None,
    dropout: Dropout = None,
    dtype: DType = "auto",
    set_: Set = None,
    settings: Settings = None,
    keep_checkpoints: Annotated[
        bool, typer.Option(help="Keep the intermediate checkpoint-* folders.")
    ] = False,
    probe_every: Annotated[
        float | None,
        typer.Option(
            help="Look at the model every so many epochs: accuracy and content retrieval, "
            "written to dynamics.jsonl."
        ),
    ] = None,
    probe_steps: Annotated[int | None, typer.Option(help="The same, every so many steps.")] = None,
    probe_contents: Annotated[
        int | None,
        typer.Option(
            help="Projectors of a look are trained on so many contents, and the whole test split "
            "is searched; if unset, on so few of both that all looks take at most a third of the "
            "training's time."
        ),
    ] = None,
    push_to_hub: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/NAME",
            help="Push the finished checkpoint, its card and its record to the Hub.",
        ),
    ] = None,
    private: Annotated[
        bool | None,
        typer.Option(help="Whether a repository that is made for it is private."),
    ] = None,
) -> None:
    """Fine-tune an encoder at one content overlap."""
    if push_to_hub is not None:
        from style_overlap.trainers import push

        push.check(push_to_hub)
    from style_overlap.trainers.classifier import TrainSettings, parse_arguments
    from style_overlap.trainers.classifier import train as run

    result = run(
        TrainSettings(
            model=model,
            k=k,
            alpha=alpha,
            output=output,
            seed=seed,
            data_seed=data_seed,
            contents=contents,
            corpus=corpus,
            chunk_verses=chunk_verses,
            assignment=assignment,
            max_length=max_length,
            early_stopping=early_stopping,
            dropout=dropout,
            dtype=dtype,
            arguments=parse_arguments(set_ or [], settings),
            keep_checkpoints=keep_checkpoints,
            probe_every=probe_every,
            probe_steps=probe_steps,
            probe_contents=probe_contents,
        )
    )
    if result.first:  # of several processes
        typer.echo(result.summary())
        if push_to_hub is not None:
            typer.echo(f"pushed: {push.push(result.output, push_to_hub, private=private)}")
