"""How the estimators come to their structures, priors and weights, and what their predictions are made of."""

from __future__ import annotations

import functools
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.base import clone, is_classifier
from sklearn.ensemble import BaggingClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

import everytree as et
from cases import rng_for, take
from estimator_cases import (
    ALL,
    CLASSES,
    FOUR,
    NUMBERS,
    Case,
    answers,
    as_pandas,
    ids,
    mixed_columns,
    of_leaf,
    of_prediction,
    state,
)
from everytree.families.registry import NUMBER_FAMILIES
from everytree.fitting.structures.tree import TreeStructure
from everytree.predictive.pooled import NEGLIGIBLE

FORESTS = [case for case in ALL if case.is_forest]
CLASSIFIER, REGRESSOR = FOUR[0], FOUR[1]
bit_equal = np.testing.assert_array_equal
close = functools.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)
near = functools.partial(np.testing.assert_allclose, rtol=100 * NEGLIGIBLE, atol=100 * NEGLIGIBLE)
"""As close as distributions are that leave out nodes with a negligible share."""


def targets_of(model: Any, y: np.ndarray) -> np.ndarray:
    """Targets as the leaves see them."""
    return np.searchsorted(model.classes_, y) if is_classifier(model) else y


# ---- the same model again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", **ids(ALL))
def test_the_number_of_threads_changes_nothing(case):
    one, (X, _, row_data) = case.fitted(200, n_jobs=1)
    two, _ = case.fitted(200, n_jobs=2)
    assert state(two) == state(one)
    assert two.schema_ == one.schema_
    bit_equal(answers(two, X, row_data), answers(one, X, row_data))


@pytest.mark.parametrize("case", **ids(ALL))
def test_the_seed_is_the_model(case):
    model, (X, y, row_data) = case.fitted(random_state=3)
    assert state(case.make(random_state=np.random.RandomState(3)).fit(X, y, **row_data)) == state(model)
    if case.is_forest:
        assert state(case.make(random_state=4).fit(X, y, **row_data)) != state(model)
        assert len({post.tree for post in model.posteriors_}) > 1, "trees of a forest differ"


# ---- weights of the trees -------------------------------------------------------------------------------------------


def log_scores(model: Any, X: np.ndarray, y: np.ndarray, row_data: dict[str, Any]) -> np.ndarray:
    return model.predictive(X, **row_data).log_prob(targets_of(model, y))


@pytest.mark.long
@pytest.mark.parametrize("case", **ids(FORESTS))
def test_weights(case):
    X, y, row_data = case.draw(200)
    X_new, y_new, row_data_new = case.draw(200, "new rows")
    models = {
        weights: case.make(weights=weights, calibration=None, n_estimators=16).fit(X, y, **row_data)
        for weights in ("uniform", "stacking", "evidence")
    }
    close(models["uniform"].weights_, np.full(16, 1.0 / 16))
    evidence = [post.log_evidence for post in models["evidence"].posteriors_]
    close(models["evidence"].weights_, softmax(evidence))
    stacked = models["stacking"].weights_
    close(stacked.sum(), 1.0)
    assert (stacked >= 0.0).all()
    assert np.ptp(stacked) > 1e-3
    for model in models.values():
        close(model.log_evidence_, logsumexp(evidence) - np.log(16))
    uniform, stacking = (log_scores(models[name], X_new, y_new, row_data_new) for name in ("uniform", "stacking"))
    difference = stacking - uniform
    assert difference.mean() > -4.0 * difference.std() / np.sqrt(len(difference))


def leave_one_out(model: Any, X: np.ndarray, y: np.ndarray, row_data: dict[str, Any]) -> np.ndarray:
    """(n_rows, n_trees) log probability that each tree gives a row after all the others."""
    codes, targets, columns = model.schema_.encode(X), targets_of(model, y), of_leaf(model, X, row_data)
    scores = np.empty((len(y), len(model.posteriors_)))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        for k, post in enumerate(model.posteriors_):
            without = et.Posterior(post.tree, post.family, post.split_prior)
            without.update(codes[others], targets[others], **take(columns, others))
            scores[i, k] = without.predictive(codes[[i]], **take(columns, [i])).log_prob(targets[[i]])[0]
    return scores


