"""Leaf models and their statistics in a file."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.families import Bernoulli, Categorical, Exponential, Geometric, LinearRegression, Normal, Poisson
from everytree.families.base import Family, NativeFamily
from everytree.files.plain import read_plain, write_plain
from everytree.files.sections import Reader, Writer


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A family that files know: which of its statistics are never negative (None: all), and its size."""

    family: type[NativeFamily]
    not_negative: tuple[int, ...] | None = None
    size: tuple[str, int, int] | None = None


_KINDS = {
    kind.family.__name__: kind
    for kind in (
        _Kind(Bernoulli),
        _Kind(Categorical, size=("n_classes", 2, 1_000_000)),
        _Kind(Poisson, (0, 2)),
        _Kind(Exponential),
        _Kind(Geometric),
        _Kind(Normal, (0,)),
        _Kind(LinearRegression, (0,), size=("n_inputs", 1, 1000)),
    )
}


def write_family(to: Writer, family: Family) -> None:
    """The name of a family and its parameters; `prior` is what the kernels make of them."""
    kind = _KINDS.get(type(family).__name__)
    if kind is None or type(family) is not kind.family or not isinstance(family, NativeFamily):
        raise TypeError(
            f"the leaves are {type(family).__name__}, a family of your own: that is code, and files hold none; "
            f"those that can be stored are {', '.join(_KINDS)}. pickle keeps the others"
        )
    to.put(name=type(family).__name__)
    for name in _parameters(kind.family):
        write_plain(to, name, getattr(family, name))
    to.put_arrays(prior=family._hyper)


def read_family(of: Reader) -> NativeFamily:
    """The family again. Its size is believed only when the file has a prior of that size."""
    name = of.value("name", str)
    if name not in _KINDS:
        raise of.error("name", f"must be one of {[*_KINDS]}, but is {name!r:.200}")
    kind = _KINDS[name]
    prior = of.array("prior", np.float64, (None, None))
    given = {name: read_plain(of, name) for name in _parameters(kind.family)}
    size = 2 if kind.family is Bernoulli else 0
    if kind.size is not None:
        with of.checking(kind.size[0]):
            size = whole_number(kind.size[0], given[kind.size[0]], *kind.size[1:])
    _, n_hyper = _kernels.family_shape(kind.family.kernel, size)
    if len(prior) == 0 or prior.shape[1] != n_hyper:
        raise of.error("prior", f"must have {n_hyper} columns and some row, but has shape {prior.shape}")
    with of.checking("parameters"):
        family = kind.family(**given)
    if not np.array_equal(family._hyper, prior):
        raise of.error("prior", "is not the one of these parameters")
    return family


def read_statistics(of: Reader, family: NativeFamily, n: int | None) -> FloatArray:
    """Sums over rows that are possible for this family; `n` of them, or any number."""
    statistics = of.array("statistics", np.float64, (n, family.n_statistics))
    check_all(of, "statistics", statistics, np.isfinite(statistics), "must be finite")
    columns = _KINDS[type(family).__name__].not_negative
    may_be_negative = np.full(family.n_statistics, columns is not None)
    may_be_negative[list(columns or ())] = False
    check_all(of, "statistics", statistics, (statistics >= 0.0) | may_be_negative, "must not be negative")
    return statistics


def check_all(of: Reader, name: str, values: NDArray[Any], right: NDArray[np.bool_], must: str) -> None:
    """Every entry of an array is right, or the error names the first that is not."""
    if not right.all():
        place = tuple(int(i) for i in np.unravel_index(int(np.argmin(right)), right.shape))
        raise of.error(name, f"[{', '.join(map(str, place))}] is {values[place]}, but {must}")


def _parameters(family: type[NativeFamily]) -> list[str]:
    return [field.name for field in dataclasses.fields(family)]  # type: ignore[arg-type]
