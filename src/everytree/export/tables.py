"""The averaged predictor as plain binary trees, in the array layout of scikit-learn's trees.

The rule, stated once
---------------------
A node tests whether `x[feature] <= threshold`; yes leads to `children_left`, no to `children_right`, and NaN to the
left where `missing_go_to_left` is true, else to the right. A column of numbers is tested by its own values. A column of
categories holds their codes, 0 for the first of them, and -1 for a category that was not there at fit. NaN is missing.

In a meta-tree a row stops early at a node that has no branch for its value. Here, an extra node before that one leads
such rows to a leaf of their own. A split into many branches becomes several binary splits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.tables.column import Column
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree

UNSEEN = -1.0
"""Code of a category that was not there at fit."""

LEAF = -2
"""scikit-learn's value for fields that a leaf does not use; its `children` are -1."""


@dataclass(frozen=True)
class TreeTable:
    """One tree, one row per node, parents before their children; names and meanings as in `sklearn.tree._tree.Tree`."""

    children_left: NDArray[np.int64]  # (n_nodes,): -1 at leaves
    children_right: NDArray[np.int64]
    feature: NDArray[np.int64]  # (n_nodes,): -2 at leaves
    threshold: FloatArray  # (n_nodes,): -2 at leaves
    missing_go_to_left: NDArray[np.bool_]  # (n_nodes,)
    # (n_nodes, n_outputs): Prediction for a row that ends here, averaged over every pruning of the meta-tree; rows end
    # in leaves. In boosted trees, what is added to a score.
    value: FloatArray
    # (n_nodes,): Weight of the rows of fit; exposure or time for rates. NaN in boosted trees.
    weighted_n_node_samples: FloatArray
    node: NDArray[np.int64]  # (n_nodes,): the node of the meta-tree from which this split or value comes

    @property
    def node_count(self) -> int:
        return len(self.node)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        return np.asarray(self.children_left < 0)


def is_asked_by_value(column: Column) -> bool:
    """Whether trees split a column by its numbers; all others are split by codes."""
    return column.kind != "categorical" and not column.groups


def largest_with(column: Column, code: int) -> float:
    """The largest number of a column whose code is at most `code`."""
    if not is_asked_by_value(column):
        return code + 0.5
    return float(column.cuts[code]) if code < len(column.cuts) else np.inf


def table_of(
    tree: MetaTree, columns: tuple[Column, ...], value_of_node: FloatArray, mass_of_node: FloatArray
) -> TreeTable:
    """Return a meta-tree, with values and masses of its nodes, as a plain tree."""
    rows: list[tuple[int, int, float, bool]] = []
    children: list[list[int]] = []
    stops: list[bool] = []
    todo = [(_Place(0), -1, 0)]
    while todo:
        place, parent, side = todo.pop()
        if parent >= 0:
            children[parent][side] = len(rows)
        question = _question(tree, columns, place)
        children.append([-1, -1])
        stops.append(place.stops)
        if question is None:
            rows.append((place.node, LEAF, float(LEAF), False))
            continue
        todo += [(question.right, len(rows), 1), (question.left, len(rows), 0)]
        rows.append((question.node, question.feature, question.threshold, question.missing_left))
    node, feature, threshold, missing_left = (np.array(column) for column in zip(*rows, strict=True))
    left, right = np.array(children, dtype=np.int64).T
    # Rows that stop early are not in the statistics, so they add no mass.
    mass = np.where(stops, 0.0, mass_of_node[node])
    return TreeTable(
        left, right, feature.astype(np.int64), threshold.astype(np.float64), missing_left, value_of_node[node],
        sum_upward(left, right, mass), node.astype(np.int64),
    )  # fmt: skip


def leaf_alone(value: float) -> TreeTable:
    """A tree without splits."""
    none, unused = np.full(1, -1, dtype=np.int64), np.full(1, LEAF, dtype=np.int64)
    return TreeTable(
        none, none, unused, unused.astype(np.float64), np.zeros(1, dtype=bool), np.full((1, 1), value),
        np.full(1, np.nan), np.zeros(1, dtype=np.int64),
    )  # fmt: skip


def sum_upward(left: NDArray[np.int64], right: NDArray[np.int64], mass: FloatArray) -> FloatArray:
    """Mass of each leaf; for other nodes, the sum over their children."""
    total = mass.copy()
    for place in np.flatnonzero(left >= 0)[::-1]:  # children come after their parents
        total[place] = total[left[place]] + total[right[place]]
    return total


