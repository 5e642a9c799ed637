"""How a model does beside the forests and boosted trees of other libraries."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import r2_score, root_mean_squared_error

from everytree.base.words import number_of
from everytree.cli.fitting import Wanted, feature_names, kind_and_target, make_estimator
from everytree.cli.models import TableRoles
from everytree.cli.problems import UserError
from everytree.cli.rows import TableRows
from everytree.tables.repeats import read_groups, repeated_rows
from everytree.tables.schema import Schema

REPEATS = 3
TREES = 100
"""Of the forests on both sides, unless told otherwise; where ours is one tree, of theirs."""

EXPLANATION = (
    "In brackets, how many times as much as everytree: above 1x, everytree is faster or better. Times are the best of "
    "three, taken in turn."
)


@dataclass
class Contender:
    """A model, the rows it is given, and how it did.

    Attributes
    ----------
    model : estimator
    fit_rows, new_rows : tables
        To be fitted and to be predicted.
    fit_options : dict
        What else its fit takes.
    fit_time, predict_time : float
        Seconds.
    loss : float
        Log-loss of classes, root mean squared error of numbers.
    share : float
        Accuracy of classes, R2 of numbers.
    """

    model: Any
    fit_rows: Any
    new_rows: Any
    fit_options: dict[str, Any] = field(default_factory=dict)
    fit_time: float = np.inf
    predict_time: float = np.inf
    loss: float = np.nan
    share: float = np.nan

    @property
    def name(self) -> str:
        return type(self.model).__name__


def bench_table(source: TableRows, roles: TableRoles, wanted: Wanted) -> str:
    """A Markdown table: fit and predict of all, side by side, and how well they do on the half they have not seen."""
    assert roles.target is not None
    if source.n_rows < 4:
        has = number_of(source.n_rows, "row")
        raise UserError(f"{source.name}: has {has}, but a half to fit and a half to predict need 4")
    kind, y = kind_and_target(source, roles, wanted)
    X = source.table.select(feature_names(source.name, source.columns, roles, wanted.drop, wanted.groups))
    groups = None if wanted.groups is None else source.values(wanted.groups, "groups")
    with source.reporting_errors(y=roles.target, groups=wanted.groups):
        return _compare(X, y, groups, kind, wanted)


def _compare(X: Any, y: NDArray[Any], groups: NDArray[Any] | None, kind: str, wanted: Wanted) -> str:
    schema = Schema.fit(X)  # the others take numbers only: they get the codes, and no time for making them
    codes = schema.encode(X)
    group = repeated_rows(codes) if groups is None else read_groups(groups, len(y))
    seen = first_half(np.arange(len(y)) if group is None else group, np.random.default_rng(wanted.seed or 0))
    model = make_estimator(kind, wanted).set_params(n_jobs=wanted.jobs)
    ours = Contender(model, X.filter(seen), X.filter(~seen), {} if groups is None else {"groups": groups[seen]})
    fit_codes, new_codes = codes[seen], codes[~seen]
    contenders = [ours, *(Contender(model, fit_codes, new_codes) for model in _others(kind, wanted))]
    answer = "predict_proba" if kind == "class" else "predict"
    _take_times(contenders, y[seen], answer)
    for one in contenders:
        judge = _judge_classes if kind == "class" else _judge_numbers
        one.loss, one.share = judge(one, y[~seen])
    head = [f"{number_of(int(seen.sum()), 'row')} to fit, {int((~seen).sum()):,} to predict", "fit", "predict"]
    head += ["accuracy", "log-loss"] if kind == "class" else ["R2", "RMSE"]
    lines = [head, ["---"] * len(head), *(_cells(one, ours) for one in contenders)]
    return "\n".join([*(f"| {' | '.join(cells)} |" for cells in lines), "", EXPLANATION])


def first_half(group: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """(n_rows,) which rows are in the first half: whole groups in random order, as many as fit, and one at least."""
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    group = np.argsort(np.argsort(first))[group]  # in the order of the rows
    sizes = np.bincount(group)
    if len(sizes) < 2:
        raise UserError("bench: all rows are in one group, so they cannot be split into train and test")
    rank = rng.permutation(len(sizes))
    n_before = np.cumsum(sizes[np.argsort(rank)])[rank] - sizes
    is_first = (n_before + sizes <= len(group) // 2) | (rank == 0)
    return np.asarray(is_first[group])


def _others(kind: str, wanted: Wanted) -> list[Any]:
    """Estimators of other libraries: scikit-learn's forest, and LightGBM where it is installed."""
    forest = RandomForestClassifier if kind == "class" else RandomForestRegressor
    seed = wanted.seed or 0
    models = [forest(n_estimators=wanted.trees or TREES, random_state=seed, n_jobs=wanted.jobs)]
    try:
        from lightgbm import LGBMClassifier, LGBMRegressor
    except (ImportError, OSError):  # not installed, or without the libraries of the system that it needs
        return models
    boosted = LGBMClassifier if kind == "class" else LGBMRegressor
    return [*models, boosted(random_state=seed, n_jobs=wanted.jobs or 1, verbosity=-1)]


def _take_times(contenders: Sequence[Contender], y: NDArray[Any], answer: str) -> None:
    """Keep the shortest times; all take turns, so that a slow moment of the machine hits them alike."""
    for _ in range(REPEATS):
        for one in contenders:
            one.fit_time = min(one.fit_time, _seconds(partial(one.model.fit, one.fit_rows, y, **one.fit_options)))
    for _ in range(REPEATS):
        for one in contenders:
            one.predict_time = min(one.predict_time, _seconds(partial(getattr(one.model, answer), one.new_rows)))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _judge_numbers(one: Contender, y: NDArray[Any]) -> tuple[float, float]:
    """Root mean squared error and R2."""
    predicted = one.model.predict(one.new_rows)
    return float(root_mean_squared_error(y, predicted)), float(r2_score(y, predicted))


def _judge_classes(one: Contender, y: NDArray[Any]) -> tuple[float, float]:
    """Log-loss of rows whose classes the model knows, and accuracy of all rows."""
    predicted, classes = one.model.predict_proba(one.new_rows), one.model.classes_
    known = np.isin(y, classes)  # a class of one row alone may lie in the half that no model has seen
    if not known.any():
        raise UserError("bench: the halves of the rows have no class in common, so there is nothing to compare")
    probs = predicted[known, np.searchsorted(classes, y[known])]
    loss = float(-np.log(np.maximum(probs, np.finfo(np.float64).eps)).mean()) + 0.0  # no loss is 0, not -0
    return loss, float((classes[predicted.argmax(axis=1)] == y).mean())


def _cells(one: Contender, ours: Contender) -> list[str]:
    """A line of the table."""

    def beside(value: float, of_ours: float) -> str:
        return "" if one is ours else f" ({_ratio(value, of_ours)})"

    return [
        one.name,
        _time(one.fit_time) + beside(one.fit_time, ours.fit_time),
        _time(one.predict_time) + beside(one.predict_time, ours.predict_time),
        f"{one.share:.3f}",
        (f"{one.loss:.4f}" if one.loss < 100.0 else f"{one.loss:,.0f}") + beside(one.loss, ours.loss),
    ]


def _ratio(theirs: float, ours: float) -> str:
    """How many times as much theirs is."""
    if ours == 0.0:
        return "1.00x" if theirs == 0.0 else "∞x"
    return f"{theirs / ours:.2f}x"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1.0 else f"{seconds:.2f} s"
