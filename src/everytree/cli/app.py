"""The commands; each calls one module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from everytree.base.words import number_of
from everytree.cli import options
from everytree.cli.problems import StoppedError


class _Commands(TyperGroup):
    """Commands that may be interrupted; typer's versions differ in what they make of it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise StoppedError() from None

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_types(command.get_params(ctx))
        return command

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


def _without_types(parameters: list[Any]) -> list[Any]:
    """Parameters whose flags, `--help` among them, do not look in the help as if they took a value."""
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return parameters


app = typer.Typer(
    cls=_Commands, name="everytree", no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


@app.callback()
def main(version: options.Version = False) -> None:
    """Exact Bayesian averaging over every pruned tree.

    \b
    everytree fit train.csv --target price --out model.et
    everytree predict model.et new.csv --interval 0.9
    """


@app.command()
def fit(
    table: options.TablePath,
    target: options.Target,
    out: options.OutModel = "model.et",
    kind: options.Kind = "auto",
    family: options.Family = None,
    model: options.Model = "forest",
    empty: options.Empty = False,
    trees: options.Trees = None,
    depth: options.Depth = None,
    min_leaf: options.MinLeaf = None,
    max_features: options.MaxFeatures = None,
    weight: options.Weight = None,
    relative_weights: options.RelativeWeights = False,
    groups: options.Groups = None,
    exposure: options.Exposure = None,
    censored: options.Censored = None,
    event: options.Event = None,
    entry: options.Entry = None,
    drop: options.Drop = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    compress: options.Compress = False,
    force: options.Force = False,
    no_header: options.NoHeader = False,
    delimiter: options.Delimiter = None,
    format: options.FormatOption = None,
    quiet: options.Quiet = False,
) -> None:
    """Fit a model to a table.

    Columns may be numbers, text, booleans and dates, with missing values. The name of the target is kept in the model.
    Of a table with more rows than memory, use `fit_batches` of an estimator in Python.

    \b
    everytree fit train.csv --target price
    everytree fit claims.parquet --target n --family poisson --exposure years --drop id,name
    everytree fit patients.csv --target months --family survival --event died
    everytree fit train.csv --target price --model ensemble
    everytree fit small.csv --target cured --model exact --out exact.et
    zcat some.csv.gz | everytree fit - --target y --jobs -1
    everytree fit 'days/2024-*.csv' --target y

    To count shards apart, take the structures from one of them, count each in a copy, and merge:

    \b
    everytree fit shard1.csv --target y --empty --out blank.et
    everytree update blank.et shard1.csv --out one.et
    everytree update blank.et shard2.csv --out two.et
    everytree merge one.et two.et --out all.et
    """
    from everytree.cli.fitting import Wanted, fit_model
    from everytree.cli.models import TableRoles, check_model_output, check_not_there, described, n_rows_of, save_model
    from everytree.cli.tables import Reading, open_table

    dropped = options.names("--drop", drop)
    how = Reading(format, not no_header, delimiter, progress=_shows(quiet))
    check_model_output(out, table)
    opened = open_table(table, how)
    check_not_there(out, force=force)
    notes = TableRoles(
        target, weight, exposure, censored, has_header=not no_header, compressed=compress,
        event=options.event(event, censored), groups=groups, entry=entry,
    )  # fmt: skip
    wanted = Wanted(
        model, kind, family, trees, depth, seed, jobs, dropped, progress=_shows(quiet),
        relative_weights=relative_weights, empty=empty, min_leaf=min_leaf,
        max_features=options.max_features(max_features),
    )  # fmt: skip
    say = _sayer(quiet)
    fitted, counted = fit_model(opened, notes, wanted, say)
    fitted, notes = (fitted.blank(), notes) if empty else (fitted, notes.also(counted))
    check_not_there(out, force=force)
    save_model(fitted, out, notes)
    has_evidence = not empty and fitted.counts_rows
    evidence = f", log evidence {fitted.log_evidence_:.4f}" if has_evidence else ""
    say(f"{out}: {described(fitted)} for {target!r}, {number_of(n_rows_of(fitted), 'row')}{evidence}")
    unseen = getattr(fitted, "unseen_", None)
    if unseen is not None:
        say(f"{out}: {unseen.sentence()}")


@app.command()
def predict(
    model: options.ModelPath,
    table: options.TablePath,
    out: options.OutTable = "-",
    proba: options.Proba = False,
    std: options.Std = False,
    quantiles: options.Quantiles = "",
    interval: options.Interval = None,
    keep: options.Keep = None,
    jobs: options.Jobs = None,
    delimiter: options.Delimiter = None,
    format: options.FormatOption = None,
    quiet: options.Quiet = False,
) -> None:
    """Predict each row of a table.

    Columns are found by their names; the target and others that the model does not read may be there.

    \b
    everytree predict model.et new.csv
    everytree predict model.et new.parquet --proba --keep id --out answers.parquet
    everytree predict model.et new.csv --quantiles .05,.5,.95 --interval .9
    cat new.tsv | everytree predict model.et - --format tsv > answers.tsv
    """
    from everytree.cli.predicting import Asked, predict_file
    from everytree.cli.tables import Reading

    levels, kept = options.numbers("--quantiles", quantiles), options.names("--keep", keep)
    asked = Asked(proba, std, levels, interval, kept, jobs, _shows(quiet))
    how = Reading(format, delimiter=delimiter)
    predict_file(model, table, out, how, asked, _sayer(quiet))


@app.command()
def update(
    model: options.ModelPath,
    table: options.TablePath,
    target: options.OtherTarget = None,
    out: options.OutNewer = None,
    allow_twice: options.Twice = False,
    jobs: options.Jobs = None,
    delimiter: options.Delimiter = None,
    format: options.FormatOption = None,
    quiet: options.Quiet = False,
) -> None:
    """Add rows to a model, exactly: as if they had been counted with the others.

    Structures, priors and columns stay, statistics add up; the order of updates does not matter.

    \b
    everytree update model.et today.csv
    everytree update model.et today.parquet --out newer.et
    everytree update model.et january/
    """
    from everytree.cli.tables import Reading
    from everytree.cli.updating import update_file

    how = Reading(format, delimiter=delimiter, progress=_shows(quiet))
    update_file(model, table, out or model, how, target=target, jobs=jobs, allow_twice=allow_twice, say=_sayer(quiet))


@app.command()
def merge(
    models: Annotated[list[str], typer.Argument(metavar="MODEL MODEL...", help="Of the same structures.")],
    out: options.OutModel,
    allow_twice: options.Twice = False,
    quiet: options.Quiet = False,
) -> None:
    """Add up models of the same structures that have seen different rows.

    Such models come from one: `fit --empty` writes it without rows, and each shard updates a copy. Models that both
    have the rows of one fit are refused, since these would count twice.

    \b
    everytree merge one.et two.et three.et --out all.et
    """
    from everytree.cli.updating import merge_files

    if len(models) < 2:
        raise typer.BadParameter("at least two models are needed", param_hint="MODEL MODEL...")
    merge_files(models, out, allow_twice=allow_twice, say=_sayer(quiet))


@app.command()
def show(
    model: options.ModelPath,
    top: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="How many columns to list.")] = 10,
    depth: Annotated[int, typer.Option(metavar="LEVELS", min=0, help="How deep to draw the tree.")] = 2,
    all_splits: Annotated[
        bool, typer.Option("--all-splits", help="Draw also splits that do not help held-out rows.")
    ] = False,
) -> None:
    """Show the data a model was fitted on, the importance of columns, and a tree.

    \b
    everytree show model.et
    everytree show model.et --top 20 --depth 4
    """
    from everytree.cli.models import open_model
    from everytree.cli.showing import show_model
    from everytree.cli.writing import to_standard_output

    shown = show_model(open_model(model, estimator=False), top=top, depth=depth, all_splits=all_splits)
    to_standard_output(f"{shown}\n".encode())


