"""The four estimators as scikit-learn's users meet them: conventions, updates, tables, weights and predictions."""

from __future__ import annotations

import copy
import functools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.special import softmax
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import everytree as et
from cases import assert_same, rng_for, take
from estimator_cases import (
    ALL,
    CLASSES,
    CURVES,
    FOUR,
    FRAMES,
    NUMBERS,
    Case,
    answers,
    as_pandas,
    as_polars,
    class_probs,
    ids,
    mixed_columns,
    normal_means,
    of_leaf,
    parts,
    path_to_end,
    slow_average,
    state,
)

bit_equal = np.testing.assert_array_equal
close = functools.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)


# ---- scikit-learn's conventions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", **ids(FOUR))
def test_model_selection(case):
    X, y, _ = case.draw(80)
    table = pd.DataFrame(X, columns=list("abcd"))
    assert np.isfinite(cross_val_score(case.make(), table, y, cv=2)).all()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), case.make()), {f"{case.kind.__name__.lower()}__max_depth": [1, 4]}, cv=2
    ).fit(table, y)
    best = case.make(max_depth=next(iter(search.best_params_.values())))
    scaled = StandardScaler().fit_transform(table)
    bit_equal(search.predict(table), best.fit(scaled, y).predict(scaled))
    importances = permutation_importance(search, table, y, n_repeats=2, random_state=0)
    assert importances.importances_mean.shape == (4,)


@pytest.mark.parametrize("case", **ids(CLASSES))
def test_calibrated_classifier(case):
    X, y, _ = case.draw(120)
    calibrated = CalibratedClassifierCV(case.make(), cv=2).fit(X, y)
    probs = calibrated.predict_proba(X)
    assert probs.shape == (120, len(np.unique(y)))
    close(probs.sum(axis=1), 1.0)
    assert cross_val_predict(case.make(), X, y, cv=2, method="predict_log_proba").shape == probs.shape


EVIDENCE = [Case(case.kind, case.target, {"weights": "evidence", "split_prior": et.depth_prior()}) for case in FOUR[:2]]


@pytest.mark.parametrize("case", **ids(ALL + EVIDENCE))
def test_copies_are_the_same_model(case):
    model, (X, y, row_data) = case.fitted()
    for part in parts((X, y, row_data), 3)[:2]:
        model.partial_fit(part[0], part[1], **part[2])
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert state(other) == state(model)
        bit_equal(answers(other, X, row_data), answers(model, X, row_data))
        bit_equal(other.feature_importances_, model.feature_importances_)
        assert other.log_evidence_ == model.log_evidence_
        other.partial_fit(X, y, allow_overlap=True, **row_data)
        assert state(other) != state(model), "a copy shares nothing with its original"


@pytest.mark.parametrize("case", **ids(FOUR))
def test_a_clone_is_unfitted_and_fits_to_the_same_model(case):
    model, (X, y, _) = case.fitted(split_prior=et.depth_prior(0.9, 0.5))
    cloned = clone(model)
    assert cloned.get_params() == model.get_params()
    assert not hasattr(cloned, "forest_")
    assert state(cloned.fit(X, y)) == state(model)
    assert state(model.fit(X, y)) == state(cloned), "a second fit starts from nothing"


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("case", **ids(FOUR))
def test_set_output_of_a_pipeline_hands_names_on(case, library):
    X, y, _ = case.draw(60)
    table = pd.DataFrame(X, columns=["one", "two", "three", "four"])
    pipeline = make_pipeline(StandardScaler(), case.make()).set_output(transform=library).fit(table, y)
    assert pipeline[-1].feature_names_in_.tolist() == list(table)
    assert pipeline[-1].schema_.names == list(table)
    plain = make_pipeline(StandardScaler(), case.make()).fit(table, y)
    assert not hasattr(plain[-1], "feature_names_in_")
    bit_equal(pipeline.predict(table), plain.predict(table))


