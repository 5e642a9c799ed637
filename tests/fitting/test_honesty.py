"""What a model says of its own quality agrees with fresh rows: with repeated and grouped rows, and on pure noise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import norm

import everytree as et
from cases import rng_for
from everytree.tables.repeats import read_groups, repeated_rows, row_groups

N_FRESH = 2000


def noisy_classes(rng, n):
    X = rng.normal(size=(n, 8))
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-1.2 * X[:, 0] - 0.8 * X[:, 1]))).astype(int)


def log_loss(model, X, y):
    return -float(np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean())


def coverage(model, X, y):
    low, high = model.predict_interval(X, 0.9).T
    return float(((low <= y) & (y <= high)).mean())


def quiet_fit(model, *args, **kwargs):
    """A fit without the warning that most rows are repeats, which has a test of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(*args, **kwargs)


# ---- rows that repeat each other ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [et.MetaForestClassifier, et.MetaTreeClassifier])
def test_rows_that_occur_twice_change_little(kind):
    rng = rng_for("twice", kind.__name__)
    X, y = noisy_classes(rng, 400)
    X_new, y_new = noisy_classes(rng, N_FRESH)
    once = kind(random_state=0).fit(X, y)
    twice = quiet_fit(kind(random_state=0), np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert log_loss(twice, X_new, y_new) < log_loss(once, X_new, y_new) + 0.03
    assert -twice.choice_.score > log_loss(twice, X_new, y_new) - 0.06


def test_intervals_of_rows_that_occur_five_times_cover():
    rng = rng_for("five times")
    X, X_new = rng.normal(size=(100, 5)), rng.normal(size=(N_FRESH, 5))
    y, y_new = (table[:, 0] + rng.normal(size=len(table)) for table in (X, X_new))
    model = quiet_fit(et.MetaForestRegressor(30, random_state=0), np.repeat(X, 5, axis=0), np.repeat(y, 5))
    assert coverage(model, X_new, y_new) > 0.8


@pytest.mark.parametrize(
    "kinds",
    [(et.MetaForestClassifier, et.MetaForestRegressor), (et.MetaTreeClassifier, et.MetaTreeRegressor)],
    ids=["forest", "tree"],
)
def test_groups_of_similar_rows(kinds):
    """Rows of a group differ a little in every column; only `groups` can tell that they belong together."""
    rng = rng_for("groups", kinds[0].__name__)
    group = np.repeat(np.arange(60), 8)
    centre, X_new = rng.normal(size=(60, 6)), rng.normal(size=(N_FRESH, 6))
    X = centre[group] + 0.01 * rng.normal(size=(480, 6))
    labels, labels_new = ((rng.random(len(C)) < 1 / (1 + np.exp(-2 * C[:, 0]))).astype(int) for C in (centre, X_new))
    classifier = kinds[0](random_state=0).fit(X, labels[group], groups=group)
    assert log_loss(classifier, X_new, labels_new) < 0.72
    numbers, numbers_new = (C[:, 0] + rng.normal(size=len(C)) for C in (centre, X_new))
    y = numbers[group] + 0.05 * rng.normal(size=480)
    regressor = kinds[1](random_state=0).fit(X, y, groups=[f"patient {k}" for k in group])
    assert coverage(regressor, X_new, numbers_new) > 0.8


def test_a_table_of_repeats_is_said():
    rng = rng_for("said")
    X, y = noisy_classes(rng, 60)
    model = et.MetaTreeClassifier(random_state=0)
    with pytest.warns(UserWarning, match=r"120 of 120 rows equal another row in every column.*pass groups="):
        model.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    model.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2), groups=np.repeat(np.arange(60), 2))  # and now it is not


def test_equal_rows_of_few_values_are_no_repeats():
    """A table of a few columns of few values consists of equal rows, which are observations of their own."""
    rng = rng_for("few values")
    codes = rng.integers(0, 3, (500, 3)).astype(np.uint8)
    assert repeated_rows(codes) is None
    assert len(np.unique(repeated_rows(np.arange(100, dtype=np.uint8)[:, None]))) == 100  # all differ
    wide = rng.integers(0, 200, (300, 6)).astype(np.uint8)
    group = repeated_rows(wide[np.repeat(np.arange(300), 2)])
    assert group is not None
    np.testing.assert_array_equal(group[::2], group[1::2])
    assert len(np.unique(group)) == 300


