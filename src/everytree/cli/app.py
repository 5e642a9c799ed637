"""The commands; what each of them does is in the room that it calls."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from everytree.cli.options import (
    Delimiter,
    Drop,
    Exact,
    Families,
    FormatOption,
    Jobs,
    Keep,
    Kind,
    MemorySize,
    ModelPath,
    NoHeader,
    OutModel,
    Quiet,
    Seed,
    TablePath,
    Target,
    Tree,
    Trees,
    Twice,
    names,
    numbers,
    structure,
)
from everytree.cli.problems import StoppedError, UserError


class _Commands(TyperGroup):
    """Commands that may be interrupted; typer's versions differ in what they make of it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise StoppedError() from None


app = typer.Typer(
    cls=_Commands, name="everytree", no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"everytree {version_of('everytree')}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Exact Bayesian averaging over every pruned tree.

    \b
    everytree fit train.csv --target price --out model.et
    everytree predict model.et new.csv --interval 0.9
    """


@app.command()
def fit(
    table: TablePath,
    target: Target,
    out: OutModel = "model.et",
    kind: Kind = "auto",
    family: Annotated[Families | None, typer.Option(help="What numbers are, given their leaf; normal.")] = None,
    exact: Exact = False,
    tree: Tree = False,
    empty: Annotated[bool, typer.Option("--empty", help="Keep columns, structures and priors, but no rows.")] = False,
    trees: Trees = None,
    depth: Annotated[int | None, typer.Option(min=1, help="Most questions in a row.")] = None,
    weight: Annotated[str | None, typer.Option(metavar="COLUMN", help="How many rows each row counts as.")] = None,
    relative_weights: Annotated[
        bool, typer.Option("--relative-weights", help="Weights are relative: they are scaled to the number of rows.")
    ] = False,
    groups: Annotated[str | None, typer.Option(metavar="COLUMN", help="Which rows belong together.")] = None,
    exposure: Annotated[str | None, typer.Option(metavar="COLUMN", help="With --family poisson: time or size.")] = None,
    censored: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --family exponential: whether the end was not seen.")
    ] = None,
    drop: Drop = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    memory: MemorySize = None,
    no_header: NoHeader = False,
    delimiter: Delimiter = None,
    format: FormatOption = None,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table.

    Columns may be numbers, text, booleans and dates, with missing values. The name of the target is kept in the model.
    Of a table with more rows than memory, structures and priors come from a sample, statistics from every row.

    \b
    everytree fit train.csv --target price
    everytree fit claims.parquet --target n --family poisson --exposure years --drop id,name
    everytree fit small.csv --target cured --exact --out exact.et
    zcat some.csv.gz | everytree fit - --target y --jobs -1
    everytree fit big.parquet --target y --memory 2G

    To count shards apart, take the structures from one of them, count each in a copy, and merge:

    \b
    everytree fit shard1.csv --target y --empty --out blank.et
    everytree update blank.et shard1.csv --out one.et
    everytree update blank.et shard2.csv --out two.et
    everytree merge one.et two.et --out all.et
    """
    from everytree.cli.fitting import Wanted, described, fit_table, n_rows_of
    from everytree.cli.long_tables import fit_long_table, is_long
    from everytree.cli.memory import default_size, parse_size
    from everytree.cli.models import Memory, check_model_output, counted_rows, save_model
    from everytree.cli.reading import Reading, open_table

    dropped = names("--drop", drop)
    limit = default_size() if memory is None else parse_size("--memory", memory)
    check_model_output(out, table)
    opened = open_table(table, Reading(format, not no_header, delimiter))
    notes = Memory(target, weight, exposure, censored, has_header=not no_header)
    wanted = Wanted(
        structure(exact, tree), kind, family, trees, depth, seed, jobs, dropped, progress=_shows(quiet),
        groups=groups, relative_weights=relative_weights,
    )  # fmt: skip
    if is_long(opened, limit, wanted, lambda sentence: _say(quiet, sentence)):
        model, counted = fit_long_table(opened, notes, wanted)
    else:
        source = opened.read()
        model, counted = fit_table(source, notes, wanted), counted_rows(source)
    model, notes = (model.blank(), notes) if empty else (model, notes.also(counted))
    save_model(model, out, notes)
    evidence = "" if empty else f", log evidence {model.log_evidence_:.4f}"
    _say(quiet, f"{out}: {described(model)} for {target!r}, {n_rows_of(model)} rows{evidence}")


@app.command()
def predict(
    model: ModelPath,
    table: TablePath,
    out: Annotated[str, typer.Option("--out", "-o", metavar="TABLE", help="Where predictions go.")] = "-",
    proba: Annotated[bool, typer.Option("--proba", help="The probability of each class.")] = False,
    std: Annotated[bool, typer.Option("--std", help="The standard deviation of each number.")] = False,
    quantiles: Annotated[str, typer.Option(metavar="LEVELS", help="Such as .05,.5,.95.")] = "",
    interval: Annotated[float | None, typer.Option(metavar="COVERAGE", help="Such as .9.")] = None,
    keep: Keep = None,
    escape_formulas: Annotated[
        bool, typer.Option("--escape-formulas", help="Put ' before text in CSV that a spreadsheet would compute.")
    ] = False,
    jobs: Jobs = None,
    delimiter: Delimiter = None,
    format: FormatOption = None,
    quiet: Quiet = False,
) -> None:
    """Predict each row of a table.

    Columns are found by their names; the target and others that the model does not read may be there.

    \b
    everytree predict model.et new.csv
    everytree predict model.et new.parquet --proba --keep id --out answers.parquet
    everytree predict model.et new.csv --quantiles .05,.5,.95 --interval .9
    cat new.tsv | everytree predict model.et - --format tsv > answers.tsv
    """
    from everytree.cli.models import column_types, open_model
    from everytree.cli.predicting import Asked, predict_table
    from everytree.cli.reading import Reading, open_table
    from everytree.cli.writing import check_escaping, check_output, output_format, write_file

    levels, kept = numbers("--quantiles", quantiles), names("--keep", keep)
    check_output(out, model, table)
    output_format(out, format)
    if escape_formulas:
        check_escaping(out, format)
    of = open_model(model)
    types = column_types(of, with_target=False)
    source = open_table(table, Reading(format, of.memory.has_header, delimiter, types))
    asked = Asked(proba, std, levels, interval, kept, jobs, _shows(quiet))
    if of.memory.exposure is not None and of.memory.exposure not in source.columns:
        _say(quiet, f"{source.name}: there is no column {of.memory.exposure!r}; every exposure is taken to be 1")
    write_file(predict_table(source, of, asked), out, format, escape_formulas=escape_formulas)


@app.command()
def update(
    model: ModelPath,
    table: TablePath,
    target: Annotated[str | None, typer.Option("--target", "-y", metavar="COLUMN", help="If not that of fit.")] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="MODEL", help="MODEL itself by default.")] = None,
    allow_twice: Twice = False,
    jobs: Jobs = None,
    delimiter: Delimiter = None,
    format: FormatOption = None,
    quiet: Quiet = False,
) -> None:
    """Add rows to a model, exactly: as if they had been counted with the others.

    Structures, priors and columns stay, statistics add up; the order of updates does not matter.

    \b
    everytree update model.et today.csv
    everytree update model.et today.parquet --out newer.et
    """
    from everytree.cli.fitting import described, n_rows_of, rows_placed
    from everytree.cli.models import check_model_output, open_model, to_be_replaced
    from everytree.cli.updating import read_rows, update_model

    place = model if out is None else out
    check_model_output(place, table)
    with to_be_replaced(model, place, lambda sentence: _say(quiet, sentence)):
        of = open_model(model)
        of = replace(of, memory=replace(of.memory, target=target or of.memory.target))
        source = read_rows(of, table, format, delimiter)
        before = rows_placed(of.model)
        newer = update_model(of, source, jobs=jobs, allow_twice=allow_twice, progress=_shows(quiet))
        newer.save(place)
    left_out = source.n_rows - (rows_placed(newer.model) - before)
    if (left_out > 0).any():
        _say(quiet, f"{source.name}: has values that were not there at fit; of {len(left_out)} trees, "
             f"{(left_out > 0).sum()} cannot place them and leave out up to {left_out.max()} rows")  # fmt: skip
    n_rows, evidence = n_rows_of(newer.model), newer.model.log_evidence_
    _say(quiet, f"{place}: {described(newer.model)}, {source.n_rows} rows more, {n_rows} in all, "
         f"log evidence {evidence:.4f}")  # fmt: skip


