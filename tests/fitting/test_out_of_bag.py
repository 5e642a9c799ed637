"""Out-of-bag predictions: each row by the trees that were not grown on it, with the row taken out of their counts."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error

import everytree as et
from cases import rng_for, take
from estimator_cases import ALL, Case, ids, of_leaf
from everytree.tables.repeats import row_groups
from naive_scores import slow_accuracy, slow_r2

close = functools.partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-10)

FORESTS = [case for case in ALL if case.is_forest]
N = 40


def in_bags(model: Any, codes: np.ndarray, group: np.ndarray | None = None) -> np.ndarray:
    """(n_trees, n_rows) the rows that each tree was grown on."""
    found = row_groups(codes, group)
    return np.stack([draw.times(len(codes), found) > 0 for draw in model.fitted_.origin.draws])


def said_without(
    model: Any, rows: tuple[Any, Any, dict[str, Any]], given: np.ndarray | None = None, weight: np.ndarray | None = None
) -> list[tuple[np.ndarray, list[Any]]]:
    """For each row: the weights of the trees that were not grown on it, and what each says without the row's group."""
    X, y, row_data = rows
    codes, columns = model.schema_.encode(X), of_leaf(model, X, row_data)
    targets = np.searchsorted(model.classes_, y) if hasattr(model, "classes_") else np.asarray(y, dtype=float)
    bags = in_bags(model, codes, given)
    group, weight = np.arange(len(y)) if given is None else given, np.ones(len(y)) if weight is None else weight
    found = []
    for i in range(len(y)):
        trees, others = np.flatnonzero(~bags[:, i]), group != group[i]
        said = []
        for post in (model.posteriors_[tree] for tree in trees):
            without = et.Posterior(post.tree, post.family, post.split_prior)
            without.update(codes[others], targets[others], weight[others], **take(columns, others))
            said.append(without.predictive(codes[[i]], **take(columns, [i])))
        found.append((model.weights_[trees], said))
    return found


def averaged(model: Any, found: list[tuple[np.ndarray, list[Any]]]) -> np.ndarray:
    """Probabilities, sharpened, or means; NaN where no tree says anything."""
    is_classes = hasattr(model, "classes_")
    every = []
    for weights, said in found:
        if not said:
            every.append(np.full(len(model.classes_), np.nan) if is_classes else np.nan)
            continue
        mean = np.average([dist.probs()[0] if is_classes else dist.mean()[0] for dist in said], axis=0, weights=weights)
        power = mean**model.choice_.sharpness if is_classes else mean
        every.append(power / power.sum() if is_classes else mean)
    return np.array(every)


def oob_of(model: Any) -> np.ndarray:
    return model.oob_decision_function_ if hasattr(model, "classes_") else model.oob_prediction_


def fitted_quietly(case: Case, rows: tuple[Any, Any, dict[str, Any]], options: dict[str, Any], **given: Any) -> Any:
    """Few trees have rows that are in every sample."""
    X, y, row_data = rows
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9]+ rows have no out-of-bag prediction")
        return case.make(oob_score=True, **options).fit(X, y, **row_data, **given)


