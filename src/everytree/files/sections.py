"""A model as nested sections of plain values and arrays; errors name each field.

The values of all sections together are one JSON object. Arrays are stored beside it, under the names of the sections
that lead to them and their own, joined by dots, such as `forest.trees.feature`. An array may be stored in a smaller
type than the one it has in memory, where that keeps every bit; readers ask for the type they need.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from everytree.base.arrays import narrowest
from everytree.files.container import Contents, ModelFileError, parse_json, to_json
from everytree.files.upgrade import upgraded

T = TypeVar("T")


class Writer:
    """A section to be written.

    `is_packed`: whether the file is to be small; else arrays are as in memory, so that they can be used where they are.
    """

    def __init__(
        self, is_packed: bool, values: dict[str, Any], arrays: dict[str, NDArray[Any]], prefix: str = ""
    ) -> None:
        self.is_packed = is_packed
        self._values, self._arrays, self._prefix = values, arrays, prefix

    def section(self, name: str) -> Writer:
        """Add a section within this one."""
        inner: dict[str, Any] = self._values.setdefault(name, {})
        return Writer(self.is_packed, inner, self._arrays, f"{self._prefix}{name}.")

    def put(self, **values: Any) -> None:
        """Store values that JSON can hold."""
        self._values.update(values)

    def put_arrays(self, **arrays: NDArray[Any]) -> None:
        """Store arrays of numbers, whose types the reader knows."""
        self.put_as_they_are(**{name: narrowest(a) if self.is_packed else a for name, a in arrays.items()})

    def put_as_they_are(self, **arrays: NDArray[Any]) -> None:
        """Store arrays of numbers with their types."""
        self._arrays.update({self._prefix + name: array for name, array in arrays.items()})

    @classmethod
    def empty(cls, *, is_packed: bool) -> Self:
        """Return an outermost section without contents."""
        return cls(is_packed, {}, {})

    def finish(self) -> tuple[str, dict[str, NDArray[Any]]]:
        """Return all values as JSON, and all arrays."""
        return to_json(self._values), self._arrays


class Reader:
    """A section of a file. A field that is missing or of the wrong type raises an error that names it."""

    def __init__(
        self, path: object, values: dict[str, Any], arrays: dict[str, NDArray[Any]], asked: set[str], prefix: str = ""
    ) -> None:
        self._path, self._values, self._arrays, self._asked, self._prefix = path, values, arrays, asked, prefix

    @classmethod
    def of(cls, path: object, contents: Contents) -> Self:
        """Return the outermost section of a file of any version of the format."""
        try:
            values = parse_json(contents.metadata.get("model", ""))
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{path}: model: is not JSON: {error}") from None
        if not isinstance(values, dict):
            raise ModelFileError(f"{path}: model: must be a JSON object")
        values, arrays = upgraded(int(contents.metadata["version"]), values, contents.arrays)
        return cls(path, values, arrays, set())

    def error(self, name: str, complaint: object) -> ModelFileError:
        """Return the error for one field."""
        return ModelFileError(f"{self._path}: {self._prefix}{name}: {complaint}")

    @contextmanager
    def checking(self, name: str) -> Iterator[None]:
        """Turn an error of the library in this block into an error of the file, in this field."""
        try:
            yield
        except ModelFileError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise self.error(name, error) from error

    def __contains__(self, name: str) -> bool:
        return name in self._values or self._prefix + name in self._arrays

    def section(self, name: str) -> Reader:
        """Return a section within this one."""
        return Reader(self._path, self.value(name, dict), self._arrays, self._asked, f"{self._prefix}{name}.")

    def value(self, name: str, kind: type[T]) -> T:
        """Return a value of exactly this type."""
        if name not in self._values:
            raise self.error(name, "is missing")
        value = self._values[name]
        if type(value) is not kind:
            raise self.error(name, f"must be {kind.__name__}, but is {value!r:.200}")
        return value

    def values(self) -> dict[str, Any]:
        """Return all values of this section."""
        return dict(self._values)

    def array(self, name: str, dtype: DTypeLike | None, shape: tuple[int | None, ...] | None = None) -> NDArray[Any]:
        """Return an array of this shape in this type, in which it may be a copy; None accepts any."""
        full = self._prefix + name
        if full not in self._arrays:
            raise self.error(name, "is missing: there is no such array")
        array = self._arrays[full]
        self._asked.add(full)
        if shape is not None and not _fits(array.shape, shape):
            must = ", ".join("any" if size is None else str(size) for size in shape)
            raise self.error(name, f"must have shape ({must}), but has {array.shape}")
        if dtype is None or array.dtype == np.dtype(dtype):
            return array
        if array.dtype.kind not in "iuf" or not np.can_cast(array.dtype, dtype):
            raise self.error(name, f"must be {np.dtype(dtype)}, or a smaller type, but is {array.dtype}")
        with np.errstate(invalid="ignore"):  # NaN of any kind is for the reader of the field to refuse
            return array.astype(dtype)

    def finish(self) -> None:
        """Check that every array of the file has been read."""
        unknown = sorted(self._arrays.keys() - self._asked)
        if unknown:
            raise ModelFileError(f"{self._path}: {unknown[0]}: there is no such array in a model of this kind")


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        want is None or size == want for size, want in zip(shape, wanted, strict=True)
    )