@pytest.mark.parametrize("case", **ids(FOUR))
def test_routing_of_weights(case):
    X, y, _ = case.draw(90)
    weight = rng_for("routed weights").uniform(0.0, 2.0, 90)
    with sklearn.config_context(enable_metadata_routing=True):
        model = case.make().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"max_depth": [2]}, cv=2).fit(X, y, sample_weight=weight)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipeline.fit(X, y, sample_weight=weight)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        unasked = make_pipeline(scaler, case.make().set_fit_request(sample_weight=False))
        unasked.fit(X, y, sample_weight=weight)
    assert state(search.best_estimator_) == state(case.make(max_depth=2).fit(X, y, sample_weight=weight))
    scaled = StandardScaler().fit_transform(X)
    assert state(pipeline[-1]) == state(case.make().fit(scaled, y, sample_weight=weight))
    scaled = StandardScaler().fit_transform(X, sample_weight=weight)
    assert state(unasked[-1]) == state(case.make().fit(scaled, y))


@pytest.mark.parametrize("case", **ids([case for case in NUMBERS if case.target == "poisson"]))
def test_routing_of_exposure(case):
    X, y, row_data = case.draw(90)
    with sklearn.config_context(enable_metadata_routing=True):
        model = case.make().set_fit_request(exposure=True).set_predict_request(exposure=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y, **row_data)
        predicted = pipeline.predict(X, **row_data)
    direct, scaled = case.make(), StandardScaler().fit_transform(X)
    bit_equal(predicted, direct.fit(scaled, y, **row_data).predict(scaled, **row_data))
    assert not np.allclose(predicted, direct.predict(scaled))


@pytest.mark.parametrize("case", **ids([case for case in NUMBERS if case.target == "normal"]))
def test_spread_through_a_pipeline(case):
    X, y, _ = case.draw(60)
    pipeline = make_pipeline(StandardScaler(), case.make()).fit(X, y)
    mean, std = pipeline.predict(X, return_std=True)
    assert mean.shape == std.shape == (60,)
    assert (std > 0.0).all()


def test_progress_is_shown_when_asked_for(capfd):
    case = FOUR[0]
    case.fitted(40, verbose=0)
    assert capfd.readouterr().err == ""
    case.fitted(40, verbose=1)
    assert "6/6" in capfd.readouterr().err


# ---- more rows ------------------------------------------------------------------------------------------------------


def weights_for(case: Case, n: int) -> np.ndarray:
    """Weights with zeros and with numbers that no binary fraction is."""
    rng = rng_for("weights", case)
    return np.where(rng.random(n) < 0.1, 0.0, np.round(rng.uniform(0.1, 3.0, n), 1))


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("case", **ids(ALL))
def test_ten_chunks_are_one_pass(case, weighted):
    X, y, row_data = case.draw(400)
    weight = weights_for(case, 400) if weighted else None
    columns = row_data if weight is None else {**row_data, "sample_weight": weight}
    chunks = parts((X, y, columns), 10)
    first = case.make().fit(chunks[0][0], chunks[0][1], **chunks[0][2])
    assert state(first) == state(case.make().partial_fit(chunks[0][0], chunks[0][1], **chunks[0][2]))

    at_once, by_chunk = copy.deepcopy(first), copy.deepcopy(first)
    at_once.partial_fit(X[40:], y[40:], **take(columns, slice(40, None)))
    for chunk in chunks[1:]:
        assert by_chunk.partial_fit(chunk[0], chunk[1], **chunk[2]) is by_chunk
    for one, other in zip(by_chunk.posteriors_, at_once.posteriors_, strict=True):
        assert_same(one, other)
    close(by_chunk.weights_, at_once.weights_)
    close(answers(by_chunk, X, row_data), answers(at_once, X, row_data))

    target = np.searchsorted(first.classes_, y) if is_classifier(first) else y
    codes = first.schema_.encode(X)
    of_leaves = of_leaf(first, X, row_data)
    for post in at_once.posteriors_:
        one_pass = et.Posterior(post.tree, post.family, post.split_prior).update(codes, target, weight, **of_leaves)
        assert_same(post, one_pass)


@pytest.mark.parametrize("case", **ids(ALL))
def test_a_row_of_weight_two_is_two_rows(case):
    model, (X, y, row_data) = case.fitted()
    twice, weighted = copy.deepcopy(model), copy.deepcopy(model)
    twice.partial_fit(X, y, allow_overlap=True, **row_data).partial_fit(X, y, allow_overlap=True, **row_data)
    weighted.partial_fit(X, y, sample_weight=np.full(len(X), 2.0), **row_data)
    close(answers(weighted, X, row_data), answers(twice, X, row_data))
    close(weighted.log_evidence_, twice.log_evidence_)


