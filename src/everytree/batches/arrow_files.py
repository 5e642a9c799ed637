"""Parquet and Feather files as one table, by pyarrow's datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everytree.batches.files import Files, FilesError, Part
from everytree.batches.source import Names, batch_rows

AHEAD = {"batch_readahead": 4, "fragment_readahead": 2}
"""Of how many batches of a file, and of how many files, pyarrow reads at a time: enough for its threads."""

OLD_FEATHER = b"FEA1"
"""How files of the first version of Feather begin, which datasets do not read."""


@dataclass(frozen=True)
class ArrowFiles:
    """Parquet or Feather files, opened.

    Attributes
    ----------
    files : Files
    dataset : pyarrow.dataset.Dataset
    threads : bool
        Whether pyarrow reads by its threads.
    """

    files: Files
    dataset: Any
    threads: bool = True

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.dataset.schema.names)

    def count_rows(self) -> int:
        """How many rows there are, by what the files say of themselves."""
        return int(self.dataset.count_rows())

    def parts(self, names: Names = None, as_written: Sequence[str] = ()) -> Iterator[Part]:
        """All rows in their order, of all columns or of these."""
        import pyarrow as pa

        wanted = None if names is None else list(dict.fromkeys([*names, *as_written]))
        for tagged in tagged_batches(self.dataset, wanted, self.threads):
            table = pa.Table.from_batches([tagged.record_batch])
            kept = {name: table.column(name) for name in as_written}
            path = self._path_of.get(tagged.fragment.path, self.files.paths[0])
            yield Part(path, table if names is None else table.select(names), None, kept)

    def whole(self) -> list[Part]:
        """All of them at once."""
        return list(self.parts())

    @cached_property
    def _path_of(self) -> dict[str, str]:
        """The paths as they were given, by what the dataset calls them."""
        return dict(zip(getattr(self.dataset, "files", ()), self.files.paths, strict=False))


def open_arrow_files(files: Files, *, threads: bool = True, dictionaries: bool = True) -> ArrowFiles:
    """Files as a dataset; with `dictionaries`, text of Parquet files comes so, and each label is read once."""
    kept = dictionaries and files.format == "parquet"
    return ArrowFiles(files, _open_dataset(files, dictionaries=kept), threads)


def tagged_batches(dataset: Any, names: Names, threads: bool) -> Iterator[Any]:
    """Batches of a dataset in their order, each with its file."""
    size = batch_rows(len(dataset.schema))
    scanner = dataset.scanner(columns=names, batch_size=size, use_threads=threads, **AHEAD)
    return iter(scanner.scan_batches())


def physical_schemas(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Path and schema of each file, which must have the same columns."""
    return of_same_columns((getattr(one, "path", ""), one.physical_schema) for one in _fragments(dataset))


def of_same_columns(schemas: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The same; a file without a column would read as one whose values are all missing."""
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


def _open_dataset(files: Files, *, dictionaries: bool) -> Any:
    """A dataset whose columns have types that hold what every file has."""
    make = _dataset_of_buffer if _is_buffer(files) else _dataset_of_paths
    dataset = make(files, None, _file_format(files.format, []))
    _refuse_twins(files, dataset.schema.names)
    schema = common_schema(dataset.schema, physical_schemas(dataset))
    in_files = next(iter(dataset.get_fragments())).physical_schema.names  # others are named by folders
    text = [name for name in in_files if str(schema.field(name).type) in ("string", "large_string")]
    text = text if dictionaries else []
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
    if content.startswith(OLD_FEATHER):
        content = _as_new_feather(content)
    fragment = file_format.make_fragment(pa.py_buffer(content))
    return pyarrow_dataset().FileSystemDataset([fragment], schema or fragment.physical_schema, file_format)


def _is_buffer(files: Files) -> bool:
    """Whether the only file is read as a whole: from a stream, or of the first version of Feather."""
    if files.content is not None:
        return True
    if files.format != "feather" or len(files.paths) > 1:
        return False
    with files.open(files.paths[0]) as file:
        return file.read(len(OLD_FEATHER)) == OLD_FEATHER


def _as_new_feather(content: bytes) -> Any:
    import pyarrow as pa
    from pyarrow import feather

    sink = pa.BufferOutputStream()
    feather.write_feather(feather.read_table(pa.BufferReader(content), use_threads=False), sink)
    return sink.getvalue()


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
        schema = schema.set(place, field.with_type(pa.dictionary(pa.int32(), field.type)))
    return schema


def _fragments(dataset: Any) -> list[Any]:
    """The files of a dataset; of one that is filtered or projected they cannot be listed."""
    try:
        return list(dataset.get_fragments())
    except ValueError:
        return []
