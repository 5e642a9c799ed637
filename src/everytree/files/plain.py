"""Parameters and labels as JSON and back.

Numbers, text, lists and None are stored as they are. Anything else is an object with one name, which gives its type:
`{"tuple": [...]}`, `{"dict": {...}}`, `{"pairs": [[key, value], ...]}` for a dict with keys other than text,
`{"float": "nan"}`, `{"objects": [...]}`, `{"depth_prior": [alpha, beta]}`, `{"sklearn": [class, parameters]}`, and
`{"array": name}` or `{"text": name}` for an array in the file. Functions cannot be stored: files hold no code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.files.container import TYPES
from everytree.files.sections import Reader, Writer
from everytree.posterior.split_prior import DepthPrior

_LARGEST_CHARACTER = 0x10FFFF

_KEYS = str | bool | int | float
"""Types of the keys of a dict, such as the labels of classes."""


def write_plain(writer: Writer, name: str, value: Any) -> None:
    """Write one value under a name, with the arrays in it."""
    writer.put(**{name: _to_json(writer, name, value)})


def read_plain(reader: Reader, name: str) -> Any:
    """Read the value, checked."""
    values = reader.values()
    if name not in values:
        raise reader.error(name, "is missing")
    with reader.checking(name):
        return _from_json(reader, values[name])


# ---- to JSON --------------------------------------------------------------------------------------------------------


def _to_json(writer: Writer, name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) in (list, tuple):
        items = [_to_json(writer, f"{name}[{i}]", item) for i, item in enumerate(value)]
        return items if type(value) is list else {"tuple": items}
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {"dict": {key: _to_json(writer, f"{name}.{key}", item) for key, item in value.items()}}
    if isinstance(value, Mapping):
        pairs = [[_to_json(writer, name, key), _to_json(writer, f"{name}[{key}]", item)] for key, item in value.items()]
        return {"pairs": pairs}
    if isinstance(value, np.ndarray):
        return _array_to_json(writer, name, value)
    if type(value) is DepthPrior:
        return {"depth_prior": [_to_json(writer, name, number) for number in (value.alpha, value.beta)]}
    kinds = _sklearn_kinds() if hasattr(value, "get_params") else {}
    if kinds.get(type(value).__name__) is type(value):
        parameters = value.get_params(deep=False)
        own = {key: _to_json(writer, f"{name}.{key}", item) for key, item in parameters.items()}
        return {"sklearn": [type(value).__name__, {"dict": own}]}
    raise TypeError(f"{name} is {value!r:.200}, which a file cannot hold: {_ADVICE.get(name, _ANY_ADVICE)}")


_ANY_ADVICE = "parameters must be numbers, text, arrays, lists or dicts of them; pickle keeps other objects"
_ADVICE = {
    "split_prior": "a function is code; give a number or everytree.depth_prior(alpha, beta)",
    "random_state": "give a whole number or None",
    "oob_score": "a function is code; set_params(oob_score=True) keeps the score",
}


def _array_to_json(writer: Writer, name: str, array: NDArray[Any]) -> dict[str, Any]:
    if array.dtype.kind == "O" and array.ndim == 1:
        return {"objects": [_to_json(writer, f"{name}[{i}]", item) for i, item in enumerate(array.tolist())]}
    if array.dtype.kind == "U" and array.ndim == 1:
        little_endian = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
        writer.put_arrays(**{name: little_endian[:, None].view("<u4")})
        return {"text": name}
    if array.dtype.newbyteorder("<").str not in TYPES.values():
        raise TypeError(f"{name} is an array of {array.dtype}, which a file cannot hold")
    writer.put_as_they_are(**{name: array})
    return {"array": name}


# ---- from JSON ------------------------------------------------------------------------------------------------------


def _from_json(reader: Reader, value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(reader, item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1 or next(iter(value)) not in _READERS:
        raise ValueError(f"must be an object with one of the names {[*_READERS]}, but is {value!r:.200}")
    ((tag, inner),) = value.items()
    return _READERS[tag](reader, inner)


def _list(reader: Reader, inner: Any) -> list[Any]:
    if not isinstance(inner, list):
        raise ValueError(f"must be a list, but is {inner!r:.200}")
    return [_from_json(reader, item) for item in inner]


def _dict(reader: Reader, inner: Any) -> dict[str, Any]:
    if not isinstance(inner, dict):
        raise ValueError(f"must be an object, but is {inner!r:.200}")
    return {key: _from_json(reader, item) for key, item in inner.items()}


def _pairs(reader: Reader, inner: Any) -> dict[Any, Any]:
    pairs = _list(reader, inner)
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], _KEYS) for pair in pairs):
        raise ValueError(f"must be pairs of a key and a value, but is {inner!r:.200}")
    return dict(pairs)


def _float(reader: Reader, inner: Any) -> float:
    if inner not in ("nan", "inf", "-inf"):
        raise ValueError(f"must be 'nan', 'inf' or '-inf', but is {inner!r:.200}")
    return float(inner)


def _array(reader: Reader, inner: Any) -> NDArray[Any]:
    return reader.array(_array_name(inner), None)


def _array_name(inner: Any) -> str:
    if not isinstance(inner, str):
        raise ValueError(f"must be the name of an array, but is {inner!r:.200}")
    return inner


def _text(reader: Reader, inner: Any) -> NDArray[Any]:
    letters = reader.array(_array_name(inner), np.uint32, (None, None))
    if letters.shape[1] == 0:
        raise ValueError(f"text must be a table of letters, but has shape {letters.shape}")
    if letters.size and letters.max() > _LARGEST_CHARACTER:
        raise ValueError(f"text holds {letters.max()}, which is not a letter")
    return letters.view(f"<U{letters.shape[1]}")[:, 0]


def _objects(reader: Reader, inner: Any) -> NDArray[Any]:
    items = _list(reader, inner)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _depth_prior(reader: Reader, inner: Any) -> DepthPrior:
    alpha, beta = _list(reader, inner)
    return DepthPrior(alpha, beta)


def _sklearn(reader: Reader, inner: Any) -> Any:
    name, parameters = _list(reader, inner)
    kinds = _sklearn_kinds()
    if not isinstance(name, str) or name not in kinds or not isinstance(parameters, dict):
        raise ValueError(f"scikit-learn's {name!r:.200} is none of {[*kinds]}")
    return kinds[name](**parameters)


_READERS = {
    "tuple": lambda reader, inner: tuple(_list(reader, inner)),
    "dict": _dict,
    "pairs": _pairs,
    "float": _float,
    "array": _array,
    "text": _text,
    "objects": _objects,
    "depth_prior": _depth_prior,
    "sklearn": _sklearn,
}


def _sklearn_kinds() -> dict[str, Any]:
    """scikit-learn's estimators that can be a `grower`, by name; only their parameters are stored."""
    from sklearn import ensemble, tree

    kinds = (
        tree.DecisionTreeClassifier, tree.DecisionTreeRegressor, tree.ExtraTreeClassifier, tree.ExtraTreeRegressor,
        ensemble.RandomForestClassifier, ensemble.RandomForestRegressor, ensemble.ExtraTreesClassifier,
        ensemble.ExtraTreesRegressor, ensemble.BaggingClassifier, ensemble.BaggingRegressor,
    )  # fmt: skip
    return {kind.__name__: kind for kind in kinds}