def panel(rng, n_persons, spread=(1, 6)):
    """Persons over years: plan, prices and health, which are the same every year and mostly have the same values."""
    household = rng.integers(0, n_persons // 2, n_persons)
    prices = np.where(rng.random((n_persons // 2, 2)) < 0.4, 0.0, rng.normal(size=(n_persons // 2, 2)).round(2))
    plan = rng.integers(0, 5, n_persons // 2)
    health = np.where(rng.random((n_persons, 5)) < 0.5, 0, rng.integers(0, 12, (n_persons, 5)))
    years = rng.integers(*spread, n_persons)
    return np.column_stack([plan[household], prices[household], health]), years


def test_persons_over_years_are_repeats_although_many_persons_are_alike():
    """Most pairs of equal rows are of persons with the commonest values; most equal rows are not."""
    for n_persons in (300, 1000, 3000):
        table, years = panel(rng_for("panel", n_persons), n_persons)
        codes = et.Schema.fit(np.repeat(table, years, axis=0)).encode(np.repeat(table, years, axis=0))
        assert repeated_rows(codes) is not None, n_persons


def test_a_model_of_persons_over_years_says_what_it_knows_of_new_persons():
    """Targets depend on the person alone: a row that stays behind must not say how its copies are predicted."""
    rng = rng_for("new persons")
    table, years = panel(rng, 800)
    X, person = np.repeat(table, years, axis=0), np.repeat(np.arange(800), years)
    y = rng.normal(size=800)[person] + 0.3 * rng.normal(size=len(person))
    with pytest.warns(UserWarning, match="taken for repeats"):
        model = et.MetaForestRegressor(30, random_state=0).fit(X, y)
    assert model.unseen_.r2 < 0.05


@pytest.mark.parametrize("n", [60, 300, 2000])
@pytest.mark.parametrize("agreement", [0.0, 0.5, 0.7])
def test_equal_rows_of_columns_that_depend_on_each_other_are_no_repeats(n, agreement):
    """Every column is a noisy copy of the one before; or towns, each in a district and a region."""
    rng = rng_for("dependent", n, agreement)
    for n_columns, n_values in ((2, 2), (3, 5), (5, 3), (8, 2)):
        codes = rng.integers(0, n_values, (n, n_columns)).astype(np.uint8)
        for k in range(1, n_columns):
            codes[:, k] = np.where(rng.random(n) < agreement, codes[:, k - 1], codes[:, k])
        assert repeated_rows(codes) is None, (n_columns, n_values)
    town = rng.integers(0, 200, n)
    places = np.column_stack([town // 4, town, town // 40, rng.integers(0, 3, n)]).astype(np.uint8)
    assert repeated_rows(places[:, :3]) is None
    assert repeated_rows(places) is None


def test_designs_with_every_combination_are_no_repeats():
    """A grid of all combinations, once or several times, and the outcomes of a game."""
    grid = np.stack(np.meshgrid(*map(np.arange, (4, 4, 4, 3, 3, 3)), indexing="ij"), axis=-1).reshape(-1, 6)
    for times in (2, 5):
        assert repeated_rows(np.repeat(grid, times, axis=0).astype(np.uint8)) is None


def test_many_equal_rows_are_said_whatever_they_are_taken_for():
    rng = rng_for("equal rows are said")
    town = rng.integers(0, 100, 300)
    X = np.column_stack([town, town // 4, town // 20]).astype(np.uint8)
    assert repeated_rows(X) is None
    with pytest.warns(UserWarning, match=r"of 300 rows equal another.*taken for independent.*pass groups="):
        row_groups(X, None)
    row_groups(rng.integers(0, 3, (300, 3)).astype(np.uint8), None)  # says nothing: so many are expected


def test_named_groups_are_taken_as_they_are():
    codes = np.zeros((4, 1), dtype=np.uint8)
    named = read_groups(["b", "a", "b", "c"], 4)
    group = row_groups(codes, named)
    assert group is not None
    np.testing.assert_array_equal(group, [1, 0, 1, 2])


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        (np.zeros(9), r"groups must have one entry for each of the 10 rows, but has shape \(9,\)"),
        (np.zeros((10, 2)), r"groups must have one entry for each of the 10 rows"),
        ([0.0] * 9 + [np.nan], r"groups\[9\] is nan, but must name the group"),
        (["a"] * 9 + [None], r"groups\[9\] is None, but must name the group"),
    ],
)
def test_groups_that_are_none(groups, match):
    X, y = np.arange(10.0)[:, None], np.arange(10) % 2
    model = et.MetaTreeClassifier(random_state=0)
    with pytest.raises(ValueError, match=match):
        model.fit(X, y, groups=groups)
    assert not hasattr(model, "forest_")


def test_exact_trees_take_no_groups():
    with pytest.raises(ValueError, match="ExactTreeClassifier takes no groups"):
        et.ExactTreeClassifier().fit(np.arange(10.0)[:, None], np.arange(10) % 2, groups=np.arange(10))


# ---- pure noise -----------------------------------------------------------------------------------------------------


def excess(kind, n, n_classes, seed):
    """Log-loss of fresh rows less that of the class frequencies; for numbers, minus R2."""
    rng = np.random.default_rng(seed)
    X, X_new = rng.normal(size=(n, 12)), rng.normal(size=(N_FRESH, 12))
    seeded = {"max_depth": 2} if kind is et.ExactTreeClassifier else {"random_state": 0}
    if n_classes == 0:
        y, y_new = rng.normal(size=n), rng.normal(size=N_FRESH)
        residual = y_new - kind(**seeded).fit(X, y).predict(X_new)
        return float(np.mean(residual**2) / np.mean((y_new - y.mean()) ** 2)) - 1.0
    y, y_new = np.arange(n) % n_classes, rng.integers(0, n_classes, N_FRESH)
    frequency = (np.bincount(y) + 0.5) / (n + 0.5 * n_classes)
    return log_loss(kind(**seeded).fit(X, y), X_new, y_new) + float(np.log(frequency[y_new]).mean())


@pytest.mark.parametrize("n", [50, 400])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("kind", [et.MetaForestClassifier, et.MetaTreeClassifier, et.ExactTreeClassifier])
def test_noise_is_predicted_by_its_frequencies(kind, n_classes, n):
    found = [excess(kind, n, n_classes, seed) for seed in range(3)]
    assert np.mean(found) < 0.03  # it was 0.12 and more for one tree


@pytest.mark.parametrize("kind", [et.MetaForestRegressor, et.MetaTreeRegressor])
def test_noise_of_numbers_is_predicted_by_its_mean(kind):
    assert np.mean([excess(kind, 200, 0, seed) for seed in range(3)]) < 0.03


@pytest.mark.parametrize("kind", [et.MetaTreeClassifier, et.MetaForestClassifier])
@pytest.mark.parametrize("seed", range(3))
def test_noise_of_groups_is_predicted_by_its_frequencies(kind, seed):
    """Rows of a group repeat each other, so that their evidence favours splits however improbable these are."""
    rng = rng_for("noise of groups", seed)
    group = np.repeat(np.arange(80), 8)
    X = rng.normal(size=(80, 5))[group] + rng.normal(scale=0.01, size=(640, 5))
    y = rng.permutation(np.arange(80) % 2)[group]
    model = kind(random_state=0).fit(X, y, groups=group)
    probs = model.predict_proba(rng.normal(size=(500, 5)))
    np.testing.assert_allclose(probs, 0.5, atol=0.05)


def test_noise_is_scored_as_it_is():
    """The score that a tree gives itself is no better than what fresh rows say, on average over tables of noise."""
    rng, too_bad = rng_for("own score"), []
    for _ in range(12):
        X, y = rng.normal(size=(600, 12)), rng.integers(0, 2, 600)
        model = et.MetaTreeClassifier(random_state=0, split_prior=0.8, alpha=0.1).fit(X, y)
        fresh = log_loss(model, rng.normal(size=(5000, 12)), rng.integers(0, 2, 5000))
        too_bad.append(-model.choice_.score - fresh)
    assert -0.02 < np.mean(too_bad) < 0.09


def gains_on_noise(kind, n, seed, **options):
    """Nats a row that a classifier gains over the frequencies of the classes: by its own scores, and of fresh rows."""
    rng = rng_for("gains on noise", kind.__name__, n, seed)
    X, X_new = rng.normal(size=(n, 6)), rng.normal(size=(N_FRESH, 6))
    y, y_new = (rng.random(len(table)) < (0.5, 0.3)[seed % 2] for table in (X, X_new))
    model = kind(random_state=seed, **options).fit(X, y)
    own, frequency = model.unseen_, np.bincount(y, minlength=2) / n
    fresh = -log_loss(model, X_new, y_new.astype(int)) - float(np.log(frequency[y_new.astype(int)]).mean())
    return own.baseline_log_loss - own.log_loss, fresh


@pytest.mark.parametrize(
    ("kind", "options", "n_seeds"),
    [(et.MetaBoostClassifier, {}, 20), (et.MetaEnsembleClassifier, {"n_estimators": 10}, 6)],
    ids=["boost", "ensemble"],
)
@pytest.mark.parametrize("n", [50, 200])
def test_boosting_claims_no_gain_on_noise(kind, options, n_seeds, n):
    """Boosting claimed one on every table: it stopped and was sharpened by the rows that it was judged by."""
    own, fresh = np.array([gains_on_noise(kind, n, seed, **options) for seed in range(n_seeds)]).T
    assert np.mean(own > 1e-3) < 0.3
    assert own.mean() < 2.0 * own.std() / np.sqrt(n_seeds) + 1e-3
    assert fresh.mean() > (-0.02 if n < 100 else -0.01)


@pytest.mark.parametrize("kind", [et.MetaBoostRegressor, et.MetaEnsembleRegressor])
def test_boosted_noise_of_numbers_is_predicted_by_its_mean(kind):
    found = []
    for seed in range(3):
        rng = rng_for("noise of boosted numbers", kind.__name__, seed)
        X, X_new, y, y_new = rng.normal(size=(150, 4)), rng.normal(size=(500, 4)), *rng.normal(size=(2, 500))
        options = {"n_residual_trees": 8, **({"n_estimators": 10} if kind is et.MetaEnsembleRegressor else {})}
        model = kind(random_state=0, **options).fit(X, y[:150])
        mean = float(y[:150].mean())
        fresh = 1.0 - np.mean((y_new - model.predict(X_new)) ** 2) / np.mean((y_new - mean) ** 2)
        found.append((model.unseen_.r2, fresh))
    own, fresh = np.array(found).T
    assert own.mean() < 0.01
    assert fresh.mean() > -0.01


def test_columns_that_say_nothing_leave_the_mean():
    """Means without a row are the smaller the larger its target is: as a column they told it, and R2 was 0.8."""
    y = rng_for("one column").poisson(5, 200)
    model = et.MetaEnsembleRegressor(family="poisson", n_estimators=20, random_state=0).fit(np.ones((200, 2)), y)
    np.testing.assert_allclose(model.predict(np.ones((1, 2))), y.mean(), rtol=0.02)
    assert model.unseen_.r2 < 0.01


# ---- intervals ------------------------------------------------------------------------------------------------------

REGRESSORS = {
    "forest": (et.MetaForestRegressor, {"n_estimators": 20, "random_state": 0}),
    "tree": (et.MetaTreeRegressor, {"random_state": 0}),
    "boost": (et.MetaBoostRegressor, {"n_residual_trees": 8, "random_state": 0}),
    "ensemble": (et.MetaEnsembleRegressor, {"n_estimators": 10, "n_residual_trees": 8, "random_state": 0}),
    "exact": (et.ExactTreeRegressor, {"max_depth": 2}),
    "sampled": (
        et.SampledTreeRegressor,
        {"n_draws": 20, "n_structures": 10, "n_chains": 1, "temperature": 1.0, "max_depth": 3, "random_state": 0},
    ),
}


@pytest.mark.parametrize("has_signal", [False, True], ids=["noise", "signal"])
@pytest.mark.parametrize("name", REGRESSORS)
def test_intervals_of_lognormal_targets_cover(name, has_signal):
    """They held 57% to 67% where no column mattered: the noise of leaves was not that of the data."""
    kind, options = REGRESSORS[name]
    covered = []
    for seed in range(2 if name == "ensemble" else 4):
        rng = rng_for("lognormal intervals", name, has_signal, seed)
        X, X_new = rng.integers(-2, 3, (150, 2)), rng.integers(-2, 3, (N_FRESH, 2))
        y, y_new = (np.exp(has_signal * C[:, 0] + rng.normal(size=len(C))) for C in (X, X_new))
        covered.append(coverage(kind(family="lognormal", **options).fit(X, y), X_new, y_new))
    assert 0.85 <= np.mean(covered) <= 0.95


def test_one_distribution_for_all_rows_is_as_wide_as_they_are():
    """What the scores of lognormal targets stand beside was too narrow, so that any model seemed to gain."""
    rng = rng_for("baseline")
    y = np.exp(2.0 + 0.5 * rng.normal(size=400))
    model = et.MetaForestRegressor(10, family="lognormal", random_state=0).fit(rng.normal(size=(400, 2)), y)
    logs = np.log(y)
    literal = -0.5 * np.log(2.0 * np.pi * logs.var()) - 0.5 - logs.mean()
    assert model.unseen_.baseline_log_score == pytest.approx(literal, abs=0.1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("are_equal", [True, False], ids=["equal classes", "random classes"])
@pytest.mark.parametrize("kind", [et.MetaForestClassifier, et.MetaTreeClassifier])
def test_on_noise_accuracies_are_those_of_fresh_rows(kind, are_equal, n_classes):
    """Of the model, and of always naming the largest class: leaving a row out must not make the other class win."""
    few = {"n_estimators": 20} if kind is et.MetaForestClassifier else {}
    own, same = [], []
    for seed in range(12):
        rng = rng_for("accuracies", are_equal, n_classes, seed)
        y = np.arange(60) % n_classes if are_equal else rng.integers(0, n_classes, 60)
        scores = kind(random_state=seed, **few).fit(rng.normal(size=(60, 4)), y).unseen_
        own.append(scores.accuracy - 1.0 / n_classes)
        same.append(scores.baseline_accuracy - 1.0 / n_classes)
    for differences in (own, same):
        assert abs(np.mean(differences)) < max(2.0 * np.std(differences) / np.sqrt(12.0), 0.02)


@pytest.mark.parametrize("family", ["normal", "lognormal"])
def test_one_distribution_for_all_rows_is_that_of_the_targets(family):
    """It does not take a part of their variance for explained: its log score is the best that any can have."""
    rng = rng_for("one distribution for all", family)
    X, z = rng.normal(size=(300, 3)), rng.normal(size=300)
    y = np.exp(z) if family == "lognormal" else z
    scores = et.MetaForestRegressor(10, family=family, random_state=0).fit(X, y).unseen_
    best = norm.logpdf(z, z.mean(), z.std()) - (z if family == "lognormal" else 0.0)
    assert scores.baseline_log_score == pytest.approx(best.mean(), abs=0.15)  # nearly all rows are scored


@pytest.mark.parametrize("family", ["normal", "poisson", "exponential"])
def test_on_noise_of_numbers_the_model_is_as_good_as_one_distribution_for_all(family):
    """Both are asked without the row, so that neither looks better than it is."""
    gains, r2 = [], []
    for seed in range(8):
        rng = rng_for("one distribution", family, seed)
        X, y = rng.normal(size=(60, 4)), {"normal": rng.normal, "poisson": rng.poisson, "exponential": rng.exponential}
        scores = et.MetaForestRegressor(20, family=family, random_state=seed).fit(X, y[family](2.0, size=60)).unseen_
        gains.append(scores.log_score - scores.baseline_log_score)
        r2.append(scores.r2)
    assert abs(np.median(gains)) < 0.005
    assert abs(np.median(r2)) < 0.005