@app.command()
def merge(
    models: Annotated[list[str], typer.Argument(metavar="MODEL MODEL...", help="Of the same structures.")],
    out: OutModel,
    allow_twice: Twice = False,
    quiet: Quiet = False,
) -> None:
    """Add up models of the same structures that have seen different rows.

    Such models come from one: `fit --empty` writes it without rows, and each shard updates a copy. Models that both
    have the rows of one fit are refused, since these would count twice.

    \b
    everytree merge one.et two.et three.et --out all.et
    """
    from everytree.cli.fitting import described, n_rows_of
    from everytree.cli.models import check_model_output, open_model
    from everytree.cli.updating import merge_models

    if len(models) < 2:
        raise typer.BadParameter("at least two models are needed", param_hint="MODEL MODEL...")
    check_model_output(out, *models)
    merged = merge_models([open_model(path) for path in models], allow_twice=allow_twice)
    merged.save(out)
    rows = n_rows_of(merged.model)
    _say(quiet, f"{out}: {described(merged.model)}, {rows} rows, log evidence {merged.model.log_evidence_:.4f}")


@app.command()
def show(
    model: ModelPath,
    top: Annotated[int, typer.Option(min=1, help="How many columns to list.")] = 10,
    depth: Annotated[int, typer.Option(min=0, help="How deep to draw the tree.")] = 2,
) -> None:
    """What a model was fitted on, what matters to it, and a tree.

    \b
    everytree show model.et
    everytree show model.et --top 20 --depth 4
    """
    from everytree.cli.models import open_model
    from everytree.cli.showing import show_model
    from everytree.cli.writing import to_standard_output

    to_standard_output(f"{show_model(open_model(model, estimator=False), top=top, depth=depth)}\n".encode())


