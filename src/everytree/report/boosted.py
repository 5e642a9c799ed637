"""Boosted trees as plain arrays inside the page, and the forests that they are mixed with or that lie about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.boosting.trees import AdditiveTrees
from everytree.families.registry import NUMBER_FAMILIES
from everytree.posterior.forest import Forest
from everytree.report.fields import column_data
from everytree.report.forest_arrays import asked_by, trees_data
from everytree.report.packing import n_bytes, packed
from everytree.report.subject import Subject
from everytree.trees.metatree import MetaTree

EXACT = 1e-10
"""Probability mass that may be left out of the trees of a forest that is blended with boosted trees."""


def boosted_parts(subject: Subject, budget: int) -> dict[str, Any]:
    """Boosted trees and the forests beside them, if there is room for all of them."""
    parts = subject.parts
    assert parts.additive is not None
    boosted = sums_data(parts.additive) | {"weight": parts.weight, "sharpness": parts.sharpness}
    if parts.residuals is None:
        forest, room = parts.forest, 0.0
    else:
        boosted |= _of_numbers(subject)
        forest, room = parts.residuals, 1.0
    asked = _asked(subject)
    nothing: dict[str, Any] = {
        "can_predict": False, "trees": None, "weights": [], "left_out": 0.0, "boosted": None, "leaves": None,
        "asked": asked,
    }  # fmt: skip
    budget -= sum(n_bytes(sums["arrays"].values()) for sums in (boosted, *_more(boosted)))
    if budget < 0 or not (subject.family.is_in_browser and subject.family.has_one_prior):
        return nothing
    found = {**nothing, "can_predict": True, "boosted": boosted}
    if forest is None:
        return found
    weights = forest.weights.tolist()
    trees = trees_data(forest.posteriors, weights, forest.n_codes, budget, True)
    if trees["left_out"] > max(EXACT, room):  # in a mean of logarithms it has no bound
        return nothing
    return {**found, "trees": trees, "weights": weights, "left_out": trees["left_out"] if room else 0.0}


def sums_data(trees: AdditiveTrees) -> dict[str, Any]:
    """Trees whose values add up to scores."""
    return _sums(trees.n_nodes, trees.nodes, trees.value, trees.base, trees.n_codes)


def _sums(
    n_nodes: NDArray[Any], nodes: Mapping[str, NDArray[Any]], value: FloatArray, base: FloatArray, n_codes: NDArray[Any]
) -> dict[str, Any]:
    feature, threshold, missing_child = (nodes[name] for name in ("feature", "threshold", "missing_child"))
    inner = feature >= 0
    last = np.asarray(n_codes, dtype=np.int64)[feature[inner]] - 1
    arrays = {
        "sizes": packed(n_nodes),
        "feature": packed(feature + 1),
        "threshold": packed(np.minimum(threshold[inner], last) + 1),
        "missing_child": packed(missing_child[inner] + 1),
        "value": packed(value.ravel()),
    }
    return {"arrays": arrays, "base": base.tolist(), "n_values": value.shape[1]}


def _of_numbers(subject: Subject) -> dict[str, Any]:
    """What makes a distribution of scores: lines, the means of a forest, the link, and the codes of centres."""
    parts, link = subject.parts, NUMBER_FAMILIES[subject.model.family_].link
    assert link is not None
    assert parts.centre is not None
    lined = parts.lined
    return {
        "lined": None if lined is None else sums_data(lined.trees) | {
            "columns": lined.columns.tolist(), "points": [points.tolist() for points in lined.points],
        },
        "means": None if parts.forest is None else _means(parts.forest),
        "link": {"sign": link.sign, "averages_logs": link.averages_logs, "in_exposure": link.in_exposure},
        "centre": column_data(parts.centre.columns[0], 0),
    }  # fmt: skip


def _more(boosted: dict[str, Any]) -> list[dict[str, Any]]:
    return [sums for sums in (boosted.get("lined"), boosted.get("means")) if sums is not None]


def _means(forest: Forest) -> dict[str, Any]:
    """The means of a forest as a sum of trees."""
    tables, centre = forest.node_values()
    trees: Sequence[MetaTree] = [post.tree for post in forest.posteriors]
    value = np.concatenate([weight * table[:, 0] for weight, table in zip(forest.weights, tables, strict=True)])
    names = ("feature", "threshold", "missing_child", "n_children")
    nodes = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in names}
    n_nodes = np.array([tree.n_nodes for tree in trees])
    found = _sums(n_nodes, nodes, value[:, None], np.array([centre]), forest.n_codes)
    found["arrays"]["n_children"] = packed(nodes["n_children"][nodes["feature"] >= 0])
    return found


def _asked(subject: Subject) -> NDArray[np.bool_]:
    """(n_features,) which columns any of the trees asks for."""
    parts, asked = subject.parts, np.zeros(len(subject.model.schema_.n_codes) + 1, dtype=bool)
    for sums in (parts.additive, None if parts.lined is None else parts.lined.trees):
        if sums is not None:
            asked[sums.nodes["feature"][sums.nodes["feature"] >= 0]] = True
    if parts.lined is not None:
        asked[parts.lined.columns] = True
    for forest in (parts.forest, parts.residuals):
        if forest is not None:
            asked |= asked_by(forest.posteriors, len(asked))
    return asked[:-1]  # the last one is the centre
