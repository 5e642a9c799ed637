"""How long a model takes beside a scikit-learn forest, on the user's own table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import root_mean_squared_error

from everytree.cli.fitting import Wanted, features, kind_and_target, make_estimator
from everytree.cli.models import Memory
from everytree.cli.problems import UserError
from everytree.cli.tables import TableFile
from everytree.tables.schema import Schema

REPEATS = 3
TREES = 100
"""Of the forests on both sides, unless told otherwise; where ours is one tree, of theirs."""


def bench_table(source: TableFile, memory: Memory, wanted: Wanted) -> str:
    """A Markdown table: fit and predict of both, side by side, and how well they do on the half they have not seen."""
    assert memory.target is not None
    if source.n_rows < 4:
        raise UserError(f"{source.name}: has {source.n_rows} rows, but a half to fit and a half to predict need 4")
    kind, y = kind_and_target(source, memory, wanted)
    X = features(source, memory, wanted.drop)
    seen = np.random.default_rng(wanted.seed or 0).permutation(source.n_rows) < source.n_rows // 2
    with source.blamed(y=memory.target):
        return _compare(X, y, seen, kind, wanted)


def _compare(X: Any, y: NDArray[Any], seen: NDArray[np.bool_], kind: str, wanted: Wanted) -> str:
    fit_rows, new_rows = X.filter(seen), X.filter(~seen)
    schema = Schema.fit(X)  # scikit-learn's trees take numbers only: they get the codes, and no time for making them
    fit_codes, new_codes = schema.encode(fit_rows), schema.encode(new_rows)
    ours = make_estimator(kind, wanted).set_params(n_jobs=wanted.jobs)
    forest = RandomForestClassifier if kind == "class" else RandomForestRegressor
    plain = forest(n_estimators=wanted.trees or TREES, random_state=wanted.seed or 0, n_jobs=wanted.jobs)
    answer = "predict_proba" if kind == "class" else "predict"
    fits = _seconds(lambda: ours.fit(fit_rows, y[seen]), lambda: plain.fit(fit_codes, y[seen]))
    predicts = _seconds(lambda: getattr(ours, answer)(new_rows), lambda: getattr(plain, answer)(new_codes))
    losses = [_loss(model, answer, rows, y[~seen]) for model, rows in ((ours, new_rows), (plain, new_codes))]
    score = "log-loss" if kind == "class" else "RMSE"
    head = f"| {int(seen.sum())} rows to fit, {int((~seen).sum())} to predict | {type(ours).__name__} "
    lines = [
        head + f"| {type(plain).__name__} | ratio |",
        "|---|---|---|---|",
        f"| fit | {_time(fits[0])} | {_time(fits[1])} | {_ratio(fits[1], fits[0])} |",
        f"| predict | {_time(predicts[0])} | {_time(predicts[1])} | {_ratio(predicts[1], predicts[0])} |",
        f"| {score} | {losses[0]:.4f} | {losses[1]:.4f} | {_ratio(losses[1], losses[0])} |",
    ]
    return "\n".join(
        [*lines, "", "Above 1x, everytree is faster or better. Times are the best of three, taken in turn."]
    )


def _seconds(*works: Callable[[], object]) -> list[float]:
    """The shortest time of each work; they take turns, so that a slow moment of the machine hits them alike."""
    best = [np.inf] * len(works)
    for _ in range(REPEATS):
        for k, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def _loss(model: Any, answer: str, rows: Any, y: NDArray[Any]) -> float:
    said = getattr(model, answer)(rows)
    if answer == "predict":
        return float(root_mean_squared_error(y, said))
    known = np.isin(y, model.classes_)  # a class of one row alone may lie in the half that nobody has seen
    if not known.any():
        raise UserError("bench: no class of one half of the rows is in the other, so there is nothing to compare")
    probs = said[known, np.searchsorted(model.classes_, y[known])]
    return float(-np.log(np.maximum(probs, np.finfo(np.float64).eps)).mean()) + 0.0  # no loss is 0, not -0


def _ratio(theirs: float, ours: float) -> str:
    """How many times as much theirs is."""
    if ours == 0.0:
        return "1.00x" if theirs == 0.0 else "∞x"
    return f"{theirs / ours:.2f}x"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1.0 else f"{seconds:.2f} s"
