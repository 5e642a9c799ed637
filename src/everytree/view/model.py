"""A fitted model as a fragment of HTML, for notebooks: its quality, its importances and a tree with names."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from everytree.tables.code_names import one_line
from everytree.view.colours import LIGHT
from everytree.view.html import tree_list_html

MAX_COLUMNS = 8
_BAR = "display:inline-block;height:.75em;border-radius:2px"
_CELL = "text-align:right;padding:.1em .8em"


def model_html(model: Any) -> str:
    """Summary of a fitted estimator."""
    parts = ["<div>", *_title(model), *_quality(model), *_importances(model), *_tree(model), "</div>"]
    return "".join(parts)


def _title(model: Any) -> Iterator[str]:
    n_rows = model.model_.n_rows
    facts = [f"{n_rows:,} row{'' if n_rows == 1 else 's'}", f"{model.n_features_in_:,} columns"]
    if model.has_classes:
        names = [one_line(label) for label in model.classes_]
        shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        facts.append(f"classes {shown}")
    if model.model_.size:
        facts.append(model.model_.size)
    yield f"<b>{escape(type(model).__name__)}</b> &nbsp; {escape(', '.join(facts))}"
    yield f'<details style="font-size:85%"><summary>parameters</summary>{escape(repr(model))}</details>'


def _quality(model: Any) -> Iterator[str]:
    unseen = getattr(model, "unseen_", None)
    if unseen is not None:
        sentence = unseen.sentence()
        yield f"<p>{escape(sentence[:1].upper() + sentence[1:])}.</p>"
    else:
        yield "<p>No rows were left out of this model; <code>score(X, y)</code> judges it by other rows.</p>"


def _importances(model: Any) -> Iterator[str]:
    """The columns that matter most, with bars."""
    values = np.asarray(model.feature_importances_)
    names = model.schema_.input_names or [f"x{k}" for k in range(len(values))]
    order = [k for k in np.argsort(-values, kind="stable")[:MAX_COLUMNS] if values[k] > 0.0]
    if not order:
        yield "<p>No column is related to the target.</p>"
        return
    yield "<table><caption>Importance of columns</caption>"
    for k in order:
        width = 12.0 * values[k] / values[order[0]]
        bar = f'<span style="{_BAR};width:{width:.2f}em;background:{LIGHT.split(0.8)}"></span>'
        yield f'<tr><td style="{_CELL}">{escape(one_line(names[k]))}</td><td style="{_CELL}">{values[k]:.3f}</td>'
        yield f'<td style="text-align:left">{bar}</td></tr>'
    left = int((values > 0.0).sum()) - len(order)
    if left > 0:
        yield f'<tr><td style="{_CELL}" colspan="2">and {left:,} more column{"" if left == 1 else "s"}</td></tr>'
    yield "</table>"


def _tree(model: Any) -> Iterator[str]:
    """The tree that is pictured, where the model has one; leaves that are lines have their own texts."""
    if not model.counts_rows:
        return
    what = "The tree" if model.model_.parts.exact is None else "The most probable tree"
    if model.model_.size:
        what = f"The tree that explains the rows best, one of {model.model_.size}"
    yield f'<div style="margin-top:.6em">{what}</div>'
    yield tree_list_html(model.pictured(), **model.drawing_options({}))
