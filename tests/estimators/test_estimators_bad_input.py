"""What the four estimators refuse, naming the argument, and that a failed call changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import everytree as et
from estimator_cases import (
    CLASSES,
    FOUR,
    NUMBERS,
    Case,
    answers,
    as_pandas,
    ids,
    mixed_columns,
    of_prediction,
    state,
)
from refusals import unchanged

FORESTS, CLASSIFIERS, REGRESSORS = FOUR[:2], FOUR[::2], FOUR[1::2]
N = 60


def replaced(values: Any, value: Any, place: int = 3) -> Any:
    """A column with one entry changed, of whatever type holds both."""
    column = np.asarray(values).astype(object)
    column[place] = value
    return column if isinstance(value, str) or value is None else np.array(column.tolist())


def rows(case: Case) -> tuple[pd.DataFrame, np.ndarray, dict[str, Any]]:
    X, y, row_data = case.draw(N)
    return pd.DataFrame(X, columns=list("abcd")), y, row_data


# ---- before fit -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", **ids(FOUR))
def test_nothing_can_be_asked_before_fit(case):
    table, y, _ = rows(case)
    asked = {
        "predict": (table,), "predictive": (table,), "score": (table, y), "predict_proba": (table,),
        "predict_log_proba": (table,), "predict_quantiles": (table,), "predict_interval": (table,),
        "to_text": (), "plot": (), "apply": (table,),
    }  # fmt: skip
    found = [name for name in asked if name in dir(case.kind)]
    assert len(found) >= 5
    for name in found:
        with pytest.raises(NotFittedError, match=f"This {case.kind.__name__} instance is not fitted yet"):
            getattr(case.make(), name)(*asked[name])
    for name in ("posteriors_", "weights_", "log_evidence_", "feature_importances_", "posterior_"):
        if name in dir(case.kind):
            with pytest.raises(NotFittedError):
                getattr(case.make(), name)


# ---- parameters -----------------------------------------------------------------------------------------------------

PARAMETERS: list[tuple[list[Case], str, list[Any]]] = [
    (FORESTS, "n_estimators", [0, -1, 2.5, "many", None, True]),
    (FORESTS, "grower", ["boosting", None, 3, len]),
    (FORESTS, "weights", ["equal", None, "Uniform"]),
    (FORESTS, "calibration", ["isotonic", True, 0]),
    (FORESTS, "subsample", [0, 0.0, -0.5, 1.5, np.nan, "half", None]),
    (FORESTS, "max_features", [0, -1, 0.0, 1.5, "some"]),
    (FOUR, "max_depth", [0, -1, 2.5, "deep"]),
    (FOUR, "min_samples_leaf", [0, -1, 1.5, "few", None, np.nan]),
    (FOUR, "split_prior", ["often", 1.5, -0.1, np.nan, None, [0.5, 0.5], lambda depth: 2.0]),
    (FOUR, "max_bins", [1, 0, 65535, 2.5, "all", None]),
    (FOUR, "categorical_features", ["all", ["e"], [4], [-1], [True, False], [None]]),
    (FOUR, "n_jobs", [0, "all", 1.5]),
    (FOUR, "random_state|seed", ["lucky"]),
    (FOUR, "criterion", ["best", "absolute_error", None, 3]),
    (FOUR, "max_leaf_nodes", [1, 0, -1, 2.5, "few", True]),
    (CLASSIFIERS, "class_weight", ["even", 2.0, [1, 2], {"no": -1.0}, {0: "much"}, {0: True}, {"no": np.nan}]),
    (FORESTS, "bootstrap", [None, 1, "yes"]),
    (FORESTS, "oob_score", [None, 1, "accuracy"]),
    (FORESTS, "warm_start", [None, 1, "yes"]),
    (CLASSIFIERS, "alpha", [0, -1.0, np.inf, np.nan, "small", None]),
    (REGRESSORS, "family", ["gauss", None, "Normal", 3]),
    (REGRESSORS, "prior", ["flat", None, 3, {"alpha": 1.0}, {"shape": 2.0, "rate": 1.0}]),
    (REGRESSORS, "strength", [0.0, -1, np.inf, np.nan, "weak", None]),
]


@pytest.mark.parametrize(
    ("case", "name", "value"),
    [
        pytest.param(case, name, value, id=f"{case.kind.__name__} {name}={value!r}".split(" at 0x")[0])
        for cases, name, values in PARAMETERS
        for case in cases
        for value in values
    ],
)
def test_a_wrong_parameter_is_named(case, name, value):
    table, y, _ = rows(case)
    parameter = name.split("|")[0]
    options = {"prior": {parameter: value}} if parameter == "strength" else {parameter: value}
    model = case.make(**options)
    with pytest.raises((ValueError, TypeError), match=name):
        model.fit(table, y)
    assert not hasattr(model, "forest_")


PRIOR_NAMES = {"linear": ["noise", "precision", "shape"], "poisson": ["shape"], "exponential": ["shape"]}


@pytest.mark.parametrize("case", **ids([case for case in NUMBERS if case.target in PRIOR_NAMES]))
def test_parameters_of_another_familys_prior(case):
    X, y, row_data = case.draw(N)
    with pytest.raises(ValueError, match=r"prior has \['strength'\], but the parameters of this family are") as error:
        case.make(prior={"strength": 1.0}).fit(X, y, **row_data)
    assert str(error.value).endswith(str(PRIOR_NAMES[case.target]))


@pytest.mark.parametrize("case", **ids(FORESTS))
def test_whole_numbers_that_are_floats(case):
    table, y, _ = rows(case)
    assert len(case.make(n_estimators=3.0, max_depth=2).fit(table, y).posteriors_) == 3


def test_a_share_may_be_any_float():
    case = FOUR[0]
    table, y, _ = rows(case)
    case.make(subsample=np.float32(0.5)).fit(table, y)


@pytest.mark.parametrize("grower", [LogisticRegression(), HistGradientBoostingRegressor()])
def test_a_grower_without_trees_that_can_be_read(grower):
    case = FOUR[0]
    table, y, _ = rows(case)
    with pytest.raises((ValueError, TypeError), match="grower"):
        case.make(grower=grower).fit(table, np.searchsorted(["no", "yes"], y))


def test_a_grower_must_be_an_instance():
    table, y, _ = rows(FOUR[0])
    with pytest.raises(TypeError, match="instance of scikit-learn estimator instead of a class"):
        FOUR[0].make(grower=RandomForestClassifier).fit(table, y)


# ---- rows: the same words from fit, partial_fit and, where there is one, predict ------------------------------------


@dataclass(frozen=True)
class Wrong:
    """An argument gone wrong: from what it was (ones, where it was not given) to what it is, and what errors say."""

    what: str
    argument: str
    change: Callable[[Any], Any]
    words: str
    cases: Any = tuple(FOUR)

    def params(self) -> list[Any]:
        return [pytest.param(case, self, id=f"{case}: {self.what}") for case in self.cases]

    def among(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with this one changed."""
        return {**arguments, self.argument: self.change(arguments.get(self.argument, np.ones(N)))}