@pytest.mark.parametrize("case", **ids(ALL + CURVES))
def test_a_row_of_weight_zero_is_no_row(case):
    X, y, row_data = case.draw(90)
    X[:5, :3] *= 100.0  # would move every cut, were it counted
    weight = np.where(np.arange(90) < 5, 0.0, 1.0)
    rest = slice(5, None)
    with_them = case.make().fit(X, y, sample_weight=weight, **row_data)
    without = case.make().fit(X[rest], y[rest], sample_weight=weight[rest], **take(row_data, rest))
    assert state(with_them) == state(without)
    bit_equal(answers(with_them, X, row_data), answers(without, X, row_data))


@pytest.mark.parametrize("case", **ids(CLASSES))
def test_classes_may_be_declared_before_they_come(case):
    X, y, _ = case.draw(120)
    labels = np.unique(y)
    early = y != labels[-1]
    model = case.make().partial_fit(X[early], y[early], classes=labels)
    assert model.classes_.tolist() == labels.tolist()
    assert ((probs := model.predict_proba(X)) > 0.0).all()
    later = model.partial_fit(X[~early], y[~early]).predict_proba(X)
    assert later[:, -1].mean() > probs[:, -1].mean()


def test_weights_by_evidence_follow_the_rows():
    model, (X, y, _) = FOUR[0].fitted(40, weights="evidence")
    before = model.weights_
    model.partial_fit(X, y, allow_overlap=True)
    assert not np.allclose(model.weights_, before)
    close(model.weights_, softmax([post.log_evidence for post in model.posteriors_]))


# ---- tables as they come --------------------------------------------------------------------------------------------


def target_for(case: Case, signal: np.ndarray) -> np.ndarray:
    rng = rng_for("target for", case)
    noisy = signal - signal.mean() + 0.3 * rng.normal(size=len(signal))
    return np.array(["no", "yes"])[(noisy > 0.0).astype(int)] if is_classifier(case.make()) else noisy


@pytest.mark.parametrize("case", **ids(FOUR))
def test_every_library_gives_the_same_model(case):
    columns, signal = mixed_columns()
    y = target_for(case, signal)
    expected = case.make().fit(as_pandas(columns), y)
    inputs = expected.schema_.columns[:6]
    assert [column.kind for column in inputs] == [
        "categorical", "categorical", "numeric", "numeric", "boolean", "datetime"
    ]  # fmt: skip
    assert sum(column.has_missing for column in inputs) == 4
    for frame in FRAMES.values():
        model = case.make().fit(frame(columns), pl.Series(y) if frame is as_polars else y)
        assert state(model) == state(expected)
        for other in FRAMES.values():
            bit_equal(answers(model, other(columns)), answers(expected, as_pandas(columns)))


@pytest.mark.filterwarnings("ignore:X. column 'sold' holds dates written as text")
@pytest.mark.parametrize("case", **ids(FOUR))
def test_a_file_read_by_two_libraries(case, tmp_path):
    columns, signal = mixed_columns()
    y, path = target_for(case, signal), tmp_path / "table.csv"
    as_polars(columns).write_csv(path)
    by_pandas, by_polars = pd.read_csv(path), pl.read_csv(path)
    one, other = case.make().fit(by_pandas, y), case.make().fit(by_polars, y)
    assert one.schema_ == other.schema_
    bit_equal(answers(one, by_pandas), answers(other, by_polars))
    bit_equal(answers(one, by_polars), answers(other, by_pandas))


@pytest.mark.parametrize("case", **ids(FOUR))
def test_learning_from_a_table_is_worth_it(case):
    columns, signal = mixed_columns()
    table, y = as_pandas(columns), target_for(case, signal)
    train, test = np.arange(len(y)) < 120, np.arange(len(y)) >= 120
    model = case.make().fit(table[train], y[train])
    assert model.score(table[test], y[test]) > (0.65 if is_classifier(model) else 0.2)
    assert model.feature_importances_.shape == (6,)
    close(model.feature_importances_.sum(), 1.0)


