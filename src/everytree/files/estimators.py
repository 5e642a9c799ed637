"""Estimators in a file: their parameters, and their fitted or imported state; each of several outputs is one, too."""

from __future__ import annotations

from typing import Any

from everytree.estimators.outputs import keep_outputs
from everytree.files.fitted import read_fitted, write_fitted
from everytree.files.plain import read_plain, write_plain
from everytree.files.schemas import read_schema, write_schema
from everytree.files.sections import Reader, Writer
from everytree.files.trees import read_trees, write_trees
from everytree.structure.importers.model import Imported


def write_estimator(writer: Writer, model: Any) -> None:
    """Write an estimator, and those of its outputs."""
    _write_one(writer, model)
    outputs = vars(model).get("outputs_", [])
    if not outputs:
        return
    writer.put(n_outputs=len(outputs))
    for place, one in enumerate(outputs):
        _write_one(writer.section(f"output_{place}"), one)


def read_estimator(reader: Reader, kind: type[Any]) -> Any:
    """Read an estimator, and those of its outputs, which must have the same columns and trees."""
    model = _read_one(reader, kind)
    if "n_outputs" not in reader:
        return model
    n_outputs = reader.value("n_outputs", int)
    if n_outputs < 2 or model.__sklearn_is_fitted__() or not kind.grows_trees:
        raise reader.error("n_outputs", f"is {n_outputs}, which is not possible for this {kind.__name__}")
    names = [f"output_{place}" for place in range(n_outputs)]
    outputs = [_read_one(reader.section(name), kind) for name in names]
    for name, one in zip(names, outputs, strict=True):
        if not one.__sklearn_is_fitted__():
            raise reader.error(name, "is not fitted")
        if one.schema_ != outputs[0].schema_ or one.forest_.trees != outputs[0].forest_.trees:
            raise reader.error(name, "has other columns or trees than the first output")
    keep_outputs(model, outputs)
    return model


def _write_one(writer: Writer, model: Any) -> None:
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


def _read_one(reader: Reader, kind: type[Any]) -> Any:
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
