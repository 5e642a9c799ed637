"""Arguments and options that several commands have, and what is in their text."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Families = Literal["normal", "poisson", "exponential", "geometric", "linear"]
Format = Literal["csv", "tsv", "parquet", "feather"]


TablePath = Annotated[str, typer.Argument(metavar="TABLE", help="CSV, TSV, Parquet or Feather; - is standard input.")]
ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help="A file that `fit` wrote.")]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Of standard input and output, and of names that do not tell.")
]
Delimiter = Annotated[str | None, typer.Option(help="Between values of CSV and TSV; a comma or a tab by default.")]
Jobs = Annotated[int | None, typer.Option(help="Threads, -1 for all; the result does not depend on it.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but what is wrong.")]
Target = Annotated[str, typer.Option("--target", "-y", metavar="COLUMN", help="The column to predict.")]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line is a row; columns are column1, column2, ...")
]
Twice = Annotated[bool, typer.Option("--allow-twice", help="Count rows that are counted already once more.")]
OutModel = Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="Where the model goes.")]
Kind = Annotated[
    Literal["auto", "class", "number"],
    typer.Option(help="What targets are; auto: text, and whole numbers of at most ten values, are classes."),
]
Drop = Annotated[str, typer.Option(metavar="COLUMNS", help="Columns to leave out, with commas between them.")]
Exact = Annotated[bool, typer.Option("--exact", help="Every tree and every choice of splits, to a depth of 4.")]
Trees = Annotated[int | None, typer.Option(min=1, help="Trees of the forest; 100 by default.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same model.")]


def names(listed: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def numbers(option: str, listed: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(number) for number in names(listed)]
    except ValueError:
        raise typer.BadParameter(f"{listed!r} is no list of numbers such as .05,.5,.95", param_hint=option) from None
