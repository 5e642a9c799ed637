"""Weights of rows by their class, or by their classes in several outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import MAX_WEIGHT
from everytree.base.errors import ArgumentError

NAMED = ("balanced", "balanced_subsample")

ClassWeight = (
    Mapping[Any, float] | Sequence[Mapping[Any, float]] | Literal["balanced", "balanced_subsample"] | None
)  # fmt: skip
"""Of one output, of several, or by a rule."""


def check_class_weight(class_weight: Any) -> None:
    """Raise for what is no weight of classes."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight in NAMED):
        return
    if isinstance(class_weight, list | tuple):
        for one in class_weight:
            _check_mapping(one)
    else:
        _check_mapping(class_weight)


def _check_mapping(class_weight: Any) -> None:
    if not isinstance(class_weight, Mapping):
        must = (
            "must be None, 'balanced', 'balanced_subsample', a dict of classes, or a list of them for several outputs"
        )
        raise ArgumentError("class_weight", f"{must}, but is {class_weight!r}")
    for label, weight in class_weight.items():
        is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if not (is_number and 0.0 <= weight <= MAX_WEIGHT):
            raise ArgumentError("class_weight", f"must have numbers from 0 to 1e60, but has {weight!r} for {label!r}")


def weights_by_classes(class_weight: Any, outputs: Sequence[NDArray[Any]]) -> FloatArray:
    """(n_rows,) the product, over the outputs, of the weights of the classes of each row; all rows are there.

    Parameters
    ----------
    class_weight : "balanced", "balanced_subsample" or sequence of mappings
        One for each output.
    outputs : sequence of (n_rows,) arrays
        Labels.
    """
    if isinstance(class_weight, str):
        class_weight = [class_weight] * len(outputs)
    if isinstance(class_weight, Mapping) or len(class_weight) != len(outputs):
        must = f"must be a list of {len(outputs)} dicts, one for each output, or a name, but is {class_weight!r}"
        raise ArgumentError("class_weight", must)
    pairs = zip(class_weight, outputs, strict=True)
    return np.asarray(np.prod([weights_by_class(one, labels, is_all=True) for one, labels in pairs], axis=0))


def weights_by_class(class_weight: Any, labels: NDArray[Any], *, is_all: bool) -> FloatArray:
    """(n_rows,) the weight of the class of each row.

    Parameters
    ----------
    class_weight : "balanced", "balanced_subsample" or mapping
        The names give all classes the same total weight, and all rows together that of their number. A class that a
        mapping does not name has weight 1.
    labels : (n_rows,) array
    is_all : bool
        Whether these are all rows. If not, classes cannot be counted, and some may be absent.
    """
    if isinstance(class_weight, list | tuple):
        raise ArgumentError("class_weight", "is a list, which is for several outputs; y has one: give a dict")
    classes, place, n_rows = np.unique(labels, return_inverse=True, return_counts=True)
    if not isinstance(class_weight, Mapping):
        if not is_all:
            must = f"is {class_weight!r}, for which all rows must be known; give a dict of classes to partial_fit"
            raise ArgumentError("class_weight", must)
        return np.asarray((len(labels) / (len(classes) * n_rows))[place])
    known = classes.tolist()
    strange = [label for label in class_weight if label not in known]
    if is_all and strange and len(class_weight) - len(strange) < len(known):
        raise ArgumentError("class_weight", f"names {strange[0]!r}, but the classes are {known}")
    return np.array([float(class_weight.get(label, 1.0)) for label in known])[place]