@dataclass(frozen=True)
class ReadBySchema:
    """Plain trees that read the columns of a schema."""

    schema: Schema  # of the columns that the trees split on

    def inputs(self, X: Any) -> FloatArray:
        """(n_rows, n_features) a table as the trees read it: numbers, codes of categories, -1 for unseen ones, NaN."""
        schema, owner = self.schema, type(self).__name__
        return plain_inputs(schema.columns, schema.encode(X, owner=owner), schema.numbers(X, owner=owner))

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns that the trees split on, `x0`, `x1`, ... where they have none."""
        return self.schema.names or [f"x{k}" for k in range(self.schema.n_features)]


# ---- splits ---------------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """A position in a meta-tree, perhaps between two of its nodes."""

    node: int
    low: int = 0  # Its children low .. high - 1 are still possible; 0 and 0 where its own split has not begun.
    high: int = 0
    # columns that are known not to be missing, and not to hold an unseen category
    present: frozenset[int] = frozenset()
    seen: frozenset[int] = frozenset()
    stops: bool = False  # whether rows end here although the node is split


class _Question(NamedTuple):
    node: int
    feature: int
    threshold: float
    missing_left: bool
    left: _Place
    right: _Place


def _question(tree: MetaTree, columns: tuple[Column, ...], here: _Place) -> _Question | None:
    """Return the split at a place; None where rows end."""
    s = here.node
    if here.stops or tree.is_terminal[s]:
        return None
    k = int(tree.feature[s])
    column, missing = columns[k], int(tree.missing_child[s])
    # The threshold that only unknown values reach: no number and no code is below it.
    nothing = -np.inf if is_asked_by_value(column) else 0.5 * UNSEEN
    may_be_unseen, may_be_missing = column.has_unseen and k not in here.seen, k not in here.present
    if missing < 0 and (may_be_unseen or may_be_missing):
        go_on = here._replace(seen=here.seen | {k}, present=here.present | {k})
        return _Question(s, k, nothing, True, here._replace(stops=True), go_on)
    if may_be_unseen:
        return _Question(s, k, nothing, False, here._replace(stops=True), here._replace(seen=here.seen | {k}))
    n_answers = 2 if tree.threshold[s] >= 0 else int(tree.n_children[s]) - (missing >= 0)
    if missing == n_answers and may_be_missing:
        own = _child(tree, here, missing)
        return _Question(s, k, nothing, True, own, here._replace(present=here.present | {k}))
    return _own_question(tree, column, here, n_answers)


def _own_question(tree: MetaTree, column: Column, here: _Place, n_answers: int) -> _Question:
    """Return the split that halves the children that are still possible."""
    s, missing = here.node, int(tree.missing_child[here.node])
    low, high = (here.low, here.high) if here.high else (0, n_answers)
    middle = (low + high + 1) // 2
    last_left = int(tree.threshold[s]) if tree.threshold[s] >= 0 else middle - 1
    left = _answers(tree, here, low, middle)
    # A split with one child has nothing on the right, and no row goes there.
    right = _answers(tree, here, middle, high) if middle < high else here._replace(stops=True)
    threshold = largest_with(column, last_left)
    return _Question(s, int(tree.feature[s]), threshold, low <= missing < middle, left, right)


def _answers(tree: MetaTree, here: _Place, low: int, high: int) -> _Place:
    """The place of rows that go to one of the children low .. high - 1."""
    return _child(tree, here, low) if high - low == 1 else here._replace(low=low, high=high)


def _child(tree: MetaTree, here: _Place, number: int) -> _Place:
    """A child of the node, and what is known of a row there."""
    s = here.node
    k = int(tree.feature[s])
    present = here.present if number == tree.missing_child[s] else here.present | {k}
    return _Place(int(tree.first_child[s]) + number, present=present, seen=here.seen)


def plain_inputs(columns: tuple[Column, ...], codes: NDArray[Any], numbers: FloatArray) -> FloatArray:
    """(n_rows, n_features) what trees read, from the codes of all columns and the values of those of numbers."""
    top = np.iinfo(codes.dtype).max
    out = np.where(codes == top, np.nan, codes.astype(np.float64))
    of_numbers = iter(numbers.T)
    for k, column in enumerate(columns):
        if column.has_unseen:
            out[codes[:, k] == top - 1, k] = UNSEEN
        values = next(of_numbers) if column.kind != "categorical" else None
        if values is not None and is_asked_by_value(column):
            out[:, k] = _rounded(values) if column.single else values
    return out


def _rounded(values: FloatArray) -> FloatArray:
    """Round to float32 and back; beyond its range lies infinity, on the right side of every cut."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)
