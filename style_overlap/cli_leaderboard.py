"""The commands ``leaderboard``, ``gate`` and ``submit``: arguments in, one call out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from style_overlap.errors import UsageError


def leaderboard(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUNS...",
            help="Folders of runs, records, results_*.json of lm-eval, submissions (.zip).",
        ),
    ],
    output: Annotated[Path, typer.Option(help="Folder of the site.")],
) -> None:
    """Write a leaderboard: one HTML page, and the same figures as JSON, CSV and Markdown."""
    from style_overlap.leaderboard import site

    made = site.write(paths, output)
    for one in made["left_out"]:
        typer.echo(f"left out {one['source']}: {one['reason']}", err=True)
    for one in made["unknown"]:
        typer.echo(f"not in a row {one['source']}: {one['why']}", err=True)
    typer.echo(f"{len(made['rows'])} rows: {output / 'index.html'}")


def gate(
    board: Annotated[Path, typer.Argument(metavar="LEADERBOARD", help="The new leaderboard.json.")],
    baseline: Annotated[Path, typer.Option(help="The leaderboard.json to compare with.")],
    max_drop: Annotated[
        list[str] | None,
        typer.Option(
            help="How far a figure may fall, as NAME=SHARE: acc=0.01 is one point of every "
            "accuracy; acc_1_1, acc_0_0, acc_0_1 and reliance are single figures. Repeatable; "
            "acc=0 if unset."
        ),
    ] = None,
) -> None:
    """Exit with 1 if an encoder got worse by more than noise, with 2 if that cannot be told."""
    from style_overlap.leaderboard import gate as gates
    from style_overlap.leaderboard.board import read

    drops = gates.parse_drops(max_drop or [])
    found = gates.compare(read(board), read(baseline), drops)
    typer.echo(gates.as_text(found))
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with open(summary, "a", encoding="utf-8") as file:
                file.write(gates.as_markdown(found))
        except OSError as error:
            raise UsageError(
                f"cannot write the step summary {summary}: {error.strerror}; unset "
                "GITHUB_STEP_SUMMARY to go without"
            ) from error
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def submit(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUNS...", help="Folders of runs or checkpoints, or records."),
    ] = None,
    output: Annotated[Path, typer.Option(help="The archive.")] = Path("submission.zip"),
    check: Annotated[
        list[Path] | None, typer.Option(help="Check an archive instead; repeatable.")
    ] = None,
) -> None:
    """Pack the records of runs (no weights, no texts) for a pull request to a leaderboard."""
    from style_overlap.leaderboard import submission
    from style_overlap.leaderboard.board import printable
    from style_overlap.leaderboard.strict import Refused

    if bool(runs) == bool(check):
        raise UsageError("give folders of runs to pack, or --check with an archive, not both")
    for path in check or []:
        try:
            files = submission.read(path)
        except Refused as fault:
            raise UsageError(f"{path} is no submission: {fault}") from fault
        typer.echo(f"{path}: {len(files)} records, sound")
    if runs:
        packed = submission.pack(runs, output)
        for source, reason in sorted(packed.left_out.items()):
            typer.echo(printable(f"left out {source}: {reason}"), err=True)
        typer.echo(f"{output}: {len(packed.files)} records, {packed.size:,} bytes")


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (leaderboard, gate, submit):
        app.command()(command)
