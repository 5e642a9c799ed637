"""The page itself: a template, filled in by the other modules."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from everytree.base.progress import Progress
from everytree.base.words import number_of
from everytree.families.registry import NUMBER_FAMILIES
from everytree.files.atomic import replace_file
from everytree.report.effects import effects
from everytree.report.embedding import listed_columns, model_data
from everytree.report.examples import examples
from everytree.report.facts import expert_facts, facts, lead, parameters, priors
from everytree.report.importances import importances, importances_html
from everytree.report.opening import (
    refuse_rows_of_fit,
    scores_after_fit,
    scores_of_new,
    target_name_of,
    tiles,
    title,
    verdict,
)
from everytree.report.profile import profile
from everytree.report.quality import Quality, at_most, judged, quality_html, why_not_judged, why_not_refitted
from everytree.report.rows import JudgedRows, as_table, check_table, groups_of, other_columns, read_rows
from everytree.report.subject import Subject
from everytree.report.template import absent, filled, pairs_list, with_parts
from everytree.report.trees import listed_tree, probable_trees
from everytree.tables.code_names import one_line
from everytree.view.describe import number

N_STAGES = 5

OF_POSTERIOR = (
    "By their probability given all rows, on which the splits were chosen too. The tree above is shown without the "
    "splits that do not help other rows."
)

OF_FIT = (
    "The scores above are of rows of the fit, each predicted by trees that had not seen it. This page was made without "
    "a table of rows and targets, so there are no charts and no comparison."
)


def write_report(model: Any, table: Any, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write one self-contained HTML page about a fitted model.

    The page needs no network and no server: its script computes the predictions. A failure leaves an old file
    unchanged.

    Parameters
    ----------
    model, table
        As in `report_html`; `table` may be None.
    path : path-like
        The file to write.
    **options
        As in `report_html`.

    Returns
    -------
    pathlib.Path
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path must be the name of the file to write, but is of type {type(path).__name__}; the order is "
            "model.report(path, table) and write_report(model, table, path)"
        )
    folder = Path(path).parent
    if not folder.is_dir():  # before the work, not after it
        raise FileNotFoundError(f"path is {os.fspath(path)!r}, but there is no folder {os.fspath(folder)!r}")
    if Path(path).is_dir():
        raise IsADirectoryError(f"path is {os.fspath(path)!r}, which is a folder; name the file to write")
    replace_file(path, [report_html(model, table, **options).encode("utf-8")])
    return Path(path)


def report_html(model: Any, table: Any = None, **options: Any) -> str:
    """One self-contained HTML page about a fitted model, as text.

    Parameters
    ----------
    model : MetaForest*, MetaTree*, MetaBoost*, MetaEnsemble* or ExactTree* estimator, fitted
        An online forest has a page by way of its `snapshot`, a pipeline by way of its last step and the table that the
        steps before it make.
    table : data frame, list of dicts or (n_rows, n_features) array_like, optional
        Rows to judge the model by, with all columns that it reads. Without it the page has no section on quality.
    target : str or (n_rows,) array_like, optional
        The name of the target's column, or the targets; by default the column of the name that they had at fit, or the
        only one without another use.
    held_out : bool
        Whether the model was fitted to none of these rows. Then the model itself is scored. Otherwise, and also for a
        comparison with a plain forest, the estimator is fitted again to parts of the table: that is valid for any
        rows, including those of fit, but it scores other models than this one.
    sample_weight, exposure, censored, event, entry : str or (n_rows,) array_like, optional
        As in `fit`, or the names of their columns. Scores weight rows by `sample_weight`; exposure, and censored or
        its opposite event, are needed if the model was fitted with them.
    groups : str or (n_rows,) array_like, optional
        Rows that belong together, as in `fit`, or the name of their column: they are on one side where the estimator is
        fitted again to parts of the table. By default the column of the name that they had at fit; where the model was
        fitted with groups and the table has no such column, it is not fitted again.
    target_name : str, optional
        Name of the target on the page; by default that of its column or series.
    n_examples : int
        Number of rows of the table that the page contains, for the reader to try; 0 for none.
    progress : bool
        Whether to show how far the work is.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = et.MetaTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> print(report_html(model)[:15])
    <!doctype html>
    """
    return report_page(model, table, **options).text


class Page(NamedTuple):
    """A page, and the columns of many texts all of which it contains."""

    text: str
    listed: list[str]


def report_page(
    model: Any,
    table: Any = None,
    *,
    target: Any = None,
    held_out: bool = False,
    sample_weight: Any = None,
    exposure: Any = None,
    censored: Any = None,
    event: Any = None,
    entry: Any = None,
    groups: Any = None,
    target_name: str | None = None,
    n_examples: int = 10,
    progress: bool = False,
) -> Page:
    """As `report_html`, with the columns that the page lists."""
    if n_examples < 0:
        raise ValueError(f"n_examples is {n_examples}, but must be at least 0")
    check_table(table)
    table, known = as_table(table), getattr(getattr(model, "fitted_", None), "target_name", None)
    if target is None and table is not None and known in other_columns(model, table):
        target = known
    beside = {
        "target": target, "sample_weight": sample_weight, "exposure": exposure, "censored": censored, "event": event,
        "entry": entry, "groups": groups_of(model, table, groups),
    }  # fmt: skip
    taken = [value for value in beside.values() if isinstance(value, str)]
    others = [] if table is None else [one for one in other_columns(model, table) if one not in taken]
    name = target_name or target_name_of(target, others) or known
    subject = Subject.of(model)
    rows = None if table is None else _rows(model, table, beside)
    if held_out and rows is not None:
        refuse_rows_of_fit(model, rows)
    with Progress("writing the page", N_STAGES, progress) as bar:
        return _page(subject, rows, name, held_out, n_examples, bar.step)


def _page(
    subject: Subject,
    rows: JudgedRows | None,
    name: str | None,
    held_out: bool,
    n_examples: int,
    done: Callable[[], None],
) -> Page:
    """The page, stage by stage: quality, the model as arrays, rows to try, importances, effects."""
    model = subject.model
    scores, are_new = scores_after_fit(subject), False
    why_not, quality = _judged(model, rows, held_out, has_scores=scores is not None)
    if held_out and rows is not None and not why_not:
        scores, are_new = scores_of_new(model, at_most(rows)[0]), True
    done()
    data = model_data(subject)
    done()
    data["examples"] = examples(
        model, rows, n_examples, data["inputs"], explained=subject.can_be_explained, told=data["kernel"] is None
    )
    done()
    matter = importances(subject)
    done()
    of_columns = effects(subject, rows, matter)
    done()
    sections = {
        "title": escape(title(model, name)),
        "verdict": escape(verdict(scores, quality, are_new=are_new)),
        "tiles": tiles(subject.n_rows, model.schema_.n_inputs, scores, quality, are_whole=_are_whole(model)),
        "lead": escape(lead(subject)),
        "facts": pairs_list(facts(subject, name)),
        "expert_facts": pairs_list(expert_facts(subject)),
        "priors": pairs_list(priors(subject)),
        "parameters": pairs_list(parameters(subject)),
        "quality": why_not or _quality_section(model, rows, quality),
        "importances": importances_html(matter, subject.words.inputs) + profile(subject, rows),
        "effects": of_columns,
        "tree_links": "",
        "tree_sections": "",
        "no_whatif": escape(_no_whatif(subject, data)),
        "contains": escape(_contains(len(data["examples"]), listed_columns(data))),
    }
    if subject.is_drawn:
        sections |= _tree_sections(subject)
    return Page(filled(sections, data), listed_columns(data))


# ---- sections -------------------------------------------------------------------------------------------------------


def _are_whole(model: Any) -> bool:
    return not model.has_classes and NUMBER_FAMILIES[model.family_].support.is_whole


def _drawn(subject: Subject) -> str:
    """Say which tree the picture shows."""
    if subject.parts.exact is not None:
        return "The prunings of the single most probable tree; the model itself averages over every other tree too."
    if len(subject.posts) == 1:
        return "The one meta-tree of the model."
    share = subject.weights[subject.first] / sum(subject.weights)
    return (
        f"One vote of {len(subject.posts)}: the model averages over all of its trees, and this one has {share:.1%} of "
        "the weight. The list has all the others."
    )


def _no_whatif(subject: Subject, data: dict[str, Any]) -> str:
    """Why the page's script predicts nothing; empty where it does."""
    if data["kernel"] is not None:
        return ""
    leaves = type(subject.family).__name__
    if any(column.hashed is not None for column in subject.model.schema_.columns):
        why = "cannot predict by texts that the model has no list of; in Python, predict does"
    elif not subject.family.is_in_browser:
        why = f"cannot predict by {leaves} leaves; in Python, model.predictive(rows) does"
    else:
        why = "has no room for all trees of this model; in Python, predict has"
    rows = ": below are rows of the table, with what Python predicts for them" if data["examples"] else ""
    return f"The script of this page {why}, so that no values can be changed here{rows}."