def at_the_usual(case: Case) -> dict[str, Any]:
    """Options under which the score of a choice is that of the rows alone, with nothing thought beforehand."""
    return {"alpha": 0.1} if case in CLASSES else {}


@pytest.mark.parametrize("case", **ids(FORESTS))
def test_trees_grown_on_all_rows_are_scored_by_leaving_one_out(case):
    model, rows = case.fitted(40, subsample=1.0, calibration=None, n_estimators=3, **at_the_usual(case))
    scores = leave_one_out(model, *rows)
    close(model.choice_.score, np.mean(logsumexp(scores, axis=1) - np.log(3)))
    sharpened, _ = case.fitted(40, subsample=1.0, calibration="auto", n_estimators=3)
    assert sharpened.choice_.sharpness == 1.0, "rows that a tree has seen cannot say how sure it should be"


@pytest.mark.parametrize("case", **ids([case for case in ALL if not case.is_forest]))
def test_a_tree_of_few_rows_is_scored_by_leaving_one_out(case):
    model, rows = case.fitted(9, **at_the_usual(case))
    close(model.choice_.score, leave_one_out(model, *rows).mean())


@pytest.mark.parametrize("case", **ids(FORESTS))
def test_stacking_weights_are_the_best_for_rows_left_out(case):
    model, rows = case.fitted(40, subsample=1.0, calibration=None, n_estimators=3, weights="stacking")
    scores = leave_one_out(model, *rows)

    def score(weights: np.ndarray) -> float:
        with np.errstate(divide="ignore"):
            return float(np.mean(logsumexp(scores + np.log(weights), axis=1)))

    for weights in rng_for("other weights").dirichlet(np.full(3, 0.5), size=50):
        assert score(model.weights_) > score(weights) - 1e-3


@pytest.mark.parametrize(
    ("case", "forest"), [(CLASSIFIER, RandomForestClassifier(4)), (REGRESSOR, RandomForestRegressor(4))]
)
def test_priors_are_chosen_by_rows_out_of_bag(case, forest):
    grower = forest.set_params(random_state=1)
    model, (X, y, _) = case.fitted(60, grower=grower, calibration=None, **at_the_usual(case))
    codes = model.schema_.encode(X).astype(np.float32)
    codes[codes == 255] = np.nan
    grown = clone(grower).fit(codes, targets_of(model, y))
    unseen = np.stack([~np.isin(np.arange(60), bag) for bag in grown.estimators_samples_], axis=1)
    scores = np.where(unseen, leave_one_out(model, X, y, {}), -np.inf)[unseen.any(axis=1)]
    counts = unseen.sum(axis=1)[unseen.any(axis=1)]
    close(model.choice_.score, np.mean(logsumexp(scores, axis=1) - np.log(counts)))


# ---- priors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", **ids(ALL))
def test_split_prior_is_what_was_said(case):
    for given in (0.3, et.depth_prior(0.9, 1.0), lambda depth: 0.5 if depth < 2 else 0.1):
        model, _ = case.fitted(80, split_prior=given)
        assert model.choice_.split_prior is given
        for post in model.posteriors_:
            expected = [given(depth) if callable(given) else given for depth in post.tree.depth.tolist()]
            bit_equal(post.split_prior, np.where(post.tree.is_terminal, 0.0, expected))


@pytest.mark.parametrize("case", **ids(FOUR))
def test_no_splits_at_all(case):
    model, (X, y, _) = case.fitted(80, split_prior=0.0)
    assert np.ptp(answers(model, X), axis=0).max() == 0.0
    expected = [np.mean(y == label) for label in np.unique(y)] if is_classifier(model) else y.mean()
    got = model.predict_proba(X[:1])[0] if is_classifier(model) else model.predict(X)[0]
    np.testing.assert_allclose(got, expected, atol=0.1)
    bit_equal(model.feature_importances_, np.zeros(4))


