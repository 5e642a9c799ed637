"""The layout of a file: named arrays and a few lines of text, in the safetensors format.

Eight bytes with the length of the header, the header, the arrays one after another. The header is JSON: for each array
its type, shape and position, and under `__metadata__` a mapping of text to text. Any reader of the format can open the
file. In addition to the format:

* the arrays start at a multiple of 8 and come in falling order of the size of their items, so that each is aligned for
  a reader that maps the file into memory;
* the metadata holds `format`, `version`, `library`, and `sha256`: the hash of header and arrays, its own 64 digits
  taken as zeros. It detects damage, not malice: everything is checked again when a model is made from the file.

A compressed file has one array, `deflated`: another file of this layout as a stream of zlib, whose length is `inflated`
in the metadata. zlib, because every Python has it and so do most other languages.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import stat
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.files.atomic import replace_file

FORMAT, VERSION = "everytree", 5

TYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "F16": "<f2",
    "U32": "<u4", "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8",
}  # fmt: skip
"""The format's names of types, and NumPy's."""

TYPE_NAMES = {np.dtype(numpy_name): name for name, numpy_name in TYPES.items()}
_NO_DIGEST = b"0" * 64

LONGEST_HEADER = 100_000_000
"""The limit of other readers of the format."""

INFLATED_BYTES, INFLATED_TIMES = 2**20, 100
"""A compressed file may hold this many bytes and this many times its own: a small file cannot fill the memory."""


class ModelFileError(ValueError):
    """A file that is not a model this library can read; the message names the file, the field and what is wrong."""


@dataclass(frozen=True)
class Contents:
    """The contents of a file: text and arrays by name; the arrays are views of the file's bytes and may be written."""

    metadata: dict[str, str]
    arrays: dict[str, NDArray[Any]]


# ---- writing --------------------------------------------------------------------------------------------------------


def write(
    path: str | os.PathLike[str],
    metadata: Mapping[str, str],
    arrays: Mapping[str, NDArray[Any]],
    *,
    compress: bool = False,
) -> None:
    """Write arrays and text to a file, which is replaced as a whole or not at all."""
    parts = _parts(metadata, arrays)
    replace_file(path, _compressed(metadata, parts) if compress else parts)


