"""Leaf models and their statistics in a file."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray, narrowest
from everytree.base.checks import whole_number
from everytree.families.base import Family, NativeFamily
from everytree.families.registry import FAMILIES
from everytree.files.container import TYPE_NAMES, TYPES
from everytree.files.plain import read_plain, write_plain
from everytree.files.sections import Reader, Writer


def write_family(writer: Writer, family: Family) -> None:
    """Write the name of a family and its parameters; `prior` is derived from them for the kernels."""
    if type(family) is not FAMILIES.get(type(family).__name__) or not isinstance(family, NativeFamily):
        raise TypeError(
            f"the leaves are {type(family).__name__}, a family of your own: that is code, and files hold none; "
            f"those that can be stored are {', '.join(FAMILIES)}. pickle keeps the others"
        )
    writer.put(name=type(family).__name__)
    for name in _parameters(type(family)):
        value = getattr(family, name)
        if isinstance(value, Family):
            write_family(writer.section(name), value)
        else:
            write_plain(writer, name, value)
    writer.put_arrays(prior=family.hyper)


def read_family(reader: Reader) -> NativeFamily:
    """Read the family. Its size is accepted only if the file has a prior of that size."""
    name = reader.value("name", str)
    if name not in FAMILIES:
        raise reader.error("name", f"must be one of {[*FAMILIES]}, but is {name!r:.200}")
    family_class = FAMILIES[name]
    prior = reader.array("prior", np.float64, (None, None))
    given = {name: _read_parameter(reader, name) for name in _parameters(family_class)}
    if family_class.size_parameter is not None:
        parameter, least, largest = family_class.size_parameter
        with reader.checking(parameter):
            stated = given[parameter]
            size = whole_number(parameter, np.size(stated) if np.ndim(stated) else stated, least, largest)
        _check_width(reader, prior, _kernels.family_shape(family_class.kernel, size)[1])
    with reader.checking("parameters"):
        family = family_class(**given)
    _check_width(reader, prior, family.hyper.shape[1])
    if not np.array_equal(family.hyper, prior):
        raise reader.error("prior", "is not the one of these parameters")
    return family


def _read_parameter(reader: Reader, name: str) -> Any:
    """A parameter: a plain value, or a family."""
    value = reader.values().get(name)
    is_family = isinstance(value, dict) and "name" in value
    return read_family(reader.section(name)) if is_family else read_plain(reader, name)


def _check_width(reader: Reader, prior: FloatArray, n_hyper: int) -> None:
    if len(prior) == 0 or prior.shape[1] != n_hyper:
        raise reader.error("prior", f"must have {n_hyper} columns and some row, but has shape {prior.shape}")


def write_statistics(writer: Writer, statistics: FloatArray) -> None:
    """Write sums over rows; packed, each column in its smallest type, and the columns of a type together."""
    if not writer.is_packed:
        writer.put_arrays(statistics=statistics)
        return
    columns = [narrowest(column) for column in statistics.T]
    types = [TYPE_NAMES[column.dtype] for column in columns]
    inner = writer.section("statistics")
    inner.put(types=types)
    for name in sorted(set(types)):
        of_type = [column for column, own in zip(columns, types, strict=True) if own == name]
        inner.put_as_they_are(**{name: np.stack(of_type)})


def read_statistics(reader: Reader, family: NativeFamily, n: int | None) -> FloatArray:
    """Read sums over rows that are possible for this family; `n` of them, or any number."""
    if "statistics" in reader.values():
        statistics = _columns(reader.section("statistics"), family.n_statistics, n)
    else:
        statistics = reader.array("statistics", np.float64, (n, family.n_statistics))
    check_all(reader, "statistics", statistics, np.isfinite(statistics), "must be finite")
    columns = family.never_negative
    may_be_negative = np.full(family.n_statistics, columns is not None)
    may_be_negative[list(columns or ())] = False
    check_all(reader, "statistics", statistics, (statistics >= 0.0) | may_be_negative, "must not be negative")
    return statistics


def _columns(reader: Reader, n_columns: int, n: int | None) -> FloatArray:
    """Read columns of different types into one array."""
    types = reader.value("types", list)
    known = {name for name, dtype in TYPES.items() if np.dtype(dtype).kind in "iuf"}
    if len(types) != n_columns or not all(isinstance(name, str) and name in known for name in types):
        raise reader.error("types", f"must name the types of {n_columns} columns, but is {types!r:.200}")
    parts: dict[str, NDArray[Any]] = {}
    for name in sorted(set(types)):
        parts[name] = reader.array(name, np.float64, (types.count(name), n))
        n = parts[name].shape[1]
    statistics = np.empty((n or 0, n_columns))
    for name, part in parts.items():
        statistics[:, [i for i, own in enumerate(types) if own == name]] = part.T
    return statistics


def check_all(reader: Reader, name: str, values: NDArray[Any], right: NDArray[np.bool_], must: str) -> None:
    """Check every entry of an array; the error names the first that is wrong."""
    if not right.all():
        index = tuple(int(i) for i in np.unravel_index(int(np.argmin(right)), right.shape))
        raise reader.error(name, f"[{', '.join(map(str, index))}] is {values[index]}, but {must}")


def _parameters(family: type[NativeFamily]) -> list[str]:
    return [field.name for field in dataclasses.fields(family)]  # type: ignore[arg-type]
