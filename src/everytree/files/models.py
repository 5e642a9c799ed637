"""The model of an estimator in a file, by its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from everytree.boosting.trees import NODE_ARRAYS, AdditiveTrees
from everytree.families.base import NativeFamily
from everytree.families.registry import NUMBER_FAMILIES, boosted_families
from everytree.files.families import check_all
from everytree.files.others import read_exact, write_exact
from everytree.files.rows import read_rows, write_rows
from everytree.files.schemas import read_schema, write_schema
from everytree.files.sections import Reader, Writer
from everytree.files.trees import read_forest, write_forest
from everytree.models.average import AverageModel
from everytree.models.boosted import BoostedClasses, BoostedNumbers, Chains
from everytree.models.centres import Centres
from everytree.models.exact import ExactModel
from everytree.models.mixed import MixedClasses
from everytree.models.model import Model
from everytree.posterior.forest import Forest
from everytree.tables.schema import Schema


class Table(NamedTuple):
    """Description of the table, read before its model.

    Attributes
    ----------
    schema : Schema
    row_names : list of str
        Names of the row data that fit was given.
    is_classes : bool
    """

    schema: Schema
    row_names: list[str]
    is_classes: bool


def write_model(to: Writer, model: Model) -> None:
    """Write a model, and its kind."""
    to.put(model_kind=model.kind)
    KINDS[model.kind][0](to, model)


def read_model(of: Reader, table: Table, kinds: tuple[str, ...]) -> Model:
    """Read a model, which must be of one of some kinds."""
    kind = of.value("model_kind", str)
    if kind not in kinds:
        raise of.error("model_kind", f"must be one of {list(kinds)}, but is {kind!r:.200}")
    return KINDS[kind][1](of, table)


# ---- averages and exact sums ----------------------------------------------------------------------------------------


def _write_average(to: Writer, model: AverageModel) -> None:
    write_forest(to.section("forest"), model.forest)


def _read_average(of: Reader, table: Table) -> AverageModel:
    forest = read_forest(of.section("forest"))
    schema, family = table.schema, forest.family
    if not np.array_equal(forest.n_codes, schema.n_codes):
        raise of.error("forest.n_codes", "are not those of the schema")
    if not isinstance(family, NativeFamily) or family.has_classes != table.is_classes:
        raise of.error("forest", f"has leaves {family}, which this estimator never has")
    return AverageModel(forest)


def _write_exact(to: Writer, model: ExactModel) -> None:
    write_exact(to.section("posterior"), model.posterior)
    write_rows(to.section("rows"), model.rows)


def _read_exact(of: Reader, table: Table) -> ExactModel:
    schema, posterior = table.schema, read_exact(of.section("posterior"))
    if not hasattr(posterior, "n_rows"):
        raise of.error("posterior", "has seen no rows, but the estimator is fitted")
    has_missing = schema.has_missing
    n_codes = schema.n_codes.astype(np.int64)
    if posterior.n_codes != (n_codes + has_missing).tolist():
        raise of.error("posterior.state.n_codes", "are not those of the schema")
    rows = read_rows(of.section("rows"), schema, table.row_names, posterior.family, table.is_classes)
    model = ExactModel(posterior, has_missing, n_codes, rows)
    is_known = model.read(rows.codes) < np.array(posterior.n_codes)
    check_all(of.section("rows"), "codes", rows.codes, is_known, "must be codes of the schema")
    return model


# ---- boosted models -------------------------------------------------------------------------------------------------


def _write_classes(to: Writer, model: BoostedClasses) -> None:
    _write_classes_in(to.section("boosted"), model)


def _write_classes_in(to: Writer, model: BoostedClasses) -> None:
    _write_chains(to, model.trees, model.chains)
    to.put(sharpness=float(model.sharpness), n_rows=model.n_rows)


def _read_classes(of: Reader, table: Table) -> BoostedClasses:
    of = of.section("boosted")
    trees, chains = _read_chains(of, table.schema)
    if not table.is_classes:
        raise of.error("trees", "are of classes, which this estimator never has")
    return BoostedClasses(trees, _positive(of, "sharpness"), chains, _read_n_rows(of))


def _write_mixed(to: Writer, model: MixedClasses) -> None:
    to = to.section("boosted")
    to.put(weight=float(model.weight), mixed_sharpness=float(model.sharpness))
    write_forest(to.section("mixed"), model.forest)
    _write_classes_in(to, model.boosted)


def _read_mixed(of: Reader, table: Table) -> MixedClasses:
    boosted, of = _read_classes(of, table), of.section("boosted")
    forest, weight = _read_mixed_forest(of, table.schema), _positive(of, "weight", 1.0)
    if forest.family.size != boosted.family.size or not forest.family.has_classes:
        raise of.error("mixed", f"has leaves {forest.family}, but the trees have {boosted.family.size} classes")
    return MixedClasses(forest, boosted, weight, _positive(of, "mixed_sharpness"))


def _write_numbers(to: Writer, model: BoostedNumbers) -> None:
    to, centres = to.section("boosted"), model.centres
    if centres.forest is not None:
        to.put(weight=float(centres.weight))
        write_forest(to.section("mixed"), centres.forest)
    _write_chains(to, centres.additive, model.chains)
    to.put(family=model.family.kernel)
    write_schema(to.section("centre"), model.centre_codes)
    write_forest(to.section("residuals"), model.residuals)


def _read_numbers(of: Reader, table: Table) -> BoostedNumbers:
    of, schema = of.section("boosted"), table.schema
    trees, chains = _read_chains(of, schema)
    family = of.value("family", str)
    link = NUMBER_FAMILIES[family].link if family in boosted_families() else None
    if link is None or trees.n_outputs != 1:
        raise of.error("family", f"must be one of {list(boosted_families())} with one output, but is {family!r:.200}")
    centre, residuals = read_schema(of.section("centre")), read_forest(of.section("residuals"))
    if centre.n_features != 1 or not np.array_equal(residuals.n_codes, [*schema.n_codes, *centre.n_codes]):
        raise of.error("residuals", "must have the columns of the schema, and the centre")
    if not isinstance(residuals.family, NUMBER_FAMILIES[family]):
        raise of.error("residuals", f"has leaves {residuals.family}, but the family is {family!r}")
    centres = Centres(trees, link)
    if "mixed" in of:
        forest = _read_mixed_forest(of, schema)
        if forest.family.has_classes:
            raise of.error("mixed", f"has leaves {forest.family}, but targets are numbers")
        centres = Centres(trees, link, forest, _positive(of, "weight", 1.0))
    return BoostedNumbers(centres, link, centre, residuals, chains)


def _write_chains(to: Writer, trees: AdditiveTrees, chains: Chains) -> None:
    to.put_arrays(n_nodes=trees.n_nodes, value=trees.value, base=trees.base, gains=chains.gains, **trees.nodes)
    if trees.mass is not None:
        to.put_arrays(mass=trees.mass)
    to.put(n_steps=[int(n) for n in chains.n_steps], split_prior=float(chains.split_prior))


def _read_chains(of: Reader, schema: Schema) -> tuple[AdditiveTrees, Chains]:
    trees = _read_trees(of, schema)
    gains = of.array("gains", np.float64, (schema.n_features,))
    check_all(of, "gains", gains, np.isfinite(gains) & (gains >= 0.0), "must be finite and not negative")
    n_steps = of.value("n_steps", list)
    if not n_steps or not all(type(n) is int and n >= 0 for n in n_steps):
        raise of.error("n_steps", f"must be whole numbers, but is {n_steps!r:.200}")
    return trees, Chains(gains, _positive(of, "split_prior", 1.0), n_steps)


def _read_mixed_forest(of: Reader, schema: Schema) -> Forest:
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


KINDS: dict[str, tuple[Callable[[Writer, Any], None], Callable[[Reader, Table], Model]]] = {
    AverageModel.kind: (_write_average, _read_average),
    ExactModel.kind: (_write_exact, _read_exact),
    BoostedClasses.kind: (_write_classes, _read_classes),
    BoostedNumbers.kind: (_write_numbers, _read_numbers),
    MixedClasses.kind: (_write_mixed, _read_mixed),
}
"""Writer and reader of each kind of model."""
