"""A model as plain arrays inside the page, with all that its script needs to predict a row like Python.

Trees lie one after another, nodes in level order, so that children need no pointers: each node stores their number.
Only terminals carry statistics, since those of a node are the sum of its children's. A split probability is a whole
number of 2**-40, which changes no prediction by more than 1e-11.

If the arrays do not fit within `MAX_BYTES`, the nodes least likely to be in their trees are left out. The page then
says by how much any predicted probability can be off.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.boosting.trees import AdditiveTrees
from everytree.exact.posterior import ExactPosterior
from everytree.exact.prediction import Leaves
from everytree.families.base import NativeFamily
from everytree.models.model import Parts
from everytree.posterior.posterior import Posterior
from everytree.report.subject import Subject
from everytree.tables.code_names import DAY, cut_texts
from everytree.tables.column import Column
from everytree.trees.metatree import MetaTree
from everytree.view.describe import CLASS_COLOURS

MAX_BYTES = 3_300_000
"""Maximum size of the arrays before they are encoded as text, which adds a third; columns are subtracted from it."""

EXACT = 1e-10
"""Probability mass that may be left out of the trees of a forest that is blended with boosted trees."""

NEGLIGIBLE_PROB = 1e-13
"""A node with a smaller probability to be in its tree changes no prediction."""

ANY_VALUE = "any value"
"""In the place of all texts of a column that no tree asks for."""

MANY = 20
"""Number of texts from which on a page says that it contains those of a column."""

ARRAYS = ("n_children", "feature", "threshold", "missing_child", "split_high", "split_low")


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
        if not can_predict or not asked[model.schema_.input_of == k].any():
            _hide(field, may_be_new=False, is_hidden=True)
    for column, is_asked in zip(columns, asked, strict=True):
        if not is_asked:
            _hide(column, groups=[], n_codes=1)
    return {
        "kernel": family.kernel if can_predict else None,
        "prior": family.summarise(np.zeros((1, family.n_statistics)))[0].tolist() if can_predict else [],
        "classes": words.classes,
        "last_time": words.last_time,
        "colours": list(CLASS_COLOURS),
        "sharpness": 1.0 if subject.parts.forest is None else float(subject.parts.forest.sharpness),
        "inputs": inputs,
        "columns": columns,
        "features": words.features,
        "missing_is_code": subject.parts.exact is not None,
        "weights": subject.weights,
        "evidence": [post.log_evidence for post in subject.posts],
        "first_shown": subject.first,
        **{name: parts[name] for name in ("leaves", "left_out", "boosted")},
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


def tree_parts(subject: Subject, budget: int) -> dict[str, Any]:
    """The trees of a forest, or those of an exact model that are drawn and its leaf regions."""
    family, n_codes = subject.family, subject.model.schema_.n_codes
    can_predict = family.is_in_browser and family.has_one_prior
    posterior = subject.parts.exact
    budget = budget if posterior is None else budget // 2
    trees = trees_data(subject.posts, subject.weights, n_codes, budget, can_predict)
    _add_helpful(trees, subject)
    leaves = leaves_data(posterior, budget) if posterior is not None and can_predict else None
    asked = _asked(subject.posts, trees["kept"], len(n_codes))
    if leaves is not None:
        asked[leaves.pop("asked")] = True
    left_out = (leaves or trees)["left_out"]
    return {
        "can_predict": can_predict, "trees": trees, "leaves": leaves, "left_out": left_out, "boosted": None,
        "asked": asked,
    }  # fmt: skip


def boosted_parts(subject: Subject, budget: int) -> dict[str, Any]:
    """Boosted trees of classes and the forest that they are mixed with, if there is room for all of them."""
    parts, n_codes = subject.parts, subject.model.schema_.n_codes
    asked = np.zeros(len(n_codes), dtype=bool)
    nothing = {
        "can_predict": False, "trees": None, "leaves": None, "left_out": 0.0, "boosted": None, "asked": asked,
    }  # fmt: skip
    if parts.additive is None or parts.residuals is not None:
        return nothing
    boosted, trees = boosted_data(parts.additive, parts, n_codes), None
    budget -= _n_bytes(boosted["arrays"].values())
    if budget < 0:
        return nothing
    if subject.posts:
        trees = trees_data(subject.posts, subject.weights, n_codes, budget, True)
        if trees["left_out"] > EXACT:  # in a mean of logarithms it has no bound
            return nothing
        asked |= _asked(subject.posts, trees["kept"], len(n_codes))
    features = parts.additive.nodes["feature"]
    asked[features[features >= 0]] = True
    return {**nothing, "can_predict": True, "trees": trees, "boosted": boosted}


# ---- columns --------------------------------------------------------------------------------------------------------


def inputs_data(subject: Subject) -> list[dict[str, Any]]:
    """The values a visitor may enter for each input column; if several columns of codes read it, the finest decides."""
    readers: dict[int, list[Column]] = {}
    schema = subject.model.schema_
    for column, place in zip(schema.columns, schema.input_of, strict=True):
        readers.setdefault(int(place), []).append(column)
    inputs = []
    for place, name in enumerate(subject.words.inputs):
        columns = readers.get(place, [Column(None, "numeric")])
        kind: str = columns[0].kind if columns[0].hashed is None else "categorical"
        cuts = np.unique(np.concatenate([column.cuts for column in columns]))
        categories = list(dict.fromkeys(value for column in columns for value in column.categories))
        inputs.append(
            {
                "name": name,
                "kind": kind,
                "categories": [str(value) for value in categories],
                "range": slider_range(cuts, kind) if kind in ("numeric", "datetime") and len(cuts) else None,
                "may_miss": subject.parts.exact is None or any(column.has_missing for column in columns),
                "may_be_new": subject.parts.exact is None,
            }
        )
    return inputs


def slider_range(cuts: FloatArray, kind: str) -> list[float]:
    """Start, end, first value and step of a slider: the first three are whole steps.

    It reaches a little beyond the outer cuts and starts between the middle ones.
    """
    margin = 0.05 * float(cuts[-1] - cuts[0]) or 0.25 * abs(float(cuts[0])) or 1.0
    low, high = float(cuts[0]) - margin, float(cuts[-1]) + margin
    middle = float(cuts[max(len(cuts) // 2 - 1, 0) : len(cuts) // 2 + 1].mean())
    step = _date_step(high - low) if kind == "datetime" else _number_step(cuts, high - low)
    decimals = max(0, -math.floor(math.log10(step)))
    ends = math.floor(low / step), math.ceil(high / step), math.floor(middle / step)
    return [*(round(whole * step, decimals) for whole in ends), step]


def _number_step(cuts: FloatArray, span: float) -> float:
    """A power of ten, with a hundred to a thousand steps; cuts between whole numbers are multiples of a half."""
    if (2.0 * cuts == np.floor(2.0 * cuts)).all():
        return 1.0
    return float(f"1e{math.floor(math.log10(span)) - 2}")


def _date_step(span: float) -> float:
    """Microseconds of a day, a minute or a second, whichever is the longest that leaves a hundred steps."""
    return next((step for step in (DAY, 60e6) if span >= 100.0 * step), 1e6)


def column_data(column: Column, index: int) -> dict[str, Any]:
    """Data with which the script turns a value into a code."""
    return {
        "input": index,
        "kind": column.kind,
        "cuts": column.cuts.tolist(),
        "cut_names": [_unless_same(text, float(cut)) for text, cut in zip(cut_texts(column), column.cuts, strict=True)],
        "categories": [str(value) for value in column.categories],
        "groups": list(column.groups),
        "has_unseen": column.has_unseen,
        "new_code": column.new_code,
        "single": column.single,
        "formula": column.formula,
        "has_missing": column.has_missing,
        "n_codes": column.n_codes,
    }


def _unless_same(text: str, cut: float) -> str | None:
    """Return a date, or a text that differs from the cut as a number; otherwise None: the page writes the cut."""
    try:
        return None if float(text) == cut else text
    except ValueError:
        return text


# ---- trees ----------------------------------------------------------------------------------------------------------


def trees_data(
    posts: Sequence[Posterior], weights: Sequence[float], n_codes: NDArray[Any], budget: int, with_statistics: bool
) -> dict[str, Any]:
    """Nodes of all trees that matter, or for which there is room."""
    reached = [post.node_prob for post in posts]
    max_nodes = sum(map(len, reached))
    while True:
        least = _min_probability(reached, max_nodes)
        kept = [prob >= least for prob in reached]
        trees = [_tree_arrays(post, keep, n_codes, with_statistics) for post, keep in zip(posts, kept, strict=True)]
        arrays = _joined(trees)
        n_bytes = _n_bytes(arrays)
        if n_bytes <= budget or max_nodes <= len(posts):
            break
        max_nodes = min(int(0.95 * budget / n_bytes * sum(keep.sum() for keep in kept)), max_nodes - 1)
    left_out = sum(
        weight * float(prob[~keep].max(initial=0.0)) for weight, prob, keep in zip(weights, reached, kept, strict=True)
    )
    return {
        "kept": kept,
        "sizes": [int(keep.sum()) for keep in kept],
        "all_sizes": [post.tree.n_nodes for post in posts],
        "arrays": dict(zip(ARRAYS, arrays, strict=False)),
        "statistics": arrays[len(ARRAYS) :],
        "left_out": left_out,
    }


def _add_helpful(trees: dict[str, Any], subject: Subject) -> None:
    """Add for the tree that is shown first how probable it is that each split helps rows it was not chosen on."""
    keep, helpful = trees["kept"][subject.first], subject.helpful
    trees["helps"] = None if helpful is None else np.round(helpful[keep], 4).tolist()


def _n_bytes(arrays: Iterable[list[str]]) -> int:
    """Size of packed arrays before they became text."""
    return sum(3 * len(text) // 4 for array in arrays for text in array[1:])


def _joined(trees: list[dict[str, NDArray[Any]]]) -> list[list[str]]:
    """Join the arrays of all trees as text: those of `ARRAYS`, then the columns of statistics."""
    joined = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    return [packed(joined[name]) for name in ARRAYS] + [packed(column) for column in joined["statistics"].T]


def _min_probability(reached: Sequence[FloatArray], max_nodes: int) -> float:
    """Probability below which nodes are left out. Siblings have the same one: they stay or go together."""
    every = np.concatenate(reached)
    if len(every) <= max_nodes:
        return NEGLIGIBLE_PROB
    least = float(np.partition(every, -max_nodes)[-max_nodes]) if max_nodes > 0 else 1.0
    return max(NEGLIGIBLE_PROB, min(float(np.nextafter(least, 2.0)), 1.0))  # roots, which are in every tree, stay


def _tree_arrays(
    post: Posterior, keep: NDArray[np.bool_], n_codes: NDArray[Any], with_statistics: bool
) -> dict[str, NDArray[Any]]:
    """Arrays of one tree. A node whose children are left out is a terminal here."""
    tree, family = post.tree, post.family
    assert isinstance(family, NativeFamily)
    inner = _inner(tree, keep)
    ends = keep & ~inner
    fixed = np.round(np.clip(post.split_prob[inner], 0.0, 1.0) * (2**40 - 1)).astype(np.uint64)
    return {
        "n_children": np.where(inner, tree.n_children, 0)[keep],
        "feature": tree.feature[inner],
        # Thresholds from the last code on only test for a value; the smallest of them fits in a byte.
        "threshold": np.minimum(tree.threshold[inner], n_codes[tree.feature[inner]] - 1) + 1,
        "missing_child": tree.missing_child[inner] + 1,
        "split_high": (fixed >> np.uint64(8)).astype(np.uint32),
        "split_low": (fixed & np.uint64(255)).astype(np.uint8),
        "statistics": family.additive(post.statistics[ends]) if with_statistics else np.zeros((ends.sum(), 0)),
    }


def _inner(tree: MetaTree, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n_nodes,) which nodes have children that are kept."""
    first_child = np.where(tree.is_terminal, 0, tree.first_child)
    return np.asarray(keep & ~tree.is_terminal & keep[first_child])