def put(value: Any) -> Callable[[Any], Any]:
    """Changes one entry of a column."""
    return lambda column: replaced(column, value)


COUNTS = [case for case in NUMBERS if case.target in ("poisson", "geometric")]
POISSON = [case for case in NUMBERS if case.target == "poisson"]
TIMES = [case for case in NUMBERS if case.target == "exponential"]
OTHERS = [case for case in NUMBERS if case.target not in ("poisson", "negative_binomial")]
LABELS = [case for case in CLASSES if case.target == "two classes"]

NO_LABEL = "y.*(missing|NaN|None|NA)"

TABLES = [
    Wrong("sparse", "X", lambda X: scipy.sparse.csr_matrix(X.to_numpy() * 1j), "Complex data not supported: X"),
    Wrong("lazy", "X", lambda X: dd.from_pandas(X, 2), r"X is lazy.*X\.compute\(\)"),
    Wrong("infinity", "X", lambda X: X.assign(b=replaced(X.b, np.inf)), "X: column 'b', row 3: inf"),
    Wrong("same names", "X", lambda X: X.set_axis(list("abca"), axis=1), "(?s)X has .*columns.* name.*'a'"),
    Wrong("no rows", "X", lambda X: X[:0], r"Found array with 0 sample\(s\)"),
    Wrong("a list", "X", lambda X: X.a.tolist(), "Expected 2D array, got 1D"),
    Wrong("complex numbers", "X", lambda X: X.to_numpy() + 1j, "Complex data not supported: X"),
    Wrong("lists in cells", "X", lambda X: X.assign(c=[[1]] * N), "X: column 'c', row 0"),
    Wrong(
        "text and numbers", "X", lambda X: X.assign(c=replaced(X.c, "five")), r"X: column 'c' holds .*'five' \(row 3\)"
    ),
]
ROWS = [
    Wrong("too few targets", "y", lambda y: y[:5], f"(y has 5 entries, but X has {N} rows|X has {N} rows, y 5)"),
    Wrong("no target", "y", lambda y: None, "requires y to be passed, but the target y is None"),
    Wrong("a table a row", "y", lambda y: np.stack([[y, y], [y, y]], axis=-1).T, "(y should be a 1d array|dim 3)"),
    Wrong("target NaN", "y", put(np.nan), "y.*NaN", REGRESSORS),
    Wrong("target NaN", "y", lambda y: replaced(np.arange(N) % 2, np.nan), "y.*NaN", CLASSIFIERS),
    Wrong("target infinite", "y", put(np.inf), "y.*infinity", REGRESSORS),
    Wrong("target infinite", "y", lambda y: replaced(np.arange(N) % 2, np.inf), "y.*infinity", CLASSIFIERS),
    Wrong("target None", "y", put(None), "y.*NaN", REGRESSORS),
    Wrong("target null", "y", lambda y: pl.Series([None, *y[1:]]), "y.*NaN", REGRESSORS),
    Wrong("target NA", "y", lambda y: pd.Series([None, *y[1:]], dtype="Float64"), "y.*NaN", REGRESSORS),
    Wrong("targets of text", "y", lambda y: ["a", "b"] * (N // 2), "y must be numbers.*'a'", REGRESSORS),
    Wrong("targets of dates", "y", lambda y: pd.Series(pd.date_range("2020", periods=N)), "y must be", REGRESSORS),
    Wrong("target 1e100", "y", put(1e100), r"y\[3\] is 1e\+100", REGRESSORS),
    Wrong("target 1e200", "y", put(1e200), r"y\[3\] is 1e\+200", REGRESSORS),
    Wrong("measured target", "y", lambda y: np.linspace(0.0, 1.0, N), "Unknown label type: continuous", CLASSIFIERS),
    Wrong("label None", "y", put(None), NO_LABEL, LABELS),
    Wrong("label NaN", "y", lambda y: pd.Series(y).where(np.arange(N) != 3, np.nan), NO_LABEL, LABELS),
    Wrong("label null", "y", lambda y: pl.Series([None, *y[1:].tolist()]), NO_LABEL, LABELS),
    Wrong("label NA", "y", lambda y: pd.Series([None, *y[1:]], dtype="string"), NO_LABEL, LABELS),
    Wrong("too few weights", "sample_weight", lambda w: w[:5], f"sample_weight has 5 entries.*{N} rows"),
    Wrong("weights of zero", "sample_weight", lambda w: 0.0 * w, "sample_weight is zero for every row"),
    Wrong("weight below 0", "sample_weight", put(-1.0), r"sample_weight\[3\] is -1.0"),
    Wrong("weight NaN", "sample_weight", put(np.nan), r"sample_weight\[3\] is nan"),
    Wrong("weight infinite", "sample_weight", put(np.inf), r"sample_weight\[3\] is inf"),
    Wrong("weight 1e100", "sample_weight", put(1e100), r"sample_weight\[3\] is 1e\+100"),
    Wrong("weights of text", "sample_weight", lambda w: ["1"] * N, "sample_weight must be numbers"),
    Wrong("two weights a row", "sample_weight", lambda w: np.ones((N, 2)), "sample_weight must have one entry a row"),
    Wrong("count below 0", "y", put(-1), r"y\[3\] is -1, but must be counts from 0 on", COUNTS),
    Wrong("half a count", "y", put(0.5), r"y\[3\] is 0.5, but must be counts from 0 on", COUNTS),
    Wrong("time below 0", "y", put(-0.5), r"y\[3\] is -0.5, but must be times from 0 on", TIMES),
    Wrong("half censored", "censored", put(0.5), r"censored\[3\] is 0.5.*0 or 1", TIMES),
    Wrong("censored NaN", "censored", put(np.nan), r"censored\[3\] is nan", TIMES),
    Wrong("too few censored", "censored", lambda c: c[:5], f"censored has 5 entries, but X has {N}", TIMES),
    Wrong("censored counts", "censored", lambda c: c, "censored is for family='exponential'", COUNTS),
]
EXPOSURES = [
    Wrong("exposure 0", "exposure", put(0.0), r"exposure\[3\] is 0.*positive", POISSON),
    Wrong("exposure below 0", "exposure", put(-1.0), r"exposure\[3\] is -1", POISSON),
    Wrong("exposure NaN", "exposure", put(np.nan), r"exposure\[3\] is nan", POISSON),
    Wrong("exposure infinite", "exposure", put(np.inf), r"exposure\[3\]", POISSON),
    Wrong("exposure of text", "exposure", lambda e: ["1"] * N, "exposure must be positive.*has text such as", POISSON),
    Wrong("too few exposures", "exposure", lambda e: e[:5], f"exposure has 5 entries.*{N} rows", POISSON),
    Wrong("exposure", "exposure", lambda e: e, "exposure is for family='poisson' or 'negative_binomial'", OTHERS),
]
ERRORS = (ValueError, TypeError)
FIT = [param for wrong in TABLES + ROWS + EXPOSURES for param in wrong.params()]
PREDICT = [param for wrong in TABLES + EXPOSURES for param in wrong.params()]


@pytest.mark.parametrize(("case", "wrong"), FIT)
def test_wrong_rows_are_refused_by_fit(case, wrong):
    table, y, row_data = rows(case)
    arguments = wrong.among({"X": table, "y": y, **row_data})
    model = case.make()
    with pytest.raises(ERRORS, match=wrong.words):
        model.fit(**arguments)
    with pytest.raises(NotFittedError):
        model.predict(table)
    with pytest.raises(ERRORS, match=wrong.words):
        model.partial_fit(**arguments)
    assert np.isfinite(answers(model.fit(table, y, **row_data), table)).all(), "a failed fit is no obstacle"


@pytest.mark.parametrize(("case", "wrong"), FIT)
def test_wrong_rows_are_refused_by_partial_fit_and_change_nothing(case, wrong):
    table, y, row_data = rows(case)
    model = case.make().fit(table, y, **row_data)
    attributes, said = set(vars(model)), answers(model, table)
    arguments = wrong.among({"X": table, "y": y, **row_data})
    with unchanged(state, model), pytest.raises(ERRORS, match=wrong.words):
        model.partial_fit(**arguments)
    assert set(vars(model)) == attributes
    np.testing.assert_array_equal(answers(model, table), said)


@pytest.mark.parametrize(("case", "wrong"), PREDICT)
def test_wrong_rows_are_refused_by_predictions(case, wrong):
    table, y, row_data = rows(case)
    model = case.make().fit(table, y, **row_data)
    arguments = wrong.among({"X": table, **of_prediction(row_data)})
    for method in ("predict", "predictive", "predict_proba", "predict_quantiles", "predict_interval"):
        if hasattr(model, method):
            with pytest.raises(ERRORS, match=wrong.words):
                getattr(model, method)(**arguments)


@pytest.mark.parametrize("case", **ids(FOUR))
def test_row_data_of_unknown_names(case):
    table, y, _ = rows(case)
    model = case.make().fit(table, y)
    with pytest.raises(TypeError, match="exposition"):
        model.fit(table, y, exposition=np.ones(N))


@pytest.mark.parametrize("case", **ids(FOUR))
def test_row_data_of_unknown_names_in_a_prediction(case):
    table, y, _ = rows(case)
    with pytest.raises(TypeError, match="exposition"):
        case.make().fit(table, y).predictive(table, exposition=np.ones(N))


@pytest.mark.parametrize("case", **ids(REGRESSORS))
def test_levels_and_coverage(case):
    table, y, _ = rows(case)
    model = case.make().fit(table, y)
    for coverage in (0.0, 1.0, 1.5, -0.1, np.nan):
        with pytest.raises(ValueError, match="coverage must be in"):
            model.predict_interval(table, coverage)
    for levels in ([0.0, 0.5], [1.0], [np.nan], [-0.5]):
        with pytest.raises(ValueError, match=r"must be in \(0, 1\)"):
            model.predict_quantiles(table, levels)
    assert model.predict_quantiles(table, []).shape == (N, 0)


def test_one_level_is_a_sequence_or_a_number():
    table, y, _ = rows(FOUR[1])
    assert len(FOUR[1].make().fit(table, y).predict_quantiles(table, 0.5)) == N


# ---- columns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", **ids(FOUR))
def test_columns_are_found_by_name(case):
    table, y, _ = rows(case)
    model = case.make().fit(table, y)
    said = answers(model, table)
    for other in (table[list("dbca")], table.assign(e="more", a0=1.0), table.to_numpy(), pl.from_pandas(table)):
        np.testing.assert_array_equal(answers(model, other), said)
    reordered, straight = copy.deepcopy(model), copy.deepcopy(model)
    reordered.partial_fit(table[list("dbca")], y, allow_overlap=True)
    assert state(reordered) == state(straight.partial_fit(table, y, allow_overlap=True))


CHANGED = {
    "missing": (lambda table: table[["a", "b", "d"]], r"X lacks the columns \['c'\]"),
    "renamed": (lambda table: table.rename(columns={"a": "A"}), r"X lacks the columns \['a'\].*it has \['A', 'b'"),
    "too few without names": (lambda table: table.to_numpy()[:, :3], "X has 3 features, but .* is expecting 4"),
    "too many without names": (lambda table: np.ones((N, 5)), "X has 5 features, but .* is expecting 4"),
    "numbers that are text now": (lambda table: table.assign(a="x"), "column 'a' was numeric .* categorical now"),
    "numbers that are dates now": (
        lambda table: table.assign(a=pd.Timestamp("2020-01-01")), "column 'a' was numeric .* datetime now: row 0"
    ),
}  # fmt: skip


@pytest.mark.parametrize("changed", CHANGED)
@pytest.mark.parametrize("case", **ids(FOUR))
def test_other_columns_are_refused(case, changed):
    table, y, _ = rows(case)
    model = case.make().fit(table, y)
    change, words = CHANGED[changed]
    with unchanged(state, model):
        for call in (lambda: model.predict(change(table)), lambda: model.partial_fit(change(table), y)):
            with pytest.raises(ValueError, match=words):
                call()


@pytest.mark.parametrize("case", **ids(FOUR))
def test_text_that_changes_its_kind(case):
    table, y, _ = rows(case)
    words, dates = table.assign(c="v" + table.c.astype(str)), table.assign(c=pd.Timestamp("2020-01-01"))
    model = case.make().fit(words, y)
    for other, kind in ((table, "numeric"), (dates, "datetime")):
        with pytest.raises(ValueError, match=f"column 'c' was categorical .* is {kind} now"):
            model.predict(other)
    numbers = case.make().fit(table, y)
    as_text = table.assign(a=table.a.astype(str))
    np.testing.assert_array_equal(answers(numbers, as_text), answers(numbers, table))  # text that says numbers will do


@pytest.mark.parametrize("case", **ids(CLASSIFIERS))
def test_classes_that_were_not_there(case):
    table, y, _ = rows(case)
    model = case.make().fit(table, y)
    with unchanged(state, model):
        for classes in (["other"], model.classes_[:1]):
            with pytest.raises(ValueError, match=r"classes is .*, but the first call had"):
                model.partial_fit(table, y, classes=classes)
        other = replaced(y, "other") if y.dtype.kind == "U" else replaced(y, 9)
        with pytest.raises(ValueError, match=r"y\[3\] is .*(other|9).*but the classes are"):
            model.partial_fit(table, other)
        with pytest.raises(ValueError, match="but the classes are"):
            case.make().partial_fit(table, y, classes=model.classes_[:1])


@pytest.mark.parametrize("dtype", [str, object])
def test_numbers_where_classes_were_text(dtype):
    case = FOUR[0]
    table, y, _ = rows(case)
    with pytest.raises(ValueError, match=r"y.* but the classes are"):
        case.make().fit(table, y.astype(dtype)).partial_fit(table, np.arange(N) % 2)


def test_rows_that_fail_in_some_trees_only_change_no_tree():
    columns, signal = mixed_columns()
    table = as_pandas(columns).assign(city=lambda t: t.city.fillna("Bern"))
    strange = table.assign(city=np.where(np.arange(len(table)) == 5, "Espoo", table.city))
    weight = np.where(np.arange(len(table)) == 5, 1e100, 1.0)  # refused by the trees that can place row 5
    model = et.MetaForestRegressor(8, max_depth=2, random_state=5).fit(table, signal)
    ends = model.forest_.ends(model.schema_.encode(strange))[5]
    placed = [bool(post.tree.is_terminal[end]) for post, end in zip(model.posteriors_, ends, strict=True)]
    assert placed.index(True) > 0, "the first tree takes the other rows before another one fails"
    before = state(model)
    with unchanged(state, model), pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(strange, signal, sample_weight=weight)
    assert state(model.partial_fit(table, signal, allow_overlap=True)) != before


@pytest.mark.parametrize("case", **ids(FOUR))
def test_a_failed_fit_leaves_the_model_as_it_was(case):
    table, y, _ = rows(case)
    model = case.make().fit(table, y)
    said = answers(model, table)
    with pytest.raises(ValueError, match="y"):
        model.fit(table, y[:5])
    np.testing.assert_array_equal(answers(model, table), said)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda model, X: model.fit("rows.csv", "y"), r"X is 'rows\.csv', but must be a table: read the file first"),
        (lambda model, X: model.predict(Path("rows.csv")), r"X is 'rows\.csv', but must be a table"),
        (lambda model, X: model.predict({"a": 1.0}), r"X is a dict, but must be a table: pass \[X\] for one row"),
        (lambda model, X: model.fit(X, [None, *range(29)]), r"y\[0\] is None, which is not a number"),
        (lambda model, X: model.fit(X, [*range(29), np.inf]), r"y\[29\] is inf, which is not a number"),
        (lambda model, X: model.fit(X, range(30), event=[1, None] * 15), r"event\[1\] is nan, but must be 0 or 1"),
    ],
)
def test_what_is_no_table_or_number_is_named(call, match):
    X = np.arange(30.0)[:, None]
    model = et.MetaForestRegressor(2, family="exponential").fit(X, X[:, 0])
    with pytest.raises((ValueError, TypeError), match=match):
        call(model, X)


def test_events_that_are_left_out_are_named_as_they_were_given():
    X = np.arange(30.0)[:, None]
    model = et.MetaForestRegressor(2, family="exponential").fit(X, X[:, 0], event=np.arange(30) % 2)
    with pytest.warns(UserWarning, match=r"censored \(or event\) was given to fit"):
        model.score(X, X[:, 0])
