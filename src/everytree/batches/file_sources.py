"""Files as batches: Parquet and Feather by pyarrow's datasets, text in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from everytree.batches.files import DELIMITERS, Files, marks, open_bytes
from everytree.batches.prefetch import read_ahead
from everytree.batches.source import Names, Source, batch_rows
from everytree.batches.text import TextReader
from everytree.batches.text_pieces import pieces

AHEAD = {"batch_readahead": 4, "fragment_readahead": 2}
"""Of how many batches of a file, and of how many files, pyarrow reads at a time: enough for its threads."""

FIRST_BYTES = 2**20
"""Of a text file, whose rows tell the types of its columns."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""How folders name a missing value."""


def file_source(files: Files, reader: TextReader | None = None, *, threads: bool = True) -> Source:
    """The rows of files, one file after the other; `reader` says how those of text are read."""
    _pyarrow_dataset()
    if files.format in DELIMITERS:
        plain = TextReader("", DELIMITERS[files.format], knows="the rows before it are")
        return _text_source(files, replace(reader or plain, threads=threads))
    return dataset_source(_open_files(files.paths, files.base, files.format), threads=threads)


# ---- Parquet and Feather --------------------------------------------------------------------------------------------


def _open_files(files: list[str], base: str, kind: str) -> Any:
    """A dataset of files; of Parquet, text stays in dictionaries where the file has it so: each label is read once."""
    pads = _pyarrow_dataset()
    where = {"partitioning": "hive", "partition_base_dir": base}
    dataset = pads.dataset(files, format=kind, **where)
    schema = _common_schema(dataset.schema, physical_schemas(dataset))
    if kind != "parquet":
        return pads.dataset(files, schema, format=kind, **where)
    in_files = next(iter(dataset.get_fragments())).physical_schema.names  # others are named by folders
    text = [name for name in in_files if str(schema.field(name).type) in ("string", "large_string")]
    # What is buffered ahead of need stays until the end of the file, and then memory holds the file.
    lean = pads.ParquetFragmentScanOptions(pre_buffer=False)
    parquet = pads.ParquetFileFormat(dictionary_columns=text, default_fragment_scan_options=lean)
    return pads.dataset(files, _with_dictionaries(schema, text), format=parquet, **where)


def _common_schema(schema: Any, of_files: Iterable[tuple[str, Any]]) -> Any:
    """Types that hold what every file has: a dataset by itself makes all files follow the first."""
    import pyarrow as pa

    for path, physical in of_files:
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


def dataset_source(dataset: Any, *, threads: bool = True) -> Source:
    """The rows of a dataset."""
    files = list(getattr(dataset, "files", ()))
    size = batch_rows(len(dataset.schema))
    counted = "Csv" not in type(getattr(dataset, "format", None)).__name__
    return Source(
        lambda names: dataset.to_batches(columns=names, batch_size=size, use_threads=threads, **AHEAD),
        dataset.count_rows() if counted else None,
        lambda: marks(files),
    )


def physical_schemas(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Path and schema of each file, which must have the same columns."""
    fragments = _fragments(dataset)
    return _of_same_columns((getattr(one, "path", ""), one.physical_schema) for one in fragments)


def _of_same_columns(schemas: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The same; a file without a column would read as one whose values are all missing."""
    first: tuple[str, set[str]] | None = None
    for path, physical in schemas:
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


def _pyarrow_dataset() -> Any:
    try:
        import pyarrow.dataset
    except ImportError:
        raise ImportError("files are read by pyarrow, which is not installed: pip install everytree[arrow]") from None
    return pyarrow.dataset


# ---- text -----------------------------------------------------------------------------------------------------------


def _text_source(files: Files, how: TextReader) -> Source:
    """The rows of text files; types are those of the first piece of each, where the reader does not know them."""
    import pyarrow as pa

    readers = {path: replace(how, name=path) for path in files.paths}
    if not how.types:
        schemas = _of_same_columns((path, _first_schema(path, reader)) for path, reader in readers.items())
        schema = _common_schema(pa.schema([]), schemas)
        types = known_types(schema)
        readers = {path: replace(reader, types=types) for path, reader in readers.items()}
    named = _columns_of_folders(files)

    def start(names: Names) -> Iterator[Any]:
        for path, reader in readers.items():
            chosen = None if names is None else [name for name in names if name not in named]
            with open_bytes(path) as file:
                for piece in read_ahead(partial(pieces, file, reader.has_header), 1):  # cut while another is parsed
                    table = reader.read(piece, chosen)
                    for name, values in named.items():
                        if names is None or name in names:
                            table = table.append_column(name, pa.repeat(values[path], table.num_rows))
                    yield table

    return Source(start, None, lambda: marks(files.paths))


def known_types(schema: Any) -> dict[str, Any]:
    """Types by name, without those of columns in which nothing but missing values was seen."""
    import pyarrow as pa

    return {field.name: field.type for field in schema if not pa.types.is_null(field.type)}


def _first_schema(path: str, reader: TextReader) -> Any:
    with open_bytes(path) as file:
        return reader.read(next(pieces(file, reader.has_header, FIRST_BYTES))).schema


def _columns_of_folders(files: Files) -> dict[str, dict[str, Any]]:
    """Columns that are named by folders, "column=value", and the value of each file; whole numbers where all are."""
    import pyarrow as pa

    found: dict[str, dict[str, Any]] = {}
    for path in files.paths:
        for folder in Path(path).relative_to(files.base).parts[:-1]:
            name, equals, value = folder.partition("=")
            if equals:
                found.setdefault(name, {})[path] = None if value == NO_VALUE else unquote(value)
    for name, values in found.items():
        known = [value for value in values.values() if value is not None]
        kind = pa.int64() if all(value.lstrip("-").isdecimal() for value in known) else pa.string()
        found[name] = {
            path: pa.scalar(int(value) if value is not None and kind == pa.int64() else value, kind)
            for path, value in values.items()
        }
    return found
