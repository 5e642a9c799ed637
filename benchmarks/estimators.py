"""What a forest of meta-trees costs beyond growing it, beside scikit-learn's forest of the same structures.

`python benchmarks/estimators.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers. One thread,
everything in one process.
"""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

import everytree as et
import markdown
from everytree.structure.given_forest import as_floats
from markdown import number, section, table, times
from timing import medians, started

DEPTH = 12


def seconds(work: Any) -> tuple[float, Any]:
    """How long one run took, and what came out."""
    start = perf_counter()
    out = work()
    return perf_counter() - start, out


def cost(n_rows: int, n_trees: int, repeats: int) -> str:
    """Fit, predict and pickle, for forests that scikit-learn grows on the codes."""
    X, y = make_classification(n_rows, 20, n_informative=10, random_state=0)
    rows = []
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        plain = kind(n_trees, max_depth=DEPTH, bootstrap=True, random_state=0, n_jobs=1)
        model = et.MetaForestClassifier(n_trees, grower=clone(plain), random_state=0)
        took, _ = seconds(lambda model=model: model.fit(X, y))
        schema = model.schema_
        codes = as_floats(schema.encode(X), np.zeros(schema.n_features, dtype=bool))
        growing, grown = seconds(lambda plain=plain, codes=codes: plain.fit(codes, y))
        ms = medians(
            {
                "ours": started(lambda model=model: model, lambda model: model.predict_proba(X)),
                "sklearn": started(lambda grown=grown: grown, lambda grown, codes=codes: grown.predict_proba(codes)),
            },
            repeats,
        )
        ours, theirs = (len(pickle.dumps(one)) for one in (model, grown))
        rows.append(
            [
                kind.__name__,
                f"{100.0 * (took - growing) / growing:.0f}%",
                times(ms["sklearn"], ms["ours"]),
                f"{ours / theirs:.3f}",
                number(growing),
                number(took),
            ]
        )
    header = [
        "grower",
        "beyond growing",
        "predict_proba: sklearn / ours",
        "pickle: ours / sklearn",
        "growing, s",
        "fit, s",
    ]
    return section(
        "Estimators",
        f"{n_rows:,} rows, 20 columns, {n_trees} trees of depth {DEPTH}, one thread. `MetaForestClassifier(grower=...)`"
        " on raw columns, which encodes them, counts all rows in every tree and chooses priors and sharpness, beside "
        f"the same forest of scikit-learn's on the codes; predictions: medians of {repeats}, ours with the encoding.",
        table(header, rows),
    )


def main() -> None:
    """Print the table, and keep it if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems and few repetitions")
    parser.add_argument("--out", type=Path, help="results file whose section 'estimators' is replaced")
    options = parser.parse_args()
    text = cost(5_000, 10, 2) if options.quick else cost(100_000, 100, 5)
    print(text)
    if options.out:
        markdown.write_section(options.out, "estimators", text)


if __name__ == "__main__":
    main()
