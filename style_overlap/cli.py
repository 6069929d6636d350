"""The command ``style-overlap``: arguments in, one call out.

Everything heavy is imported inside the command that needs it, so that help is instant.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from style_overlap import (
    __version__,
    cli_corpus,
    cli_leaderboard,
    cli_probe,
    cli_sweep,
    cli_train,
    cli_values,
)
from style_overlap.cli_options import Device, DType
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


app.command()(cli_train.train)


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
    from style_overlap.evaluation import evaluate as run
    from style_overlap.evaluation import save
    from style_overlap.names import ALPHAS
    from style_overlap.report import matrix, terminal
    from style_overlap.results import EVALUATIONS

    elsewhere = [checkpoint for checkpoint in checkpoints if not Path(checkpoint).is_dir()]
    if output is None and elsewhere:
        raise UsageError(f"{elsewhere[0]} is not a folder: say where its record goes by --output")
    records = {}
    for checkpoint in checkpoints:
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
        records[str(save(record, output or Path(checkpoint) / EVALUATIONS))] = record
    terminal.show(matrix.build(records), records)


app.command()(cli_probe.probe)


def _folder(text: str) -> Path:
    if not text.strip():  # Path("") is the current folder
        raise typer.BadParameter("it is empty: give the folder of the report")
    return Path(text)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or records.")],
    output: Annotated[Path, typer.Option(help="Folder of the report.", parser=_folder)],
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


app.command(cls=cli_values.SeveralValues)(cli_sweep.sweep)
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
        typer.echo(
            "interrupted: train and sweep go on where they stopped when the command is given again",
            err=True,
        )
        sys.exit(_INTERRUPTED)
