"""The commands ``style-overlap corpus``: look at a corpus before anything is trained on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from style_overlap.cli_options import ChunkVerses

app = typer.Typer(
    help="Check, audit, measure and show parallel texts, yours or the default ones.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

SpecArgument = Annotated[
    str,
    typer.Argument(
        metavar="SPEC",
        help="bible, bible:KJV,WEB, texts.csv, table:FILE,content=id,..., verses:DIR, folders:DIR.",
    ),
]
FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="A table: .csv, .tsv, .jsonl or .parquet.")
]
Content = Annotated[str, typer.Option(help="Column of contents: topics, authors, sources.")]
Style = Annotated[str, typer.Option(help="Column of labels.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def check(
    spec: SpecArgument,
    output: Annotated[
        Path | None, typer.Option(help="Write the whole list of stray passages to this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Are the versions aligned? Exit code 1 if one is refused."""
    from style_overlap.corpus import parse_spec
    from style_overlap.corpus.checking import check as run
    from style_overlap.report import corpus as show
    from style_overlap.results import dumps, write_json

    report = run(parse_spec(spec))
    if output is not None:
        write_json(output, report.to_json())
    typer.echo(dumps(report.to_json()) if as_json else show.alignment(report))
    if report.refused:
        raise typer.Exit(1)


@app.command()
def audit(
    spec: SpecArgument,
    k: Annotated[int | None, typer.Option(help="Classes, the first k; at most 5 if unset.")] = None,
    chunk_verses: ChunkVerses = 5,
    seed: Annotated[int, typer.Option(help="Data seed of the cross-overlap matrix.")] = 0,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the picture and the record.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Can styles be told apart by what is neither style nor content?"""
    from style_overlap.corpus import load_corpus, parse_spec
    from style_overlap.corpus.giveaway import audit as run
    from style_overlap.corpus.giveaway import raw_of
    from style_overlap.report import corpus as show
    from style_overlap.results import GIVEAWAY_NAME, dumps, write_json

    parsed = parse_spec(spec)
    corpus = load_corpus(spec, chunk_verses=chunk_verses)
    report = run(corpus, raw_of(parsed, corpus, chunk_verses), k=k, seed=seed)
    if output is not None:
        from style_overlap.report import figures

        write_json(output / GIVEAWAY_NAME, report.to_json())
        figures.save(show.giveaway_figure(report), output / "giveaway")
    typer.echo(dumps(report.to_json()) if as_json else show.giveaway(report))


@app.command()
def measure(
    file: FileArgument,
    content: Content,
    style: Style,
    correction: Annotated[str, typer.Option(help="adjusted, miller-madow or none.")] = "adjusted",
    resamples: Annotated[int, typer.Option(min=0, help="Bootstrap samples.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    as_json: Json = False,
) -> None:
    """Content overlap of any labelled data set, corrected for bias, with an interval."""
    from style_overlap.corpus import parse_spec
    from style_overlap.corpus.labels import open_labelled, read_labels
    from style_overlap.corpus.natural import estimate
    from style_overlap.report import corpus as show
    from style_overlap.results import dumps

    labels = read_labels(open_labelled(parse_spec(file)), content, style)
    found = estimate(*labels, correction=correction, resamples=resamples, seed=seed)
    typer.echo(dumps(found.to_json()) if as_json else show.overlap(found))


@app.command()
def sample(
    file: FileArgument,
    content: Content,
    style: Style,
    alpha: Annotated[str, typer.Option(help="Content overlap to sample at, 0 to 1.")],
    k: Annotated[
        int | None, typer.Option(help="Number of styles; the most that are possible if unset.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="Styles in order, such as A,B,C; those with most contents.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="CSV file for the sampled rows.")] = None,
    as_json: Json = False,
) -> None:
    """The largest sample at an overlap from data that is not parallel."""
    from style_overlap.corpus import parse_spec, partial
    from style_overlap.corpus.incidence import Incidence
    from style_overlap.corpus.labels import csv_of, open_labelled, read_labels
    from style_overlap.report import corpus as show
    from style_overlap.results import dumps, write_text

    rows = open_labelled(parse_spec(file))
    labels = read_labels(rows, content, style)
    incidence = Incidence(*labels, classes.split(",") if classes else None)
    if k is not None:
        chosen = partial.plan(incidence, k, alpha)
    else:
        chosen = partial.largest(incidence, alpha)
    every = partial.plans(incidence, alpha)
    if output is not None:
        drawn = partial.draw(incidence, chosen)
        write_text(output, "".join(csv_of(rows, drawn.row, drawn.shared)))
    record = {"chosen": chosen.to_json(), "every": [each.to_json() for each in every]}
    typer.echo(dumps(record) if as_json else show.plans(every, chosen))


@app.command()
def show(
    spec: SpecArgument,
    chunk_verses: ChunkVerses = 5,
    content: Annotated[
        str | None, typer.Option(help="Content id to show side by side; the middle one if unset.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What is in a corpus, what was left out, and one content in all styles."""
    from style_overlap.corpus import load_corpus
    from style_overlap.corpus.summary import summarise
    from style_overlap.report import corpus as page
    from style_overlap.results import dumps

    found = summarise(load_corpus(spec, chunk_verses=chunk_verses), content)
    typer.echo(dumps(found) if as_json else page.summary(found))
