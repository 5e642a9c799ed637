"""What is wrong with Dask collections is said with the partition or the argument; a failed fit changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import everytree as et
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


def unknown(n_partitions: int) -> da.Array:
    """An array whose chunks are of unknown size."""
    return known().repartition(npartitions=n_partitions)[["a", "t"]].to_dask_array()


def forest(**options: Any) -> et.DaskMetaForestClassifier:
    return et.DaskMetaForestClassifier(2, random_state=0, **options)


WRONG: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    # ---- one partition is not like the others
    "another column": (
        lambda: {"X": frame(c=1), "y": "y"}, r"partition 2: it has the columns \['c'\], unlike those before, which had",
    ),
    "a column less": (
        lambda: {"X": of_parts([*parts()[:2], table()[["a", "t", "y"]]]), "y": "y"},
        r"partition 2: it lacks the columns \['b'\]",
    ),
    "other columns": (
        lambda: {"X": of_parts([parts()[0][["a", "y"]], *parts()[1:]]), "y": "y"},
        r"partition 1: it has the columns \['b', 't'\]",
    ),
    "another kind": (
        lambda: {"X": frame(a="text"), "y": "y"}, "partition 2: column 'a' is categorical, but was numeric before",
    ),
    "a date for a number": (
        lambda: {"X": frame(a=pd.Timestamp("2024-01-01")), "y": "y"}, "partition 2: column 'a' is datetime, but was",
    ),
    "infinity": (lambda: {"X": frame(a=np.inf), "y": "y"}, "partition 2: X: column 'a', row 0: inf"),
    "an ordered category": (
        lambda: {"X": frame(b=pd.Categorical(["z", "x", "y"] * 10, ["z", "y", "x"], ordered=True)), "y": "y"},
        "partition 2: column 'b' has ordered categories",
    ),
    # ---- targets and weights
    "no target in one partition": (
        lambda: {"X": of_parts([*parts()[:2], table()[["a", "b", "t"]]]), "y": "y"},
        "partition 2: it has no column 'y'; its columns are",
    ),
    "no target in some rows": (
        lambda: {"X": frame(y=[0.0] * 7 + [np.nan] * 23), "y": "y"}, "partition 2: target 'y' is missing in row 7",
    ),
    "no target in some rows of a series": (
        lambda: {"X": frame()[["a"]], "y": frame(y=[0.0] * 7 + [np.nan] * 23)["y"]},
        "partition 2: the target y is missing in row 7",
    ),
    "targets of two kinds": (lambda: {"X": frame(y="yes"), "y": "y"}, "partition 2: the target has"),
    "measured targets": (lambda: {"X": frame(y=0.5), "y": "y"}, "partition 2: Unknown label type: continuous"),
    "no target at all": (lambda: {"X": frame(), "y": None}, "the target y is None"),
    "no such column": (lambda: {"X": frame(), "y": "z"}, "X has no column 'z'; its columns are"),
    "no such weight": (lambda: {"X": frame(), "y": "y", "sample_weight": "w"}, "X has no column 'w'"),
    "a negative weight": (
        lambda: {"X": frame(t=-1.0), "y": "y", "sample_weight": "t"}, r"partition 2: sample_weight\[0\] is -1.0",
    ),
    "weights that are all 0": (
        lambda: {"X": known().assign(t=0.0), "y": "y", "sample_weight": "t"}, "X is empty: there are no rows",
    ),
    # ---- collections that do not fit together
    "other divisions": (
        lambda: {"X": known()[["a"]], "y": known().repartition(divisions=[0, 10, 60, 89])["y"]},
        r"y is cut at \[0, 10, 60, 89\], but X at \[0, 30, 60, 89\]: pass y.repartition\(divisions=X.divisions\)",
    ),
    "fewer partitions": (
        lambda: {"X": frame()[["a"]], "y": of_parts(parts()[:2])["y"]}, "y has 2 partitions, but X 3, and where they",
    ),
    "partitions of other lengths": (
        lambda: {"X": frame()[["a"]], "y": of_parts([table()[:30], table()[30:61], table()[61:]])["y"]},
        r"partition \d: X has 30 rows, but y (31|29)",
    ),
    "other chunks": (
        lambda: {"X": ones(90, 2), "y": ones(90, chunks=45)},
        r"y is cut at \[0, 45, 90\], but X at \[0, 30, 60, 90\]: pass y.rechunk\(X.chunks\[0\]\)",
    ),
    "another number of rows": (lambda: {"X": ones(90, 2), "y": ones(91)}, r"y is cut at \[0, 30, 60, 90, 91\]"),
    "other chunks of weights": (
        lambda: {"X": ones(90, 2), "y": ones(90), "sample_weight": ones(90, chunks=45)}, "sample_weight is cut at",
    ),
    "chunks of unknown size": (
        lambda: {"X": unknown(3), "y": unknown(2)[:, 0]},
        r"y has 2 partitions, but X 3, and where they are cut is unknown: .* call compute_chunk_sizes\(\) on both",
    ),
    "chunks of unknown and of other size": (
        lambda: {"X": unknown(3), "y": da.ones(90, chunks=(10, 40, 40))}, r"partition \d: X has 30 rows, but y \d0",
    ),
    "columns of unknown number": (
        lambda: {"X": ones(90, 4)[:, ones(4, chunks=4) > 0], "y": ones(90)},
        r"X has an unknown number of columns: call X.compute_chunk_sizes\(\)",
    ),
    # ---- no collections at all
    "a table in memory": (lambda: {"X": table(), "y": "y"}, "X is a DataFrame, but must be a Dask dataframe or"),
    "targets in memory": (
        lambda: {"X": frame()[["a"]], "y": np.ones(90)}, "y is a ndarray, but must be a Dask series or array that is",
    ),
    "names and collections": (
        lambda: {"X": frame(), "y": "y", "sample_weight": frame()["t"]}, "y names a column of X, but sample_weight is",
    ),
    "names and arrays": (lambda: {"X": ones(90, 2), "y": "y"}, "X is an array without names of columns, but y names"),
    "an array of one dimension": (lambda: {"X": ones(90), "y": ones(90)}, "X must be a table"),
    "two targets": (lambda: {"X": ones(90, 2), "y": ones(90, 2)}, "y must have one entry a row, but has shape"),
    "no rows": (lambda: {"X": of_parts([table()[:0]] * 3), "y": "y"}, "X is empty: there are no rows"),
    "no rows of an array": (lambda: {"X": ones(0, 2), "y": ones(0)}, "X is empty: there are no rows"),
    "a sample of nothing": (lambda: {"X": frame(), "y": "y", "sample_rows": 0}, "sample_rows must be a whole number"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_bad_collections_are_refused_and_change_nothing(what):
    make, words = WRONG[what]
    with dask.config.set(scheduler="synchronous"):
        model = forest().fit(frame(), "y", sample_rows=30)
        schema = model.schema_
        with unchanged(state, model), pytest.raises((ValueError, TypeError), match=words):
            model.fit(**{"sample_rows": 30, **make()})
    assert model.schema_ is schema


def test_more_than_one_partition_may_be_wrong_and_the_first_is_named():
    whole = [*parts(), *parts(a="text"), *parts(a="text")]
    with pytest.raises(ValueError, match="partition 5: column 'a' is categorical"):
        forest().fit(of_parts(whole), "y")


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
        model.fit(parts_, "y", sample_rows=60)
    assert not hasattr(model, "forest_")


# ---- prediction -----------------------------------------------------------------------------------------------------


def test_what_is_wrong_with_rows_to_predict_is_said_with_the_partition():
    features = [part[["a", "b"]] for part in parts()]
    X = of_parts(features)
    with pytest.raises(NotFittedError):
        forest().predict(X)
    model = forest().fit(X, frame()["y"])
    wrong = of_parts([*features[:2], features[2].assign(a="text")])
    with pytest.raises(ValueError, match="partition 2: X: column 'a'"):
        model.predict_proba(wrong).compute()
    lacking = of_parts([*features[:2], features[2][["b"]]])
    with pytest.raises(ValueError, match=r"partition 2: X lacks the columns \['a'\]"):
        model.predict(lacking).compute()
    with pytest.raises(ValueError, match="quantiles"):
        et.DaskMetaTreeRegressor().fit(X, frame()["y"]).predict_quantiles(X, [1.5])


def test_exposure_of_an_array_cannot_be_named():
    X = da.ones((6, 2), chunks=3)
    model = et.DaskMetaTreeRegressor(family="poisson", random_state=0).fit(X, X[:, 0], exposure=X[:, 1])
    with pytest.raises(TypeError, match="X is an array without names of columns, but exposure names one"):
        model.predict(X, exposure="e")


def test_errors_say_how_dask_is_left():
    X = of_parts([part[["a", "b"]] for part in parts()])
    model = forest().fit(X, frame()["y"])
    with pytest.raises(TypeError, match=r"X is lazy \(DataFrame\), but a table in memory .* pass X.compute\(\)"):
        model.to_local().partial_fit(X, frame()["y"].compute())
    with pytest.raises(TypeError, match=r"save model.to_local\(\)"):
        et.save(model, "model")
