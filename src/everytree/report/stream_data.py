"""An online forest as plain arrays inside the page, for its panel.

Thresholds are coded tree by tree, since each tree has another order of the categories: every tree has columns of its
own, and a category is looked up among those of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.online.base import OnlineForest
from everytree.online.coded import CodedTree, coded_tree, split_probs
from everytree.report.embedding import MAX_BYTES, slider_range, trees_data
from everytree.report.streams import MICROSECONDS_OF_DAY, ClassStream, NumberStream, StreamRows
from everytree.tables.code_names import one_line
from everytree.trees.metatree import MetaTree
from everytree.view.describe import CLASS_COLOURS

MAX_CATEGORIES = 500
"""Number of categories, at most, of a column that a reader can choose from."""

Labels = dict[str, str]
"""The categories of a feature as its rows have them, and what the page calls each of them."""

LARGEST = float(np.finfo(np.float64).max)
"""In the place of infinity, which JSON does not have."""


@dataclass(frozen=True)
class StreamTree:
    """A tree of an online forest, with what a page reads of a posterior.

    Attributes
    ----------
    tree : MetaTree
    family : NativeFamily
    statistics : (n_nodes, n_statistics) float64
    split_prob : (n_nodes,) float64
    """

    tree: MetaTree
    family: NativeFamily
    statistics: FloatArray
    split_prob: FloatArray

    @cached_property
    def node_prob(self) -> FloatArray:
        """(n_nodes,) probability that each node is in the tree."""
        probs = np.ones(self.tree.n_nodes)
        for s in np.flatnonzero(~self.tree.is_terminal).tolist():
            first = self.tree.first_child[s]
            probs[first : first + 2] = probs[s] * self.split_prob[s]
        return probs


def stream_data(
    stream: NumberStream, rows: StreamRows | None, names: list[str], options: list[Labels]
) -> dict[str, Any]:
    """Return all data of the page's script; without rows, or with too many categories, there is no panel."""
    inputs = [] if rows is None else [_input(stream.forest, rows, k, name, options[k]) for k, name in enumerate(names)]
    nothing: dict[str, Any] = {
        "kernel": None, "prior": [], "classes": [], "colours": list(CLASS_COLOURS), "sharpness": 1.0, "inputs": inputs,
        "columns": [], "features": [], "missing_is_code": False, "weights": [], "evidence": [], "first_shown": 0,
        "leaves": None, "left_out": 0.0, "boosted": None, "trees": None,
    }  # fmt: skip
    if rows is None or any(len(one["categories"]) > MAX_CATEGORIES for one in inputs):
        return nothing
    return nothing | _trees(stream, rows, inputs, options)


def category_labels(rows: StreamRows | None) -> list[Labels]:
    """The categories of each feature, none of a number, and their labels."""
    if rows is None:
        return []
    return [_distinct_labels(rows.column(k)) if kind == "categorical" else {} for k, kind in enumerate(rows.kinds)]


def _distinct_labels(values: Iterable[str | None]) -> Labels:
    """One line for each text, in order; as Python writes them where two lines would be the same."""
    known = sorted({str(value) for value in values if value is not None})
    labels = [one_line(value) for value in known]
    return dict(zip(known, labels if len(set(labels)) == len(known) else map(_as_written, known), strict=True))


def _as_written(text: str) -> str:
    """A text in quotes, in one line; of blanks side by side, which browsers show as one, only the first is a blank."""
    return re.sub("(?<= ) ", r"\\x20", repr(text))


def _input(forest: OnlineForest, rows: StreamRows, place: int, name: str, labels: Labels) -> dict[str, Any]:
    """The values a visitor may enter for a feature."""
    kind, field_range = rows.kinds[place], None
    if kind not in ("categorical", "boolean"):
        low, high = forest.range_of(rows.names[place])
        unit = MICROSECONDS_OF_DAY if kind == "datetime" else 1.0
        field_range = slider_range(np.linspace(low, high, 21) * unit if high > low else np.array([low * unit]), kind)
    return {
        "name": name, "kind": kind, "categories": list(labels.values()), "range": field_range, "may_miss": True,
        "may_be_new": False,
    }  # fmt: skip


def _trees(
    stream: NumberStream, rows: StreamRows, inputs: list[dict[str, Any]], options: list[Labels]
) -> dict[str, Any]:
    forest: OnlineForest = stream.forest
    with forest.lock:
        nodes, statistics = forest.trees.current_nodes()
        coded = [coded_tree(nodes, int(root)) for root in forest.trees.roots[:, 0]]
        order, labels = _class_order(stream)
        columns = [one for t, tree in enumerate(coded) for one in _columns(forest, rows, options, t, tree)]
    first = np.cumsum([0, *(len(tree.features) for tree in coded)])
    family = forest.trees.family
    own = statistics if order is None else statistics[:, order]
    posts = [
        StreamTree(tree.metatree(int(first[t]), max(len(columns), 1)), family, own[tree.node], split_probs(nodes, tree))
        for t, tree in enumerate(coded)
    ]
    weights, n_codes = [1.0 / len(posts)] * len(posts), np.array([one["n_codes"] for one in columns], dtype=np.int64)
    trees = trees_data(posts, weights, n_codes, MAX_BYTES, True)
    return {
        "kernel": family.kernel,
        "prior": family.summarise(np.zeros((1, family.n_statistics)))[0].tolist(),
        "classes": labels,
        "columns": columns,
        "features": [inputs[one["input"]]["name"] for one in columns],
        "weights": weights,
        "evidence": forest.log_evidence.tolist(),
        "left_out": trees["left_out"],
        "trees": {name: value for name, value in trees.items() if name != "kept"} | {"helps": None},
    }


def _class_order(stream: NumberStream) -> tuple[list[int] | None, list[str]]:
    """Numbers of the forest's classes in the order of the page, and their names; statistics may have a spare one."""
    if not isinstance(stream, ClassStream):
        return None, []
    known = stream.forest.classes
    order = sorted(range(len(known)), key=lambda c: stream.places[known[c]])
    spare = range(len(known), stream.forest.trees.family.n_statistics)
    return [*order, *spare], [one_line(known[c]) for c in order]


def _columns(
    forest: OnlineForest, rows: StreamRows, options: list[Labels], t: int, tree: CodedTree
) -> list[dict[str, Any]]:
    """The columns of one tree: cut points, or the code of each category."""
    made = []
    for feature, cuts in zip(tree.features, tree.cuts, strict=True):
        kind, labels = rows.kinds[feature], options[feature]
        groups: list[int] = []
        if labels:
            asked = [{rows.names[feature]: value} for value in labels]
            seen = forest.trees.views(forest.trees.features.known(asked), t)[:, feature]
            groups = np.searchsorted(cuts, seen).tolist()
        unit = MICROSECONDS_OF_DAY if kind == "datetime" else 1.0
        shown = [] if kind == "categorical" else np.clip(cuts * unit, -LARGEST, LARGEST).tolist()
        made.append(
            {
                "input": int(feature), "kind": kind, "cuts": shown, "cut_names": [None] * len(shown),
                "categories": list(labels.values()), "groups": groups, "has_unseen": False, "single": False,
                "has_missing": False, "new_code": -1, "n_codes": len(cuts) + 1,
            }
        )  # fmt: skip
    return made
