"""The present trees of an online forest as an estimator that does not change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import LARGEST_CODE, FloatArray
from everytree.estimators.forest import MetaForestClassifier, MetaForestRegressor
from everytree.families import Categorical
from everytree.fitting.fitted import Fitted
from everytree.fitting.held_out.scores import NoScores
from everytree.fitting.held_out.search import Choice
from everytree.models.average import AverageModel
from everytree.online.rows import DATE, NOMINAL
from everytree.online.trees import OnlineTrees
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.structure.importers.model import Imported
from everytree.tables.code_names import DAY
from everytree.tables.column import Column, free_name
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree

LEARNED_ROW_BY_ROW = NoScores("an online forest leaves no rows out: every row is learned after it was predicted")


def class_snapshot(trees: OnlineTrees, classes: Sequence[Any]) -> MetaForestClassifier:
    """Trees as a classifier, whose classes are in ascending order."""
    if not _have_one_type(classes):
        kinds = sorted({type(label).__name__ for label in classes})
        raise TypeError(
            f"the classes are of type {', '.join(kinds)}, but an estimator needs labels that are all text or all "
            "numbers; learn such labels to take a snapshot"
        )
    order = sorted(range(len(classes)), key=classes.__getitem__)
    model = MetaForestClassifier(trees.n_trees, split_prior=trees.split_prior, alpha=_alpha(trees))
    target = replace(model.target_before_fit(), classes=np.array([classes[k] for k in order]))
    spare = range(len(classes), trees.family.size)  # before there is a second class
    _put_trees(model, target, trees, [*order, *spare])
    return model


def number_snapshot(trees: OnlineTrees) -> MetaForestRegressor:
    """Trees as a regressor."""
    model = MetaForestRegressor(trees.n_trees, split_prior=trees.split_prior, family="normal")
    _put_trees(model, model.target_before_fit(), trees, None)
    return model


def _have_one_type(classes: Sequence[Any]) -> bool:
    """Whether all labels are text, or all numbers."""
    return all(isinstance(label, str) for label in classes) or all(
        isinstance(label, bool | int | float | np.bool_ | np.integer | np.floating) for label in classes
    )


def _alpha(trees: OnlineTrees) -> float:
    """Prior weight of a class in a leaf, the same for all classes."""
    assert isinstance(trees.family, Categorical)
    return float(np.ravel(trees.family.alpha)[0])


def _put_trees(model: Any, target: Any, trees: OnlineTrees, order: list[int] | None) -> None:
    """Make the estimator one of these trees; `order` is that of their classes in it."""
    nodes, statistics = trees.current_nodes()
    statistics = statistics if order is None else statistics[:, order]
    shapes = [_Shape.of(nodes, int(root)) for root in trees.roots[:, 0]]
    schema, split_on = _columns(trees, [nodes[shape.node] for shape in shapes])
    posteriors = [
        Posterior.from_statistics(
            shape.metatree(*on, schema.n_features), trees.family, shape.split_prior(nodes),
            statistics[shape.node], trees.n_rows,
        )
        for shape, on in zip(shapes, split_on, strict=True)
    ]  # fmt: skip
    forest = Forest(posteriors, n_codes=schema.n_codes)
    choice = Choice(trees.family, trees.split_prior, {"split_prior": trees.split_prior}, math.nan)
    model.structures_ = Imported(schema, tuple(forest.trees), target.classes if order else None)
    model.feature_names_in_ = np.array(schema.input_names, dtype=object)
    model.fitted_ = Fitted(target, schema, AverageModel(forest), choice, [], 1.0, [], unseen=LEARNED_ROW_BY_ROW)


# ---- trees ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shape:
    """A tree of the pool in level order: its nodes there, and the first child of each, -1 at leaves.

    Where all values are above an infinite threshold and only missing ones are on the left, the children are exchanged:
    then all are below one.
    """

    node: NDArray[np.int64]
    first_child: NDArray[np.int32]
    missing_child: NDArray[np.int32]

    @classmethod
    def of(cls, nodes: NDArray[Any], root: int) -> _Shape:
        order, first, missing = [root], [], []
        for s in order:  # grows on the way
            node = nodes[s]
            is_leaf, is_exchanged = node["left"] < 0, bool(node["threshold"] == -np.inf)
            first.append(-1 if is_leaf else len(order))
            missing.append(-1 if is_leaf else int(bool(node["missing_right"]) != is_exchanged))
            if not is_leaf:
                children = [int(node["left"]), int(node["right"])]
                order += children[::-1] if is_exchanged else children
        return cls(np.array(order), np.array(first, dtype=np.int32), np.array(missing, dtype=np.int32))

    def metatree(self, column: NDArray[np.int32], code: NDArray[np.int32], n_columns: int) -> MetaTree:
        is_inner = self.first_child >= 0
        arrays = {
            "feature": column,
            "first_child": self.first_child,
            "n_children": np.where(is_inner, 2, 0).astype(np.int32),
            "threshold": code,
            "missing_child": self.missing_child,
        }
        return MetaTree.from_checked_arrays(arrays, n_columns)

    def split_prior(self, nodes: NDArray[Any]) -> FloatArray:
        return np.where(self.first_child >= 0, np.exp(nodes["log_split"][self.node]), 0.0)


# ---- columns --------------------------------------------------------------------------------------------------------


def _columns(
    trees: OnlineTrees, nodes_of: list[NDArray[Any]]
) -> tuple[Schema, list[tuple[NDArray[np.int32], NDArray[np.int32]]]]:
    """A schema with all thresholds, and for each tree the column and the code at which each node splits, -1 at leaves.

    A feature of numbers has one column for all trees, or several where it has too many thresholds; a feature of texts
    one for each tree, since categories have another position in every tree.
    """
    nodes, start = np.concatenate(nodes_of), np.cumsum([0, *map(len, nodes_of)])
    tree_of = np.repeat(np.arange(len(nodes_of)), np.diff(start))
    column, code = np.full((2, len(nodes)), -1, dtype=np.int32)
    names, found = _names(trees), list[Column]()
    taken: set[str | None] = set(names)
    for feature, (name, kind) in enumerate(zip(names, trees.features.kinds.tolist(), strict=False)):
        asking = np.flatnonzero((nodes["left"] >= 0) & (nodes["feature"] == feature))
        for tree in _readers(tree_of[asking], kind):
            own = asking if tree is None else asking[tree_of[asking] == tree]
            for part, cuts in enumerate(_cuts(_thresholds(nodes["threshold"][own], kind))):
                column[own[cuts.is_own]], code[own[cuts.is_own]] = len(found), cuts.code
                if tree is not None:
                    called = free_name(f"position of {name} in tree {tree}", taken)
                else:
                    called = name if part == 0 else free_name(name, taken)
                found.append(
                    Column(
                        called, "datetime" if kind & DATE else "numeric", cuts.cuts, has_missing=True,
                        source=None if called == name else name, hashed=None if tree is None else (trees.seed, tree),
                    )
                )  # fmt: skip
    each = zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
    return Schema.from_columns(found), [(column[a:b], code[a:b]) for a, b in each]


def _readers(trees: NDArray[np.int64], kind: int) -> list[int] | list[None]:
    """The trees that have a column of their own for a feature, at least one; None is a column for all trees."""
    if not kind & NOMINAL:
        return [None]
    return np.unique(trees).tolist() or [0]


class _Cuts(NamedTuple):
    """The cuts of a column, which thresholds are among them or infinite, and the codes of these."""

    cuts: FloatArray
    is_own: NDArray[np.bool_]
    code: NDArray[np.int64]


def _cuts(thresholds: FloatArray) -> Iterator[_Cuts]:
    """One column, or several where there are more cuts than codes; all codes are below an infinite threshold."""
    is_finite = np.isfinite(thresholds)
    cuts = np.unique(thresholds[is_finite])
    number = np.where(is_finite, np.searchsorted(cuts, thresholds), len(cuts))
    part = np.minimum(number, max(len(cuts) - 1, 0)) // LARGEST_CODE
    for k in range(max(1, -(-len(cuts) // LARGEST_CODE))):
        first = k * LARGEST_CODE
        yield _Cuts(cuts[first : first + LARGEST_CODE], part == k, number[part == k] - first)


def _names(trees: OnlineTrees) -> list[str]:
    """The features as names of columns."""
    names = [str(name) for name in trees.features.index]
    if not names:
        raise ValueError("the rows that were learned have no features, so there is no table to predict for")
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise ValueError(f"features have the same name as text, {twice[0]!r}, but columns of a table are told by it")
    return names


def _thresholds(thresholds: FloatArray, kind: int) -> FloatArray:
    """The largest value of the column at or below each threshold; dates are microseconds there, and days here."""
    if not kind & DATE:
        return thresholds
    near = np.floor(thresholds * DAY)[:, None] + np.arange(-2.0, 3.0)
    return np.asarray(np.max(np.where(near / DAY <= thresholds[:, None], near, -np.inf), axis=1, initial=-np.inf))
