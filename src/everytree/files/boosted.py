"""Boosted trees in a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from everytree.boosting.classes import BoostedClasses
from everytree.boosting.mixed import MixedCentres, MixedClasses
from everytree.boosting.numbers import BOOSTED_FAMILIES, AboutCentre, BoostedNumbers
from everytree.boosting.trees import NODE_ARRAYS, AdditiveTrees
from everytree.files.families import check_all
from everytree.files.schemas import read_schema, write_schema
from everytree.files.sections import Reader, Writer
from everytree.files.trees import read_forest, write_forest
from everytree.posterior.forest import Forest
from everytree.tables.schema import Schema


def write_boosted(to: Writer, model: BoostedClasses | BoostedNumbers | MixedClasses) -> None:
    """Write the trees; for numbers the forest of what they leave, and the forest that they are mixed with."""
    if isinstance(model, MixedClasses):
        to.put(weight=float(model.weight), mixed_sharpness=float(model.sharpness))
        write_forest(to.section("mixed"), model.forest)
        write_boosted(to, model.boosted)
        return
    trees = model.trees
    if isinstance(trees, MixedCentres):
        to.put(weight=float(trees.weight))
        write_forest(to.section("mixed"), trees.forest)
        trees = trees.trees
    assert isinstance(trees, AdditiveTrees)
    to.put_arrays(n_nodes=trees.n_nodes, value=trees.value, base=trees.base, gains=model.gains, **trees.nodes)
    if trees.mass is not None:
        to.put_arrays(mass=trees.mass)
    to.put(n_steps=[int(n) for n in model.n_steps], split_prior=float(model.split_prior))
    if isinstance(model, BoostedClasses):
        to.put(sharpness=float(model.sharpness), n_rows=model.n_rows)
        return
    to.put(family=model.about.family)
    write_schema(to.section("centre"), model.centre_codes)
    write_forest(to.section("residuals"), model.residuals)


def read_boosted(
    of: Reader, schema: Schema, is_classes: bool, is_mixed: bool
) -> BoostedClasses | BoostedNumbers | MixedClasses:
    """Read the trees, checked against the columns of the table."""
    trees = _read_trees(of, schema)
    gains = of.array("gains", np.float64, (schema.n_features,))
    check_all(of, "gains", gains, np.isfinite(gains) & (gains >= 0.0), "must be finite and not negative")
    n_steps = of.value("n_steps", list)
    if not n_steps or not all(type(n) is int and n >= 0 for n in n_steps):
        raise of.error("n_steps", f"must be whole numbers, but is {n_steps!r:.200}")
    split_prior = _positive(of, "split_prior", 1.0)
    forest, weight = (_read_mixed(of, schema), _positive(of, "weight", 1.0)) if is_mixed else (None, 0.0)
    if is_classes:
        boosted = BoostedClasses(trees, gains, _positive(of, "sharpness"), split_prior, n_steps, _read_n_rows(of))
        if forest is None:
            return boosted
        if forest.family.size != boosted.family.size or not forest.family.has_classes:
            raise of.error("mixed", f"has leaves {forest.family}, but the trees have {boosted.family.size} classes")
        return MixedClasses(forest, boosted, weight, _positive(of, "mixed_sharpness"))
    family = of.value("family", str)
    if family not in BOOSTED_FAMILIES or trees.n_outputs != 1:
        raise of.error("family", f"must be one of {list(BOOSTED_FAMILIES)} with one output, but is {family!r:.200}")
    about = AboutCentre(family)
    centre, residuals = read_schema(of.section("centre")), read_forest(of.section("residuals"))
    if centre.n_features != 1 or not np.array_equal(residuals.n_codes, [*schema.n_codes, *centre.n_codes]):
        raise of.error("residuals", "must have the columns of the schema, and the centre")
    if forest is None:
        return BoostedNumbers(trees, about, centre, residuals, gains, split_prior, n_steps)
    if forest.family.has_classes:
        raise of.error("mixed", f"has leaves {forest.family}, but targets are numbers")
    mixed = MixedCentres(forest, trees, weight, about)
    return BoostedNumbers(mixed, about, centre, residuals, gains, split_prior, n_steps)


def _read_mixed(of: Reader, schema: Schema) -> Forest:
    forest = read_forest(of.section("mixed"))
    if not np.array_equal(forest.n_codes, schema.n_codes):
        raise of.error("mixed", "must have the columns of the schema")
    return forest


def _read_n_rows(of: Reader) -> int:
    n_rows = of.value("n_rows", int)
    if n_rows < 1:
        raise of.error("n_rows", f"must be positive, but is {n_rows}")
    return n_rows


def _positive(of: Reader, name: str, most: float = np.inf) -> float:
    value = of.value(name, float)
    if not (np.isfinite(value) and 0.0 < value <= most):
        raise of.error(name, f"must be positive{'' if most == np.inf else f' and at most {most:g}'}, but is {value}")
    return value


def _read_trees(of: Reader, schema: Schema) -> AdditiveTrees:
    n_nodes = of.array("n_nodes", np.int32, (None,))
    n_all = int(n_nodes.astype(np.int64).sum())
    nodes: dict[str, Any] = {name: of.array(name, np.int32, (n_all,)) for name in NODE_ARRAYS}
    value, base = of.array("value", np.float64, (n_all,)), of.array("base", np.float64, (None,))
    check_all(of, "value", value, np.isfinite(value), "must be finite")
    check_all(of, "base", base, np.isfinite(base), "must be finite")
    mass = None
    if "mass" in of:  # files of earlier versions have none
        mass = of.array("mass", np.float64, (n_all,))
        check_all(of, "mass", mass, np.isfinite(mass) & (mass >= 0.0), "must be finite and not negative")
    with of.checking("n_nodes"):
        return AdditiveTrees(n_nodes, nodes, value, base, schema.n_codes, mass)
