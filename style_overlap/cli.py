"""The command ``style-overlap``: arguments in, one call out.

Everything heavy is imported inside the command that needs it, so that help is instant.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from style_overlap import __version__, cli_corpus, cli_leaderboard, cli_sweep
from style_overlap.cli_options import (
    Assignment,
    ChunkVerses,
    Contents,
    Corpus,
    Device,
    Dropout,
    DType,
    EarlyStopping,
    MaxLength,
    Set,
    Settings,
)
from style_overlap.errors import UsageError

app = typer.Typer(
    help="Does this encoder classify style, or is it reading the content?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

_INTERRUPTED = 130  # 128 + SIGINT, as shells have it; typer turns Ctrl-C into this exit code


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
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


@app.command()
def evaluate(
    checkpoints: Annotated[list[str], typer.Argument(help="Checkpoints: folders or hub ids.")],
    alphas: Annotated[
        list[str] | None,
        typer.Option("--alpha", help="Overlap to evaluate at; repeatable; the six of the grid."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder of the records; by default in each checkpoint's own folder."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Documents per task, for a quick look.")
    ] = None,
    retrieval: Annotated[
        bool, typer.Option("--retrieval", help="Run the content-retrieval tasks too.")
    ] = False,
    probe_contents: Annotated[
        int | None,
        typer.Option(help="Train their projectors on this many contents; all if unset."),
    ] = None,
    probe_seeds: Annotated[int, typer.Option(help="Number of their seeds.")] = 3,
    batch_size: Annotated[str, typer.Option(help="Passages per batch, or auto.")] = "auto",
    dtype: DType = "auto",
    device: Device = None,
) -> None:
    """Score checkpoints at every overlap, by lm-eval, and print the cross-overlap matrix."""
    from style_overlap.evaluation import EVALUATIONS, save
    from style_overlap.evaluation import evaluate as run
    from style_overlap.names import ALPHAS
    from style_overlap.report import matrix, terminal

    records = {}
    for checkpoint in checkpoints:
        folder = output or Path(checkpoint) / EVALUATIONS
        if output is None and not Path(checkpoint).is_dir():
            raise UsageError(f"{checkpoint} is not a folder: say where its record goes by --output")
        record = run(
            checkpoint,
            alphas=alphas or ALPHAS,
            limit=limit,
            retrieval=retrieval,
            probe_contents=probe_contents,
            probe_seeds=probe_seeds,
            batch_size=batch_size,
            dtype=dtype,
            device=device,
        )
        records[str(save(record, folder))] = record
    terminal.show(matrix.build(records), records)


@app.command()
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
    from style_overlap.probing import PROBES, ProbeOptions, Probing, save
    from style_overlap.report import probe_table

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


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or records.")],
    output: Annotated[Path, typer.Option(help="Folder of the report.")],
) -> None:
    """Write tables, figures and pages from the records of runs, of half-finished sweeps too."""
    import shlex

    from style_overlap.report import records, terminal, write

    words = ["style-overlap", "report", *map(str, runs), "--output", str(output)]
    found = write.write(records.read(runs), output, shlex.join(words))
    terminal.show(found.matrices, [])
    typer.echo(f"page: {output / 'report.html'}")
    typer.echo(f"report: {output / 'report.md'}")


@app.command()
def task(
    k: Annotated[int, typer.Option(help="Number of styles.")],
    alpha: Annotated[str, typer.Option(help="Content overlap, 0 to 1.")],
    output: Annotated[Path, typer.Option(help="Folder of the task's YAML file.")] = Path("."),
) -> None:
    """Write a task off the registered grid, for `lm_eval --tasks FILE`."""
    from style_overlap.results import write_text
    from style_overlap.tasks.style_overlap.files import BASE, task_yaml

    if k < 2:
        raise UsageError(f"k is {k}: expected two styles or more")
    from style_overlap.names import task_name

    path = output / f"{task_name(k, alpha)}.yaml"
    write_text(path, task_yaml(k, alpha, include=str(BASE)))
    typer.echo(f"lm_eval --model style-encoder --model_args pretrained=DIR --tasks {path}")


@app.command(
    "lm-eval",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def lm_eval(context: typer.Context) -> None:
    """Run lm_eval with our tasks and model, where its own command does not find them."""
    from style_overlap.registry import run_harness

    run_harness(context.args)


app.command(cls=cli_sweep.SeveralValues)(cli_sweep.sweep)
cli_leaderboard.register(app)
app.add_typer(cli_corpus.app, name="corpus")


def main() -> None:
    """Entry point: bad input is one line and exit code 2, an interrupt is exit code 130."""
    try:
        app()
    except UsageError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as stop:
        interrupted = isinstance(stop, KeyboardInterrupt) or stop.code == _INTERRUPTED
        if not interrupted:
            raise
        typer.echo("interrupted: the same command goes on where it stopped", err=True)
        sys.exit(_INTERRUPTED)