def _asked(posts: Sequence[Posterior], kept: Sequence[NDArray[np.bool_]], n_features: int) -> NDArray[np.bool_]:
    """(n_features,) which columns the kept nodes ask for."""
    asked = np.zeros(n_features, dtype=bool)
    for post, keep in zip(posts, kept, strict=True):
        asked[post.tree.feature[_inner(post.tree, keep)]] = True
    return asked


def boosted_data(trees: AdditiveTrees, parts: Parts, n_codes: NDArray[Any]) -> dict[str, Any]:
    """Boosted trees of classes; with a forest, the weight and the sharpness of the mixture."""
    feature, threshold = trees.nodes["feature"], trees.nodes["threshold"]
    inner = feature >= 0
    arrays = {
        "sizes": packed(trees.n_nodes),
        "feature": packed(feature + 1),
        "threshold": packed(np.minimum(threshold[inner], n_codes[feature[inner]] - 1) + 1),
        "missing_child": packed(trees.nodes["missing_child"][inner] + 1),
        "value": packed(trees.value.ravel()),
    }
    return {
        "arrays": arrays, "base": trees.base.tolist(), "n_values": trees.n_values, "weight": parts.weight,
        "sharpness": parts.sharpness,
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


# ---- arrays as text -------------------------------------------------------------------------------------------------


def packed(values: NDArray[Any]) -> list[str]:
    """An array as the smallest type that holds every value, little endian, in base 64.

    Other numbers that repeat, such as those of leaves with one row, are listed once: indices first, then the list.
    """
    whole = values.dtype.kind in "iub" or bool((values == np.floor(values)).all() and (np.abs(values) < 2**32).all())
    if whole and (not len(values) or values.min() >= 0):
        return [kind := _smallest(values), _base64(values, kind)]
    distinct, places = np.unique(values, return_inverse=True)
    kind = _smallest(places)
    if 8 * len(distinct) + int(kind[1]) * len(places) < 8 * len(values):
        return [kind, _base64(places, kind), _base64(distinct, "f8")]
    return ["f8", _base64(values, "f8")]


def _smallest(values: NDArray[Any]) -> str:
    top = int(values.max(initial=0))
    return next((kind for kind, most in (("u1", 2**8), ("u2", 2**16), ("u4", 2**32)) if top < most), "f8")


def _base64(values: NDArray[Any], kind: str) -> str:
    return b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode("ascii")