@app.command()
def report(
    model: ModelPath,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Rows to judge it by.")] = None,
    target: Annotated[str | None, typer.Option("--target", "-y", metavar="COLUMN", help="If not that of fit.")] = None,
    out: Annotated[str, typer.Option("--out", "-o", metavar="PAGE", help="Where the page goes.")] = "report.html",
    refit: Annotated[bool, typer.Option("--refit", help="Do not score the model itself on TABLE, though new.")] = False,
    delimiter: Delimiter = None,
    format: FormatOption = None,
    quiet: Quiet = False,
) -> None:
    """Write a page about a model that can be opened without a network, with its quality on a table's rows.

    A model is scored itself on a table that it has not counted, by fit or update. Of one that it has, or with --refit,
    each part is predicted by the same estimator, fitted to the other parts.

    \b
    everytree report model.et --out report.html
    everytree report model.et held_out.csv --out report.html
    """
    from everytree.cli.models import open_model
    from everytree.cli.showing import write_report_of
    from everytree.cli.updating import read_rows
    from everytree.cli.writing import check_output

    check_output(out, model, *([] if table is None else [table]))
    if out == "-":
        raise UserError("a page cannot go to standard output; give --out the name of a file")
    of = open_model(model)
    of = replace(of, memory=replace(of.memory, target=target or of.memory.target))
    source = None if table is None else read_rows(of, table, format, delimiter)
    said = write_report_of(of, source, out, refit=refit)
    _say(quiet, f"{out}: {Path(out).stat().st_size:,} bytes{said}")


@app.command()
def demo() -> None:
    """Fit a meta-tree to a bundled data set and show what comes out."""
    from everytree.cli.demo import run

    run()


@app.command()
def bench(
    table: TablePath,
    target: Target,
    kind: Kind = "auto",
    exact: Exact = False,
    tree: Tree = False,
    trees: Trees = None,
    drop: Drop = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    no_header: NoHeader = False,
    delimiter: Delimiter = None,
    format: FormatOption = None,
) -> None:
    """Time a model beside a scikit-learn forest on one half of a table, and compare them on the other.

    \b
    everytree bench train.csv --target price
    everytree bench train.csv --target price --trees 20 --jobs 2
    """
    from everytree.cli.fitting import Wanted
    from everytree.cli.models import Memory
    from everytree.cli.reading import Reading, open_table
    from everytree.cli.timing import bench_table
    from everytree.cli.writing import to_standard_output

    wanted = Wanted(structure(exact, tree), kind, None, trees, None, seed, jobs, names("--drop", drop))
    source = open_table(table, Reading(format, not no_header, delimiter)).read()
    to_standard_output(f"{bench_table(source, Memory(target, has_header=not no_header), wanted)}\n".encode())


# ---- small things ---------------------------------------------------------------------------------------------------


def _shows(quiet: bool) -> bool:
    """Bars move on a terminal; in a pipe there are none."""
    return sys.stderr.isatty() and not quiet


def _say(quiet: bool, sentence: str) -> None:
    """What was done, where it does not mix with results."""
    if not quiet:
        typer.echo(sentence, err=True)