@pytest.mark.parametrize("case", **ids(CLASSES))
def test_prior_of_classes(case):
    model, (_, y, _) = case.fitted(alpha=2.5)
    counts = np.unique(y, return_counts=True)[1] + 0.5
    family = model.forest_.family
    pseudo_counts = [family.beta, family.alpha] if len(counts) == 2 else family.alpha
    close(np.ravel(pseudo_counts), 2.5 * len(counts) * counts / counts.sum())


PRIORS = {
    "normal": {"strength": 0.7, "shape": 3.0, "noise": 0.2},
    "linear": {"precision": 2.0, "shape": 3.0, "noise": 0.2},
    "poisson": {"shape": 5.0},
    "exponential": {"shape": 5.0},
    "geometric": {"shape": 5.0},
    "histogram": {"strength": 0.7},
    "lognormal": {"strength": 0.7, "noise": 0.2},
    "negative_binomial": {"strength": 0.7, "likely_shape": 4.0},
    "gamma": {"strength": 0.7, "likely_shape": 4.0},
    "weibull": {"strength": 0.7, "likely_shape": 4.0},
    "hurdle_negative_binomial": {"strength": 0.7, "likely_shape": 4.0, "zeros": 2.0},
    "hurdle_lognormal": {"strength": 0.7, "noise": 0.2, "zeros": 2.0},
}


@pytest.mark.parametrize("case", **ids(NUMBERS))
def test_prior_of_numbers(case):
    given = PRIORS[case.target]
    model, (_, y, row_data) = case.fitted(prior=given, split_prior=0.6)
    assert model.choice_.parameters == {**given, "split_prior": 0.6}
    family = model.forest_.family
    if case.target == "normal":
        close(np.ravel([family.mean, family.strength, family.shape]), [y.mean(), 0.7, 3.0])
        close(family.scale, 2.0 * 0.2 * y.var())  # the prior expects a variance of scale / (shape - 1)
    elif case.target in ("poisson", "exponential"):
        events = y if case.target == "poisson" else 1.0 - row_data["censored"]
        time = row_data["exposure"] if case.target == "poisson" else y
        close(family.shape / family.rate, (events.sum() + 0.5) / time.sum())
    elif case.target == "lognormal":
        close(np.ravel([family.mean, family.sigma**2]), [np.log(y).mean(), 0.2 * np.log(y).var()])
    elif case.target == "geometric":
        close(family.beta / (family.alpha - 1.0), y.mean())
    name = next(iter(given))
    some, _ = case.fitted(prior={name: given[name]})
    assert some.choice_.parameters[name] == given[name]
    auto, _ = case.fitted(prior={name: "auto"})
    assert state(auto) == state(case.fitted()[0])


@pytest.mark.parametrize("calibration", [None, "auto"])
@pytest.mark.parametrize("case", **ids([case for case in FORESTS if case.target in ("two classes", "poisson")]))
def test_auto_is_the_best_that_was_tried(case, calibration):
    auto, _ = case.fitted(calibration=calibration)
    (name,) = auto.choice_.parameters.keys() - {"split_prior"}
    tried = (0.03, 0.3, 3.0) if name == "alpha" else (0.3, 3.0, 30.0)

    def fixed(value, split_prior):
        options = {"alpha": value} if name == "alpha" else {"prior": {name: value}}
        return case.fitted(calibration=calibration, split_prior=split_prior, **options)[0].choice_

    best = max(fixed(value, split_prior).score for value, split_prior in product(tried, (0.5, 0.95)))
    assert auto.choice_.score >= best - 1e-12
    again = fixed(auto.choice_.parameters[name], auto.choice_.split_prior)
    assert (again.score, again.sharpness) == pytest.approx((auto.choice_.score, auto.choice_.sharpness), rel=1e-9)
    assert 0.0 < auto.choice_.split_prior < 1.0


