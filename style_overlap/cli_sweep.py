"""The command ``style-overlap sweep``."""

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
from style_overlap.cli_values import numbers, values
from style_overlap.errors import UsageError

_NOT_PLANNED = {
    *("output", "plan", "part", "dry_run", "save_plan", "keep", "retry_failed"),
    *("engine", "workers", "gpus_per_run", "cpus_per_run"),
}
"""Options that say how a plan is run; all others say what is in it."""


def sweep(
    context: typer.Context,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Encoders: folders, hub ids, package:NAME, or baseline:tfidf."),
    ] = None,
    k: Annotated[
        list[str] | None, typer.Option(help="Numbers of styles. By default 2 3 4 5.")
    ] = None,
    alphas: Annotated[
        list[str] | None,
        typer.Option(help="Overlaps to train at. By default 0 .2 .4 .6 .8 1."),
    ] = None,
    seeds: Annotated[
        list[str] | None,
        typer.Option(help="Seeds, of data and training alike. By default 0 1 2."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Folder of runs.")] = None,
    plan: Annotated[
        Path | None, typer.Option(help="Run this plan, instead of a grid of options.")
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Only this share of the plan, such as 2/8 of an array job.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and what it will take; run nothing.")
    ] = False,
    save_plan: Annotated[
        Path | None, typer.Option(help="Write the plan to this file; run nothing.")
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
    probe_every: Annotated[
        float | None,
        typer.Option(help="Probe while training, every so many epochs; not at all if unset."),
    ] = None,
    probe_contents: Annotated[
        int | None, typer.Option(help="Train projectors on so many contents; all if unset.")
    ] = None,
    probe_seeds: Annotated[int, typer.Option(help="Number of probe seeds.")] = 3,
    no_retrieval: Annotated[
        bool, typer.Option("--no-retrieval", help="Leave the retrieval tasks out.")
    ] = False,
    keep: Annotated[
        str,
        typer.Option(
            help="Weights of finished cells: none, last (the final ones), all (checkpoints too)."
        ),
    ] = "last",
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try cells again that failed before.")
    ] = False,
    engine: Annotated[
        str, typer.Option(help="local, or ray (pip install style-overlap\\[ray]).")
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(help="Processes of the local engine; one a GPU, else this one, if unset."),
    ] = None,
    gpus_per_run: Annotated[
        float | None, typer.Option(help="GPUs a cell, for ray: 1, 0.5, 0; 1 where there are any.")
    ] = None,
    cpus_per_run: Annotated[
        float | None, typer.Option(help="CPU cores a cell, for ray; 1 if unset.")
    ] = None,
) -> None:
    """Train and measure a whole grid: encoders, k, overlaps, seeds; takes up what it left."""
    from style_overlap.sweep import command, engines
    from style_overlap.sweep.checks import (
        check_data,
        check_encoders,
        check_here,
        refuse_launcher,
    )
    from style_overlap.sweep.jobs import KEEP
    from style_overlap.sweep.plan import read_plan
    from style_overlap.sweep.plan import save_plan as write_plan

    if keep not in KEEP:
        raise UsageError(f"--keep is {keep!r}: expected {', '.join(KEEP)}")
    refuse_launcher()
    chosen = engines.choose(engine, workers, gpus_per_run, cpus_per_run)
    if plan is not None:
        if planned_too := _given(context) - _NOT_PLANNED:
            named = ", ".join(
                sorted(f"--{name.strip('_').replace('_', '-')}" for name in planned_too)
            )
            raise UsageError(f"{plan} holds the whole grid and how to train: leave out {named}")
        planned, runs = read_plan(plan), output or plan.parent
        check_data(planned, plan)
    else:
        if not model:
            raise UsageError("which encoders? Give --model, or --plan FILE")
        if output is None:
            raise UsageError("where do runs go? Give --output DIR")
        from style_overlap.names import ALPHAS, KS
        from style_overlap.sweep.grid import Probes, grid
        from style_overlap.sweep.measure import corpus_of
        from style_overlap.trainers.arguments import parse_arguments
        from style_overlap.trainers.settings import TrainSettings

        recipe = TrainSettings(
            model="",
            k=2,
            alpha=0,
            output=output,
            contents=contents,
            corpus=corpus,
            chunk_verses=chunk_verses,
            assignment=assignment,
            max_length=max_length,
            early_stopping=early_stopping,
            dropout=dropout,
            dtype=dtype,
            arguments=parse_arguments(set_ or [], settings),
        )
        probes = Probes(
            retrieval=not no_retrieval,
            contents=probe_contents,
            seeds=probe_seeds,
            every=probe_every,
        )
        planned = grid(
            corpus_of(corpus, chunk_verses),
            model,
            numbers("--k", k) or KS,
            values("--alphas", alphas) or ALPHAS,
            numbers("--seeds", seeds) or (0, 1, 2),
            recipe,
            probes,
        )
        runs = output
    if engine == "local":
        check_here(planned)
    if dry_run or save_plan is not None:
        command.show_plan(
            planned.part(part),
            runs,
            keep=keep,
            parallel=chosen.parallel,
            retry_failed=retry_failed,
            timed=dry_run,
        )
        if save_plan is not None:
            write_plan(save_plan, planned.part(part), runs)
            typer.echo(f"plan: {save_plan}")
        return
    if engine == "local":
        check_encoders(planned)
    summary = command.sweep(
        planned, runs, chosen.make, part=part, keep=keep, retry_failed=retry_failed
    )
    command.show_end(summary, runs)
    if summary.failures:
        raise typer.Exit(1)


def _given(context: typer.Context) -> set[str]:
    """Names of the options that stand on the command line."""
    # By name: typer has come with a click of its own, whose sources are others than click's.
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}
