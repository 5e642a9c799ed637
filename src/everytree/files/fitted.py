"""The fitted state of an estimator in a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.families.registry import NUMBER_FAMILIES
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


def write_fitted(to: Writer, model: Any) -> None:
    fitted: Fitted = model.fitted_
    write_schema(to.section("schema"), fitted.schema)
    to.put(has_names=hasattr(model, "feature_names_in_"), row_data=fitted.row_names)
    to.put(weight_factor=fitted.weight_factor, batches=list(fitted.batches))
    if fitted.groups is not None:
        to.put(groups=fitted.groups)
    if model.has_classes:
        write_plain(to, "classes", model.classes_)
    if hasattr(model, "input_mean_"):
        to.put_arrays(input_mean=model.input_mean_, input_scale=model.input_scale_)
    write_model(to, fitted.model)
    if fitted.choice is not None:
        write_choice(to.section("choice"), fitted.choice)
    if fitted.out_of_bag is not None:
        write_out_of_bag(to.section("out_of_bag"), fitted.out_of_bag)
    if fitted.helpful is not None:
        write_helpful(to.section("helpful"), fitted.helpful)
    if fitted.last_time is not None:
        to.put(last_time=fitted.last_time)
    if fitted.mean_prediction is not None:
        to.put_arrays(mean_prediction=fitted.mean_prediction)
    write_scores(to.section("unseen"), fitted.unseen)


def read_fitted(of: Reader, model: Any) -> None:
    schema = read_schema(of.section("schema"))
    if of.value("has_names", bool):
        if schema.input_names is None:
            raise of.error("has_names", "is true, but the columns have no names")
        model.feature_names_in_ = np.array(schema.input_names, dtype=object)
    row_names = _read_row_names(of)
    learnt = read_model(of, Table(schema, row_names, model.has_classes), model.model_kinds)
    if model.has_one_tree and len(learnt.parts.averaged) != 1:
        raise of.error("forest", f"has {len(learnt.parts.averaged)} trees, but a {type(model).__name__} has one")
    choice = read_choice(of.section("choice"), learnt.family) if "choice" in of else None
    if choice is None and "forest" in model.model_kinds:
        raise of.error("choice", "is missing")
    target = model.target_before_fit()
    if model.has_classes:
        target = replace(target, classes=_read_classes(of, learnt.family))
    else:
        _check_numbers(of, model, learnt.family, row_names)
    if "input_mean" in of:
        mean, scale = _read_inputs(of, schema, learnt.family)
        target = replace(target, input_mean=mean, input_scale=scale)
    factor, batches = _read_weight_factor(of), _read_batches(of)
    oob = read_out_of_bag(of.section("out_of_bag"), target) if "out_of_bag" in of.values() else None
    unseen = read_scores(of, model.has_classes)
    model.fitted_ = Fitted(
        target, schema, learnt, choice, row_names, factor, batches, out_of_bag=oob, unseen=unseen,
        helpful=read_helpful(of, learnt), groups=of.value("groups", str) if "groups" in of else None,
        mean_prediction=_read_mean(of, learnt), last_time=_read_last_time(of),
    )  # fmt: skip


def _check_numbers(of: Reader, model: Any, family: NativeFamily, row_names: list[str]) -> None:
    """Check that a regressor's leaves and row data are those of its family."""
    leaves = NUMBER_FAMILIES.get(model.family) if isinstance(model.family, str) else None
    if leaves is None or not isinstance(family, leaves):
        raise of.error("parameters.family", f"is {model.family!r:.200}, but the leaves are {family}")
    optional = [[], *([column.name] for column in leaves.given_columns)]
    if row_names not in ([["inputs"]] if "inputs" in leaves.row_data else optional):
        raise of.error("row_data", f"is {row_names}, which family {model.family!r} does not go with")
    if ("input_mean" in of) != ("inputs" in leaves.row_data):
        raise of.error("input_mean", f"is present or absent, contrary to family {model.family!r}")


def _read_row_names(of: Reader) -> list[str]:
    names = of.value("row_data", list)
    if names not in ([], *([name] for family in NUMBER_FAMILIES.values() for name in family.row_data)):
        raise of.error("row_data", f"must be nothing or one name of row data, but is {names!r:.200}")
    return names


def _read_weight_factor(of: Reader) -> float:
    """Factor by which weights are multiplied; files of version 1 have none."""
    factor = of.value("weight_factor", float) if "weight_factor" in of else 1.0
    if not (np.isfinite(factor) and factor > 0.0):
        raise of.error("weight_factor", f"must be positive, but is {factor}")
    return factor


def _read_batches(of: Reader) -> list[str]:
    """Digests of the batches that were counted; files of version 1 have none."""
    batches = of.value("batches", list) if "batches" in of else []
    if not all(isinstance(digest, str) and len(digest) == 32 for digest in batches):
        raise of.error("batches", f"must be digests of 32 characters, but is {batches!r:.200}")
    return list(batches)


def _read_classes(of: Reader, family: NativeFamily) -> NDArray[Any]:
    """Labels in ascending order, as many as the leaves have classes."""
    classes = read_plain(of, "classes")
    with of.checking("classes"):
        if not isinstance(classes, np.ndarray) or not np.array_equal(np.unique(classes), classes):
            raise ValueError("must be distinct labels in ascending order")
    if not family.has_classes or family.size != max(len(classes), 2):
        raise of.error("classes", f"are {len(classes)}, but the leaves are {family}")
    return np.asarray(classes)


def _read_inputs(of: Reader, schema: Schema, family: NativeFamily) -> tuple[FloatArray, FloatArray]:
    """Centre and scale of the columns of numbers, for linear leaves."""
    n = int((~schema.is_categorical).sum())
    mean, scale = (of.array(name, np.float64, (n,)) for name in ("input_mean", "input_scale"))
    check_all(of, "input_mean", mean, np.isfinite(mean), "must be finite")
    check_all(of, "input_scale", scale, np.isfinite(scale) & (scale > 0.0), "must be positive")
    if family.size != n + 1:
        raise of.error("input_mean", f"is for {n} columns of numbers and a one, but leaves are {family}")
    return mean, scale


def _read_mean(of: Reader, model: Model) -> FloatArray | None:
    """Mean prediction of the rows of fit; files of earlier versions do not have it."""
    if "mean_prediction" not in of:
        return None
    family = model.family
    mean = of.array("mean_prediction", np.float64, (family.size if family.has_classes else 1,))
    is_right = (mean >= 0.0) & (mean <= 1.0 + 1e-9) if family.has_classes else np.isfinite(mean)
    check_all(of, "mean_prediction", mean, is_right, "must be probabilities, or a finite mean")
    return mean


def _read_last_time(of: Reader) -> float | None:
    """The longest time that was seen, where some were cut short; files of earlier versions do not have it."""
    if "last_time" not in of:
        return None
    last_time = of.value("last_time", float)
    if not (np.isfinite(last_time) and last_time >= 0.0):
        raise of.error("last_time", f"must be a time, but is {last_time}")
    return last_time
