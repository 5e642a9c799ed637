"""Sources of batches, each of which can be read from the beginning any number of times."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import narwhals as nw
import numpy as np

from everytree.batches.file_sources import file_source
from everytree.batches.files import find_files
from everytree.batches.source import Names, Source, batch_rows


def is_dask(batches: Any) -> bool:
    """Whether batches are a collection of Dask's, or a tuple with one, found without importing it."""
    collections = batches if isinstance(batches, tuple) else (batches,)
    return any(type(one).__module__.partition(".")[0] == "dask" for one in collections)


def open_source(batches: Any) -> Source:
    """Open `batches`, of any supported type, or raise an error."""
    if isinstance(batches, Source):
        return batches
    if isinstance(batches, str | os.PathLike):
        return file_source(find_files(os.fspath(batches)))
    module = type(batches).__module__
    if module.startswith("pyarrow") and hasattr(batches, "get_fragments"):
        raise TypeError("batches is a dataset of pyarrow: pass its path, or lambda: dataset.to_batches()")
    if "duckdb" in module and hasattr(batches, "project"):
        return Source(lambda names: _relation(batches, names))
    frame = nw.from_native(batches, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return Source(lambda _: iter([batches]), len(frame))
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        return Source(lambda names: _lazy_frame(batches, names))
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"batches is lazy ({type(batches).__name__}) and can be read only as a whole; write it to Parquet and pass "
            "the path, or pass a function that returns an iterator of its parts"
        )
    return _iterable(batches)


def _relation(relation: Any, names: Names) -> Iterator[Any]:
    """The rows of a DuckDB relation, computed anew."""
    quoted = "*" if names is None else ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    chosen = relation.project(quoted)
    reader = chosen.to_arrow_reader if hasattr(chosen, "to_arrow_reader") else chosen.fetch_record_batch
    return iter(reader(batch_rows(len(relation.columns))))


def _lazy_frame(query: Any, names: Names) -> Iterator[Any]:
    """The rows of a polars query in their order, computed anew; batch by batch where this polars can do that."""
    chosen = query if names is None else query.select(names)
    size = batch_rows(len(chosen.collect_schema()))
    if hasattr(chosen, "collect_batches"):
        with warnings.catch_warnings():  # that the method is new and may change
            warnings.simplefilter("ignore")
            batches = chosen.collect_batches(chunk_size=size, maintain_order=True)
        yield from batches
        return
    yield from chosen.collect(engine="streaming").iter_slices(size)


def _iterable(batches: Any) -> Source:
    if isinstance(batches, np.ndarray | dict):
        raise TypeError(f"batches must be many tables, or pairs (X, y), but is one {type(batches).__name__}")
    if isinstance(batches, Iterator) or type(batches).__name__ == "RecordBatchReader":
        raise TypeError(
            f"batches is a {type(batches).__name__}, which can be read once, but is read twice: columns and structures "
            "come from the first pass, statistics from the second. Pass a list, an object with __iter__, or a function "
            "that returns a new iterator at each call"
        )
    if callable(batches):
        return Source(lambda _: _started(batches))
    if not isinstance(batches, Iterable):
        raise TypeError(
            f"batches is a {type(batches).__name__}, but must be a path, a dataset, a relation, a function that "
            "returns an iterator, or something that can be iterated again and again"
        )
    return Source(lambda _: iter(batches))


def _started(make: Callable[[], Any]) -> Iterator[Any]:
    """Iterate over the result of a function, or raise if that is not possible."""
    made = make()
    if not isinstance(made, Iterable):
        raise TypeError(f"batches() returned a {type(made).__name__}, but must return an iterator of batches")
    return iter(made)
