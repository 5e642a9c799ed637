"""Arguments and options that several commands have, and what is in their text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version as version_of
from typing import Annotated, Literal

import typer

Structure = Literal["forest", "boost", "ensemble", "tree", "exact", "sampled"]
"""Those of `estimators.registry`, which takes long to import: a test compares the two."""

Format = Literal["csv", "tsv", "parquet", "feather"]


def _check_jobs(jobs: int | None) -> int | None:
    if jobs is not None and jobs < 1 and jobs != -1:
        raise typer.BadParameter(f"must be a number of threads from 1 on, or -1 for all, but is {jobs}")
    return jobs


def _check_family(family: str | None) -> str | None:
    if family is not None:
        from everytree.families.registry import NUMBER_FAMILIES  # takes long to import

        if family not in ("auto", *NUMBER_FAMILIES):
            raise typer.BadParameter(f"must be auto or one of {', '.join(NUMBER_FAMILIES)}, but is {family}")
    return family


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"everytree {version_of('everytree')}")
        raise typer.Exit()


Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")]
TABLE_HELP = "A file, folder or pattern of files: CSV, TSV, Parquet or Feather; - is standard input."
TablePath = Annotated[str, typer.Argument(metavar="TABLE", help=TABLE_HELP)]
MaybeTable = Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Rows to judge it by.")]
ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help="A file that `fit` wrote.")]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Of standard input and output, and of names without a known suffix.")
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHARACTER", help="Delimiter of text files; by default a comma, tab or semicolon.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="THREADS", callback=_check_jobs, help="Threads, -1 for all; the result does not depend on it."
    ),
]
Compress = Annotated[
    bool, typer.Option("--compress", help="A smaller model file, slower to write; updates of it stay compressed.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing model file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and warnings only.")]
Target = Annotated[str, typer.Option("--target", "-y", metavar="COLUMN", help="The column to predict.")]
OtherTarget = Annotated[str | None, typer.Option("--target", "-y", metavar="COLUMN", help="If not the target of fit.")]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="How many rows each row counts as.")]
RelativeWeights = Annotated[
    bool, typer.Option("--relative-weights", help="Weights are relative: they are scaled to the number of rows.")
]
Groups = Annotated[str | None, typer.Option(metavar="COLUMN", help="Groups: rows that belong together.")]
OtherGroups = Annotated[
    str | None, typer.Option("--groups", metavar="COLUMN", help="Groups of rows, if not those of fit.")
]
Exposure = Annotated[str | None, typer.Option(metavar="COLUMN", help="With --family poisson: time or size.")]
Censored = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="With --family exponential or survival: 1 where the end was not seen."),
]
Event = Annotated[str | None, typer.Option(metavar="COLUMN", help="Instead of --censored: 1 where the end was seen.")]
Entry = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="With --family survival: the time from which on a row is observed.")
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line is a row; columns are column1, column2, ...")
]
Twice = Annotated[bool, typer.Option("--allow-twice", help="Count rows that are counted already once more.")]
OutModel = Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="Where the model goes.")]
OutNewer = Annotated[str | None, typer.Option("--out", "-o", metavar="MODEL", help="MODEL itself by default.")]
OutTable = Annotated[str, typer.Option("--out", "-o", metavar="TABLE", help="Where predictions go.")]
OutContributions = Annotated[
    str | None, typer.Option("--out", "-o", metavar="TABLE", help="Contributions to all rows, as a table, go here.")
]
Row = Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Which row, counted from 0.")]
Label = Annotated[
    str | None, typer.Option("--class", metavar="CLASS", help="By default the second of two, or the most probable.")
]
OutPage = Annotated[str, typer.Option("--out", "-o", metavar="PAGE", help="Where the page goes.")]
Refit = Annotated[bool, typer.Option("--refit", help="Score only models that are fitted anew.")]
Proba = Annotated[bool, typer.Option("--proba", help="The probability of each class.")]
Std = Annotated[bool, typer.Option("--std", help="The standard deviation of each number.")]
Quantiles = Annotated[str, typer.Option(metavar="LEVELS", help="Such as .05,.5,.95.")]
Interval = Annotated[float | None, typer.Option(metavar="COVERAGE", help="Such as .9.")]
Kind = Annotated[
    Literal["auto", "class", "number"],
    typer.Option(help="What targets are; auto: text, and whole numbers of at most ten values, are classes."),
]
NAMES_HELP = "with commas between them, and quotes around names that have some; may be repeated."
Drop = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help=f"Columns to leave out, {NAMES_HELP}")]
Keep = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help=f"Columns to repeat as they are, {NAMES_HELP}")]
Model = Annotated[
    Structure,
    typer.Option(
        help="boost: boosted trees; ensemble: boosted and a forest; tree: one, to be read; exact: every tree and every "
        "choice of splits, to a depth of 4; sampled: trees drawn from their posterior."
    ),
]
Empty = Annotated[bool, typer.Option("--empty", help="Keep columns, structures and priors, but no rows.")]
Depth = Annotated[int | None, typer.Option(metavar="LEVELS", min=1, help="Depth of trees, at most.")]
MinLeaf = Annotated[
    int | None,
    typer.Option(
        "--min-leaf", metavar="ROWS", min=1, help="Rows of a leaf, at least; 1 by default. Not for ensembles and exact."
    ),
]
MaxFeatures = Annotated[
    str | None,
    typer.Option(
        "--max-features", metavar="COLUMNS",
        help="Columns that a split is chosen from: a number, a share such as 0.5, sqrt, log2 or all.",
    ),
]  # fmt: skip
Family = Annotated[
    str | None,
    typer.Option(callback=_check_family, help="Distribution of numbers in a leaf, such as poisson; normal by default."),
]
Trees = Annotated[int | None, typer.Option(metavar="NUMBER", min=1, help="Trees of the forest; 100 by default.")]


Seed = Annotated[int, typer.Option(metavar="NUMBER", min=0, max=2**32 - 1, help="The same seed gives the same model.")]


def event(event: str | None, censored: str | None) -> str | None:
    """The column of events, which says the opposite of that of censored rows."""
    if event is not None and censored is not None:
        raise typer.BadParameter("says the opposite of --censored; give one of the two", param_hint="--event")
    return event


def max_features(text: str | None) -> int | float | str | None:
    """A number of columns, a share of them, or a word for one; None where it is not told."""
    if text in (None, "sqrt", "log2"):
        return text
    if text == "all":
        return 1.0
    try:
        value = int(text) if text.isdecimal() else float(text)
    except ValueError:
        value = -1
    if (isinstance(value, int) and value >= 1) or 0.0 < value <= 1.0:
        return value
    message = f"{text!r} is not a number of columns such as 3, a share such as 0.5, sqrt, log2 or all"
    raise typer.BadParameter(message, param_hint="--max-features")


_NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",][^,]*)?)\s*(?:,|$)')
"""A name up to the next comma, as CSV has it: quotes around it keep commas and spaces, two of them are one."""


def names(option: str, listed: Sequence[str] | None) -> list[str]:
    """Names with commas between them, of an option that may be repeated."""
    return [name for text in listed or () for name in _names(option, text)]


def _names(option: str, text: str) -> list[str]:
    found, start = [], 0
    while start < len(text):
        match = _NAME.match(text, start)
        if match is None:
            example = f"{option} '\"a, b\",c'"
            raise typer.BadParameter(f"{text!r} has a quote without its other half; as it should be: {example}")
        quoted, plain = match.groups()
        if quoted is not None:
            found.append(quoted.replace('""', '"'))
        elif plain is not None and plain.strip():
            found.append(plain.strip())
        start = match.end()
    return found


def numbers(option: str, listed: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(number) for number in listed.split(",") if number.strip()]
    except ValueError:
        raise typer.BadParameter(f"{listed!r} is not a list of numbers such as .05,.5,.95", param_hint=option) from None
