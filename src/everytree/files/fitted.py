"""The fitted state of an estimator in a file."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import is_auto
from everytree.families.base import NativeFamily
from everytree.families.registry import NUMBER_FAMILIES
from everytree.files.conformal import read_conformal, write_conformal
from everytree.files.families import check_all
from everytree.files.held_out import (
    read_choice,
    read_helpful,
    read_out_of_bag,
    read_scores,
    write_choice,
    write_helpful,
    write_out_of_bag,
    write_scores,
)
from everytree.files.models import Table, read_model, write_model
from everytree.files.plain import read_plain, write_plain
from everytree.files.schemas import read_schema, write_schema
from everytree.files.sections import Reader, Writer
from everytree.fitting.fitted import Fitted
from everytree.models.model import Model
from everytree.tables.schema import Schema


def write_fitted(writer: Writer, model: Any) -> None:
    fitted: Fitted = model.fitted_
    write_schema(writer.section("schema"), fitted.schema)
    writer.put(has_names=hasattr(model, "feature_names_in_"), row_data=fitted.row_names)
    writer.put(weight_factor=fitted.weight_factor, batches=list(fitted.batches))
    writer.put(is_out_of_fold=fitted.is_out_of_fold, forgotten=list(fitted.forgotten))
    if fitted.groups is not None:
        writer.put(groups=fitted.groups)
    if fitted.target_name is not None:
        writer.put(target_name=fitted.target_name)
    if model.has_classes:
        write_plain(writer, "classes", model.classes_)
    if hasattr(model, "input_mean_"):
        writer.put_arrays(input_mean=model.input_mean_, input_scale=model.input_scale_)
    write_model(writer, fitted.model)
    if fitted.choice is not None:
        write_choice(writer.section("choice"), fitted.choice)
    if fitted.out_of_bag is not None:
        write_out_of_bag(writer.section("out_of_bag"), fitted.out_of_bag)
    if fitted.helpful is not None:
        write_helpful(writer.section("helpful"), fitted.helpful)
    if fitted.conformal is not None:
        write_conformal(writer.section("conformal"), fitted.conformal)
    if fitted.last_time is not None:
        writer.put(last_time=fitted.last_time)
    if fitted.mean_prediction is not None:
        writer.put_arrays(mean_prediction=fitted.mean_prediction)
    write_scores(writer.section("unseen"), fitted.unseen)


def read_fitted(reader: Reader, model: Any) -> None:
    schema = read_schema(reader.section("schema"))
    if reader.value("has_names", bool):
        if schema.input_names is None:
            raise reader.error("has_names", "is true, but the columns have no names")
        model.feature_names_in_ = np.array(schema.input_names, dtype=object)
    row_names = _read_row_names(reader)
    table = Table(schema, row_names, model.has_classes)
    learnt = read_model(reader, table, model.model_kinds)
    if model.has_one_tree and len(learnt.parts.averaged) != 1:
        raise reader.error("forest", f"has {len(learnt.parts.averaged)} trees, but a {type(model).__name__} has one")
    choice = read_choice(reader.section("choice"), learnt.family) if "choice" in reader else None
    if choice is None and "forest" in model.model_kinds:
        raise reader.error("choice", "is missing")
    target = model.target_before_fit()
    if model.has_classes:
        target = replace(target, classes=_read_classes(reader, learnt.family))
    else:
        target = replace(target, family=_family_name(reader, model, learnt.family, row_names))
    if "input_mean" in reader:
        mean, scale = _read_inputs(reader, schema, learnt.family)
        target = replace(target, input_mean=mean, input_scale=scale)
    factor = _read_weight_factor(reader)
    batches, forgotten = (_read_digests(reader, name) for name in ("batches", "forgotten"))
    oob = read_out_of_bag(reader.section("out_of_bag"), target) if "out_of_bag" in reader.values() else None
    unseen = read_scores(reader, model.has_classes, are_curves=learnt.family.predicts_curves)
    model.fitted_ = Fitted(
        target, schema, learnt, choice, row_names, factor, batches, out_of_bag=oob, unseen=unseen,
        helpful=read_helpful(reader, learnt), groups=reader.value("groups", str) if "groups" in reader else None,
        target_name=reader.value("target_name", str) if "target_name" in reader else None,
        mean_prediction=_read_mean(reader, learnt), last_time=_read_last_time(reader),
        conformal=read_conformal(reader, learnt, table, model.model_kinds),
        is_out_of_fold=_read_is_out_of_fold(reader, schema, learnt), forgotten=forgotten,
    )  # fmt: skip


def _family_name(reader: Reader, model: Any, family: NativeFamily, row_names: list[str]) -> str:
    """Name of the leaves' family, which must be that of the regressor, and row data those that go with it."""
    name = family.name if is_auto(model.family) else model.family
    leaves = NUMBER_FAMILIES.get(name) if isinstance(name, str) else None
    if leaves is None or not leaves.makes(family):
        raise reader.error("parameters.family", f"is {model.family!r:.200}, but the leaves are {family}")
    names = [column.name for column in leaves.given_columns]
    optional = [sorted(some) for n in range(len(names) + 1) for some in combinations(names, n)]
    if row_names not in ([["inputs"]] if "inputs" in leaves.row_data else optional):
        raise reader.error("row_data", f"is {row_names}, which family {model.family!r} does not go with")
    if ("input_mean" in reader) != ("inputs" in leaves.row_data):
        raise reader.error("input_mean", f"is present or absent, contrary to family {model.family!r}")
    return str(name)