# ---- calibration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", **ids(FORESTS))
def test_calibration_sharpens_the_average_and_nothing_else(case):
    plain, (X, _, row_data) = case.fitted(calibration=None, split_prior=0.8)
    sharp, _ = case.fitted(calibration="auto", split_prior=0.8)
    assert plain.forest_.sharpness == plain.choice_.sharpness == 1.0
    power = sharp.forest_.sharpness
    assert power == sharp.choice_.sharpness > 0.0
    assert (power == 1.0) == (case.target in NUMBER_FAMILIES and not NUMBER_FAMILIES[case.target].support.is_real_line)
    if is_classifier(sharp):
        fixed, _ = case.fitted(calibration=None, split_prior=0.8, alpha=sharp.choice_.parameters["alpha"])
        probs = fixed.predict_proba(X) ** power
        close(sharp.predict_proba(X), probs / probs.sum(axis=1, keepdims=True))
        bit_equal(sharp.predict(X), fixed.predict(X))
    elif case.target == "histogram":
        fixed, _ = case.fitted(
            calibration=None, split_prior=0.8, prior={"strength": sharp.choice_.parameters["strength"]}
        )
        atom = [fixed.predictive(X).cdf(0.0) - fixed.predictive(X).cdf(-1e-9) for fixed in (fixed, sharp)]
        more = atom[0] > 0.5  # a larger share than all others together grows with its power
        assert (np.sign(atom[1] - atom[0])[more] == np.sign(power - 1.0)).all()
    else:
        close(answers(sharp, X, row_data), answers(plain, X, row_data) / [1.0, power])


@pytest.mark.parametrize("case", **ids([case for case in ALL if not case.is_forest]))
def test_one_tree_is_not_sharpened(case):
    model, _ = case.fitted(60)
    assert model.forest_.sharpness == 1.0
    assert len(model.posteriors_) == 1
    assert model.posterior_ is model.posteriors_[0]


# ---- what predictions are made of -----------------------------------------------------------------------------------

UNSHARPENED = [Case(case.kind, case.target, {**case.options, "calibration": None}) for case in FORESTS]
EVIDENCE = [
    Case(case.kind, case.target, {**case.options, "calibration": None, "weights": "evidence"}) for case in FOUR[:2]
]
TREES = [case for case in ALL if not case.is_forest]


@pytest.mark.parametrize("case", **ids(UNSHARPENED + EVIDENCE + TREES))
def test_a_forest_is_the_average_of_its_trees(case):
    model, (X, y, row_data) = case.fitted()
    codes, targets = model.schema_.encode(X), targets_of(model, y)
    columns, is_censored = of_leaf(model, X, row_data), "censored" in row_data
    trees = [post.predictive(codes, **columns) for post in model.posteriors_]
    weights, row_data = model.weights_, of_prediction(row_data)
    dist = model.predictive(X, **row_data)
    if is_classifier(model):
        close(model.predict_proba(X), sum(w * tree.probs() for w, tree in zip(weights, trees, strict=True)))
        bit_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    else:
        means, variances = np.stack([tree.mean() for tree in trees]), np.stack([tree.variance() for tree in trees])
        mean, std = model.predict(X, return_std=True, **row_data)
        agree = (
            near if case.target in ("linear", "poisson", "negative_binomial") else close
        )  # the others are read from a table of nodes
        agree(mean, weights @ means)
        agree(std**2, weights @ variances + weights @ (means - weights @ means) ** 2)
    if not is_censored:  # a predictive of the estimators' is of times as such, never of censored ones
        log_probs = np.stack([tree.log_prob(targets) for tree in trees], axis=1)
        near(dist.log_prob(targets), logsumexp(log_probs + np.log(weights), axis=1))
        near(dist.cdf(targets), sum(w * tree.cdf(targets) for w, tree in zip(weights, trees, strict=True)))


