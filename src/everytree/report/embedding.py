"""A model as plain arrays inside the page, with all that its script needs to predict a row like Python.

Trees lie one after another, nodes in level order, so that children need no pointers: each node stores their number.
Only terminals carry statistics, since those of a node are the sum of its children's. A split probability is a whole
number of 2**-40, which changes no prediction by more than 1e-11.

If the arrays do not fit within `MAX_BYTES`, the nodes least likely to be in their trees are left out. The page then
says by how much any predicted probability can be off.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.exact.posterior import ExactPosterior
from everytree.exact.prediction import Leaves
from everytree.report.boosted import boosted_parts
from everytree.report.fields import column_data, inputs_data
from everytree.report.forest_arrays import asked_by, trees_data
from everytree.report.packing import packed
from everytree.report.subject import Subject
from everytree.view.describe import CLASS_COLOURS

MAX_BYTES = 3_300_000
"""Maximum size of the arrays before they are encoded as text, which adds a third; columns are subtracted from it."""

ANY_VALUE = "any value"
"""In the place of all texts of a column that no tree asks for."""

MANY = 20
"""Number of texts from which on a page says that it contains those of a column."""


def model_data(subject: Subject) -> dict[str, Any]:
    """Return all data of the page's script, ready for JSON."""
    model, family, words = subject.model, subject.family, subject.words
    columns = [
        column_data(column, int(place))
        for column, place in zip(model.schema_.columns, model.schema_.input_of, strict=True)
    ]
    budget = max(MAX_BYTES - 3 * len(json.dumps(columns)) // 4, MAX_BYTES // 4)  # columns are text already
    parts = tree_parts(subject, budget) if subject.is_drawn else boosted_parts(subject, budget)
    can_predict = parts["can_predict"] and all(column.hashed is None for column in model.schema_.columns)
    asked = parts["asked"]
    for column in (column for column, is_asked in zip(model.schema_.columns, asked, strict=True) if is_asked):
        asked[[] if column.formula is None else list(column.formula[1:3])] = True
    inputs = inputs_data(subject)
    for k, field in enumerate(inputs):
        is_asked = bool(asked[model.schema_.input_of == k].any())
        if not (can_predict and is_asked):
            _hide(field, may_be_new=False, is_hidden=not is_asked)
    for column, is_asked in zip(columns, asked, strict=True):
        if not is_asked or not (can_predict or subject.is_drawn):
            _hide(column, groups=[], n_codes=1)
    forest = subject.parts.residuals or subject.parts.forest
    return {
        "kernel": family.kernel if can_predict else None,
        "prior": family.summarise(np.zeros((1, family.n_statistics)))[0].tolist() if can_predict else [],
        "classes": words.classes,
        "last_time": words.last_time,
        "colours": list(CLASS_COLOURS),
        "sharpness": 1.0 if forest is None else float(forest.sharpness),
        "inputs": inputs,
        "columns": columns,
        "features": words.features,
        "missing_is_code": subject.parts.exact is not None,
        "evidence": [post.log_evidence for post in subject.posts],
        "first_shown": subject.first,
        **{name: parts[name] for name in ("weights", "leaves", "left_out", "boosted")},
        "trees": None if parts["trees"] is None else {k: v for k, v in parts["trees"].items() if k != "kept"},
    }


def _hide(data: dict[str, Any], **more: Any) -> None:
    """Put one word in the place of the texts of a column, or of the field that is filled with them."""
    if data["kind"] == "categorical":
        data |= {"categories": [ANY_VALUE], **more}


def listed_columns(data: dict[str, Any]) -> list[str]:
    """Names of the columns of many texts all of which are in a page."""
    texts = (
        name
        for name, column in zip(data["features"], data["columns"], strict=True)
        if column["kind"] == "categorical" and len(column["categories"]) > MANY
    )
    return [*dict.fromkeys(texts)]  # several columns may read one input


def _add_helpful(trees: dict[str, Any], subject: Subject) -> None:
    """Add for the tree that is shown first how probable it is that each split helps rows it was not chosen on."""
    keep, helpful = trees["kept"][subject.first], subject.helpful
    trees["helps"] = None if helpful is None else np.round(helpful[keep], 4).tolist()


def tree_parts(subject: Subject, budget: int) -> dict[str, Any]:
    """The trees of a forest, or those of an exact model that are drawn and its leaf regions."""
    family, n_codes = subject.family, subject.model.schema_.n_codes
    can_predict = family.is_in_browser and family.has_one_prior
    posterior = subject.parts.exact
    budget = budget if posterior is None else budget // 2
    trees = trees_data(subject.posts, subject.weights, n_codes, budget, can_predict)
    _add_helpful(trees, subject)
    leaves = leaves_data(posterior, budget) if posterior is not None and can_predict else None
    asked = asked_by(subject.posts, len(n_codes), trees["kept"])
    if leaves is not None:
        asked[leaves.pop("asked")] = True
    left_out = (leaves or trees)["left_out"]
    return {
        "can_predict": can_predict, "trees": trees, "leaves": leaves, "left_out": left_out, "boosted": None,
        "asked": asked, "weights": subject.weights,
    }  # fmt: skip


# ---- exact models ---------------------------------------------------------------------------------------------------


def leaves_data(posterior: ExactPosterior, budget: int) -> dict[str, Any]:
    """The leaf regions of an exact model: their conditions, probabilities and statistics."""
    engine, family = posterior.engine(), posterior.family
    most = budget // (16 + 4 * posterior.max_depth + 4 * family.additive(np.zeros((1, family.n_statistics))).shape[1])
    leaves = posterior.leaf_regions(False)
    if len(leaves.weight) > most:
        threshold = engine.threshold(posterior.target_truncation, most, False)
        leaves = Leaves.of(engine, family.n_statistics, threshold, False)
    kinds = np.array([kind == "ordered" for kind in posterior.kinds])
    ordered = kinds[leaves.column] if len(leaves.column) else np.zeros(0, dtype=bool)
    low, high = _intervals(leaves.codes, ordered)
    return {
        "weight": packed(leaves.weight),
        "n_conditions": packed(np.diff(leaves.start)),
        "column": packed(leaves.column),
        "low": packed(low),
        "high": packed(high),
        "statistics": [packed(column) for column in family.additive(leaves.statistics).T],
        "asked": np.unique(leaves.column).astype(np.int64),
        "left_out": leaves.left_out if len(leaves.weight) < len(posterior.leaf_regions(False).weight) else 0.0,
    }


def _intervals(codes: NDArray[np.uint64], ordered: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any]]:
    """First and last of sets of codes: ends of an interval, or the one category, which is a bit of a word."""
    low, high = codes & np.uint64(0xFFFFFFFF), codes >> np.uint64(32)
    bit = np.array([int(code).bit_length() - 1 for code in codes.tolist()], dtype=np.int64)
    return np.where(ordered, low, bit), np.where(ordered, high, bit)
