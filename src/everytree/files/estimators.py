"""Estimators in a file: their parameters, and their fitted or imported state."""

from __future__ import annotations

from typing import Any

from everytree.files.fitted import read_fitted, write_fitted
from everytree.files.plain import read_plain, write_plain
from everytree.files.schemas import read_schema, write_schema
from everytree.files.sections import Reader, Writer
from everytree.files.trees import read_trees, write_trees
from everytree.structure.importers.model import Imported


def write_estimator(writer: Writer, model: Any) -> None:
    """Write the parameters, and the fitted or imported state."""
    parameters = writer.section("parameters")
    for name, value in model.get_params(deep=False).items():
        write_plain(parameters, name, value)
    structures, is_fitted = model.structures_, "fitted_" in vars(model)
    writer.put(is_fitted=is_fitted, is_imported=structures is not None)
    if is_fitted:
        write_fitted(writer, model)
    if structures is not None:
        _write_structures(writer, structures, is_fitted)


def read_estimator(reader: Reader, kind: type[Any]) -> Any:
    """Read the estimator, its parts checked against each other."""
    parameters = reader.section("parameters")
    given = {name: read_plain(parameters, name) for name in parameters.values()}
    with reader.checking("parameters"):
        model = kind(**given)
    is_fitted = reader.value("is_fitted", bool)
    if is_fitted:
        read_fitted(reader, model)
    if reader.value("is_imported", bool):
        model.structures_ = _read_structures(reader, model, is_fitted)
    return model


# ---- imported structures --------------------------------------------------------------------------------------------


def _write_structures(writer: Writer, structures: Imported, fitted: bool) -> None:
    """Write the columns and trees of another library's model, unless the fitted forest has them."""
    write_plain(writer, "imported_classes", structures.classes)
    if not fitted:
        write_schema(writer.section("schema"), structures.schema)
        write_trees(writer.section("trees"), structures.trees)


def _read_structures(reader: Reader, model: Any, is_fitted: bool) -> Imported:
    if is_fitted:
        schema, trees = model.schema_, model.forest_.trees
    else:
        schema, trees = read_schema(reader.section("schema")), read_trees(reader.section("trees"))
    for i, tree in enumerate(trees):
        if tree.n_features != schema.n_features:
            raise reader.error(
                "trees", f"tree {i} reads {tree.n_features} columns, but the schema has {schema.n_features}"
            )
    return Imported(schema, tuple(trees), read_plain(reader, "imported_classes"))
