"""Conformal intervals and sets beside MAPIE and coverforest: coverage beside its promise, sharpness and time.

`python benchmarks/conformal.py --data DIR` prints the tables of a folder with `numbers` and `classes`, tables without a
header whose last column is the target; `--out benchmarks/RESULTS.md` keeps them. Of each table of 500 rows or more, 20
random splits of at most 1,000 rows into halves; one thread. Libraries that are not installed are left out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from threadpoolctl import threadpool_limits

import everytree as et
import markdown
from markdown import number, section

COVERAGE, MOST_ROWS = 0.9, 1000
Method = Callable[[Any, Any, Any], tuple[Any, float | None]]
"""Of rows, their targets and new rows: intervals or sets, and what is promised."""


def own(kind: Any, calibration_rows: Any) -> Method:
    def method(X: Any, y: Any, X_new: Any) -> tuple[Any, float | None]:
        model = kind(random_state=0, n_jobs=1).fit(X, y, calibration_rows=calibration_rows)
        promised = model.guarantee_.promised(COVERAGE)
        if kind.has_classes:
            return model.predict_set(X_new, COVERAGE), promised
        return model.predict_interval(X_new, COVERAGE, guarantee="conformal"), promised

    return method


def mapie(kind: str) -> Method:
    from mapie import classification, regression

    def method(X: Any, y: Any, X_new: Any) -> tuple[Any, float | None]:
        if kind == "jackknife+":
            forest = RandomForestRegressor(100, random_state=0)
            model = regression.JackknifeAfterBootstrapRegressor(forest, COVERAGE, random_state=0)
            return model.fit_conformalize(X, y).predict_interval(X_new)[1][:, :, 0], 2 * COVERAGE - 1
        n = round(0.8 * len(y))
        if kind == "numbers":
            split = regression.SplitConformalRegressor(
                RandomForestRegressor(100, random_state=0), COVERAGE, prefit=False
            )
            return split.fit(X[:n], y[:n]).conformalize(X[n:], y[n:]).predict_interval(X_new)[1][:, :, 0], COVERAGE
        forest = RandomForestClassifier(100, random_state=0)
        model = classification.SplitConformalClassifier(forest, COVERAGE, "aps", prefit=False, random_state=0)
        return model.fit(X[:n], y[:n]).conformalize(X[n:], y[n:]).predict_set(X_new)[1][:, :, 0], COVERAGE

    return method


def cover(has_classes: bool) -> Method:
    import coverforest

    def method(X: Any, y: Any, X_new: Any) -> tuple[Any, float | None]:
        kind = coverforest.CoverForestClassifier if has_classes else coverforest.CoverForestRegressor
        model = kind(100, method="bootstrap", random_state=0, n_jobs=1).fit(X, y)
        more = {"binary_output": True} if has_classes else {}
        found = model.predict(X_new, alpha=1 - COVERAGE, num_threads=1, **more)[1]
        return np.asarray(found), 2 * COVERAGE - 1

    return method


def methods(kind: str) -> dict[str, Method]:
    word = "Classifier" if kind == "classes" else "Regressor"
    found = {
        f"everytree {name.lower()}, {how}": own(getattr(et, f"Meta{name}{word}"), how)
        for name in ("Forest", "Boost") for how in (0.2, "left_out")
    }  # fmt: skip
    if find_spec("mapie"):
        found["MAPIE split, random forest"] = mapie(kind)
        if kind == "numbers":
            found["MAPIE jackknife+, random forest"] = mapie("jackknife+")
    if find_spec("coverforest"):
        found["coverforest jackknife+"] = cover(kind == "classes")
    return found


def judged(kind: str, found: Any, y: np.ndarray, spread: float) -> tuple[float, float]:
    """Coverage; and the mean size of sets, or the mean interval score in standard deviations of the target."""
    if kind == "classes":
        return float(found[np.arange(len(y)), y].mean()), float(found.sum(axis=1).mean())
    low, high = found.T
    beyond = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return float((beyond == 0.0).mean()), float((high - low + 2.0 / (1.0 - COVERAGE) * beyond).mean() / spread)


def tables(folder: Path, kind: str, wanted: list[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for path in sorted((folder / kind).glob("*.csv.gz")):
        frame = pd.read_csv(path, header=None)
        if len(frame) >= 500 and (not wanted or path.name.split(".")[0] in wanted):
            y = frame.iloc[:, -1]
            target = pd.factorize(y, sort=True)[0] if kind == "classes" else y.to_numpy(float)
            yield path.name.split(".")[0], frame.iloc[:, :-1].to_numpy(float), target


def rows(kind: str, X: np.ndarray, y: np.ndarray, n_splits: int) -> Iterator[tuple[str, ...]]:
    for name, method in methods(kind).items():
        each, promised, seconds = [], None, 0.0
        for seed in range(n_splits):
            drawn = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
            known, new = np.array_split(drawn, 2)
            begun = time.process_time()
            found, promised = method(X[known], y[known], X[new])
            seconds += time.process_time() - begun
            each.append(judged(kind, found, y[new], float(y.std())))
        (coverage, size), error = np.mean(each, axis=0), np.std(each, axis=0)[0] / np.sqrt(n_splits)
        of = "-" if promised is None else f"{promised:.3f}"
        yield name, of, f"{coverage:.3f} ± {error:.3f}", number(size), number(seconds / n_splits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", default="")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    wanted, parts = [name for name in asked.tables.split(",") if name], []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, size in (("numbers", "interval score"), ("classes", "classes in a set")):
            for name, X, y in tables(asked.data, kind, wanted):
                columns = (name, "promised", f"coverage of {asked.splits} splits", size, "seconds")
                parts.append(markdown.table(columns, rows(kind, X, y, asked.splits)))
                print(parts[-1], "\n", flush=True)
    if asked.out:
        remark = "Coverage 0.9 is asked for. Interval scores are in standard deviations of the target, lower is better."
        markdown.write_section(asked.out, "conformal", section("Conformal intervals and sets", remark, *parts))


if __name__ == "__main__":
    main()
