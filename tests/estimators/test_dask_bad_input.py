"""What is wrong with Dask collections is said with the partition or the argument; a failed fit changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import everytree as et
from batch_cases import schema_of
from dask_cases import of_parts
from estimator_cases import state
from refusals import unchanged


def table(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kinds = {"b": ["x", "y", "z"] * (n // 3), "t": rng.uniform(1, 2, n), "y": [0, 1] * (n // 2)}
    return pd.DataFrame({"a": rng.normal(size=n), **kinds})


def parts(**changed: Any) -> list[pd.DataFrame]:
    """Three partitions; the last one with some columns changed."""
    whole = table()
    return [whole[:30], whole[30:60], whole[60:].assign(**changed)]


def frame(**changed: Any) -> dd.DataFrame:
    return of_parts(parts(**changed))


def known() -> dd.DataFrame:
    """Its divisions are known."""
    return dd.from_pandas(table(), npartitions=3)


def ones(*shape: int, chunks: Any = 30) -> da.Array:
    return da.ones(shape, chunks=chunks)


def forest(**options: Any) -> et.MetaForestClassifier:
    return et.MetaForestClassifier(2, random_state=0, **options)


WRONG: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    # ---- one partition is not like the others
    "another column": (
        lambda: {"batches": frame(c=1), "target": "y"},
        r"partition 2: it has the columns \['c'\], unlike those before, which had",
    ),
    "a column less": (
        lambda: {"batches": of_parts([*parts()[:2], table()[["a", "t", "y"]]]), "target": "y"},
        r"partition 2: it lacks the columns \['b'\]",
    ),
    "other columns": (
        lambda: {"batches": of_parts([parts()[0][["a", "y"]], *parts()[1:]]), "target": "y"},
        r"partition 1: it has the columns \['b', 't'\]",
    ),
    "another kind": (
        lambda: {"batches": frame(a="text"), "target": "y"},
        "partition 2: column 'a' is categorical, but was numeric before",
    ),
    "a date for a number": (
        lambda: {"batches": frame(a=pd.Timestamp("2024-01-01")), "target": "y"},
        "partition 2: column 'a' is datetime, but was",
    ),
    "infinity": (lambda: {"batches": frame(a=np.inf), "target": "y"}, "partition 2: X: column 'a', row 0: inf"),
    "an ordered category": (
        lambda: {
            "batches": frame(b=pd.Categorical(["z", "x", "y"] * 10, ["z", "y", "x"], ordered=True)),
            "target": "y",
        },
        "partition 2: column 'b' has ordered categories",
    ),
    # ---- targets and weights
    "no target in one partition": (
        lambda: {"batches": of_parts([*parts()[:2], table()[["a", "b", "t"]]]), "target": "y"},
        "partition 2: it has no column 'y'; its columns are",
    ),
    "no target in some rows": (
        lambda: {"batches": frame(y=[0.0] * 7 + [np.nan] * 23), "target": "y"},
        "partition 2: target 'y' is missing in row 7",
    ),
    "targets of two kinds": (lambda: {"batches": frame(y="yes"), "target": "y"}, "partition 2: the target has"),
    "measured targets": (
        lambda: {"batches": frame(y=0.5), "target": "y"},
        "partition 2: Unknown label type: continuous",
    ),
    "no target at all": (lambda: {"batches": frame()}, "batches is a Dask DataFrame without a target, but must be"),
    "no such column": (lambda: {"batches": frame(), "target": "z"}, "batches has no column 'z'; its columns are"),
    "no such weight": (lambda: {"batches": frame(), "target": "y", "sample_weight": "w"}, "batches has no column 'w'"),
    "a negative weight": (
        lambda: {"batches": frame(t=-1.0), "target": "y", "sample_weight": "t"},
        r"partition 2: sample_weight\[0\] is -1.0",
    ),
    "weights that are all 0": (
        lambda: {"batches": known().assign(t=0.0), "target": "y", "sample_weight": "t"},
        "batches is empty: there are no rows",
    ),
    # ---- other collections
    "an array": (lambda: {"batches": ones(90, 2), "target": "y"}, "batches is a Dask Array, but must be one dataframe"),
    "a pair": (
        lambda: {"batches": (frame()[["a"]], frame()["y"])},
        r"batches is a tuple, but must be one dataframe .*: X.assign\(y=y\) makes one",
    ),
    "a pair of arrays": (
        lambda: {"batches": (ones(90, 2), ones(90))},
        r"batches is a tuple, .* dask.dataframe.from_dask_array\(X\).assign\(y=y\) of arrays",
    ),
    "another collection": (lambda: {"batches": db.from_sequence([1, 2])}, "batches is a Dask Bag, but must be one"),
    "no rows": (lambda: {"batches": of_parts([table()[:0]] * 3), "target": "y"}, "batches is empty: there are no rows"),
    "a sample of nothing": (
        lambda: {"batches": frame(), "target": "y", "sample_rows": 0},
        "sample_rows must be a whole number",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_bad_collections_are_refused_and_change_nothing(what):
    make, words = WRONG[what]
    with dask.config.set(scheduler="synchronous"):
        model = forest().fit_batches(frame(), "y", sample_rows=30)
        schema = model.schema_
        with unchanged(state, model), pytest.raises((ValueError, TypeError), match=words):
            model.fit_batches(**{"sample_rows": 30, **make()})
    assert model.schema_ is schema


def test_more_than_one_partition_may_be_wrong_and_the_first_is_named():
    whole = [*parts(), *parts(a="text"), *parts(a="text")]
    with pytest.raises(ValueError, match="partition 5: column 'a' is categorical"):
        forest().fit_batches(of_parts(whole), "y")


# ---- collections that change between the passes ---------------------------------------------------------------------


class Changing:
    """A partition that is another one from some reading on."""

    def __init__(self, first: pd.DataFrame, later: pd.DataFrame, after: int) -> None:
        self.first, self.later, self.left = first, later, after

    def __call__(self, number: int) -> pd.DataFrame:
        if number:
            return table()[30:]
        self.left -= 1
        return self.first if self.left >= 0 else self.later


CHANGES: dict[str, tuple[int, Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "rows after they were counted": (1, lambda t: t[:20], "partition 0: it had 30 rows when they were counted, but"),
    "rows after the first pass": (
        2,
        lambda t: t[:20],
        "partition 0: it had 30 rows when they were counted, but has 20",
    ),
    "no rows any more": (1, lambda t: t[:0], "partition 0: it had 30 rows when they were counted, but has 0 now"),
    "a missing value": (2, lambda t: t.assign(a=np.nan), "partition 0: it has a value that was not there in the first"),
    "a class": (2, lambda t: t.assign(y=2), r"partition 0: y\[0\] is .*2.*, but the classes are \[0, 1\]"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_partitions_that_change_between_the_passes_are_refused(what):
    after, change, words = CHANGES[what]
    part = Changing(table()[:30], change(table()[:30]), after)
    parts_ = dd.from_map(part, [0, 1], meta=table()[:0], enforce_metadata=False)
    model = forest(max_features=None)
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=words):
        model.fit_batches(parts_, "y", sample_rows=60)
    assert not hasattr(model, "forest_")


def test_models_and_files_know_no_dask():
    X = of_parts([part[["a", "b"]] for part in parts()])
    model = forest().fit_batches(frame().drop(columns="t"), "y")
    with pytest.raises(TypeError, match=r"X is lazy \(DataFrame\), but a table in memory .* pass X.compute\(\)"):
        model.partial_fit(X, frame()["y"].compute())
    with pytest.raises(TypeError, match=r"batches is lazy \(DataFrame\)"):
        schema_of(X)
