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
    "no target in some rows of a series": (
        lambda: {"batches": (frame()[["a"]], frame(y=[0.0] * 7 + [np.nan] * 23)["y"])},
        "partition 2: the target y is missing in row 7",
    ),
    "targets of two kinds": (lambda: {"batches": frame(y="yes"), "target": "y"}, "partition 2: the target has"),
    "measured targets": (
        lambda: {"batches": frame(y=0.5), "target": "y"},
        "partition 2: Unknown label type: continuous",
    ),
    "no target at all": (lambda: {"batches": frame()}, "batches is a Dask DataFrame without a target: name the column"),
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
    # ---- collections that do not fit together
    "other divisions": (
        lambda: {"batches": (known()[["a"]], known().repartition(divisions=[0, 10, 60, 89])["y"])},
        r"y is cut at \[0, 10, 60, 89\], but X at \[0, 30, 60, 89\]: pass y.repartition\(divisions=X.divisions\)",
    ),
    "fewer partitions": (
        lambda: {"batches": (frame()[["a"]], of_parts(parts()[:2])["y"])},
        "y has 2 partitions, but X 3, and where they",
    ),
    "partitions of other lengths": (
        lambda: {"batches": (frame()[["a"]], of_parts([table()[:30], table()[30:61], table()[61:]])["y"])},
        r"partition \d: X has 30 rows, but y (31|29)",
    ),
    "other chunks": (
        lambda: {"batches": (ones(90, 2), ones(90, chunks=45))},
        r"y is cut at \[0, 45, 90\], but X at \[0, 30, 60, 90\]: pass y.rechunk\(X.chunks\[0\]\)",
    ),
    "another number of rows": (lambda: {"batches": (ones(90, 2), ones(91))}, r"y is cut at \[0, 30, 60, 90, 91\]"),
    "other chunks of weights": (
        lambda: {"batches": (ones(90, 2), ones(90), ones(90, chunks=45))},
        "sample_weight is cut at",
    ),
    "chunks of unknown size": (
        lambda: {"batches": (unknown(3), unknown(2)[:, 0])},
        r"y has 2 partitions, but X 3, and where they are cut is unknown: .* call compute_chunk_sizes\(\) on both",
    ),
    "chunks of unknown and of other size": (
        lambda: {"batches": (unknown(3), da.ones(90, chunks=(10, 40, 40)))},
        r"partition \d: X has 30 rows, but y \d0",
    ),
    "columns of unknown number": (
        lambda: {"batches": (ones(90, 4)[:, ones(4, chunks=4) > 0], ones(90))},
        r"X has an unknown number of columns: call X.compute_chunk_sizes\(\)",
    ),
    # ---- no collections at all
    "a table in memory": (
        lambda: {"batches": (table(), known()["y"])},
        "X is a DataFrame, but must be a Dask dataframe or a Dask array",
    ),
    "targets in memory": (
        lambda: {"batches": (frame()[["a"]], np.ones(90))},
        "y is a ndarray, but must be a Dask series or array with",
    ),
    "another collection": (lambda: {"batches": db.from_sequence([1, 2])}, "X is a Bag, but must be a Dask dataframe"),
    "names and a pair": (
        lambda: {"batches": (frame(), frame()["y"]), "sample_weight": "t"},
        r"batches is a pair .* \['t'\] cannot be",
    ),
    "four collections": (lambda: {"batches": (ones(90, 2), *[ones(90)] * 3)}, "batches is a tuple of 4, but must be"),
    "a name in an array": (lambda: {"batches": ones(90, 2), "target": "y"}, "batches is a Dask Array without a target"),
    "an array of one dimension": (lambda: {"batches": (ones(90), ones(90))}, "X must be a table"),
    "two targets": (lambda: {"batches": (ones(90, 2), ones(90, 2))}, "y must have one entry a row, but has shape"),
    "no rows": (lambda: {"batches": of_parts([table()[:0]] * 3), "target": "y"}, "batches is empty: there are no rows"),
    "no rows of an array": (lambda: {"batches": (ones(0, 2), ones(0))}, "batches is empty: there are no rows"),
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
    model = forest().fit_batches((X, frame()["y"]))
    with pytest.raises(TypeError, match=r"X is lazy \(DataFrame\), but a table in memory .* pass X.compute\(\)"):
        model.partial_fit(X, frame()["y"].compute())
    with pytest.raises(TypeError, match=r"batches is lazy \(DataFrame\)"):
        et.schema_from_batches(X)
