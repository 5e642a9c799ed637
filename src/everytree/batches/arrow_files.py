"""Parquet and Feather files as one table, by pyarrow's datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everytree.base.progress import Progress
from everytree.batches.files import Files, FilesError, Part
from everytree.batches.source import Names, batch_rows
from everytree.tables.reading import mark_encoded_text

BUFFER_BYTES = 2**20
"""Of each column of a Parquet file that are read at a time, which would be the column of a row group otherwise."""


@dataclass(frozen=True)
class ArrowFiles:
    """Parquet or Feather files, opened."""

    files: Files
    dataset: Any  # pyarrow.dataset.Dataset
    threads: bool = True  # whether pyarrow reads by its threads

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.dataset.schema.names)

    def count_rows(self) -> int:
        """Number of rows by the metadata of the files."""
        return int(self.dataset.count_rows())

    def parts(self, names: Names = None, as_written: Sequence[str] = ()) -> Iterator[Part]:
        """All rows in their order, of all columns or of these."""
        chosen = self.columns if names is None else names
        wanted = list(dict.fromkeys([*chosen, *as_written]))
        for path, table in self._tables(wanted):
            kept = {name: table.column(name) for name in as_written}
            yield Part(path, table.select(chosen), None, kept)

    def _tables(self, names: list[str]) -> Iterator[tuple[str, Any]]:
        """Tables of all files, each with its path."""
        import pyarrow as pa

        schema = pa.schema([self.dataset.schema.field(name) for name in names])
        for path, fragment in zip(self.files.paths, self.dataset.get_fragments(), strict=True):
            of_folders = pyarrow_dataset().get_partition_keys(fragment.partition_expression)
            for batch in self._batches(fragment, [name for name in names if name not in of_folders], schema):
                table = pa.Table.from_batches([batch])
                for name, value in of_folders.items():
                    if name in names:
                        table = table.append_column(name, pa.repeat(pa.scalar(value), table.num_rows))
                yield path, table.select(names).cast(schema)

    def _batches(self, fragment: Any, names: list[str], schema: Any) -> Iterator[Any]:
        """Rows of one file; Parquet in small pieces, where a dataset would hold whole row groups."""
        import pyarrow as pa
        from pyarrow import parquet

        n_rows = batch_rows(len(self.columns))
        if self.files.format != "parquet":
            yield from fragment.to_batches(
                columns=names, batch_size=batch_rows(len(self.columns)), use_threads=self.threads
            )
            return
        text = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        options = {"read_dictionary": text, "pre_buffer": False, "buffer_size": BUFFER_BYTES}
        with fragment.open() as opened, parquet.ParquetFile(opened, **options) as file:
            yield from file.iter_batches(n_rows, columns=names, use_threads=self.threads)

    def whole(self, progress: Progress | None = None) -> list[Part]:
        """All of them at once; `progress` counts the rows."""
        found = []
        for part in self.parts():
            found.append(part)
            if progress is not None:
                progress.step(part.table.num_rows)
        return found


def of_same_columns(schemas: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Check that all files have the same columns; a column that a file lacks would read as missing values."""
    first: tuple[str, set[str]] | None = None
    for path, physical in schemas:
        names = set(physical.names)
        first = first or (path, names)
        if names != first[1]:
            raise FilesError(f"{path!r} has the columns {sorted(names)}, but {first[0]!r} has {sorted(first[1])}")
        yield path, physical


def common_schema(schema: Any, of_files: Iterable[tuple[str, Any]]) -> Any:
    """Types that hold what every file has: a dataset by itself makes all files follow the first."""
    import pyarrow as pa

    for path, physical in of_files:
        try:
            schema = pa.unify_schemas([schema, physical], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise FilesError(f"{path!r} has a column of another kind than the files before: {error}") from None
    return schema


def pyarrow_dataset() -> Any:
    """The module, or how to get it."""
    try:
        import pyarrow.dataset
    except ImportError:
        raise ImportError("files are read by pyarrow, which is not installed: pip install everytree[arrow]") from None
    return pyarrow.dataset


# ---- datasets -------------------------------------------------------------------------------------------------------


def open_dataset(files: Files, *, dictionaries: bool) -> Any:
    """A dataset whose columns have types that hold what every file has."""
    make = _dataset_of_paths if files.content is None else _dataset_of_buffer
    dataset = make(files, None, _file_format(files.format, []))
    _refuse_twins(files, dataset.schema.names)
    schema = common_schema(dataset.schema, of_same_columns(_physical_schemas(dataset)))
    in_files = next(iter(dataset.get_fragments())).physical_schema.names  # others are named by folders
    text = [name for name in in_files if dictionaries and str(schema.field(name).type) in ("string", "large_string")]
    return make(files, _with_dictionaries(schema, text), _file_format(files.format, text))


def _refuse_twins(files: Files, names: Sequence[str]) -> None:
    twin = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twin is not None:
        raise FilesError(f"{files.paths[0]}: several columns are named {twin!r}")


def _dataset_of_paths(files: Files, schema: Any, file_format: Any) -> Any:
    where = {"partitioning": "hive", "partition_base_dir": files.base}
    return pyarrow_dataset().dataset(files.paths, schema, format=file_format, **where)


def _dataset_of_buffer(files: Files, schema: Any, file_format: Any) -> Any:
    import pyarrow as pa

    with files.open(files.paths[0]) as file:
        content = file.read()
    fragment = file_format.make_fragment(pa.py_buffer(content))
    return pyarrow_dataset().FileSystemDataset([fragment], schema or fragment.physical_schema, file_format)


def _file_format(kind: str, text: list[str]) -> Any:
    pads = pyarrow_dataset()
    if kind != "parquet":
        return pads.IpcFileFormat()
    # What is buffered ahead of need stays until the end of the file, and then memory holds the file.
    lean = pads.ParquetFragmentScanOptions(pre_buffer=False)
    return pads.ParquetFileFormat(dictionary_columns=text, default_fragment_scan_options=lean)


def _with_dictionaries(schema: Any, text: list[str]) -> Any:
    import pyarrow as pa

    for name in text:
        place = schema.get_field_index(name)
        field = schema.field(place)
        schema = schema.set(place, mark_encoded_text(field, pa.dictionary(pa.int32(), field.type)))
    return schema


def _physical_schemas(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Path and schema of each file."""
    return ((fragment.path, fragment.physical_schema) for fragment in dataset.get_fragments())