def _contains(n_examples: int, listed: Sequence[str]) -> str:
    rows = f"and {number_of(n_examples, 'row')} of the table to try it with" if n_examples else "but no rows of a table"
    texts = f". {contained(listed)}" if listed else ""
    return f": the model, {rows}{texts}"


def contained(listed: Sequence[str]) -> str:
    """That a page contains every text of some columns, without a full stop."""
    *most, last = map(one_line, listed)
    return f"It contains all texts of the column{'s' if most else ''} {', '.join(most)}{' and ' if most else ''}{last}"


def _tree_sections(subject: Subject) -> dict[str, str]:
    """The picture of a tree; where there is one tree or one posterior over trees, the most probable ones too."""
    first = "the most probable pruning" if subject.helpful is None else "the splits that help other rows"
    parts = {"drawn": escape(_drawn(subject)), "first": first, "listed": listed_tree(subject)}
    section = with_parts("trees.html", parts)
    links = '<a href="#tree">Tree</a>'
    if len(subject.posts) == 1:  # of a forest, no single pruning has a probability worth reading
        section += with_parts("probable.html", {"trees": _trees(subject)})
        links += '\n      <a href="#probable">Top trees</a>'
    return {"tree_sections": section, "tree_links": links}


def _rows(model: Any, table: Any, beside: dict[str, Any]) -> JudgedRows:
    row_data = {name: beside[name] for name in ("exposure", "censored", "event", "entry")}
    return read_rows(model, table, beside["target"], beside["sample_weight"], row_data, beside["groups"])