@app.command()
def explain(
    model: options.ModelPath,
    table: options.TablePath,
    row: options.Row = 0,
    label: options.Label = None,
    out: options.OutContributions = None,
    delimiter: options.Delimiter = None,
    format: options.FormatOption = None,
    quiet: options.Quiet = False,
) -> None:
    """Why a row is predicted so: what each column adds to the prediction.

    The value without any column and all contributions add up to the prediction, a probability or a mean.

    \b
    everytree explain model.et new.csv --row 3
    everytree explain model.et new.csv --row 3 --class yes
    everytree explain model.et new.csv --out contributions.csv
    """
    from everytree.cli.explaining import explain_file
    from everytree.cli.tables import Reading

    how = Reading(format, delimiter=delimiter)
    explain_file(model, table, out, how, row=row, label=label, say=_sayer(quiet))


@app.command()
def report(
    model: options.ModelPath,
    table: options.MaybeTable = None,
    target: options.OtherTarget = None,
    out: options.OutPage = "report.html",
    refit: options.Refit = False,
    groups: options.OtherGroups = None,
    delimiter: options.Delimiter = None,
    format: options.FormatOption = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a page about a model that can be opened without a network, with its quality on a table's rows.

    A model is scored itself on a table that it has not counted, by fit or update. Of one that it has, or with --refit,
    each part is predicted by the same estimator, fitted to the other parts. Rows of one group are in one part.

    \b
    everytree report model.et --out report.html
    everytree report model.et held_out.csv --out report.html
    """
    from everytree.cli.judging import report_file
    from everytree.cli.tables import Reading

    how = Reading(format, delimiter=delimiter, progress=_shows(quiet))
    report_file(model, table, out, how, target=target, groups=groups, refit=refit, say=_sayer(quiet))


@app.command()
def demo() -> None:
    """Fit a meta-tree to a bundled data set and show what comes out."""
    from everytree.cli.demo import run

    run()


# ---- small things ---------------------------------------------------------------------------------------------------


def _shows(quiet: bool) -> bool:
    """Bars move on a terminal; in a pipe there are none."""
    return sys.stderr is not None and sys.stderr.isatty() and not quiet


def _sayer(quiet: bool) -> Callable[[str], None]:
    """Says what was done, where it does not mix with results."""
    return lambda sentence: None if quiet else typer.echo(sentence, err=True)
