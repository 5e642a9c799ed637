"""Boosted trees in a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from everytree.boosting.classes import BoostedClasses
from everytree.boosting.numbers import BOOSTED_FAMILIES, AboutCentre, BoostedNumbers
from everytree.boosting.trees import NODE_ARRAYS, AdditiveTrees
from everytree.files.families import check_all
from everytree.files.schemas import read_schema, write_schema
from everytree.files.sections import Reader, Writer
from everytree.files.trees import read_forest, write_forest
from everytree.tables.schema import Schema


def write_boosted(to: Writer, model: BoostedClasses | BoostedNumbers) -> None:
    """Write the trees, and for numbers the forest of what they leave."""
    trees = model.trees
    to.put_arrays(n_nodes=trees.n_nodes, value=trees.value, base=trees.base, gains=model.gains, **trees.nodes)
    to.put(n_steps=[int(n) for n in model.n_steps], split_prior=float(model.split_prior))
    if isinstance(model, BoostedClasses):
        to.put(sharpness=float(model.sharpness))
        return
    to.put(family=model.about.family)
    write_schema(to.section("centre"), model.centre_codes)
    write_forest(to.section("residuals"), model.residuals)


def read_boosted(of: Reader, schema: Schema, is_classes: bool) -> BoostedClasses | BoostedNumbers:
    """Read the trees, checked against the columns of the table."""
    trees = _read_trees(of, schema)
    gains = of.array("gains", np.float64, (schema.n_features,))
    check_all(of, "gains", gains, np.isfinite(gains) & (gains >= 0.0), "must be finite and not negative")
    n_steps = of.value("n_steps", list)
    if not n_steps or not all(type(n) is int and n >= 0 for n in n_steps):
        raise of.error("n_steps", f"must be whole numbers, but is {n_steps!r:.200}")
    split_prior = of.value("split_prior", float)
    if not 0.0 < split_prior <= 1.0:
        raise of.error("split_prior", f"must be in (0, 1], but is {split_prior}")
    if is_classes:
        sharpness = of.value("sharpness", float)
        if not (np.isfinite(sharpness) and sharpness > 0.0):
            raise of.error("sharpness", f"must be positive, but is {sharpness}")
        return BoostedClasses(trees, gains, sharpness, split_prior, n_steps)
    family = of.value("family", str)
    if family not in BOOSTED_FAMILIES or trees.n_outputs != 1:
        raise of.error("family", f"must be one of {list(BOOSTED_FAMILIES)} with one output, but is {family!r:.200}")
    centre, residuals = read_schema(of.section("centre")), read_forest(of.section("residuals"))
    if centre.n_features != 1 or not np.array_equal(residuals.n_codes, [*schema.n_codes, *centre.n_codes]):
        raise of.error("residuals", "must have the columns of the schema, and the centre")
    return BoostedNumbers(trees, AboutCentre(family), centre, residuals, gains, split_prior, n_steps)


def _read_trees(of: Reader, schema: Schema) -> AdditiveTrees:
    n_nodes = of.array("n_nodes", np.int32, (None,))
    n_all = int(n_nodes.astype(np.int64).sum())
    nodes: dict[str, Any] = {name: of.array(name, np.int32, (n_all,)) for name in NODE_ARRAYS}
    value, base = of.array("value", np.float64, (n_all,)), of.array("base", np.float64, (None,))
    check_all(of, "value", value, np.isfinite(value), "must be finite")
    check_all(of, "base", base, np.isfinite(base), "must be finite")
    with of.checking("n_nodes"):
        return AdditiveTrees(n_nodes, nodes, value, base, schema.n_codes)
