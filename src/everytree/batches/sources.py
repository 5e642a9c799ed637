"""What batches may come from, as something that can be read from the beginning any number of times."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

BATCH_VALUES = 2**23
"""How many values, of rows times columns, a batch has where a file or an engine leaves the choice."""

AHEAD = {"batch_readahead": 4, "fragment_readahead": 2}
"""Of how many batches of a file, and of how many files, pyarrow reads at a time: enough for its threads."""

CSV_BLOCK, LARGEST_CSV_BLOCK = 2**20, 2**31 - 1
"""Bytes of text that pyarrow reads at a time, and the most it can."""

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv",
    ".feather": "feather", ".arrow": "feather", ".ipc": "feather",
}  # fmt: skip

Mark = tuple[tuple[str, int, int], ...]
Names = list[str] | None


@dataclass(frozen=True)
class Source:
    """Batches that can be read again.

    Attributes
    ----------
    start : callable
        Reads from the beginning. Takes the names of the columns that are wanted, or None for all; a source that cannot
        choose yields all.
    n_rows : int or None
        Where it is known without reading.
    mark : callable
        Path, size and time of change of the files that are read.
    """

    start: Callable[[Names], Iterator[Any]]
    n_rows: int | None = None
    mark: Callable[[], Mark] = tuple


def open_source(batches: Any) -> Source:
    """Whatever `batches` may be, or an error that says why it may not."""
    if isinstance(batches, str | os.PathLike):
        return _files(os.fspath(batches))
    module = type(batches).__module__
    if module.startswith("pyarrow") and hasattr(batches, "get_fragments"):
        for _ in _physical_schemas(batches):
            pass  # looked at for files that lack a column
        return _dataset(batches)
    if module.startswith("pyarrow") and type(batches).__name__ == "Table":
        size = _batch_rows(batches.num_columns)
        return Source(lambda names: iter(_selected(batches, names).to_batches(size)), batches.num_rows)
    if "duckdb" in module and hasattr(batches, "project"):
        return Source(lambda names: _relation(batches, names))
    frame = nw.from_native(batches, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return Source(lambda _: iter([batches]), len(frame))
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"batches is lazy ({type(batches).__name__}) and can be read only as a whole; write it to Parquet and pass "
            "the path, or pass a function that returns an iterator of its parts"
        )
    return _iterable(batches)


def _batch_rows(n_columns: int) -> int:
    """Rows of a batch: enough that nothing is lost between batches, few enough for memory."""
    return min(max(BATCH_VALUES // max(n_columns, 1), 2**13), 2**19)


def _selected(table: Any, names: Names) -> Any:
    return table if names is None else table.select(names)


def _relation(relation: Any, names: Names) -> Iterator[Any]:
    """The rows of a DuckDB relation, computed anew."""
    quoted = "*" if names is None else ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    chosen = relation.project(quoted)
    reader = chosen.to_arrow_reader if hasattr(chosen, "to_arrow_reader") else chosen.fetch_record_batch
    return iter(reader(_batch_rows(len(relation.columns))))


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
    """What a function returned, iterated."""
    made = make()
    if not isinstance(made, Iterable):
        raise TypeError(f"batches() returned a {type(made).__name__}, but must return an iterator of batches")
    return iter(made)


# ---- files ----------------------------------------------------------------------------------------------------------


def _files(path: str) -> Source:
    """A file, a folder of files, or a pattern."""
    has_magic = glob.has_magic(path) and not os.path.exists(path)
    found = sorted(glob.glob(path, recursive=True)) if has_magic else [path]
    if not found:
        raise FileNotFoundError(f"batches: no file is named like {path!r}")
    if not os.path.exists(found[0]):
        raise FileNotFoundError(f"batches: there is no file or folder {path!r}")
    files = list(dict.fromkeys(file for one in found for file in _files_in(one)))
    if not files:
        raise ValueError(f"batches: the folder {path!r} holds no files")
    formats = {FORMATS.get(Path(file).suffix.lower()) for file in files}
    if len(formats) > 1 or None in formats:
        others = sorted({Path(file).suffix for file in files})
        raise ValueError(f"batches: files must be all of one of {sorted(FORMATS)}, but {path!r} has {others}")
    return _dataset(_open_files(files, _base_folder(path, has_magic), str(formats.pop())))


def _files_in(path: str) -> list[str]:
    """A file itself; those below a folder, without the ones that are hidden, or in a hidden folder, as usual there."""
    if not os.path.isdir(path):
        return [path]
    below = (file for file in sorted(Path(path).rglob("*")) if file.is_file())
    return [str(file) for file in below if not any(p.startswith(("_", ".")) for p in file.relative_to(path).parts)]


def _base_folder(path: str, has_magic: bool) -> str:
    """Folders below it that are named "column=value" say what a column is for all their files."""
    if has_magic:
        plain = itertools.takewhile(lambda part: not glob.has_magic(part), Path(path).parts)
        return str(Path(*plain))
    return path if os.path.isdir(path) else os.path.dirname(path) or "."


def _open_files(files: list[str], base: str, kind: str) -> Any:
    """A dataset of files; of Parquet, text stays in dictionaries where the file has it so: each label is read once."""
    pads = _pyarrow_dataset()
    where = {"partitioning": "hive", "partition_base_dir": base}
    reader = _csv_reader(files) if kind == "csv" else kind
    dataset = pads.dataset(files, format=reader, **where)
    schema = _common_schema(dataset)
    if kind != "parquet":
        return pads.dataset(files, schema, format=reader, **where)
    in_files = next(iter(dataset.get_fragments())).physical_schema.names  # others are named by folders
    text = [name for name in in_files if str(schema.field(name).type) in ("string", "large_string")]
    # What is buffered ahead of need stays until the end of the file, and then memory holds the file.
    lean = pads.ParquetFragmentScanOptions(pre_buffer=False)
    parquet = pads.ParquetFileFormat(dictionary_columns=text, default_fragment_scan_options=lean)
    return pads.dataset(files, _with_dictionaries(schema, text), format=parquet, **where)


def _csv_reader(files: list[str]) -> Any:
    """Text in blocks that hold several of its lines: a header that is longer than a block would be no header."""
    import pyarrow.csv

    longest = max(map(_length_of_header, files))
    options = pyarrow.csv.ReadOptions(block_size=min(max(CSV_BLOCK, 4 * longest), LARGEST_CSV_BLOCK))
    return _pyarrow_dataset().CsvFileFormat(read_options=options)


def _length_of_header(path: str) -> int:
    with open(path, "rb") as file:
        return len(file.readline())


def _common_schema(dataset: Any) -> Any:
    """Types that hold what every file has: a dataset by itself makes all files follow the first."""
    import pyarrow as pa

    schema = dataset.schema
    for path, physical in _physical_schemas(dataset):
        try:
            schema = pa.unify_schemas([schema, physical], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise ValueError(f"batches: {path!r} has a column of another kind than the files before: {error}") from None
    return schema


def _with_dictionaries(schema: Any, text: list[str]) -> Any:
    import pyarrow as pa

    for name in text:
        place = schema.get_field_index(name)
        field = schema.field(place)
        schema = schema.set(place, field.with_type(pa.dictionary(pa.int32(), field.type)))
    return schema


def _dataset(dataset: Any) -> Source:
    files = list(getattr(dataset, "files", ()))
    size = _batch_rows(len(dataset.schema))
    counted = "Csv" not in type(getattr(dataset, "format", None)).__name__
    return Source(
        lambda names: dataset.to_batches(columns=names, batch_size=size, **AHEAD),
        dataset.count_rows() if counted else None,
        lambda: tuple(map(_mark, filter(os.path.exists, files))),
    )


def _physical_schemas(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Path and schema of each file; a file without a column would read as one whose values are all missing."""
    first: tuple[str, set[str]] | None = None
    for fragment in _fragments(dataset):
        path, physical = getattr(fragment, "path", ""), fragment.physical_schema
        names = set(physical.names)
        first = first or (path, names)
        if names != first[1]:
            raise ValueError(
                f"batches: {path!r} has the columns {sorted(names)}, but {first[0]!r} has {sorted(first[1])}"
            )
        yield path, physical


def _fragments(dataset: Any) -> list[Any]:
    """The files of a dataset; of one that is filtered or projected they cannot be listed."""
    try:
        return list(dataset.get_fragments())
    except ValueError:
        return []


def _mark(path: str) -> tuple[str, int, int]:
    status = os.stat(path)
    return path, status.st_size, status.st_mtime_ns


def _pyarrow_dataset() -> Any:
    try:
        import pyarrow.dataset
    except ImportError:
        raise ImportError("files are read by pyarrow, which is not installed: pip install everytree[arrow]") from None
    return pyarrow.dataset
