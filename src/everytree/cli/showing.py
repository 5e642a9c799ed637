"""A model in words: what it was fitted on, what matters to it, and a tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from everytree.base.words import number_of
from everytree.cli.models import ModelFile, described, n_rows_of
from everytree.estimators.registry import is_estimator
from everytree.online.base import OnlineForest
from everytree.view.describe import SHOW_ALL

BAR = 30
"""Columns of the widest bar."""
EIGHTHS = " ▏▎▍▌▋▊▉"
MAX_TABLES = 12
"""Maximum number of tables listed by name."""


def show_model(file: ModelFile, *, top: int, depth: int, all_splits: bool) -> str:
    """All of it, as text."""
    model = file.model
    if isinstance(model, OnlineForest):  # its trees are too random to be read
        size = f"{number_of(model.n_models, 'tree')}, {number_of(model.n_nodes, 'node')}"
        return f"{file.path}: {type(model).__name__} of {size}, {number_of(model.n_rows, 'row')}"
    if not is_estimator(model) or not model.__sklearn_is_fitted__():
        drawn = model.to_text(max_depth=depth) if hasattr(model, "to_text") else ""
        return f"{file.path}: {model!r}\n{drawn}".rstrip()
    parts = [_facts(file), _importances(model, top), _tree(model, depth, all_splits)]
    return "\n\n".join(part for part in parts if part)


def _facts(file: ModelFile) -> str:
    model, roles = file.model, file.roles
    facts = {
        "model": described(model),
        "target": f"{roles.target or 'unknown'}, {_target_kind(model)}",
        "columns": model.schema_.summary(),
        "rows": f"{n_rows_of(model)}{_origin(file)}",
    }
    if model.counts_rows:
        facts["evidence"] = f"log p(y | X) = {model.log_evidence_:.4f}"
    unseen = getattr(model, "unseen_", None)
    if unseen is not None:
        facts["unseen"] = unseen.sentence()
    for role in ("weight", "exposure", "censored", "event", "entry"):
        if getattr(roles, role):
            facts[role] = f"column {getattr(roles, role)}"
    return "\n".join([file.path, *(f"{name:<10}{value}" for name, value in facts.items())])


def _target_kind(model: Any) -> str:
    if not model.has_classes:
        return f"numbers ({model.family_})"
    labels = [str(label) for label in model.classes_]
    more = ", ..." if len(labels) > 6 else ""
    return f"{number_of(len(labels), 'class', 'classes')}: {', '.join(labels[:6])}{more}"


def _origin(file: ModelFile) -> str:
    counted = file.roles.counted
    listed = ", ".join(f"{one.table} ({one.rows})" for one in counted[:MAX_TABLES])
    more = f" and {len(counted) - MAX_TABLES} more" if len(counted) > MAX_TABLES else ""
    return f": {listed}{more}" if counted else ""


def _importances(model: Any, top: int) -> str:
    """The most important columns, with bars."""
    importances = model.feature_importances_
    names = model.schema_.input_names or [f"column {k}" for k in range(len(importances))]
    order = np.argsort(-importances, kind="stable")[:top]
    order = order[importances[order] > 0.0]
    if not len(order):
        return ""
    width = max(len(str(names[k])) for k in order)
    largest = importances[order[0]]
    lines = [f"  {names[k]:<{width}}  {bar(importances[k] / largest, BAR)}  {importances[k]:.3f}" for k in order]
    columns = number_of(len(importances), "column")
    quality = "most important" if model.model_.parts.exact is None else "most often split on"
    which = f"the {len(order)} {quality} of {columns}" if len(order) > 1 else f"the {quality} of {columns}"
    return "\n".join([which, *lines])


def bar(share: float, width: int) -> str:
    """A bar of blocks and eighths of a block, and spaces up to its width; as short as an eighth, so that it is seen."""
    eighths = max(round(8 * width * share), 1)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()).ljust(width)


def _tree(model: Any, depth: int, all_splits: bool) -> str:
    """One tree drawn, and how probable its best pruning is."""
    if not model.counts_rows:
        return ""  # boosted trees are too many to be read
    if n_rows_of(model) == 0:
        return "It has seen no rows: structures and priors alone."
    best = _best_tree(model)
    drawn = model.to_text(max_depth=depth, **({"min_helps": 0.0} if all_splits else {}))
    return f"{best}\n{drawn.replace(SHOW_ALL, '--all-splits')}"


def _best_tree(model: Any) -> str:
    if model.model_.parts.exact is not None:  # over every structure
        return f"the most probable tree: {_size(model.map_tree_.n_leaves, model.map_tree_.log_prob)}"
    if len(model.forest_) > 1:  # no single pruning of so many trees has a probability worth reading
        leaves = float(np.mean([post.expected_leaves() for post in model.posteriors_]))
        return (
            f"one of {len(model.forest_)} trees, that of the largest evidence, to be read from the top; pruned, a tree "
            f"has {leaves:.3g} leaves on average"
        )
    (ranked,) = model.pictured().top_trees(1)
    size = _size(ranked.tree.n_leaves, ranked.log_prob)
    return f"the tree, to be read from the top; its most probable pruning has {size}"


def _size(n_leaves: int, log_prob: float) -> str:
    return f"{number_of(n_leaves, 'leaf', 'leaves')}, probability {np.exp(log_prob):.3g}"
