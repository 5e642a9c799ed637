"""Rows as Dask has them, and work for its workers that can be watched."""

from __future__ import annotations

import itertools
import os
import time
import uuid
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

from cases import assert_same
from estimator_cases import Case

SAMPLE = 60
COLUMNS = ["a", "b", "c", "d"]


def frame_of(case: Case, n: int = 200) -> tuple[pd.DataFrame, dict[str, str]]:
    """Rows of a case as one table, and the names of what the family wants to know of them."""
    X, y, row_data = case.draw(n, "dask")
    return pd.DataFrame(X, columns=COLUMNS).assign(y=y, **row_data), {name: name for name in row_data}


def in_batches(case: Case, table: pd.DataFrame, names: dict[str, str], **roles: str) -> Any:
    """The model of the same rows in memory."""
    return case.make().fit_batches([table], "y", sample_rows=SAMPLE, **names, **roles)


def cut(table: pd.DataFrame, n_partitions: int) -> dd.DataFrame:
    """Exactly so many partitions, some of them without rows where there are more of them than rows."""
    edges = np.linspace(0, len(table), n_partitions + 1).astype(int)
    parts = [table[start:end] for start, end in itertools.pairwise(edges)]
    return of_parts(parts)


def of_parts(parts: list[pd.DataFrame]) -> dd.DataFrame:
    """A frame of these partitions, which are what they are, whatever Dask is told of the first."""
    return dd.from_map(_itself, parts, meta=parts[0][:0], enforce_metadata=False)


def _itself(part: pd.DataFrame) -> pd.DataFrame:
    return part


def arrays(table: pd.DataFrame, n_chunks: int, *others: str) -> tuple[da.Array, ...]:
    """X, y and other columns as arrays in chunks."""
    size = -(-len(table) // n_chunks)
    X = da.from_array(table[COLUMNS].to_numpy(), chunks=(size, len(COLUMNS)))
    return X, *(da.from_array(table[name].to_numpy(), chunks=size) for name in ("y", *others))


def assert_same_model(model: Any, other: Any) -> None:
    """The same columns, structures, priors and, to 1e-10, everything derived from the statistics."""
    assert model.schema_ == other.schema_
    assert model.choice_ == other.choice_
    for mine, theirs in zip(model.posteriors_, other.posteriors_, strict=True):
        assert mine.tree == theirs.tree
        assert_same(mine, theirs)
    np.testing.assert_allclose(model.weights_, other.weights_, rtol=1e-10)


def watched(part: pd.DataFrame, folder: str, seconds: float) -> pd.DataFrame:
    """A partition that takes its time, and leaves a note of the process that asked for it."""
    (Path(folder) / f"{os.getpid()}-{uuid.uuid4().hex}").touch()
    time.sleep(seconds)
    return part


def notes(folder: Path) -> list[int]:
    """Which process asked, once for each partition that was read."""
    return [int(path.name.split("-")[0]) for path in folder.iterdir()]
