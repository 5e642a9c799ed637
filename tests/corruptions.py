"""Damage to model files: what disks, networks and people with bad intentions do to them."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

Damage = Callable[[np.random.Generator, bytes], bytes]


def split(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and data of an undamaged file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def join(header: dict[str, Any], data: bytes) -> bytes:
    """A file of this header, the checksum as it should be."""
    header.setdefault("__metadata__", {})["sha256"] = "0" * 64
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return sealed(len(text).to_bytes(8, "little") + text + data)


def sealed(content: bytes) -> bytes:
    """The same bytes with the checksum that belongs to them, where there still is a place for one."""
    mark = b'"sha256":"'
    at = content.find(mark) + len(mark)
    if at < len(mark) or len(content) < at + 64:
        return content
    blank = content[:at] + b"0" * 64 + content[at + 64 :]
    return blank[:at] + hashlib.sha256(blank[8:]).hexdigest().encode() + blank[at + 64 :]


def is_compressed(content: bytes) -> bool:
    return "inflated" in split(content)[0]["__metadata__"]


def inflated(content: bytes) -> bytes:
    """The file within an undamaged compressed file."""
    return zlib.decompress(split(content)[1])


def deflated(content: bytes, **metadata: str) -> bytes:
    """A compressed file with these contents, whatever they are; the metadata may lie."""
    stream = zlib.compress(content)
    return around(stream, **{"inflated": str(len(content)), **metadata})


def around(stream: bytes, **metadata: str) -> bytes:
    """A file that says it is compressed, with this stream."""
    facts = {"format": "everytree", "version": "3", "kind": "MetaTree", "library": "1", **metadata}
    entry = {"dtype": "U8", "shape": [len(stream)], "data_offsets": [0, len(stream)]}
    return join({"__metadata__": facts, "deflated": entry}, stream)


# ---- what disks and networks do --------------------------------------------------------------------------------------


def flip_bits(rng: np.random.Generator, content: bytes) -> bytes:
    damaged = bytearray(content)
    for at in rng.integers(0, len(content), rng.integers(1, 4)):
        damaged[at] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def overwrite(rng: np.random.Generator, content: bytes) -> bytes:
    at, n = int(rng.integers(0, len(content))), int(rng.integers(1, 64))
    new = rng.choice([rng.bytes(n), b"\0" * n, b"\xff" * n])[: len(content) - at]
    return content[:at] + bytes(new) + content[at + len(new) :]


def cut_off(rng: np.random.Generator, content: bytes) -> bytes:
    return content[: rng.integers(0, len(content))]


def append(rng: np.random.Generator, content: bytes) -> bytes:
    return content + rng.bytes(int(rng.integers(1, 100)))


def drop_some(rng: np.random.Generator, content: bytes) -> bytes:
    at = int(rng.integers(0, len(content)))
    return content[:at] + content[at + int(rng.integers(1, 32)) :]


def change_length(rng: np.random.Generator, content: bytes) -> bytes:
    length = rng.choice([0, 1, 8, 2**31, 2**63 - 1, len(content), len(content) - 8, int(rng.integers(0, 10**6))])
    return struct.pack("<Q", int(length)) + content[8:]


# ---- what takes knowledge of the format ------------------------------------------------------------------------------


def change_entry(rng: np.random.Generator, content: bytes) -> bytes:
    """Another type, shape or place for one array."""
    header, data = split(content)
    names = [name for name in header if name != "__metadata__"]
    if not names:
        return content
    entry = header[names[rng.integers(len(names))]]
    what = int(rng.integers(4))
    if what == 0:
        entry["dtype"] = str(rng.choice(["F64", "I64", "I32", "U8", "BOOL", "F16", "C64", "", "object"]))
    elif what == 1:
        sizes = [0, 1, 2, 3, 2**31, 2**40, 2**63, -1, 10**30, 1.5, None, "a", True]
        entry["shape"] = [sizes[i] for i in rng.integers(0, len(sizes), rng.integers(0, 4))]
    elif what == 2:
        entry["data_offsets"] = [int(i) for i in rng.integers(-8, len(data) + 64, rng.integers(0, 4))]
    else:
        header[str(rng.choice(["", "feature", "a.b"]))] = header.pop(names[rng.integers(len(names))])
    return join(header, data)


_NUMBERS = {
    "F64": "<f8", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U16": "<u2", "I16": "<i2", "I8": "i1", "F32": "<f4",
}  # fmt: skip


def change_number(rng: np.random.Generator, content: bytes) -> bytes:
    """Another number in one array: not a number, infinite, negative, huge, or one that makes a cycle."""
    header, data = split(content)
    names = [name for name, entry in header.items() if name != "__metadata__" and math.prod(entry["shape"])]
    if not names:
        return content
    entry = header[names[rng.integers(len(names))]]
    kind = np.dtype(_NUMBERS.get(entry["dtype"], "u1"))
    begin, end = entry["data_offsets"]
    values = np.frombuffer(data[begin:end], dtype=kind).copy()
    if kind.kind == "f":
        choices: Any = [np.nan, np.inf, -np.inf, -1.0, 2.0, 1e300, -0.0, 5e-324, 0.5]
    else:
        limits = np.iinfo(kind)
        choices = [limits.min, limits.max, 0, 1, 2, min(len(values), limits.max), limits.max // 2]
        choices += [-1, -2] if kind.kind == "i" else []
    with np.errstate(over="ignore"):  # 1e300 is infinite in float32
        values[rng.integers(len(values))] = choices[rng.integers(len(choices))]
    return join(header, data[:begin] + values.tobytes() + data[end:])


def change_value(rng: np.random.Generator, content: bytes) -> bytes:
    """Another value somewhere in the description of the model."""
    header, data = split(content)
    model = json.loads(header["__metadata__"].get("model", "{}"))
    places = _places(model)
    if not places:
        return content
    holder, key = places[rng.integers(len(places))]
    values: list[Any] = [
        None, True, 0, -1, 1, 2, 300, 2**40, 10**30, 0.5, -1.5, 1e308, "", "auto", "uint8", [], [0], [[]], {}, {"a": 1},
        {"float": "nan"}, {"array": "trees.feature"}, {"text": "classes"}, {"tuple": [1]}, {"dict": {"a": 1}},
        {"sklearn": ["RandomForestClassifier", {"dict": {"n_estimators": 3}}]}, {"sklearn": ["os.system", {}]},
        {"depth_prior": [0.5, 1.0]}, {"depth_prior": [2.0, float("1e308")]}, "\ud800", "x" * 1000,
        {"ints": "groups0"}, {"floats": "cuts"}, ["U8", "U8"], ["F64"],
    ]  # fmt: skip
    if rng.random() < 0.2 and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = values[rng.integers(len(values))]
    header["__metadata__"]["model"] = json.dumps(model)
    return join(header, data)


def lie_about_size(rng: np.random.Generator, content: bytes) -> bytes:
    """Another number of bytes for what is compressed."""
    if not is_compressed(content):
        return content
    size = len(inflated(content))
    sizes = [0, 1, 7, 8, size - 1, size + 1, 2 * size, 2**20, 2**30, 2**62, -1, "", "1e9", "x", "٣", "9" * 5000]
    header, data = split(content)
    header["__metadata__"]["inflated"] = str(sizes[rng.integers(len(sizes))])
    return join(header, data)


def inside(damage: Damage) -> Damage:
    """Damage to the file within a compressed one, which is compressed again; to any other itself."""

    def damaged(rng: np.random.Generator, content: bytes) -> bytes:
        return deflated(damage(rng, inflated(content))) if is_compressed(content) else damage(rng, content)

    return damaged


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in nested lists and dicts."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, inner in items:
        found += [(value, key), *_places(inner)]
    return found


BLIND: list[Damage] = [flip_bits, overwrite, cut_off, append, drop_some, change_length]
"""Damage that the checksum finds."""

_OF_ONE_FILE: list[Damage] = [
    lambda rng, content: sealed(flip_bits(rng, content)),
    lambda rng, content: sealed(overwrite(rng, content)),
    change_entry,
    change_number,
    change_value,
]
KNOWING: list[Damage] = [*_OF_ONE_FILE, *map(inside, _OF_ONE_FILE), *map(inside, BLIND), lie_about_size]
"""Damage with a checksum that fits."""
