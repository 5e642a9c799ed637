"""Trees of other libraries as meta-trees over codes.

The thresholds of all nodes become the cut points of a schema, so that `code <= t` exactly when `x <= threshold`. A set
of categories is not a threshold: it gets a code column of its own, 0 for the left and 1 for the right, read from the
same input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import LARGEST_CODE, FloatArray
from everytree.structure.importers.model import Imported, Input, Nodes, Subset, below
from everytree.structure.importers.sklearn_trees import metatree_from_sklearn_tree
from everytree.tables.column import Column, free_name
from everytree.tables.reading import Label
from everytree.tables.schema import Schema

LOWEST = float(np.finfo(np.float64).min)


def assemble(
    inputs: Sequence[Input], trees: Sequence[Nodes], classes: NDArray[Any] | None, *, by_place: bool = False
) -> Imported:
    """Return a schema for all splits of the trees, and the trees as meta-trees over its codes.

    `by_place`: whether tables are read by position even if inputs have names.
    """
    if not trees:
        raise ValueError("the model has no trees, but a meta-tree needs at least one")
    splits = _Splits.of(trees)
    columns: list[Column] = []
    column, code = (np.zeros(len(splits.feature), dtype=np.int64) for _ in range(2))
    taken = {each.name for each in inputs}
    for place, (each, asking) in enumerate(zip(inputs, splits.by_input(len(inputs)), strict=True)):
        own_name = each.name  # free for the first column that only compares numbers
        for reading in _readings(each, asking, splits):
            name = own_name if reading.words is None else None
            if name is None and each.name is not None:
                name = free_name(f"{each.name} {reading.words or ''}".strip(), taken)
            elif name is not None:
                own_name = None
            source = place if by_place or each.name is None else each.name if name != each.name else None
            column[reading.nodes], code[reading.nodes] = len(columns), reading.codes
            columns.append(Column(name, **reading.fields, has_missing=len(asking) > 0, source=source))
    metatrees = []
    for begin, nodes in zip(splits.start, trees, strict=False):
        own = slice(int(begin), int(begin) + len(nodes.feature))
        coded = _CodeTree(nodes.children_left, nodes.children_right, column[own], code[own], nodes.missing_left)
        metatrees.append(metatree_from_sklearn_tree(coded, len(columns), np.ones(len(columns), dtype=bool)))
    return Imported(Schema.from_columns(columns), tuple(metatrees), classes)


@dataclass(frozen=True)
class _CodeTree:
    """A tree that splits on codes, with the field names of scikit-learn."""

    children_left: NDArray[Any]
    children_right: NDArray[Any]
    feature: NDArray[np.int64]
    threshold: NDArray[np.int64]
    missing_go_to_left: NDArray[Any]


@dataclass(frozen=True)
class _Splits:
    """The splits of all nodes of all trees, one tree after another; `feature` is -1 at leaves."""

    start: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: FloatArray
    in_gap: NDArray[np.bool_]
    subsets: dict[int, Subset]

    @classmethod
    def of(cls, trees: Sequence[Nodes]) -> _Splits:
        start = np.cumsum([0, *(len(nodes.feature) for nodes in trees)])
        threshold = np.concatenate([nodes.threshold for nodes in trees]).astype(np.float64)
        subsets = {}
        for begin, nodes in zip(start, trees, strict=False):
            subsets.update({int(begin) + node: subset for node, subset in nodes.subsets.items()})
        return cls(
            start,
            np.concatenate([np.where(nodes.children_left >= 0, nodes.feature, -1) for nodes in trees]),
            np.maximum(threshold, LOWEST),
            np.concatenate([np.broadcast_to(nodes.in_gap, nodes.feature.shape) for nodes in trees]),
            subsets,
        )

    def by_input(self, n_inputs: int) -> list[NDArray[np.int64]]:
        """The nodes that split on each input."""
        order = np.argsort(self.feature, kind="stable")
        return np.split(order, np.searchsorted(self.feature[order], np.arange(n_inputs + 1)))[1:-1]


@dataclass(frozen=True)
class _Reading:
    """A future column: its type, the nodes that split on it, and the largest code that each of them sends to the left.

    `words` describe the rows with code 0, unless these are just the numbers up to a cut.
    """

    fields: dict[str, Any]
    words: str | None
    nodes: NDArray[np.int64]
    codes: NDArray[np.int64]


def _readings(each: Input, asking: NDArray[np.int64], splits: _Splits) -> Iterator[_Reading]:
    """Yield columns for all splits on an input; a single unused column if there are none."""
    if len(asking) == 0:
        labels = each.labels
        kind = {"kind": "numeric"} if labels is None else _categories(labels, np.zeros(len(labels), dtype=np.int64))
        yield _Reading(kind, None, asking, asking)
    nodes_of: dict[Subset | None, list[int]] = {}
    for node in asking.tolist():
        nodes_of.setdefault(splits.subsets.get(node), []).append(node)
    for subset, listed in nodes_of.items():
        nodes = np.array(listed)
        for in_gap in np.unique(splits.in_gap[nodes]).tolist():
            own = nodes[splits.in_gap[nodes] == in_gap]
            gap = each.gap if in_gap else None
            if subset is None:
                yield from _threshold_readings(each, own, splits.threshold[own], gap)
            else:
                fields = _fields(each, subset.cuts(), subset.sides, gap, grouped=True)
                yield _Reading(fields, _in_words(subset, each.labels), own, np.zeros(len(own), dtype=np.int64))


def _threshold_readings(
    each: Input, nodes: NDArray[np.int64], threshold: FloatArray, gap: tuple[float, float] | None
) -> Iterator[_Reading]:
    """One column, or several if there are more cuts than one column may have."""
    cuts = np.unique(threshold[np.isfinite(threshold)])
    number = np.searchsorted(cuts, threshold)  # for an infinite threshold, one beyond all cuts
    part = np.minimum(number, max(len(cuts) - 1, 0)) // LARGEST_CODE
    for k in np.unique(part).tolist():
        own = cuts[k * LARGEST_CODE : (k + 1) * LARGEST_CODE]
        fields = _fields(each, own, own.searchsorted, gap)
        yield _Reading(fields, None, nodes[part == k], number[part == k] - k * LARGEST_CODE)


def _fields(
    each: Input,
    cuts: FloatArray,
    code_of: Callable[[FloatArray], NDArray[np.int64]],
    gap: tuple[float, float] | None,
    *,
    grouped: bool = False,
) -> dict[str, Any]:
    """Fields of a column whose code, a function of the number, changes only beyond each cut."""
    if each.labels is None and gap is None and not grouped:
        return {"kind": "numeric", "cuts": cuts, "single": each.single}
    if gap is not None:
        cuts = np.union1d(cuts, [max(below(gap[0]), LOWEST), gap[1]])
    # The last number of each interval represents all of it.
    numbers = np.append(cuts, np.inf) if each.labels is None else np.arange(len(each.labels), dtype=np.float64)
    groups = code_of(numbers)
    if gap is not None:
        groups = np.where((numbers >= gap[0]) & (numbers <= gap[1]), -1, groups)
    if each.labels is not None:
        return _categories(each.labels, groups)
    return {"kind": "numeric", "cuts": cuts, "single": each.single, "groups": tuple(groups.tolist())}


def _categories(labels: tuple[Label, ...], groups: NDArray[np.int64]) -> dict[str, Any]:
    return {"kind": "categorical", "categories": labels, "groups": tuple(groups.tolist())}


def _in_words(subset: Subset, labels: tuple[Label, ...] | None) -> str:
    """Describe the rows that go to the left."""
    members = sorted(subset.members)
    words = [str(k if labels is None or k >= len(labels) else labels[k]) for k in members[:4]]
    words = [*words[:3], "..."] if len(words) > 3 else words
    return f"{'in' if subset.child == 0 else 'not in'} {{{', '.join(words)}}}"