def _parts(metadata: Mapping[str, str], arrays: Mapping[str, NDArray[Any]]) -> list[bytes | memoryview]:
    """Return what a file consists of, one part after another."""
    plain = {name: _as_stored(name, array) for name, array in arrays.items()}
    in_order = sorted(plain, key=lambda name: (-plain[name].itemsize, name))
    facts = {"format": FORMAT, "version": str(VERSION), "sha256": _NO_DIGEST.decode(), **metadata}
    entries: dict[str, Any] = {"__metadata__": facts}
    at = 0
    for name in in_order:
        array = plain[name]
        offsets = [at, at + array.nbytes]
        entries[name] = {"dtype": TYPE_NAMES[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
        at = offsets[1]
    header = to_json(entries).encode()
    header += b" " * (-len(header) % 8)
    pieces = [plain[name].reshape(-1).view(np.uint8).data for name in in_order]
    digest = _digest(header, pieces)
    header = header.replace(b'"sha256":"' + _NO_DIGEST, b'"sha256":"' + digest, 1)
    return [len(header).to_bytes(8, "little"), header, *pieces]


def _compressed(metadata: Mapping[str, str], parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """Return the parts of a compressed file, or those given if they shrink more than a reader accepts."""
    stream = zlib.compressobj()
    deflated = b"".join([*map(stream.compress, parts), stream.flush()])
    inflated = sum(len(part) for part in parts)
    if inflated > _most_inflated(len(deflated)):
        return parts
    facts = {name: metadata[name] for name in ("library", "kind") if name in metadata}
    return _parts({**facts, "inflated": str(inflated)}, {"deflated": np.frombuffer(deflated, dtype=np.uint8)})


def _most_inflated(n_bytes: int) -> int:
    return INFLATED_BYTES + INFLATED_TIMES * n_bytes


def to_json(value: Any) -> str:
    """Return JSON in few bytes: letters as they are, unless one has no place in a file of text."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def _as_stored(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in C order and in a type of the format."""
    stored = np.ascontiguousarray(array).reshape(array.shape)
    stored = stored.astype(stored.dtype.newbyteorder("<"), copy=False)
    if stored.dtype not in TYPE_NAMES:
        raise TypeError(f"{name} has dtype {array.dtype}, but files hold {', '.join(map(str, TYPE_NAMES))}")
    return stored


def _digest(header: bytes, pieces: list[memoryview]) -> bytes:
    total = hashlib.sha256(header)
    for piece in pieces:
        total.update(piece)
    return total.hexdigest().encode()


# ---- reading --------------------------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str], *, mapped: bool = False) -> Contents:
    """Read arrays and text from a file, and check that it is complete and undamaged.

    `mapped`: whether arrays stay in the file until they are used. Changes to them are private.
    """
    contents = _contents(path, _bytes_of(path, mapped))
    if "inflated" not in contents.metadata:
        return contents
    if mapped:
        raise ModelFileError(
            f"{path}: is compressed and cannot be mapped: load it without mmap, or save it with layout='mappable'"
        )
    inner = _contents(path, _inflated(path, contents))
    if "inflated" in inner.metadata:
        raise ModelFileError(f"{path}: inflated: is compressed twice, but models are compressed once")
    return inner


def _contents(path: object, content: NDArray[np.uint8]) -> Contents:
    """Return the text and the arrays in the bytes of a file, checked."""
    header, data = _split(path, content)
    _check_digest(path, header, data)
    entries = _parse(path, bytes(header))
    metadata = _metadata(path, entries.pop("__metadata__", None))
    _check_version(path, metadata)
    arrays: dict[str, NDArray[Any]] = {}
    at = 0
    for name in sorted(entries, key=lambda name: _offsets(path, name, entries[name])):
        arrays[name], at = _array(path, name, entries[name], data, at)
    if at != len(data):
        raise ModelFileError(f"{path}: {len(data) - at} bytes at the end do not belong to any array")
    return Contents(metadata, arrays)


def _inflated(path: object, contents: Contents) -> NDArray[np.uint8]:
    """Return the bytes of the file within a compressed one, exactly as many as it says."""
    deflated = contents.arrays.get("deflated")
    if deflated is None or contents.arrays.keys() != {"deflated"} or deflated.dtype != np.uint8 or deflated.ndim != 1:
        raise ModelFileError(f"{path}: deflated: a compressed file has one array of this name, of uint8")
    size = _inflated_size(path, contents.metadata["inflated"], _most_inflated(len(deflated)))
    content, at, stream = np.empty(size, dtype=np.uint8), 0, zlib.decompressobj()
    for begin in range(0, len(deflated), _DEFLATED_AT_ONCE):
        try:
            piece = stream.decompress(deflated[begin : begin + _DEFLATED_AT_ONCE].data, size - at + 1)
        except zlib.error as error:
            raise ModelFileError(f"{path}: deflated: {error}") from None
        if at + len(piece) > size:
            raise ModelFileError(f"{path}: deflated: holds more than the {size} bytes that inflated says")
        content[at : at + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
        at += len(piece)
    if at < size:
        raise ModelFileError(f"{path}: deflated: holds {at} bytes, but inflated says {size}")
    if not stream.eof or stream.unused_data:
        raise ModelFileError(f"{path}: deflated: the stream must end where the array does")
    return content


_DEFLATED_AT_ONCE = 2**20


def _inflated_size(path: object, text: str, most: int) -> int:
    """Return the size that a file says, if it can be believed before anything is inflated."""
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 8 <= int(text) <= most):
        raise ModelFileError(f"{path}: inflated: is {text!r:.200}, but must be a number of bytes from 8 to {most}")
    return int(text)


def _bytes_of(path: str | os.PathLike[str], mapped: bool) -> NDArray[np.uint8]:
    """Return all bytes of a file, in memory that is aligned for any type."""
    with open(path, "rb", opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            kind = "a pipe" if stat.S_ISFIFO(status.st_mode) else "a device"
            raise ModelFileError(f"{path}: is {kind}, but a model is read from a file; write it to one first")
        size = status.st_size
        if size < 8:
            raise ModelFileError(
                f"{path}: {size} bytes are not a model file, which starts with the length of its header"
            )
        if mapped:
            return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY), dtype=np.uint8)
        content = np.empty(size, dtype=np.uint8)
        n_read = file.readinto(content)  # type: ignore[arg-type]
    if n_read != size:
        raise ModelFileError(f"{path}: {n_read} bytes were read of {size}; the file changed meanwhile")
    return content


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting for a writer, so that a pipe can be refused."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _split(path: object, content: NDArray[np.uint8]) -> tuple[memoryview, NDArray[np.uint8]]:
    """Return the header and the bytes after it."""
    length = int.from_bytes(content[:8].tobytes(), "little")
    if length > LONGEST_HEADER:
        raise ModelFileError(
            f"{path}: not a model of everytree: by its first bytes, its header is {length} bytes long, but at most "
            f"{LONGEST_HEADER} are read"
        )
    if length > len(content) - 8:
        raise ModelFileError(f"{path}: header: {length} bytes long, but only {len(content) - 8} follow: cut off?")
    if length % 8:
        raise ModelFileError(f"{path}: header: {length} bytes long, but must be a multiple of 8")
    return content[8 : 8 + length].data, content[8 + length :]


def _parse(path: object, header: bytes) -> dict[str, Any]:
    try:
        entries = parse_json(header.decode())
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: header: no JSON of the safetensors format: {error}") from None
    if not isinstance(entries, dict):
        raise ModelFileError(f"{path}: header: must be a JSON object")
    return entries


def parse_json(text: str) -> Any:
    """Parse JSON as the standard defines it: no NaN, no name twice."""
    return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name occurs twice")
    return entries


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _metadata(path: object, given: Any) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise ModelFileError(f"{path}: __metadata__: must be there, text by name: was this written by everytree?")
    return given


def _check_version(path: object, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path}: format: is {metadata.get('format')!r}, but a model of everytree has {FORMAT!r}")
    version, library = metadata.get("version", ""), metadata.get("library", "unknown")
    if not (version.isascii() and version.isdigit() and len(version) < 10) or int(version) < 1:
        raise ModelFileError(f"{path}: version: is {version!r}, but must be a whole number from 1 on")
    if int(version) > VERSION:
        raise ModelFileError(
            f"{path}: version: written in version {version} of the format by everytree {library}, but this everytree "
            f"reads versions up to {VERSION}: install everytree {library} or newer, or save it again with this one"
        )


def _check_digest(path: object, header: memoryview, data: NDArray[np.uint8]) -> None:
    """Check the hash before anything is read from the header."""
    match = re.search(rb'"sha256":"([0-9a-f]{64})"', header)
    if match is None:
        raise ModelFileError(f"{path}: sha256: is missing or not 64 hexadecimal digits: was this written by everytree?")
    begin, end = match.span(1)
    found = _digest(b"", [header[:begin], memoryview(_NO_DIGEST), header[end:], data.data])
    if found != match.group(1):
        raise ModelFileError(f"{path}: sha256: the file is damaged: its bytes are not those that were written")


def _offsets(path: object, name: str, entry: Any) -> tuple[int, int]:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"{path}: {name}: an array has dtype, shape and data_offsets, but this is {entry!r:.200}")
    offsets = entry["data_offsets"]
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ModelFileError(f"{path}: {name}: data_offsets must be two whole numbers, but are {offsets!r:.200}")
    return offsets[0], offsets[1]


def _array(
    path: object, name: str, entry: dict[str, Any], data: NDArray[np.uint8], at: int
) -> tuple[NDArray[Any], int]:
    """Return one array, which must start where the one before ended, and the position where it ends."""
    begin, end = entry["data_offsets"]
    if begin != at or not begin <= end <= len(data):
        raise ModelFileError(f"{path}: {name}: lies at {begin}..{end}, but must start at {at} and end by {len(data)}")
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in TYPES:
        raise ModelFileError(f"{path}: {name}: dtype must be one of {[*TYPES]}, but is {entry['dtype']!r:.200}")
    dtype, shape = np.dtype(TYPES[entry["dtype"]]), entry["shape"]
    if not _are_sizes(shape) or len(shape) > 8 or math.prod(max(size, 1) for size in shape) >= 2**59:
        raise ModelFileError(f"{path}: {name}: shape must be at most 8 whole numbers, but is {shape!r:.200}")
    if math.prod(shape) * dtype.itemsize != end - begin:
        raise ModelFileError(f"{path}: {name}: shape {shape} of {dtype} does not take {end - begin} bytes")
    if begin % dtype.itemsize:
        raise ModelFileError(
            f"{path}: {name}: starts at {begin}, which is not a multiple of its {dtype.itemsize} bytes"
        )
    if dtype == np.bool_ and (data[begin:end] > 1).any():
        raise ModelFileError(f"{path}: {name}: must be true or false, 0 or 1, but holds {data[begin:end].max()}")
    return data[begin:end].view(dtype).reshape(shape), end


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