@pytest.mark.parametrize("case", **ids(CLASSES))
def test_distributions_of_classes(case):
    model, (X, y, _) = case.fitted()
    probs, dist = model.predict_proba(X), model.predictive(X)
    near(dist.probs(), probs)
    place = np.searchsorted(model.classes_, y)
    near(dist.log_prob(place), np.log(probs[np.arange(len(y)), place]))
    close(model.predict_log_proba(X), np.log(probs))
    near(dist.entropy(), -(probs * np.log(probs)).sum(axis=1))
    near(dist.mean(), probs @ np.arange(probs.shape[1]))
    near(sum(dist.variance_parts()), dist.variance())
    draws = dist.sample(2000, rng=0)
    np.testing.assert_allclose((draws == 0).mean(axis=1), probs[:, 0], atol=0.06)
    close(model.score(X, y), np.mean(model.predict(X) == y))


@pytest.mark.long
@pytest.mark.parametrize("case", **ids(NUMBERS))
def test_distributions_of_numbers(case):
    model, (X, y, row_data) = case.fitted()
    X, y, row_data = X[:30], y[:30], take(of_prediction(row_data), slice(30))
    mean, std = model.predict(X, return_std=True, **row_data)
    bit_equal(model.predict(X, **row_data), mean)
    dist = model.predictive(X, **row_data)
    near(dist.mean(), mean)
    close(dist.std(), std)
    near(sum(dist.variance_parts()), dist.variance())

    levels = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
    quantiles = model.predict_quantiles(X, levels, **row_data)
    assert quantiles.shape == (len(X), 7)
    assert (np.diff(quantiles, axis=1) >= 0.0).all()
    bit_equal(model.predict_quantiles(X, levels[::-1], **row_data), quantiles[:, ::-1])
    for level, column in zip(levels, quantiles.T, strict=True):
        if (
            case.target in ("poisson", "geometric", "histogram", "negative_binomial") or "hurdle" in case.target
        ):  # steps
            step = 1e-6 if case.target == "histogram" else 1.0
            assert (dist.cdf(column) >= level - 1e-9).all()
            assert (dist.cdf(column - step) < level + 1e-9).all()
        else:
            np.testing.assert_allclose(dist.cdf(column), level, atol=1e-8)

    intervals = [model.predict_interval(X, coverage, **row_data) for coverage in (0.5, 0.9, 0.98)]
    for narrow, wide in pairwise(intervals):
        assert (wide[:, 0] <= narrow[:, 0]).all()
        assert (narrow[:, 1] <= wide[:, 1]).all()
    near(intervals[2], quantiles[:, [0, -1]])

    draws = dist.sample(4000, rng=0)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=8.0 * std.max() / np.sqrt(4000))
    assert (dist.crps(y) >= 0.0).all()
    assert model.score(X, y) < 1.0


@pytest.mark.parametrize("case", **ids([case for case in NUMBERS if case.target in ("normal", "linear")][:2]))
def test_distributions_leave_nothing_out(case):
    model, (X, y, _) = case.fitted(400, n_estimators=10, calibration=None, weights="uniform")
    codes, columns = model.schema_.encode(X), of_leaf(model, X, {})
    trees = [post.predictive(codes, **columns) for post in model.posteriors_]
    dist = model.predictive(X)
    np.testing.assert_allclose(dist.mean(), np.mean([tree.mean() for tree in trees], axis=0), rtol=0.0, atol=1e-12)
    close(dist.log_prob(y), logsumexp([tree.log_prob(y) for tree in trees], axis=0) - np.log(10))


