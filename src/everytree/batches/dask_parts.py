"""The partitions of a Dask dataframe, one of whose columns is the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from everytree.base.arrays import as_column
from everytree.batches.batch import Roles, error_context

try:
    import dask
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


ONE_FRAME = (
    "one dataframe with a column of targets, which target= names: X.assign(y=y) makes one of a dataframe and a series, "
    "dask.dataframe.from_dask_array(X).assign(y=y) of arrays"
)


@dataclass(frozen=True)
class Partitions:
    """A dataframe, and which of its columns are no features."""

    X: Any
    roles: Roles

    @classmethod
    def of(cls, batches: Any, roles: Roles) -> Partitions:
        """A dataframe that has the columns with these roles."""
        if not isinstance(batches, dd.DataFrame):
            kind = "tuple" if isinstance(batches, tuple) else f"Dask {type(batches).__name__}"
            raise TypeError(f"batches is a {kind}, but must be {ONE_FRAME}")
        if roles.target is None:
            raise ValueError(f"batches is a Dask DataFrame without a target, but must be {ONE_FRAME}")
        roles.check_in(list(batches.columns), "batches")
        return cls(batches, roles)

    def pieces(self, features: list[str] | None = None) -> list[Any]:
        """Each partition as a task, with all features or these."""
        X = self.X
        if features is not None:
            wanted = {*features, *self.roles.columns()}
            X = X[[name for name in X.columns if str(name) in wanted]]
        return _parts(X)

    def n_rows(self) -> tuple[int, ...]:
        """Rows of each partition that have weight."""
        columns = [name for name in (self.roles.target, self.roles.sample_weight) if name is not None]
        parts = [_parts(self.X[name]) for name in columns]
        try:
            return compute([dask.delayed(_n_rows)(*piece) for piece in zip(*parts, strict=True)])
        except KeyError:
            self._refuse_absent()
            raise

    def _refuse_absent(self) -> None:
        """Say which partition lacks a column that X is said to have."""
        for number, columns in enumerate(compute([dask.delayed(list)(part) for part in _parts(self.X)])):
            with error_context(number, "partition"):
                self.roles.check_in(columns)


def _n_rows(y: Any, weight: Any = None) -> int:
    """Rows of a partition that have weight."""
    return len(y) if weight is None else int(np.count_nonzero(as_column("sample_weight", weight)))


def _parts(collection: Any) -> list[Any]:
    """Partitions of a collection, as tasks."""
    # Columns that are not needed are not read, but that is all: a full optimisation would put partitions together of
    # which few columns are left, and those of the passes would not match.
    return list(collection.simplify().to_delayed(optimize_graph=False))
