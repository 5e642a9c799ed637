"""Models in files: one file a model, read without running code, written as a whole or not at all.

A file has the safetensors format: see `everytree.files.container` for its layout and `docs/files.md` for its fields.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Literal, get_args

from everytree.estimators.registry import estimator_named, estimator_names
from everytree.exact.posterior import ExactPosterior
from everytree.files.container import ModelFileError, parse_json, read, to_json, write
from everytree.files.others import read_exact, read_growing, write_exact, write_growing
from everytree.files.schemas import read_schema, write_schema
from everytree.files.sections import Reader, Writer
from everytree.files.trees import read_forest, read_posteriors, read_trees, write_forest, write_posteriors, write_trees
from everytree.posterior.forest import Forest
from everytree.posterior.growing import GrowingPosterior
from everytree.posterior.posterior import Posterior
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree

__all__ = ["ModelFileError", "load", "load_with_notes", "save"]

Write = Callable[[Writer, Any], None]
Read = Callable[[Reader], Any]

_KINDS: dict[str, tuple[type, Write, Read]] = {
    "MetaTree": (
        MetaTree,
        lambda writer, tree: write_trees(writer, [tree]),
        lambda reader: _only(reader, read_trees(reader)),
    ),
    "Posterior": (
        Posterior,
        lambda writer, post: write_posteriors(writer, [post]),
        lambda reader: _only(reader, read_posteriors(reader)),
    ),
    "GrowingPosterior": (GrowingPosterior, write_growing, read_growing),
    "ExactPosterior": (ExactPosterior, write_exact, read_exact),
    "Schema": (Schema, write_schema, read_schema),
    "Forest": (Forest, write_forest, read_forest),
}
_ADVICE = {"StructureSampler": "save its posterior, a Forest; pickle keeps the chains"}
"""What to do with what files no longer hold."""

Layout = Literal["packed", "compressed", "mappable"]


def save(
    model: Any, path: str | os.PathLike[str], *, layout: Layout = "packed", notes: Mapping[str, Any] | None = None
) -> None:
    """Store a model in one file, from which `load` restores it with the same results to the last bit.

    The file is written beside `path`, flushed to the disk, and then renamed: after a failure or a crash there is the
    old file or the new one, never a part of one. The file holds no code; anything that reads the safetensors format can
    open it.

    Parameters
    ----------
    model : Posterior, GrowingPosterior, ExactPosterior, MetaTree, Forest, Schema, an estimator or an online forest
        Fitted or not. Leaves of a family of your own cannot be stored, nor can a `split_prior` that is a function of
        your own. Of a `StructureSampler`, its `posterior` is a forest that can.
    path : path-like
        By custom it ends in `.safetensors`. A file of this name is replaced.
    layout : {"packed", "compressed", "mappable"}
        "packed": numbers in the smallest types that hold them, without what follows from others. "compressed": the
        same, compressed by zlib; slower to save. "mappable": as in memory, several times larger; processes that load
        it with `mmap=True` share it.
    notes : mapping of str, optional
        Anything that JSON can hold, to be kept with the model: what it is about, or where its rows came from.
        `everytree.files.load_with_notes` returns it; the model does not depend on it.

    Examples
    --------
    >>> import os, tempfile, everytree as et
    >>> tree = et.MetaTree.complete([0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tree.safetensors")
    ...     et.save(tree, path)
    ...     et.load(path) == tree
    True
    """
    name = type(model).__name__
    kind = _kind(name)
    if kind is None or kind[0] is not type(model):
        instead = f": {_ADVICE[name]}" if name in _ADVICE else ""
        raise TypeError(f"model is a {name}, but files hold {', '.join(_names())}{instead}")
    if layout not in get_args(Layout):
        raise ValueError(f"layout must be one of {', '.join(map(repr, get_args(Layout)))}, but is {layout!r}")
    writer = Writer.empty(is_packed=layout != "mappable")
    kind[1](writer, model)
    values, arrays = writer.finish()
    kept = {} if notes is None else {"notes": _notes_as_text(notes)}
    metadata = {"library": version("everytree"), "kind": name, **kept, "model": values}
    write(path, metadata, arrays, compress=layout == "compressed")


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Any:
    """Return the model that `save` stored, checked completely before it is used.

    Parameters
    ----------
    path : path-like
    mmap : bool
        Map the file into memory rather than read it. Of a file with `layout="mappable"`, trees and statistics stay in
        the file, and processes that map the same file share them; those of a packed file are unpacked into memory, and
        a compressed file cannot be mapped. Updates are private to the process. The file must not be written in place
        meanwhile; `save` to its name is safe, since that makes a new file.

    Raises
    ------
    ModelFileError
        A `ValueError` that names the file, the field and what is wrong: the file is damaged, is not a model, has a
        version that this library does not know, or is compressed and was to be mapped.
    OSError
        The file cannot be read.
    """
    return load_with_notes(path, mmap=mmap)[0]


def load_with_notes(path: str | os.PathLike[str], *, mmap: bool = False) -> tuple[Any, dict[str, Any]]:
    """Return the model that `save` stored and the notes that were kept with it, empty if there are none.

    Arguments and errors as in `load`.

    Examples
    --------
    >>> import os, tempfile, everytree as et
    >>> from everytree.files import load_with_notes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tree.safetensors")
    ...     et.save(et.MetaTree.complete([0, 1, 1]), path, notes={"about": "two questions"})
    ...     load_with_notes(path)[1]
    {'about': 'two questions'}
    """
    contents = read(path, mapped=mmap)
    name = contents.metadata.get("kind", "")
    kind = _kind(name)
    if kind is None:
        instead = f": {_ADVICE[name]}" if name in _ADVICE else ""
        raise ModelFileError(f"{path}: kind: is {name!r:.200}, but must be one of {_names()}{instead}")
    reader = Reader.of(path, contents)
    model = kind[2](reader)
    reader.finish()
    return model, _notes_of(path, contents.metadata.get("notes", "{}"))


def _notes_as_text(notes: Mapping[str, Any]) -> str:
    """Notes as JSON; raise if reading them back would not give the same notes."""
    try:
        text = to_json(dict(notes))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"notes must be what JSON can hold: {error}") from None
    if parse_json(text) != dict(notes):
        raise TypeError("notes must be what JSON can hold: names that are text, lists rather than tuples")
    return text


def _notes_of(path: object, text: str) -> dict[str, Any]:
    try:
        notes = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: notes: is not JSON: {error}") from None
    if not isinstance(notes, dict):
        raise ModelFileError(f"{path}: notes: must be a JSON object")
    return notes


def _kind(name: str) -> tuple[type, Write, Read] | None:
    """The class of a name, and the functions that write and read it; estimators import scikit-learn or river."""
    if name in _KINDS:
        return _KINDS[name]
    from everytree.files import online
    from everytree.files.estimators import read_estimator, write_estimator

    if name in estimator_names():
        kind = estimator_named(name)
        return kind, write_estimator, lambda reader: read_estimator(reader, kind)
    if name in online.KINDS:
        return online.KINDS[name], online.write_online, lambda reader: online.read_online(reader, online.KINDS[name])
    return None


def _names() -> list[str]:
    """Everything that files hold."""
    from everytree.files import online

    return [*_KINDS, *estimator_names(), *online.KINDS]


def _only(reader: Reader, things: list[Any]) -> Any:
    if len(things) != 1:
        raise reader.error("n_nodes", f"is for {len(things)} trees, but a file of this kind has one")
    return things[0]