@pytest.mark.parametrize("case", **ids([case for case in NUMBERS if case.target in ("normal", "linear")]))
def test_density_and_score_are_those_of_the_distribution_function(case):
    model, (X, y, _) = case.fitted()
    X, y, step = X[:3], y[:3], 1e-5
    dist = model.predictive(X)
    slope = (dist.cdf(y + step) - dist.cdf(y - step)) / (2.0 * step)
    np.testing.assert_allclose(np.exp(dist.log_prob(y)), slope, rtol=1e-6, atol=1e-8)
    mean, std = model.predict(X, return_std=True)
    steps = np.sinh(np.linspace(-7.0, 7.0, 2001))
    grid = np.sort(np.column_stack([mean[:, None] + std[:, None] * steps, y, np.nextafter(y, -np.inf)]), axis=1)
    below = model.predictive(np.repeat(X, grid.shape[1], axis=0)).cdf(grid.ravel()).reshape(grid.shape)
    squares = (below - (grid >= y[:, None])) ** 2
    np.testing.assert_allclose(dist.crps(y), np.trapezoid(squares, grid, axis=1), rtol=1e-4)


@pytest.mark.parametrize("case", **ids([case for case in NUMBERS if case.target == "poisson"]))
def test_counts_are_expected_in_proportion_to_exposure(case):
    model, (X, _, _) = case.fitted()
    one = model.predict(X)
    close(model.predict(X, exposure=np.full(len(X), 2.5)), 2.5 * one)
    close(model.predict(X, exposure=np.ones(len(X))), one)
    assert (model.predict_quantiles(X, exposure=np.full(len(X), 50.0))[:, 0] > 0.0).all()


@pytest.mark.parametrize("case", **ids(FOUR))
def test_many_rows_are_predicted_one_like_the_other(case):
    model, (X, y, _) = case.fitted(100)
    many, targets = np.tile(X, (25, 1)), np.tile(targets_of(model, y), 25)
    bit_equal(answers(model, many), np.tile(answers(model, X), (25, 1)))
    dist, again = model.predictive(many), model.predictive(X)
    for name, arguments in (("mean", ()), ("variance", ()), ("log_prob", (targets,)), ("cdf", (targets,))):
        few = getattr(again, name)(*(values[: len(X)] for values in arguments))
        close(getattr(dist, name)(*arguments), np.tile(few, 25))
    assert len(dist) == 2500


@pytest.mark.parametrize("case", **ids(ALL))
def test_a_distribution_stays_as_it_was_when_more_rows_come(case):
    model, (X, y, row_data) = case.fitted(60)
    dist = model.predictive(X)
    before = dist.variance()
    model.partial_fit(X, y, allow_overlap=True, **row_data)
    bit_equal(dist.variance(), before)
    assert not np.array_equal(model.predictive(X).variance(), before)


# ---- growers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grower", ["mixed", "random_forest", "extra_trees"])
@pytest.mark.parametrize("case", **ids(FORESTS))
def test_growers(case, grower):
    model, (X, _, row_data) = case.fitted(grower=grower)
    assert len(model.posteriors_) == 6
    assert [post.n_rows for post in model.posteriors_] == [len(X)] * 6, "all rows count in all trees"
    assert np.isfinite(answers(model, X, row_data)).all()
    if case.target != "linear":  # lines say what the first column says without any split
        assert model.feature_importances_[0] > model.feature_importances_[3], "the last column is noise"


def partition(ends: np.ndarray) -> set[tuple[int, ...]]:
    """Which rows are together."""
    return {tuple(np.flatnonzero(ends == end)) for end in np.unique(ends)}


