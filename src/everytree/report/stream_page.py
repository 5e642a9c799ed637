"""The page about an online forest: the parts of other pages that it has too, from a table of rows."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from everytree.base.errors import ArgumentError
from everytree.base.words import number_of
from everytree.online.base import OnlineForest
from everytree.report.effects import MAX_COLUMNS, MAX_POINTS, MAX_ROWS, effect_charts, shown_classes
from everytree.report.examples import examples
from everytree.report.importances import Importances, importances_html
from everytree.report.judged import quality_html
from everytree.report.opening import tiles, title, verdict
from everytree.report.stream_data import MAX_CATEGORIES, category_labels, stream_data
from everytree.report.stream_quality import judged_stream, why_not_scored
from everytree.report.streams import ClassStream, NumberStream, StreamRows, parameters_of, read_stream_rows, stream_of
from everytree.report.template import absent, filled, pairs_list
from everytree.tables.code_names import one_line
from everytree.view.describe import amount, number


def stream_page(
    forest: OnlineForest, table: Any, beside: dict[str, Any], held_out: bool, target_name: str | None, n_examples: int
) -> str:
    """The page as text; parameters are those of `report_html`."""
    for name in ("sample_weight", "exposure", "censored", "event", "groups"):
        if beside[name] is not None:
            raise ArgumentError(name, f"must be None: {type(forest).__name__} knows nothing of it")
    if not forest.n_rows:
        raise ValueError(f"this {type(forest).__name__} has learned no rows yet: there is nothing to report")
    rows = None if table is None else read_stream_rows(forest, table, beside["target"])
    stream, names = stream_of(forest, rows), [one_line(name) for name in forest.features]
    why_not = why_not_scored(rows, held_out)
    scores, quality = (None, []) if why_not or rows is None else judged_stream(stream, rows, held_out)
    labels = category_labels(rows)
    data = stream_data(stream, rows, names, labels)
    data["examples"] = examples(stream, rows, n_examples, data["inputs"], labels)
    target_name = target_name or (None if rows is None else rows.target_name)
    found = None if rows is None or not len(rows) else _importances(stream, rows)
    sections = {
        "title": escape(title(forest, target_name)),
        "verdict": escape(verdict(scores, quality)),
        "tiles": tiles(forest.n_rows, len(names), scores, quality),
        "lead": escape(_lead(forest)),
        "facts": pairs_list(_facts(forest, target_name)),
        "expert_facts": pairs_list(_expert_facts(forest)),
        "priors": "",
        "parameters": pairs_list((name, one_line(repr(value))) for name, value in parameters_of(forest).items()),
        "quality": absent(why_not) if why_not else "".join(map(quality_html, quality)),
        "importances": absent(_no_columns())
        if found is None
        else importances_html(found, names, lambda value: number(value, 3)),
        "effects": "" if found is None or rows is None else _effects(stream, rows, found),
        "tree_links": "",
        "tree_sections": "",
        "no_whatif": escape(_no_whatif(rows)),
        "contains": escape(_contains(rows, len(data["examples"]))),
    }
    return filled(sections, data)


# ---- columns --------------------------------------------------------------------------------------------------------


def _importances(stream: NumberStream, rows: StreamRows) -> Importances:
    """How far each feature moves predictions; of several classes, half of what all probabilities move together."""
    some = rows.at(np.unique(np.linspace(0, len(rows) - 1, MAX_ROWS).round().astype(np.int64)))
    moved = np.abs(stream.explain(some.inputs).values)
    if moved.ndim == 3:
        moved = 0.5 * moved.sum(axis=2)
    low, high = np.quantile(moved, [0.05, 0.95], axis=0)
    what = "probabilities" if isinstance(stream, ClassStream) else "prediction"
    meaning = (
        f"How far each column moves the {what} of a row, on average over {number_of(len(some), 'row')} of the table; "
        "the line reaches over 90% of them."
    )
    return Importances(moved.mean(axis=0), low, high, None, meaning)


def _effects(stream: NumberStream, rows: StreamRows, found: Importances) -> str:
    order = (-found.middle).argsort(kind="stable")[:MAX_COLUMNS]
    shown = [
        stream.effect(rows.names[k], rows.inputs, max_points=MAX_POINTS, max_rows=MAX_ROWS)
        for k in order.tolist()
        if found.middle[k] > 0.0
    ]
    labels = list(stream.classes_) if isinstance(stream, ClassStream) else []
    return effect_charts(shown, [one_line(label) for label in labels], shown_classes(labels, rows))


# ---- words ----------------------------------------------------------------------------------------------------------


def _lead(forest: OnlineForest) -> str:
    fades = "" if forest.half_life is None else f" A row counts half after {amount(float(forest.half_life))} more rows."
    return (
        f"Learned from {number_of(forest.n_rows, 'row')} of {number_of(len(forest.features), 'column')}, one after the "
        f"other. It predicts by averaging every pruning of each of {number_of(forest.n_models, 'random tree')}, each "
        f"weighted by its posterior probability.{fades}"
    )


def _facts(forest: OnlineForest, target_name: str | None) -> Iterator[tuple[str, str]]:
    if target_name is not None:
        yield "Target", one_line(target_name)
    yield "Model", type(forest).__name__
    yield "Rows", amount(float(forest.n_rows))
    n_texts = sum(map(forest.is_category, forest.features))
    n_numbers = len(forest.features) - n_texts
    yield "Columns", f"{len(forest.features)} ({number_of(n_numbers, 'number')}, {number_of(n_texts, 'text')})"
    if hasattr(forest, "classes"):
        yield "Classes", ", ".join(one_line(label) for label in forest.classes)


def _expert_facts(forest: OnlineForest) -> Iterator[tuple[str, str]]:
    evidence = forest.log_evidence
    yield "Log evidence of a tree", f"{number(evidence.min(), 6)} to {number(evidence.max(), 6)} nats"
    limit = "" if forest.max_nodes is None else f", at most {forest.max_nodes:,}"
    yield "Nodes of all trees", f"{forest.n_nodes:,}{limit}"
    yield "Leaf model", one_line(forest.trees.family)


def _no_columns() -> str:
    return "Which columns matter is measured on rows, and this page was made without a table of them."


def _no_whatif(rows: StreamRows | None) -> str:
    if rows is None:
        return "The fields of this part are made from a table, and this page was made without one."
    return f"A column of texts has more than {MAX_CATEGORIES} different ones, which are too many to choose from."


def _contains(rows: StreamRows | None, n_examples: int) -> str:
    if rows is None:
        return ""
    if not n_examples:
        return ": the model, but no rows of the table"
    return f": the model, and {number_of(n_examples, 'row')} of the table to try it with"
