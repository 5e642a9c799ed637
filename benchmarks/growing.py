"""Growing trees on codes: beside scikit-learn's trees on the same codes, and whole fits beside other libraries.

`python benchmarks/growing.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

import everytree as et
import markdown
from everytree.structure.grow_on import Classes
from everytree.structure.growers import Growth, grow
from markdown import number, section, table, times
from timing import Setup, medians, started

DEPTH = 12


def problem(n_rows: int, n_columns: int = 20, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Half of the columns say something, and a tenth of the labels is noise."""
    return make_classification(
        n_rows, n_columns, n_informative=max(n_columns // 2, 4), n_redundant=0, n_classes=n_classes,
        n_clusters_per_class=1, flip_y=0.1, random_state=0,
    )  # fmt: skip


def trees_on_codes(codes: np.ndarray, y: np.ndarray, n_trees: int, **growth: Any) -> Setup:
    """All rows, one thread."""
    rule = Growth(subsample=1.0, **growth)
    known = {"n_codes": codes.max(axis=0).astype(np.int32) + 1, "has_missing": np.zeros(codes.shape[1], dtype=bool)}
    return started(lambda: None, lambda _: grow(codes, Classes(y, None), rule, n_trees, seeds=range(n_trees), **known))


def fitted(make: Callable[[], Any], X: np.ndarray, y: np.ndarray) -> Setup:
    return started(make, lambda model: model.fit(X, y))


def beside_scikit_learn(n_rows: int, n_trees: int, repeats: int) -> str:
    """Trees of depth 12 over all rows, as many columns a node as the square root says."""
    X, y = problem(n_rows)
    codes = et.Schema.fit(X).encode(X)
    floats, options = codes.astype(np.float32), {"max_depth": DEPTH, "max_features": "sqrt"}
    rows = []
    for kind, grower, forest in (
        ("best splits", "random_forest", RandomForestClassifier),
        ("random splits", "extra_trees", ExtraTreesClassifier),
    ):
        spent = medians(
            {
                "ours": trees_on_codes(codes, y, n_trees, grower=grower, **options),
                "theirs": fitted(
                    lambda forest=forest: forest(n_trees, n_jobs=1, bootstrap=False, **options), floats, y
                ),
            },
            repeats,
        )
        rows.append([kind, forest.__name__, *(number(spent[who] / n_trees) for who in ("ours", "theirs")),
                     times(spent["theirs"], spent["ours"])])  # fmt: skip
    return table(["", "beside", "ours, ms a tree", "theirs, ms a tree", "speed"], rows)


def beside_forests_on_bins(n_rows: int, n_trees: int, repeats: int) -> str:
    """LightGBM's random forest mode and XGBoost's forest: bins too, one thread, depth 12."""
    X, y = problem(n_rows)
    codes = et.Schema.fit(X).encode(X)
    floats = codes.astype(np.float32)
    few = np.sqrt(codes.shape[1]) / codes.shape[1]
    peers = {
        "LightGBM, `rf`": lambda: lightgbm.LGBMClassifier(
            boosting_type="rf", n_estimators=n_trees, num_leaves=2**DEPTH, max_depth=DEPTH, bagging_freq=1,
            subsample=0.8, feature_fraction_bynode=few, min_child_samples=1, n_jobs=1, verbose=-1,
        ),
        "XGBoost, forest": lambda: xgboost.XGBClassifier(
            n_estimators=1, num_parallel_tree=n_trees, learning_rate=1.0, max_depth=DEPTH, subsample=0.8,
            colsample_bynode=few, min_child_weight=0, reg_lambda=0, n_jobs=1,
        ),
    }  # fmt: skip
    setups = {name: fitted(make, floats, y) for name, make in peers.items()}
    ours = trees_on_codes(codes, y, n_trees, grower="random_forest", max_depth=DEPTH, max_features="sqrt")
    spent = medians({"ours": ours} | setups, repeats)
    rows = [[name, number(spent[name] / n_trees), times(spent[name], spent["ours"])] for name in spent]
    return table([f"{n_rows:,} x 20", "ms a tree", "of ours"], rows)


def whole_fits(sizes: list[int], repeats: int) -> str:
    """Default estimators, two threads."""
    rows = []
    for n_rows in sizes:
        X, y = problem(n_rows)
        spent = medians(
            {
                "ours": fitted(lambda: et.MetaForestClassifier(random_state=0, n_jobs=2), X, y),
                "LightGBM": fitted(lambda: lightgbm.LGBMClassifier(n_jobs=2, verbose=-1), X, y),
                "XGBoost": fitted(lambda: xgboost.XGBClassifier(n_jobs=2), X, y),
                "RandomForest": fitted(lambda: RandomForestClassifier(n_jobs=2), X, y),
                "ExtraTrees": fitted(lambda: ExtraTreesClassifier(n_jobs=2), X, y),
            },
            repeats,
        )
        rows.append(
            [f"{n_rows:,} x 20", number(spent.pop("ours") / 1e3), *(number(each / 1e3) for each in spent.values())]
        )
    return table(["seconds", "MetaForest", "LightGBM", "XGBoost", "RandomForest", "ExtraTrees"], rows)


def predictions(n_rows: int, repeats: int) -> str:
    """Probabilities of 20,000 rows by the default forests, two threads."""
    X, y = problem(n_rows + 20_000)
    new = X[n_rows:]
    models = [et.MetaForestClassifier(random_state=0, n_jobs=2), RandomForestClassifier(n_jobs=2)]
    for model in models:
        model.fit(X[:n_rows], y[:n_rows])
    setups = {
        name: started(lambda: None, lambda _, model=model: model.predict_proba(new))
        for name, model in zip(("MetaForest", "RandomForest"), models, strict=True)
    }
    spent = medians(setups, repeats)
    rows = [[name, number(each), times(spent["RandomForest"], each)] for name, each in spent.items()]
    return table([f"trained on {n_rows:,} rows", "ms", "speed"], rows)


def growth_of_cost(n_rows: int, n_trees: int, repeats: int) -> str:
    """One thing changes at a time, beside 20 columns, 2 classes, 255 codes, depth 12."""
    cases: dict[str, dict[str, Any]] = {
        "the usual case": {}, "twice the rows": {"n_rows": 2 * n_rows}, "40 columns": {"n_columns": 40},
        "10 classes": {"n_classes": 10}, "100 classes": {"n_classes": 100, "n_columns": 40},
        "31 codes": {"max_bins": 31}, "4,000 codes": {"max_bins": 4000}, "depth 6": {"max_depth": 6},
        "no limit of depth": {"max_depth": None},
    }  # fmt: skip
    spent: dict[str, dict[str, float]] = {}
    for name, case in cases.items():
        X, y = problem(case.get("n_rows", n_rows), case.get("n_columns", 20), case.get("n_classes", 2))
        codes = et.Schema.fit(X, max_bins=case.get("max_bins", 255)).encode(X)
        options = {"max_depth": case.get("max_depth", DEPTH), "max_features": "sqrt"}
        spent[name] = medians(
            {
                grower: trees_on_codes(codes, y, n_trees, grower=grower, **options)
                for grower in ("random_forest", "extra_trees")
            },
            repeats,
        )
    first = spent["the usual case"]
    rows = [[name, *(times(each[grower], first[grower]) for grower in first)] for name, each in spent.items()]
    return table(["time of", "best splits", "random splits"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables, to see that everything runs")
    parser.add_argument("--out", type=Path, help="results file whose section is replaced")
    options = parser.parse_args()
    large, n_trees, repeats = (2000, 2, 1) if options.quick else (100_000, 20, 3)
    body = section(
        "Growing",
        "Trees of depth 12 on the same codes, one thread; whole fits and predictions with two. Best splits look at "
        "every threshold of four columns, random splits at one threshold of each.",
        beside_scikit_learn(large, n_trees, repeats),
        beside_forests_on_bins(10 * large, max(n_trees // 5, 1), 1),
        whole_fits([1000, 10_000, large] if not options.quick else [large], repeats),
        predictions(large, repeats),
        growth_of_cost(large // 2, n_trees, repeats),
    )
    print(body)
    if options.out:
        markdown.write_section(options.out, "growing", body)


if __name__ == "__main__":
    main()
