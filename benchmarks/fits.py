"""Time and quality of fits at defaults: by kind of target beside boosting libraries, and of every kind of estimator.

`python benchmarks/fits.py --quick` is a smoke run; `--rows 10000` takes a tenth of the rows of the tables by kind,
and `--out benchmarks/RESULTS.md` keeps the answers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module, util
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import lightgbm
import numpy as np
import xgboost
from sklearn.datasets import make_classification, make_friedman1
from sklearn.metrics import log_loss, mean_squared_error

import everytree as et
import markdown
from markdown import number, section, table, times
from stages import REST, STAGES, seconds_by_stage

N_NEW = 20_000
Rows = tuple[np.ndarray, np.ndarray]


def classes(n_rows: int, n_classes: int) -> Rows:
    """Ten of 20 columns say something, and a tenth of the labels is noise."""
    return make_classification(
        n_rows, 20, n_informative=10, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.1,
        random_state=0,
    )  # fmt: skip


def numbers(n_rows: int) -> Rows:
    """Five of 20 columns say something; the noise has variance 1."""
    return make_friedman1(n_rows, 20, noise=1.0, random_state=0)


def peers(kind: str, n_jobs: int) -> dict[str, Any]:
    """Models with their defaults, for classes or numbers; CatBoost where it is installed."""
    options = {"n_jobs": n_jobs}
    models = {
        "LightGBM": getattr(lightgbm, f"LGBM{kind}")(verbose=-1, **options),
        "XGBoost": getattr(xgboost, f"XGB{kind}")(**options),
    }
    if util.find_spec("catboost") is not None:
        make = getattr(import_module("catboost"), f"CatBoost{kind}")
        models["CatBoost"] = make(verbose=False, thread_count=n_jobs, allow_writing_files=False)
    for name in ("MetaForest", "MetaBoost", "MetaEnsemble"):
        models[name] = getattr(et, name + kind)(random_state=0, **options)
    return models


def seconds(work: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def by_kind(n_rows: int, n_new: int, n_jobs: int) -> str:
    """One fit of each model, beside LightGBM's, with its score on new rows and the time to predict them."""
    tables: dict[str, Rows] = {
        f"{n_rows:,} rows, 2 classes": classes(n_rows + n_new, 2),
        f"{n_rows:,} rows, numbers": numbers(n_rows + n_new),
        f"{n_rows // 5:,} rows, 10 classes": classes(n_rows // 5 + n_new, 10),
    }
    lines = []
    for name, (X, y) in tables.items():
        kind = "Classifier" if "classes" in name else "Regressor"
        fit, predict, score = {}, {}, {}
        for model_name, model in peers(kind, n_jobs).items():
            model.fit(X[:100], y[:100])  # libraries are loaded off the clock
            fit[model_name] = seconds(lambda model=model, X=X, y=y: model.fit(X[:-n_new], y[:-n_new]))
            ask = model.predict_proba if kind == "Classifier" else model.predict
            predict[model_name] = seconds(lambda ask=ask, X=X: ask(X[-n_new:]))
            judge = log_loss if kind == "Classifier" else mean_squared_error
            score[model_name] = judge(y[-n_new:], ask(X[-n_new:]))
        lines += [
            [name, each, times(fit[each], fit["LightGBM"]), times(predict[each], predict["LightGBM"]),
             number(score[each])] for each in fit
        ]  # fmt: skip
    return table(["table", "model", "fit / LightGBM's", "prediction / LightGBM's", "log-loss or squared error"], lines)


def of_every_kind(n_rows: int, repeats: int) -> str:
    """Processor time of fits of all kinds of estimators on one thread, beside that of the forests."""
    X, y = classes(n_rows, 2)
    Z, z = numbers(n_rows)
    names = ["MetaForest", "MetaTree", "MetaBoost", "MetaEnsemble", "ExactTree", "SampledTree", "OnlineForest"]
    lines, spent = [], {}
    for name in names:
        spent[name] = [
            min(seconds(fit_work(name + kind, *rows), process_time) for _ in range(repeats))
            for kind, rows in (("Classifier", (X, y)), ("Regressor", (Z, z)))
        ]
        lines.append(
            [name, *(times(own, forest) for own, forest in zip(spent[name], spent["MetaForest"], strict=True))]
        )
    return table([f"{n_rows:,} x 20, fit / that of the forest", "2 classes", "numbers"], lines)


def by_stage(n_rows: int) -> str:
    """Processor seconds of each stage of fits on one thread."""
    tables = {"2 classes": classes(n_rows, 2), "numbers": numbers(n_rows), "10 classes": classes(n_rows // 5, 10)}
    lines = []
    for name, rows in tables.items():
        kind = "Regressor" if name == "numbers" else "Classifier"
        for model in ("MetaForest", "MetaBoost", "MetaEnsemble"):
            spent = seconds_by_stage(fit_work(model + kind, *rows))
            shown = (spent[stage] for stage in (*STAGES, REST))
            lines.append([f"{len(rows[1]):,} rows, {name}: {model}", *map(number, shown), number(sum(spent.values()))])
    return table(["CPU seconds of a fit, one thread", *STAGES, REST, "all"], lines)


def fit_work(name: str, X: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """Fit of an estimator at its defaults, on one thread; online forests learn row by row."""
    if name.startswith("Online"):
        rows = [dict(enumerate(row)) for row in X.tolist()]
        model = getattr(et, name)(seed=0)
        return lambda: [model.learn_one(row, target) for row, target in zip(rows, y.tolist(), strict=True)]
    options = {} if name.startswith("Exact") else {"random_state": 0}  # nothing is random in the sum over all trees
    return lambda: getattr(et, name)(n_jobs=1, **options).fit(X, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables, to see that everything runs")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the tables by kind of target")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="results file whose section 'fits' is replaced")
    options = parser.parse_args()
    n_rows, n_small, repeats = (500, 100, 1) if options.quick else (options.rows, 2_000, 3)
    n_new = 1_000 if options.quick else N_NEW
    text = section(
        "Fits",
        "At defaults. One fit each, one after another, ratios of one run. Quality and times of predictions are those "
        f"of {n_new:,} new rows. Seconds of stages are those of this machine; residuals are those of boosted numbers, "
        "with the stages of the forest that models them.",
        by_kind(n_rows, n_new, options.n_jobs),
        of_every_kind(n_small, repeats),
        by_stage(n_rows),
    )
    print(text)
    if options.out:
        markdown.write_section(options.out, "fits", text)


if __name__ == "__main__":
    main()
