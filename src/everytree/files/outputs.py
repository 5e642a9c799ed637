"""Estimators of one or several outputs in a file; each output is stored as the estimator that it is."""

from __future__ import annotations

from typing import Any

from everytree.estimators.outputs import keep_outputs
from everytree.files.estimators import read_estimator, write_estimator
from everytree.files.sections import Reader, Writer


def write_with_outputs(writer: Writer, model: Any) -> None:
    """Write an estimator, and those of its outputs."""
    write_estimator(writer, model)
    outputs = vars(model).get("outputs_", [])
    if not outputs:
        return
    writer.put(n_outputs=len(outputs))
    for place, one in enumerate(outputs):
        write_estimator(writer.section(f"output_{place}"), one)


def read_with_outputs(reader: Reader, kind: type[Any]) -> Any:
    """Read an estimator, and those of its outputs, which must have the same columns and trees."""
    model = read_estimator(reader, kind)
    if "n_outputs" not in reader:
        return model
    n_outputs = reader.value("n_outputs", int)
    if n_outputs < 2 or model.__sklearn_is_fitted__() or not kind.grows_trees:
        raise reader.error("n_outputs", f"is {n_outputs}, which is not possible for this {kind.__name__}")
    names = [f"output_{place}" for place in range(n_outputs)]
    outputs = [read_estimator(reader.section(name), kind) for name in names]
    for name, one in zip(names, outputs, strict=True):
        if not one.__sklearn_is_fitted__():
            raise reader.error(name, "is not fitted")
        if one.schema_ != outputs[0].schema_ or one.forest_.trees != outputs[0].forest_.trees:
            raise reader.error(name, "has other columns or trees than the first output")
    keep_outputs(model, outputs)
    return model