def _read_row_names(reader: Reader) -> list[str]:
    names = reader.value("row_data", list)
    known = {name for family in NUMBER_FAMILIES.values() for name in family.row_data}
    if not all(isinstance(name, str) for name in names) or not known.issuperset(names):
        raise reader.error("row_data", f"must be names of row data, but is {names!r:.200}")
    return names


def _read_weight_factor(reader: Reader) -> float:
    """Factor by which weights are multiplied; files of version 1 have none."""
    factor = reader.value("weight_factor", float) if "weight_factor" in reader else 1.0
    if not (np.isfinite(factor) and factor > 0.0):
        raise reader.error("weight_factor", f"must be positive, but is {factor}")
    return factor


def _read_digests(reader: Reader, name: str) -> list[str]:
    """Digests of batches; files of earlier versions have none."""
    batches = reader.value(name, list) if name in reader else []
    if not all(isinstance(digest, str) and len(digest) == 32 for digest in batches):
        raise reader.error(name, f"must be digests of 32 characters, but is {batches!r:.200}")
    return list(batches)


def _read_is_out_of_fold(reader: Reader, schema: Schema, model: Model) -> bool:
    """Whether rows of fit were counted unlike later ones; in files of earlier versions, where that may be so."""
    if "is_out_of_fold" in reader:
        return reader.value("is_out_of_fold", bool)
    return any(bool(column.pooled) for column in schema.columns) or model.counts_out_of_fold


def _read_classes(reader: Reader, family: NativeFamily) -> NDArray[Any]:
    """Labels in ascending order, as many as the leaves have classes."""
    classes = read_plain(reader, "classes")
    with reader.checking("classes"):
        if not isinstance(classes, np.ndarray) or not np.array_equal(np.unique(classes), classes):
            raise ValueError("must be distinct labels in ascending order")
    if not family.has_classes or family.size != max(len(classes), 2):
        raise reader.error("classes", f"are {len(classes)}, but the leaves are {family}")
    return np.asarray(classes)


def _read_inputs(reader: Reader, schema: Schema, family: NativeFamily) -> tuple[FloatArray, FloatArray]:
    """Centre and scale of the columns of numbers, for linear leaves."""
    n = int((~schema.is_categorical).sum())
    mean, scale = (reader.array(name, np.float64, (n,)) for name in ("input_mean", "input_scale"))
    check_all(reader, "input_mean", mean, np.isfinite(mean), "must be finite")
    check_all(reader, "input_scale", scale, np.isfinite(scale) & (scale > 0.0), "must be positive")
    if family.size != n + 1:
        raise reader.error("input_mean", f"is for {n} columns of numbers and a one, but leaves are {family}")
    return mean, scale


def _read_mean(reader: Reader, model: Model) -> FloatArray | None:
    """Mean prediction of the rows of fit; files of earlier versions do not have it."""
    if "mean_prediction" not in reader:
        return None
    family = model.family
    mean = reader.array("mean_prediction", np.float64, (family.size if family.has_classes else 1,))
    is_right = (mean >= 0.0) & (mean <= 1.0 + 1e-9) if family.has_classes else np.isfinite(mean)
    check_all(reader, "mean_prediction", mean, is_right, "must be probabilities, or a finite mean")
    return mean


def _read_last_time(reader: Reader) -> float | None:
    """The longest time that was seen, where some were cut short; files of earlier versions do not have it."""
    if "last_time" not in reader:
        return None
    last_time = reader.value("last_time", float)
    if not (np.isfinite(last_time) and last_time >= 0.0):
        raise reader.error("last_time", f"must be a time, but is {last_time}")
    return last_time
