"""Options that several commands have, told once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Corpus = Annotated[
    str, typer.Option(help="Parallel corpus: bible, bible:KJV,WEB, texts.csv, folders:DIR, ...")
]
ChunkVerses = Annotated[
    int, typer.Option(help="Consecutive verses per passage, in corpora of verses.")
]
Assignment = Annotated[
    str, typer.Option(help="Which contents a style owns: contiguous regions or random ones.")
]
Contents = Annotated[
    int | None,
    typer.Option(help="Train on this many contents only, thinned evenly; all if unset."),
]
MaxLength = Annotated[int, typer.Option(help="Word pieces per passage, the rest is cut.")]
EarlyStopping = Annotated[
    int | None,
    typer.Option(help="Stop after this many epochs without a better validation accuracy."),
]
Dropout = Annotated[
    float | None, typer.Option(help="Dropout rate; as the encoder's configuration if unset.")
]
DType = Annotated[str, typer.Option(help="auto (bf16 where that is faster), fp32 or bf16.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda:0, ...; by default the best one.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any field of TrainingArguments, as name=value; repeatable."),
]
Settings = Annotated[Path | None, typer.Option(help="YAML file of TrainingArguments fields.")]
