"""Weights of rows by their class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import MAX_WEIGHT
from everytree.base.errors import ArgumentError

NAMED = ("balanced", "balanced_subsample")


def check_class_weight(class_weight: Any) -> None:
    """Raise for what is no weight of classes."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight in NAMED):
        return
    if not isinstance(class_weight, Mapping):
        must = f"must be None, 'balanced', 'balanced_subsample' or a dict of classes, but is {class_weight!r}"
        raise ArgumentError("class_weight", must)
    for label, weight in class_weight.items():
        is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if not (is_number and 0.0 <= weight <= MAX_WEIGHT):
            raise ArgumentError("class_weight", f"must have numbers from 0 to 1e60, but has {weight!r} for {label!r}")


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
