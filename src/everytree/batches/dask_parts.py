"""Dask collections with the same partitions: a table, and what else is known of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from everytree.base.arrays import as_column
from everytree.batches.batch import Batch, Roles, batch_of, check_pair, error_context, read_batch

try:
    import dask
    import dask.array as da
    import dask.dataframe as dd
    import distributed  # noqa: F401  (its defaults must be there before `compute` sets one of them for a while)
except ImportError as error:
    raise ImportError("Dask is not installed, or only a part of it: pip install everytree[dask]") from error


def compute(tasks: list[Any]) -> tuple[Any, ...]:
    """Compute tasks on the cluster of the active client, or by the scheduler that is set."""
    # A model is a part of the graph rather than scattered: so it is still there when a worker is not.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10 GB"}):
        results: tuple[Any, ...] = dask.compute(*tasks)
        return results


def once(shared: Any) -> Any:
    """Wrap an object that many tasks share as a task, so that a worker gets it once."""
    return dask.delayed(shared, traverse=False)


NO_TARGET = "name the column of a dataframe by target=, or pass a pair (X, y) of dataframe and series or of arrays"


@dataclass(frozen=True)
class Partitions:
    """A table, and what else is known of its rows: in columns of it, or in collections with the same partitions.

    Attributes
    ----------
    X : Dask DataFrame or Array
    roles : Roles
        Columns of X that are no features.
    others : mapping of str to Dask Series or Array
        "y" and "sample_weight", where they are not columns of X.
    """

    X: Any
    roles: Roles = field(default_factory=Roles)
    others: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, batches: Any, roles: Roles) -> Partitions:
        """A dataframe with a column of targets, or (X, y) or (X, y, sample_weight), whose partitions must match."""
        if isinstance(batches, tuple):
            check_pair(batches, roles, "batches")
            X, others = _table(batches[0]), dict(zip(("y", "sample_weight"), batches[1:], strict=False))
            return cls(X, others={name: _column(name, values, X) for name, values in others.items()})
        X = _table(batches)
        if roles.target is None or not isinstance(X, dd.DataFrame):
            raise ValueError(f"batches is a Dask {type(X).__name__} without a target: {NO_TARGET}")
        roles.check_in(list(X.columns), "batches")
        return cls(X, roles)

    def pieces(self, features: list[str] | None = None) -> list[list[Any]]:
        """For each partition, its part of X, of all features or of these, and of each other collection."""
        X = self.X
        if features is not None and isinstance(X, dd.DataFrame):
            wanted = {*features, *self.roles.columns()}
            X = X[[name for name in X.columns if str(name) in wanted]]
        parts = [_parts(collection) for collection in (X, *self.others.values())]
        return [list(piece) for piece in zip(*parts, strict=True)]

    def read(self, number: int, piece: list[Any], owner: str) -> Batch | None:
        """A partition's rows, when they are there."""
        X, *others = piece
        if not self.others:
            return read_batch(number, X, self.roles, owner)
        given = dict(zip(self.others, others, strict=True))
        return batch_of(number, X, given.pop("y"), given.pop("sample_weight", None), given, owner)

    def without_data(self) -> Partitions:
        """The names alone, without the collections, which is all that a worker needs to read a piece."""
        return Partitions(None, self.roles, dict.fromkeys(self.others))

    def n_rows(self) -> tuple[int, ...]:
        """Rows of each partition that have weight."""
        y, weight = self._of_rows()
        if weight is None and isinstance(y, da.Array) and not np.isnan(y.chunks[0]).any():
            return tuple(y.chunks[0])
        parts = [_parts(collection) for collection in (y, weight) if collection is not None]
        try:
            return compute([dask.delayed(_n_rows)(*piece) for piece in zip(*parts, strict=True)])
        except KeyError:
            self._refuse_absent()
            raise

    def _of_rows(self) -> tuple[Any, Any]:
        if self.others:
            return self.others["y"], self.others.get("sample_weight")
        weight = self.roles.sample_weight
        return self.X[self.roles.target], None if weight is None else self.X[weight]

    def _refuse_absent(self) -> None:
        """Say which partition lacks a column that X is said to have."""
        for number, columns in enumerate(compute([dask.delayed(list)(part) for part in _parts(self.X)])):
            with error_context(number, "partition"):
                self.roles.check_in(columns)


def _n_rows(y: Any, weight: Any = None) -> int:
    """Rows of a partition that have weight."""
    return len(y) if weight is None else int(np.count_nonzero(as_column("sample_weight", weight)))


# ---- collections ----------------------------------------------------------------------------------------------------


def _parts(collection: Any) -> list[Any]:
    """Partitions of a collection, as tasks."""
    if isinstance(collection, da.Array):
        return list(collection.to_delayed().ravel())
    # Columns that are not needed are not read, but that is all: a full optimisation would put partitions together of
    # which few columns are left, and those of X and y would not match.
    return list(collection.simplify().to_delayed(optimize_graph=False))


def _table(X: Any) -> Any:
    """A frame, or an array whose chunks are whole rows."""
    if isinstance(X, dd.DataFrame):
        return X
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X is a {type(X).__name__}, but must be a Dask dataframe or a Dask array, as the other collections are"
        )
    if X.ndim != 2:
        raise ValueError(f"X must be a table (n_rows, n_features), but has shape {X.shape}")
    if np.isnan(X.shape[1]):
        raise ValueError("X has an unknown number of columns: call X.compute_chunk_sizes() first")
    return X.rechunk({1: -1})


def _column(name: str, values: Any, X: Any) -> Any:
    """A collection with one entry a row of X, cut as X is."""
    if isinstance(values, dd.DataFrame) and len(values.columns) == 1:
        values = values[values.columns[0]]
    if not isinstance(values, dd.Series | da.Array):
        raise TypeError(
            f"{name} is a {type(values).__name__}, but must be a Dask series or array with the partitions of X"
        )
    if isinstance(values, da.Array) and values.ndim == 2 and values.shape[1] == 1:
        values = values.rechunk({1: -1})[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must have one entry a row, but has shape {values.shape}")
    _refuse_unaligned(name, values, X)
    return values


def _refuse_unaligned(name: str, values: Any, X: Any) -> None:
    """Sizes are compared here where they are known, and else by the workers."""
    mine, theirs = _cuts(X), _cuts(values)
    if isinstance(X, da.Array) == isinstance(values, da.Array) and None not in (mine, theirs):
        if mine != theirs:
            how = "rechunk(X.chunks[0])" if isinstance(X, da.Array) else "repartition(divisions=X.divisions)"
            raise ValueError(f"{name} is cut at {_few(theirs)}, but X at {_few(mine)}: pass {name}.{how}")
    elif values.npartitions != X.npartitions:
        raise ValueError(
            f"{name} has {values.npartitions} partitions, but X {X.npartitions}, and where they are cut is unknown: "
            f"take X and {name} from one dataframe, or cut both alike; for arrays call compute_chunk_sizes() on both, "
            f"then {name}.rechunk(X.chunks[0])"
        )


def _cuts(collection: Any) -> tuple[Any, ...] | None:
    """Where a collection is cut, if that is known."""
    if isinstance(collection, da.Array):
        sizes = collection.chunks[0]
        return None if np.isnan(sizes).any() else (0, *accumulate(sizes))
    return tuple(collection.divisions) if collection.known_divisions else None


def _few(cuts: tuple[Any, ...] | None) -> str:
    cuts = cuts or ()
    return str([*cuts[:5], "..."] if len(cuts) > 6 else [*cuts])