@pytest.mark.parametrize(
    ("case", "forest"),
    [
        (CLASSIFIER, RandomForestClassifier(4, random_state=1)),
        (CLASSIFIER, DecisionTreeClassifier(max_depth=3, random_state=1)),
        (REGRESSOR, ExtraTreesRegressor(4, max_depth=5, random_state=1)),
    ],
)
def test_a_forest_of_ones_own_choice(case, forest):
    model, (X, y, _) = case.fitted(grower=forest)
    codes = model.schema_.encode(X).astype(np.float32)
    codes[codes == 255] = np.nan
    grown = clone(forest).fit(codes, targets_of(model, y))
    assert not hasattr(forest, "tree_")
    assert not hasattr(forest, "estimators_"), "what was given is left as it is"
    trees = getattr(grown, "estimators_", [grown])
    ends = model.forest_.ends(model.schema_.encode(X))
    assert ends.shape == (len(X), len(trees))
    for mine, tree in zip(ends.T, trees, strict=True):
        assert partition(mine) == partition(tree.apply(codes))
    unseeded = clone(forest).set_params(random_state=None)
    assert state(case.fitted(grower=unseeded)[0]) == state(case.fitted(grower=unseeded)[0])


def test_a_grower_whose_trees_see_some_columns():
    bagging = BaggingClassifier(DecisionTreeClassifier(), 12, max_features=1, random_state=0)
    model, _ = CLASSIFIER.fitted(grower=bagging)
    assert {int(k) for post in model.posteriors_ for k in post.tree.feature if k >= 0} == {0, 1, 2, 3}


@pytest.mark.parametrize("max_depth", [1, 3])
@pytest.mark.parametrize("case", **ids(FOUR))
def test_max_depth(case, max_depth):
    model, _ = case.fitted(max_depth=max_depth)
    assert {int(post.tree.depth.max()) for post in model.posteriors_} == {max_depth}
    deep, _ = case.fitted(max_depth=None)
    assert max(int(post.tree.depth.max()) for post in deep.posteriors_) > 3


@pytest.mark.parametrize("min_samples_leaf", [20, 0.2])
@pytest.mark.parametrize("case", **ids(CLASSES))
def test_min_samples_leaf(case, min_samples_leaf):
    model, (X, _, _) = case.fitted(min_samples_leaf=min_samples_leaf)
    least = 20 if min_samples_leaf == 20 else 0.2 * 0.8 * len(X)
    for post in model.posteriors_:
        assert post.tree.n_nodes > 1
        assert post.statistics[post.tree.is_terminal].sum(axis=1).min() >= least


@pytest.mark.parametrize("kind", [et.MetaForestClassifier, et.MetaTreeClassifier])
def test_min_samples_leaf_of_categories(kind):
    category = np.arange(300) % 6
    y = rng_for("categories").random(300) < np.array([0.02, 0.98, 0.3, 0.7, 0.1, 0.9])[category]
    model = kind(min_samples_leaf=60, random_state=0).fit(np.array(list("abcdef"), dtype=object)[category][:, None], y)
    for post in model.posteriors_:
        assert post.statistics[post.tree.is_terminal].sum(axis=1).min() >= 60


@pytest.mark.parametrize("case", **ids(FOUR[:2]))
def test_max_features(case):
    models = [case.fitted(max_features=few)[0] for few in ("auto", 1, 0.5, "sqrt", "log2", None)]
    assert len({tuple(post.tree for post in model.posteriors_) for model in models}) >= 4
    everything, _ = case.fitted(max_features=None, max_depth=1, grower="random_forest")
    assert {int(post.tree.feature[0]) for post in everything.posteriors_} == {0}, "the best column is always there"
    one, _ = case.fitted(max_features=1, max_depth=1, grower="random_forest", n_estimators=20)
    assert {int(post.tree.feature[0]) for post in one.posteriors_} == {0, 1, 2, 3}


@pytest.mark.parametrize("case", **ids(FOUR[:2]))
def test_subsample(case):
    few, _ = case.fitted(200, subsample=0.1, max_depth=None)
    many, _ = case.fitted(200, subsample=1.0, max_depth=None)
    assert sum(post.tree.n_nodes for post in few.posteriors_) < sum(post.tree.n_nodes for post in many.posteriors_)
    assert {post.n_rows for model in (few, many) for post in model.posteriors_} == {200}