def _judged(
    model: Any, rows: JudgedRows | None, held_out: bool, *, has_scores: bool
) -> tuple[str, list[Quality]]:  # fmt: skip
    """Scores of the rows, or the reason why there are none; `has_scores` where there are some of the fit."""
    why_not = OF_FIT if rows is None and has_scores else why_not_judged(rows)
    if why_not or rows is None:
        return absent(why_not), []
    return "", judged(model, rows, held_out)


def _quality_section(model: Any, rows: JudgedRows | None, quality: list[Quality]) -> str:
    """Scores and charts; the last of them are of the refitted estimator, or there is a reason why not."""
    why_not = "" if rows is None else why_not_refitted(model, rows)
    if why_not:
        return "".join([*map(quality_html, quality), absent(why_not)])
    *known, refitted = quality
    return "".join([*map(quality_html, known), quality_html(refitted, _imported(model))])


def _imported(model: Any) -> list[str]:
    if getattr(model, "structures_", None) is None:
        return []
    return ["The structures of this model were imported; those scored here were grown again."]


def _trees(subject: Subject) -> str:
    if "inputs" in subject.family.row_data:
        return absent("Leaves of this model are lines through the columns; single trees of them are not written out.")
    parts = [] if subject.helpful is None else [f"<p>{OF_POSTERIOR}</p>"]
    for rank, (prob, n_leaves, text) in enumerate(probable_trees(subject), start=1):
        head = f"Number {rank}: probability {number(prob, 3)}, {n_leaves} lea{'f' if n_leaves == 1 else 'ves'}"
        is_open = " open" if rank == 1 else ""
        parts.append(f"<details{is_open}><summary>{head}</summary><pre tabindex='0'>{escape(text)}</pre></details>")
    return "".join(parts)
