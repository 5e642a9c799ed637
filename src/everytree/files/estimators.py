"""Estimators in a file: their parameters, and their fitted or imported state."""

from __future__ import annotations

from typing import Any

from everytree.files.fitted import read_fitted, write_fitted
from everytree.files.plain import read_plain, write_plain
from everytree.files.schemas import read_schema, write_schema
from everytree.files.sections import Reader, Writer
from everytree.files.trees import read_trees, write_trees
from everytree.structure.importers.model import Imported


def write_estimator(to: Writer, model: Any) -> None:
    """Write the parameters, and the fitted or imported state."""
    parameters = to.section("parameters")
    for name, value in model.get_params(deep=False).items():
        write_plain(parameters, name, value)
    structures, is_fitted = model.structures_, "fitted_" in vars(model)
    to.put(is_fitted=is_fitted, is_imported=structures is not None)
    if is_fitted:
        write_fitted(to, model)
    if structures is not None:
        _write_structures(to, structures, is_fitted)


def read_estimator(of: Reader, kind: type[Any]) -> Any:
    """Read the estimator, its parts checked against each other."""
    parameters = of.section("parameters")
    given = {name: read_plain(parameters, name) for name in parameters.values()}
    with of.checking("parameters"):
        model = kind(**given)
    is_fitted = of.value("is_fitted", bool)
    if is_fitted:
        read_fitted(of, model)
    if of.value("is_imported", bool):
        model.structures_ = _read_structures(of, model, is_fitted)
    return model


# ---- imported structures --------------------------------------------------------------------------------------------


def _write_structures(to: Writer, structures: Imported, fitted: bool) -> None:
    """Write the columns and trees of another library's model, unless the fitted forest has them."""
    write_plain(to, "imported_classes", structures.classes)
    if not fitted:
        write_schema(to.section("schema"), structures.schema)
        write_trees(to.section("trees"), structures.trees)


def _read_structures(of: Reader, model: Any, is_fitted: bool) -> Imported:
    if is_fitted:
        schema, trees = model.schema_, model.forest_.trees
    else:
        schema, trees = read_schema(of.section("schema")), read_trees(of.section("trees"))
    for i, tree in enumerate(trees):
        if tree.n_features != schema.n_features:
            raise of.error("trees", f"tree {i} reads {tree.n_features} columns, but the schema has {schema.n_features}")
    return Imported(schema, tuple(trees), read_plain(of, "imported_classes"))