# ---- one tree, to be read -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [et.MetaTreeClassifier, et.MetaTreeRegressor])
def test_a_tree_can_be_read(kind):
    columns, signal = mixed_columns()
    y = np.where(signal > np.median(signal), "dear", "cheap") if kind is et.MetaTreeClassifier else signal
    model = kind(max_depth=3, random_state=0).fit(as_pandas(columns), y)
    text, html = model.to_text(), model._repr_html_()
    schema = model.schema_
    asked = {schema.input_names[schema.input_of[k]] for k in model.posterior_.tree.feature if k >= 0}
    for name in asked:
        assert name in text
        assert name in html
    if kind is et.MetaTreeClassifier:
        assert "dear" in text or "cheap" in text
    assert model.plot() is not None
    assert 1 < model.posterior_.map_tree().n_leaves <= model.posterior_.tree.is_terminal.sum()


@pytest.mark.parametrize(
    ("n_rows", "n_stand_ins"), [(9, 0), (10, 5), (10_000, 5), (12_500, 4), (25_000, 2), (60_000, 1)]
)
def test_stand_ins_leave_out_enough_rows_and_no_more(monkeypatch, n_rows, n_stand_ins):
    bags = []
    grow = TreeStructure.grow

    def noted(self, *args):
        grown = grow(self, *args)
        kept, judged = grown.kept, grown.judged
        bags.extend(one.in_bag for one in (kept if judged[0] is kept[0] else [*kept, *judged]))
        return grown

    monkeypatch.setattr(TreeStructure, "grow", noted)
    X = rng_for("stand-ins", n_rows).normal(size=(n_rows, 1))
    model = et.MetaTreeClassifier(max_depth=1, random_state=0).fit(X, X[:, 0] > 0.0)
    assert len(bags) == 1 + n_stand_ins
    assert model.forest_.n_rows == n_rows
    left_out = sum(~bag for bag in bags)
    assert left_out.max() <= 1
    assert left_out.sum() >= min(n_rows, 10_000) * bool(n_stand_ins)


# ---- targets far from zero ------------------------------------------------------------------------------------------

SHIFTED = {
    "tree": et.MetaTreeRegressor(max_depth=3, random_state=0),
    "linear tree": et.MetaTreeRegressor(max_depth=2, family="linear", random_state=0),
    "forest": et.MetaForestRegressor(4, max_depth=3, random_state=0),
    "exact": et.ExactTreeRegressor(max_depth=2),
}


@pytest.mark.parametrize("offset", [1e6, 1e9])
@pytest.mark.parametrize("name", SHIFTED)
def test_a_shift_of_the_targets_shifts_the_predictions(name, offset):
    """Law 10 for estimators, with fractional weights; the targets are such that adding the offset rounds nothing."""
    rng = rng_for("shift", name)
    X = np.column_stack([rng.normal(size=(300, 2)), rng.integers(0, 4, 300)])
    y = np.round((X[:, 0] > 0) + 0.3 * X[:, 2] + 0.2 * rng.normal(size=300), 2)
    y = np.round(1024 * y) / 1024
    weight = rng.random(300)
    here = clone(SHIFTED[name]).fit(X, y, sample_weight=weight)
    there = clone(SHIFTED[name]).fit(X, y + offset, sample_weight=weight)
    assert there.log_evidence_ == pytest.approx(here.log_evidence_, abs=1e-5)
    atol = 1e-5  # a hundred times the resolution of doubles at 1e9
    np.testing.assert_allclose(there.predict(X) - offset, here.predict(X), atol=atol)
    np.testing.assert_allclose(there.predict_interval(X, 0.9) - offset, here.predict_interval(X, 0.9), atol=atol)
    np.testing.assert_allclose(there.predictive(X).std(), here.predictive(X).std(), rtol=1e-5)
    np.testing.assert_allclose(there.predictive(X).log_prob(y + offset), here.predictive(X).log_prob(y), atol=1e-4)