UNKNOWN = {
    "a city that was not there": lambda table: table.assign(city="Espoo"),
    "no grade, which there always was": lambda table: table.assign(grade=None),
    "no rooms, which there always were": lambda table: table.assign(rooms=np.nan),
    "no city, which was missing before": lambda table: table.assign(city=None),
    "nothing at all": lambda table: table.assign(**dict.fromkeys(table, None)),
    "all of it known": lambda table: table,
}


UNSHARPENED = [Case(case.kind, case.target, {"calibration": None}) for case in FOUR if case.is_forest]


@pytest.mark.parametrize("unknown", UNKNOWN)
@pytest.mark.parametrize("case", **ids(FOUR + UNSHARPENED))
def test_an_unknown_answer_stops_at_the_node_that_asks(case, unknown):
    columns, signal = mixed_columns()
    model = case.make().fit(as_pandas(columns), target_for(case, signal))
    table = UNKNOWN[unknown](as_pandas(columns))[:40]
    codes, n_codes = model.schema_.encode(table), model.schema_.n_codes
    ends = [[path_to_end(post, row, n_codes)[-1] for row in codes] for post in model.posteriors_]
    stopped = [not post.tree.is_terminal[end].all() for post, end in zip(model.posteriors_, ends, strict=True)]
    is_known = unknown in ("no city, which was missing before", "all of it known")
    assert any(stopped) != is_known, "this table does not test what it says"
    if is_classifier(model):
        expected = slow_average(model, table, class_probs) ** model.forest_.sharpness
        probs = model.predict_proba(table)
        close(probs, expected / expected.sum(axis=1, keepdims=True))
        assert np.isfinite(probs).all()
    else:
        close(model.predict(table), slow_average(model, table, normal_means))
        assert np.isfinite(answers(model, table)).all()


@pytest.mark.parametrize("case", **ids(FOUR))
def test_rows_with_unknown_answers_count_where_they_can_be_placed(case):
    columns, signal = mixed_columns()
    y = target_for(case, signal)
    table = as_pandas(columns)
    model = case.make().fit(table, y)
    strange = table.assign(city=np.where(np.arange(len(table)) % 2, "Espoo", table.city))
    codes = model.schema_.encode(strange)
    placed = [
        sum(post.tree.is_terminal[path_to_end(post, row, model.schema_.n_codes)[-1]] for row in codes)
        for post in model.posteriors_
    ]
    before = [post.n_rows for post in model.posteriors_]
    by_chunk = copy.deepcopy(model)
    model.partial_fit(strange, y)
    assert [post.n_rows for post in model.posteriors_] == [n + more for n, more in zip(before, placed, strict=True)]
    assert min(placed) < len(table)
    for rows in np.array_split(np.arange(len(y)), 4):
        by_chunk.partial_fit(strange.iloc[rows], y[rows])
    for one, other in zip(by_chunk.posteriors_, model.posteriors_, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("case", **ids(FOUR))
def test_numbers_beyond_those_of_fit_count_as_the_outermost(case):
    model, (X, _, _) = case.fitted()
    for far, edge in ((1e30, np.nanmax(X, axis=0)), (-1e30, np.nanmin(X, axis=0))):
        for column in range(3):
            beyond, at_edge = X.copy(), X.copy()
            beyond[:, column], at_edge[:, column] = far, edge[column]
            bit_equal(answers(model, beyond), answers(model, at_edge))


@pytest.mark.parametrize("max_bins", [2, 16, 300])
@pytest.mark.parametrize("case", **ids(FOUR))
def test_number_of_bins(case, max_bins):
    model, (X, _, _) = case.fitted(400, max_bins=max_bins)
    assert model.schema_.n_codes.max() <= max_bins
    assert model.schema_.encode(X).dtype == (np.uint16 if max_bins > 255 else np.uint8)
    assert np.isfinite(answers(model, X)).all()


@pytest.mark.parametrize("listed", [["c"], [2], [False, False, True, False]], ids=["name", "place", "mask"])
@pytest.mark.parametrize("case", **ids(FOUR))
def test_categorical_features(case, listed):
    X, y, _ = case.draw(80)
    table = pd.DataFrame(X, columns=list("abcd"))
    model = case.make(categorical_features=listed).fit(table, y)
    assert model.schema_.is_categorical[:4].tolist() == [False, False, True, False]
    bit_equal(answers(model, table), answers(model, X))