OPTIONS: list[dict[str, Any]] = [{}, {"bootstrap": True}, {"weights": "stacking", "n_jobs": 2}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("case", **ids(FORESTS))
def test_predictions_are_those_of_the_other_rows_in_trees_that_have_not_seen_the_row(case, options):
    rows = case.draw(N, "out of bag")
    model = fitted_quietly(case, rows, options)
    close(oob_of(model), averaged(model, said_without(model, rows)))
    assert np.isfinite(oob_of(model)).any()


@pytest.mark.parametrize("case", [FORESTS[0], FORESTS[2]], ids=str)
def test_rows_of_a_group_are_left_out_together_and_weights_count(case):
    rng = rng_for("groups out of bag")
    rows, group, weight = case.draw(N, "groups"), rng.integers(0, 12, N), rng.integers(1, 4, N).astype(float)
    _, group = np.unique(group, return_inverse=True)
    model = fitted_quietly(case, rows, {}, groups=group, sample_weight=weight)
    close(oob_of(model), averaged(model, said_without(model, rows, group, weight)))
    for number in range(group.max() + 1):
        assert len(np.unique(np.isnan(oob_of(model).reshape(N, -1)[group == number, 0]))) == 1


@pytest.mark.parametrize("case", **ids(FORESTS))
def test_the_score_is_that_of_the_predictions(case):
    rows = case.draw(150, "score")
    model = fitted_quietly(case, rows, {"n_estimators": 30})
    y, oob = rows[1], oob_of(model)
    assert np.isfinite(oob).all()
    if hasattr(model, "classes_"):
        close(model.oob_score_, slow_accuracy(oob, np.searchsorted(model.classes_, y), len(y), None))
    elif case.target in ("exponential", "geometric", "weibull"):
        fresh = case.draw(3000, "fresh")
        given = {"censored": fresh[2]["censored"]} if "censored" in fresh[2] else {}
        assert abs(model.oob_score_ - model.score(fresh[0], fresh[1], **given)) < 0.35, "the mean log score"
    else:
        every = np.arange(len(y))
        close(model.oob_score_, slow_r2(y, oob, every, every, np.ones(len(y))))


def test_log_scores_of_times_are_those_of_the_other_rows():
    case = next(case for case in FORESTS if case.target == "geometric")
    rows = case.draw(N, "log scores")
    model = fitted_quietly(case, rows, {"n_estimators": 30})
    found = said_without(model, rows)
    scores = [
        np.log(np.average([np.exp(dist.log_prob(rows[1][[i]])[0]) for dist in said], weights=weights))
        for i, (weights, said) in enumerate(found)
    ]
    close(model.oob_score_, np.mean(scores))


def test_a_function_scores_numbers_of_classes_or_means():
    seen = []

    def metric(y: np.ndarray, predicted: np.ndarray) -> float:
        seen.append((y, predicted))
        return 0.25

    case = FORESTS[0]
    X, y, _ = case.draw(80, "metric")
    model = case.make(n_estimators=30, oob_score=metric).fit(X, y)
    assert model.oob_score_ == 0.25
    np.testing.assert_array_equal(seen[0][0], np.searchsorted(model.classes_, y))
    np.testing.assert_array_equal(seen[0][1], model.oob_decision_function_.argmax(axis=1))
    number = FORESTS[2]
    X, y, _ = number.draw(80, "metric")
    model = number.make(n_estimators=30, oob_score=mean_absolute_error).fit(X, y)
    close(model.oob_score_, np.abs(y - model.oob_prediction_).mean())


def test_rows_that_no_tree_may_predict_are_said():
    X, y, _ = FORESTS[0].draw(60, "few trees")
    weight = np.where(np.arange(60) < 5, 0.0, 1.0)
    with pytest.warns(UserWarning, match="rows have no out-of-bag prediction"):
        model = FORESTS[0].make(n_estimators=2, oob_score=True).fit(X, y, weight)
    oob = model.oob_decision_function_
    assert oob.shape == (60, 2)
    unseen = ~in_bags(model, model.schema_.encode(X)[5:]).all(axis=0)
    np.testing.assert_array_equal(np.isfinite(oob[:, 0]), np.concatenate([np.zeros(5, bool), unseen]))
    known = np.isfinite(oob[:, 0])
    close(model.oob_score_, slow_accuracy(oob[known], np.searchsorted(model.classes_, y[known]), known.sum(), None))


def test_groups_are_left_out_of_the_mean_that_has_r2_0():
    case = FORESTS[2]
    X, y, _ = case.draw(90, "groups of R2")
    group = np.repeat(np.arange(30), 3)
    y = y[3 * group]
    model = case.make(n_estimators=40, oob_score=True).fit(X, y, groups=group)
    known = np.flatnonzero(np.isfinite(model.oob_prediction_))
    assert len(known) == 90
    close(model.oob_score_, slow_r2(y, model.oob_prediction_, known, group, np.ones(90)))


def test_the_score_of_noise_in_equal_classes_is_that_of_fresh_rows():
    """Leaving a row out makes the other class the largest: its own is named again, half of the time."""
    rng = rng_for("equal classes out of bag")
    X, y = rng.normal(size=(50, 4)), np.repeat([0, 1], 25)
    model = et.MetaForestClassifier(30, random_state=0, oob_score=True).fit(X, y)
    assert model.oob_score_ == pytest.approx(0.5, abs=0.06)


def test_one_class_is_certain():
    X, _, _ = FORESTS[0].draw(30, "one class")
    model = FORESTS[0].make(n_estimators=40, oob_score=True).fit(X, np.zeros(30, int))
    np.testing.assert_array_equal(model.oob_decision_function_, np.ones((30, 1)))
    assert model.oob_score_ == 1.0


def test_out_of_bag_is_honest_where_the_score_of_seen_rows_is_not():
    rng = rng_for("noise out of bag")
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    model = et.MetaForestClassifier(40, alpha=0.01, split_prior=0.9, random_state=0, oob_score=True).fit(X, y)
    assert model.score(X, y) > 0.9
    assert 0.35 < model.oob_score_ < 0.65


def test_there_is_none_without_asking_and_after_blank():
    X, y, _ = FORESTS[0].draw(60)
    model = FORESTS[0].make().fit(X, y)
    assert not hasattr(model, "oob_score_")
    assert not hasattr(model, "oob_decision_function_")
    model = FORESTS[0].make(n_estimators=40, oob_score=True).fit(X, y)
    assert hasattr(model, "oob_score_")
    assert not hasattr(model.blank(), "oob_score_")


def test_fits_that_leave_nothing_out_or_keep_no_rows_are_refused():
    X, y, _ = FORESTS[0].draw(60)
    with pytest.raises(ValueError, match=r"oob_score needs rows .* subsample is 1; lower it, or set bootstrap=True"):
        FORESTS[0].make(oob_score=True, subsample=1.0).fit(X, y)
    FORESTS[0].make(n_estimators=30, oob_score=True, subsample=1.0, bootstrap=True).fit(X, y)
    for call in (lambda model: model.partial_fit(X, y), lambda model: model.fit_batches([(X, y)])):
        for name in ("oob_score", "warm_start"):
            model = FORESTS[0].make(**{name: True})
            with pytest.raises(ValueError, match=name):
                call(model)
            assert not hasattr(model, "forest_")
