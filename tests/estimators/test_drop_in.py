"""A forest of scikit-learn's is replaced by one of these, and nothing else is changed: the same questions to both."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_regression
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.class_weight import compute_sample_weight

import everytree as et
from cases import rng_for
from estimator_cases import ALL, as_pandas, ids, mixed_columns, state
from everytree.posterior.rows import Rows
from everytree.structure.draws import Draw
from everytree.structure.grow_on import Classes
from everytree.structure.growers import Growth, grow

CLASSIFIERS = [RandomForestClassifier, et.MetaForestClassifier]
REGRESSORS = [RandomForestRegressor, et.MetaForestRegressor]
FORESTS = CLASSIFIERS + REGRESSORS
OURS = [et.MetaForestClassifier, et.MetaForestRegressor]
TREES = [
    (DecisionTreeClassifier, et.MetaTreeClassifier),
    (DecisionTreeRegressor, et.MetaTreeRegressor),
]
FOREST_CASES = [case for case in ALL if case.is_forest]

bit_equal = np.testing.assert_array_equal


def data(kind: type[Any]) -> tuple[np.ndarray, np.ndarray]:
    return load_diabetes(return_X_y=True) if kind in REGRESSORS else load_wine(return_X_y=True)


def test_every_parameter_of_these_here_is_one_there_or_is_said_to_differ():
    """What scikit-learn's forests have and these have not."""
    left_out = {"min_samples_split", "min_weight_fraction_leaf", "min_impurity_decrease", "ccp_alpha", "max_samples"}
    for theirs, ours in (CLASSIFIERS, REGRESSORS):
        assert set(theirs().get_params()) - set(ours().get_params()) == left_out
    for kind in (*OURS, et.MetaTreeClassifier, et.MetaTreeRegressor):
        first, *others = inspect.signature(kind).parameters.values()
        assert first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        assert {each.kind for each in others} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("kind", FORESTS)
def test_parameters_are_set_got_and_cloned(kind):
    options = {
        "n_estimators": 7, "criterion": "squared_error" if kind in REGRESSORS else "entropy", "max_depth": 3,
        "min_samples_leaf": 2, "max_features": 0.5, "max_leaf_nodes": 5, "bootstrap": True, "oob_score": True,
        "n_jobs": 1, "random_state": 3, "verbose": 0, "warm_start": True,
    }  # fmt: skip
    model = kind().set_params(**options)
    assert options.items() <= model.get_params().items()
    assert clone(model).get_params() == model.get_params()
    X, y = data(kind)
    model.set_params(n_estimators=40).fit(X, y)
    assert isinstance(model.oob_score_, float)
    bit_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize(
    "labels", [[-1, 1], ["no", "yes"], [True, False], [10, 300, 7], [0.0, 5.0], np.array(["b", "a"], dtype=object)]
)
def test_labels_of_any_kind(kind, labels):
    X, y = load_wine(return_X_y=True)
    named = np.asarray(labels)[y % len(labels)]
    model = kind(10, random_state=0).fit(X, named)
    bit_equal(model.classes_, np.unique(named))
    assert model.predict(X).dtype == model.classes_.dtype
    assert (model.predict(X) == named).mean() > 0.95
    probs = model.predict_proba(X)
    bit_equal(model.predict(X), model.classes_[probs.argmax(axis=1)])
    with np.errstate(divide="ignore"):  # a tree of scikit-learn's may be certain
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(probs))


@pytest.mark.parametrize("kind", FORESTS)
def test_tools_of_model_selection(kind):
    X, y = data(kind)
    assert cross_val_score(kind(20, random_state=0), X, y, cv=3).mean() > (0.35 if kind in REGRESSORS else 0.9)
    grid = {"max_depth": [1, 6], "bootstrap": [False, True]}
    search = GridSearchCV(kind(10, random_state=0), grid, cv=2).fit(X, y)
    assert set(search.best_params_) == set(grid)


# ---- how trees are grown --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "entropy", "log_loss"])
def test_criteria_of_classes(criterion):
    X, y = load_breast_cancer(return_X_y=True)
    scores = [kind(30, criterion=criterion, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
              for kind in CLASSIFIERS]  # fmt: skip
    assert scores[1] > scores[0] - 0.03


@pytest.mark.parametrize(("ours", "grown"), [
    (lambda **options: et.MetaForestClassifier(6, random_state=0, **options), lambda model: model.posteriors_),
    (lambda **options: et.MetaTreeClassifier(random_state=0, **options), lambda model: model.posteriors_),
])  # fmt: skip
def test_the_criterion_decides_about_splits(ours, grown):
    X, y = load_breast_cancer(return_X_y=True)
    gini, entropy, log_loss = (
        [post.tree for post in grown(ours(criterion=criterion).fit(X, y))]
        for criterion in ("gini", "entropy", "log_loss")
    )
    assert gini != entropy
    assert entropy == log_loss


@pytest.mark.parametrize("family", ["normal", "linear", "poisson", "exponential", "geometric", "lognormal"])
def test_by_evidence_the_root_split_has_the_most_of_it(family):
    """Against all splits one by one; rows have weights, and row data where the family has any."""
    rng = np.random.default_rng(1)
    X, weight = rng.integers(0, 5, (60, 3)).astype(float), rng.integers(1, 3, 60).astype(float)
    y, given = rng.poisson(np.exp(0.4 * X[:, 1])) + 1.0, {}
    if family == "poisson":
        given = {"exposure": rng.uniform(0.2, 2.0, 60)}
    if family == "exponential":
        given = {"censored": rng.integers(0, 2, 60).astype(float)}
    model = et.MetaTreeRegressor(family=family, criterion="evidence", max_depth=1, max_bins=255, random_state=0)
    model.fit(X, y, sample_weight=weight, **given)
    inputs = {"inputs": np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(60)])}
    rows = given | (inputs if family == "linear" else {})
    leaves = model.fitted_.target.search(Rows(X, y, weight, rows)).first_family
    statistics = leaves.statistics(y, weight, **rows)

    def evidence(split: tuple[int, float]) -> float:
        left = X[:, split[0]] <= split[1]
        return sum(float(leaves.log_evidence(statistics[side].sum(axis=0)[None])[0]) for side in (left, ~left))

    best = max(((k, t) for k in range(3) for t in range(4)), key=evidence)
    tree = model.posteriors_[0].tree
    assert (tree.feature[0], tree.threshold[0]) == best


@pytest.mark.parametrize("kind", [et.MetaForestClassifier, et.MetaTreeClassifier])
def test_an_unknown_criterion_is_answered_by_those_there_are(kind):
    known = r"\['gini', 'entropy', 'log_loss', 'evidence'\]"
    with pytest.raises(ValueError, match=rf"criterion must be one of {known}, but is 'mse'"):
        kind(criterion="mse").fit(*load_wine(return_X_y=True))
    with pytest.raises(ValueError, match=r"one of \['squared_error', 'evidence'\], but is 'absolute_error'"):
        et.MetaForestRegressor(criterion="absolute_error").fit(*load_diabetes(return_X_y=True))


def leaves(model: Any, X: np.ndarray) -> list[int]:
    """How many leaves of each tree rows end in."""
    return [len(np.unique(ends)) for ends in model.apply(X).reshape(len(X), -1).T]


@pytest.mark.parametrize("most", [2, 5])
@pytest.mark.parametrize("kind", FORESTS)
def test_max_leaf_nodes(kind, most):
    X, y = data(kind)
    assert set(leaves(kind(8, max_leaf_nodes=most, random_state=0).fit(X, y), X)) == {most}
    for wrong in (1, 0, -3):
        with pytest.raises(ValueError, match="max_leaf_nodes"):
            kind(max_leaf_nodes=wrong).fit(X, y)


@pytest.mark.parametrize(("theirs", "ours"), TREES)
def test_max_leaf_nodes_of_one_tree(theirs, ours):
    X, y = load_diabetes(return_X_y=True) if "Regressor" in ours.__name__ else load_wine(return_X_y=True)
    for model in (theirs(max_leaf_nodes=4, random_state=0), ours(max_leaf_nodes=4, random_state=0)):
        assert leaves(model.fit(X, y), X) == [4]


def test_splits_into_all_categories_do_not_go_beyond_max_leaf_nodes():
    columns, signal = mixed_columns()
    for most in (2, 3, 8):
        model = et.MetaForestRegressor(8, max_leaf_nodes=most, random_state=0).fit(as_pandas(columns), signal)
        assert max(post.tree.n_terminals for post in model.posteriors_) <= most


@pytest.mark.parametrize("kind", OURS)
def test_max_depth(kind):
    X, y = data(kind)
    model = kind(6, max_depth=3, random_state=0).fit(X, y)
    assert max(post.tree.depth.max() for post in model.posteriors_) == 3


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("fewest", [1, 7, 0.1])
def test_min_samples_leaf_as_a_number_and_as_a_share(kind, fewest):
    X, y = data(kind)
    share = {} if kind not in OURS else {"subsample": 1.0}
    model = kind(5, min_samples_leaf=fewest, bootstrap=False, random_state=0, **share).fit(X, y)
    smallest = min(np.bincount(ends)[np.unique(ends)].min() for ends in model.apply(X).T)
    assert smallest >= (fewest if fewest >= 1 else np.ceil(fewest * len(X)))


@pytest.mark.parametrize("kind", FORESTS)
def test_bootstrap_leaves_out_a_third_of_the_rows(kind):
    X, y = data(kind)
    model = kind(30, bootstrap=True, random_state=0).fit(X, y)
    if kind in OURS:
        drawn = [draw.times(len(X)) for draw in model.fitted_.origin.draws]
        assert {int(times.sum()) for times in drawn} == {len(X)}
        shares = [(times > 0).mean() for times in drawn]
    else:
        shares = [len(np.unique(sample)) / len(X) for sample in model.estimators_samples_]
    assert 0.60 < np.mean(shares) < 0.66


@pytest.mark.parametrize("grower", ["random_forest", "extra_trees"])
def test_a_tree_of_a_bootstrap_is_that_of_the_drawn_rows_weighted_by_how_often_they_were_drawn(grower):
    X, y = load_wine(return_X_y=True)
    codes = et.Schema.fit(X).encode(X)
    table: dict[str, Any] = {
        "n_codes": codes.max(axis=0) + 1, "has_missing": np.zeros(X.shape[1], dtype=bool),
    }  # fmt: skip
    growth, differ = Growth(grower, bootstrap=True), []
    for number in range(6):
        seeds = [number, number]
        (grown,) = grow(codes, Classes(y, None), growth, 1, seeds=seeds, **table)
        times = Draw(number, bootstrap=True).times(len(X))
        drawn = times > 0
        bit_equal(grown.in_bag, drawn)
        once = replace(growth, bootstrap=False, subsample=1.0)
        (weighted,) = grow(codes[drawn], Classes(y[drawn], times[drawn].astype(float)), once, 1, seeds=seeds, **table)
        assert grown.tree == weighted.tree
        (unweighted,) = grow(codes[drawn], Classes(y[drawn], None), once, 1, seeds=seeds, **table)
        differ.append(grown.tree != unweighted.tree)
    assert any(differ), "weights matter"


def test_rows_of_a_group_are_drawn_equally_often():
    group = rng_for("drawn groups").integers(0, 9, 50)
    group = np.unique(group, return_inverse=True)[1]
    for draw in (Draw(3, bootstrap=True), Draw(3, 0.5)):
        times = draw.times(50, group)
        assert all(len(set(times[group == number])) == 1 for number in group)
        bit_equal(times, draw.times(50, group))
    assert Draw(0, 0.01).times(20).sum() == 1
    bit_equal(np.sort(Draw(1, 0.25).times(20)), np.repeat([0, 1], [15, 5]))


@pytest.mark.parametrize("name", ["criterion", "max_leaf_nodes", "bootstrap", "warm_start"])
def test_parameters_that_a_forest_of_its_own_would_not_take_are_refused(name):
    X, y = load_wine(return_X_y=True)
    value = {"criterion": "entropy", "max_leaf_nodes": 4}.get(name, True)
    model = et.MetaForestClassifier(grower=RandomForestClassifier(3), **{name: value})
    with pytest.raises(ValueError, match=f"{name} is .*, which would change nothing: grower is a forest of its own"):
        model.fit(X, y)
    imported = et.from_sklearn(RandomForestClassifier(3).fit(X, y), X, y)
    with pytest.raises(ValueError, match=f"{name} is .*, which would change nothing: the structures were imported"):
        imported.set_params(**{name: value}).fit(X, y)


# ---- what cannot be learnt from, or says nothing --------------------------------------------------------------------

FOUR = [et.MetaForestClassifier, et.MetaForestRegressor, et.MetaTreeClassifier, et.MetaTreeRegressor]


def small(kind: type[Any], **options: Any) -> Any:
    return kind(**({"n_estimators": 5} if kind in OURS else {}), random_state=0, **options)


def sizes(model: Any) -> set[int]:
    """How many nodes the trees have."""
    outputs = getattr(model, "outputs_", [model])
    return {post.tree.n_nodes for one in outputs for post in one.posteriors_}


def rows_for(kind: type[Any], n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng_for("little to learn").normal(size=(60, 3))
    y = X[:, 0] if "Regressor" in kind.__name__ else (X[:, 0] > 0.0).astype(int)
    return X, y if n_outputs == 1 else np.column_stack([y] * n_outputs)


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("kind", FOUR)
def test_where_there_is_nothing_to_learn_trees_have_one_node(kind, n_outputs):
    X, y = rows_for(kind, n_outputs)
    constant = small(kind).fit(X, np.full_like(y, 3))
    assert sizes(constant) == {1}
    bit_equal(constant.predict(X), np.full(y.shape, 3.0))
    assert sizes(small(kind).fit(np.full(X.shape, np.nan), y)) == {1}
    assert sizes(small(kind).fit(X[:1], y[:1])) == {1}


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("kind", FOUR)
def test_a_single_row_with_weight_is_all_there_is(kind, n_outputs):
    X, y = rows_for(kind, n_outputs)
    weight = np.zeros(60)
    weight[7] = 2.0
    model = small(kind).fit(X, y, weight)
    assert sizes(model) == {1}
    bit_equal(model.predict(X), np.broadcast_to(y[7], y.shape))


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("kind", FOUR)
def test_a_column_that_is_all_missing_says_nothing(kind, n_outputs):
    X, y = rows_for(kind, n_outputs)
    holes = X.copy()
    holes[:, 1] = np.nan
    model = small(kind).fit(holes, y)
    assert model.feature_importances_[1] == 0.0
    bit_equal(model.predict(X), model.predict(holes))
    assert model.score(holes, y) > 0.5


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("kind", FOUR)
def test_parameters_that_no_tree_can_have_are_refused(kind, n_outputs):
    X, y = rows_for(kind, n_outputs)
    of_others = "gini" if "Regressor" in kind.__name__ else "squared_error"
    wrong: list[tuple[str, Any, str]] = [
        ("max_leaf_nodes", 1, "max_leaf_nodes must be a whole number from 2 on, but is 1"),
        *(("criterion", name, "criterion must be one of") for name in (of_others, "absolute_error", "poisson", None)),
        *(
            ("monotonic_cst", signs, "monotonic_cst (must|is|names)")
            for signs in ([1, 0], "increasing", {"age": 1}, 0, [[0, 0, 0]], [np.nan, 0, 0])
        ),
    ]
    model = small(kind).fit(X, y)
    before = pickle.dumps(model.predict(X))
    for name, value, words in wrong:
        with pytest.raises(ValueError, match=words):
            model.set_params(**{name: value}).fit(X, y)
        model.set_params(**{name: kind().get_params()[name]})
    assert pickle.dumps(model.predict(X)) == before


@pytest.mark.parametrize("kind", FOUR)
def test_no_monotone_constraint_is_one_that_is_accepted(kind):
    X, y = rows_for(kind, 1)
    for signs in (None, [0, 0, 0], np.zeros(3)):
        assert state(small(kind, monotonic_cst=signs).fit(X, y)) == state(small(kind).fit(X, y))


# ---- weights of classes ---------------------------------------------------------------------------------------------

WEIGHTS: list[Any] = ["balanced", {0: 2.0, 1: 0.5, 2: 1.0}, {1: 3.0}]


def uneven_rows() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    kept = np.concatenate([np.flatnonzero(y == label)[:n] for label, n in ((0, 15), (1, 40), (2, 45))])
    return X[kept], y[kept]


@pytest.mark.parametrize("class_weight", WEIGHTS, ids=str)
@pytest.mark.parametrize("kind", [et.MetaForestClassifier, et.MetaTreeClassifier])
def test_weights_of_classes_are_weights_of_rows(kind, class_weight):
    X, y = uneven_rows()
    weight = rng_for("class weights").integers(1, 4, len(y)).astype(float)
    small = {} if kind is et.MetaTreeClassifier else {"n_estimators": 8}
    by_class = kind(**small, class_weight=class_weight, random_state=0)
    plain = kind(**small, random_state=0)
    of_class = compute_sample_weight(class_weight, y)
    for given in (None, weight):
        expected = plain.fit(X, y, of_class if given is None else of_class * given).predict_proba(X)
        bit_equal(by_class.fit(X, y, given).predict_proba(X), expected)


def test_labels_of_text_have_weights_too():
    X, y = uneven_rows()
    names = np.array(["a", "b", "c"])[y]
    model = et.MetaForestClassifier(5, class_weight={"a": 3.0, "c": 0.5}, random_state=0).fit(X, names)
    same = et.MetaForestClassifier(5, random_state=0).fit(X, names, np.array([3.0, 1.0, 0.5])[y])
    assert state(model) == state(same)


def test_balance_in_a_subsample_is_balance():
    X, y = uneven_rows()
    models = [et.MetaForestClassifier(5, class_weight=how, random_state=0).fit(X, y)
              for how in ("balanced", "balanced_subsample")]  # fmt: skip
    assert state(models[0]) == state(models[1])


def test_balance_helps_the_small_class():
    rng = rng_for("small class")
    X = rng.normal(size=(1500, 3))
    y = (X[:, 0] + rng.normal(size=1500) > 2.2).astype(int)
    assert y[:1000].mean() < 0.15
    for kind in CLASSIFIERS:
        plain, balanced = (
            balanced_accuracy_score(y[1000:], kind(40, class_weight=how, max_depth=4, random_state=0)
                                    .fit(X[:1000], y[:1000]).predict(X[1000:]))
            for how in (None, "balanced")
        )  # fmt: skip
        assert balanced > plain + 0.05


def test_a_class_that_is_none_is_refused_as_there():
    X, y = uneven_rows()
    for kind in CLASSIFIERS:
        with pytest.raises(ValueError, match="class_weight"):
            kind(5, class_weight={0: 1.0, 7: 2.0}).fit(X, y)


def test_batches_take_weights_of_classes_from_a_dict():
    X, y = uneven_rows()
    order = rng_for("class weights in batches").permutation(len(y))
    X, y, named = X[order], y[order], {0: 3.0, 2: 0.5}
    of_class = np.array([3.0, 1.0, 0.5])[y]
    weighted = et.MetaForestClassifier(4, class_weight=named, random_state=0)
    plain = et.MetaForestClassifier(4, random_state=0)
    for some in np.array_split(np.arange(len(y)), 3):
        weighted.partial_fit(X[some], y[some], classes=[0, 1, 2])
        plain.partial_fit(X[some], y[some], classes=[0, 1, 2], sample_weight=of_class[some])
    assert state(weighted) == state(plain)
    for how in ("balanced", "balanced_subsample"):
        with pytest.raises(ValueError, match=f"class_weight is '{how}', for which all rows must be known"):
            weighted.set_params(class_weight=how).partial_fit(X, y)
    assert state(weighted) == state(plain)
    with pytest.raises(ValueError, match="class_weight is for fit and partial_fit; name a column of weights"):
        et.MetaForestClassifier(4, class_weight=named).fit_batches([(X, y)])


# ---- more trees later -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORESTS)
def test_a_warm_start_grows_the_trees_of_one_fit(kind):
    X, y = data(kind)
    cold = kind(11, random_state=0).fit(X, y)
    warm = kind(4, random_state=0, warm_start=True).fit(X, y)
    first = trees_of(warm)
    warm.set_params(n_estimators=11).fit(X, y)
    assert all(a is b for a, b in zip(first, trees_of(warm), strict=False)), "those that are there are kept"
    bit_equal(warm.apply(X), cold.apply(X))
    bit_equal(warm.predict(X), cold.predict(X))


def trees_of(model: Any) -> list[Any]:
    return list(model.estimators_) if hasattr(model, "estimators_") else model.forest_.trees


@pytest.mark.filterwarnings("ignore:.* no out-of-bag prediction")
@pytest.mark.parametrize("options", [{}, {"bootstrap": True, "oob_score": True}, {"weights": "stacking"}], ids=str)
@pytest.mark.parametrize("case", **ids(FOREST_CASES))
def test_a_warm_start_is_the_whole_model_of_one_fit(case, options):
    X, y, row_data = case.draw(120, "warm")
    cold = case.make(n_estimators=9, **options).fit(X, y, **row_data)
    warm = case.make(n_estimators=6, warm_start=True, **options).fit(X, y, **row_data)
    warm.set_params(n_estimators=8).fit(X, y, **row_data)
    warm.set_params(n_estimators=9).fit(X, y, **row_data)
    assert state(warm) == state(cold)
    assert warm.choice_.parameters == cold.choice_.parameters
    if "oob_score" in options:
        assert warm.oob_score_ == cold.oob_score_


@pytest.mark.parametrize("kind", FORESTS)
def test_fewer_trees_are_refused_and_as_many_are_said(kind):
    X, y = data(kind)
    model = kind(6, random_state=0, warm_start=True).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="n_estimators"):
        model.set_params(n_estimators=5).fit(X, y)
    with pytest.warns(UserWarning, match=r"[Ww]arm.start"):
        model.set_params(n_estimators=6).fit(X, y)
    bit_equal(model.predict(X), before)


@pytest.mark.parametrize("kind", FORESTS)
def test_without_a_warm_start_everything_is_grown_anew(kind):
    X, y = data(kind)
    model = kind(6, random_state=0, warm_start=True).fit(X, y)
    model.set_params(warm_start=False, n_estimators=3, random_state=1).fit(X, y)
    bit_equal(model.apply(X), kind(3, random_state=1).fit(X, y).apply(X))


def test_trees_know_their_own_rows_when_the_sampling_changes():
    """Rows that an earlier tree was grown on are not predicted by it out of bag, however later ones are sampled."""
    X, y = load_wine(return_X_y=True)
    model = et.MetaForestClassifier(20, random_state=0, warm_start=True, subsample=0.6).fit(X, y)
    model.set_params(n_estimators=40, bootstrap=True).fit(X, y)
    assert [draw.bootstrap for draw in model.fitted_.origin.draws] == [False] * 20 + [True] * 20
    assert {draw.share for draw in model.fitted_.origin.draws[:20]} == {0.6}


def test_a_warm_start_refuses_other_rows_and_changes_nothing():
    X, y = load_wine(return_X_y=True)
    model = et.MetaForestClassifier(4, random_state=0, warm_start=True).fit(X, y)
    before = state(model)
    model.set_params(n_estimators=6)
    others = [
        lambda: model.fit(X[::-1], y[::-1]),
        lambda: model.fit(X[:100], y[:100]),
        lambda: model.fit(X, y, np.full(len(y), 2.0)),
        lambda: model.fit(X, y, groups=np.arange(len(y)) // 2),
    ]
    for fit_others in others:
        with pytest.raises(ValueError, match=r"warm_start=True keeps the trees .* are not those of that fit"):
            fit_others()
        assert state(model) == before
    assert len(model.fit(X, y).posteriors_) == 6


def test_a_warm_start_of_a_model_from_a_file_grows_the_same_trees_again(tmp_path: Path):
    X, y = load_wine(return_X_y=True)
    model = et.MetaForestClassifier(4, random_state=0, warm_start=True).fit(X, y)
    et.save(model, tmp_path / "model.et")
    again = et.load(tmp_path / "model.et").set_params(n_estimators=6).fit(X, y)
    assert state(again) == state(et.MetaForestClassifier(6, random_state=0).fit(X, y))


# ---- where rows go --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OURS)
def test_ends_are_terminals_of_each_tree(kind):
    X, y = data(kind)
    model = kind(5, max_depth=4, random_state=0).fit(X, y)
    ends = model.apply(X)
    assert ends.shape == (len(X), 5)
    for tree, own in zip((post.tree for post in model.posteriors_), ends.T, strict=True):
        assert tree.is_terminal[own].all()


@pytest.mark.parametrize(("theirs", "ours"), TREES)
def test_ends_in_one_tree(theirs, ours):
    X, y = load_diabetes(return_X_y=True) if "Regressor" in ours.__name__ else load_wine(return_X_y=True)
    for model in (theirs(max_depth=3, random_state=0), ours(max_depth=3, random_state=0)):
        assert model.fit(X, y).apply(X).shape == (len(X),)


# ---- sparse tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr_matrix", "csc_array", "coo_matrix", "dok_array"])
@pytest.mark.parametrize("kind", OURS)
def test_sparse_tables_are_dense_ones_with_zeros(kind, form):
    rng = rng_for("sparse", form)
    X = np.where(rng.random((120, 6)) < 0.3, rng.normal(size=(120, 6)), 0.0)
    y = X[:, 0] + X[:, 1] * 2 if kind in REGRESSORS else (X[:, 0] > X[:, 1]).astype(int)
    sparse = getattr(scipy.sparse, form)(X)
    model, dense = kind(5, random_state=0).fit(sparse, y), kind(5, random_state=0).fit(X, y)
    bit_equal(model.predict(sparse), dense.predict(X))
    bit_equal(model.predict(X), dense.predict(sparse))


def test_cells_stored_in_parts_and_missing_ones():
    parts = scipy.sparse.csr_matrix((np.array([1.0, 2.0, np.nan]), ([0, 0, 2], [1, 1, 0])), shape=(4, 2))
    uncombined = scipy.sparse.csc_matrix(
        (np.array([np.nan, 1.0, 2.0]), np.array([2, 0, 0]), np.array([0, 1, 3])), shape=(4, 2)
    )
    table = np.array([[0.0, 3.0], [0.0, 0.0], [np.nan, 0.0], [0.0, 0.0]])
    for sparse in (parts, uncombined):
        assert et.Schema.fit(sparse) == et.Schema.fit(table)
        bit_equal(et.Schema.fit(table).encode(sparse), et.Schema.fit(table).encode(table))
    assert not uncombined.has_canonical_format, "the table that was given is not changed"


def test_partial_fit_takes_sparse_rows():
    X, y = make_regression(90, 4, random_state=0)
    X[X < 0.0] = 0.0
    model = et.MetaForestRegressor(4, random_state=0)
    for some in np.array_split(np.arange(90), 3):
        model.partial_fit(scipy.sparse.csr_array(X[some]), y[some])
    same = et.MetaForestRegressor(4, random_state=0)
    for some in np.array_split(np.arange(90), 3):
        same.partial_fit(X[some], y[some])
    assert state(model) == state(same)


@pytest.mark.parametrize("sample_rows", [60, 1000])
@pytest.mark.parametrize("form", ["csr_matrix", "csc_array", "coo_array", "dok_matrix"])
def test_batches_may_be_sparse(form, sample_rows):
    rng = rng_for("sparse batches", form)
    X = np.where(rng.random((200, 5)) < 0.4, rng.normal(size=(200, 5)), 0.0)
    y, weight, sparse = X[:, 0] - X[:, 1], rng.integers(0, 3, 200).astype(float), getattr(scipy.sparse, form)
    parts = np.array_split(np.arange(200), 4)
    model = et.MetaForestRegressor(4, random_state=0)
    for given in (
        lambda table, some: (table(X[some]), y[some]),
        lambda table, some: (table(X[some]), y[some], weight[some]),
    ):
        batches = [given(sparse, some) for some in parts]
        empty = (sparse((0, 5)), *(np.zeros(0) for _ in batches[0][1:]))
        found = state(model.fit_batches([batches[0], empty, *batches[1:]], sample_rows=sample_rows))
        assert found == state(model.fit_batches([given(np.asarray, some) for some in parts], sample_rows=sample_rows))
    if sample_rows > len(X):
        assert state(model.fit_batches([(sparse(X[some]), y[some]) for some in parts])) == state(model.fit(X, y))


# ---- out of bag, and files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORESTS)
def test_out_of_bag_scores_are_like_those_of_fresh_rows(kind):
    X, y = data(kind)
    order = rng_for("out of bag").permutation(len(X))
    half, rest = order[::2], order[1::2]
    model = kind(60, bootstrap=True, oob_score=True, random_state=0).fit(X[half], y[half])
    assert abs(model.oob_score_ - model.score(X[rest], y[rest])) < (0.15 if kind in REGRESSORS else 0.08)
    oob = model.oob_prediction_ if kind in REGRESSORS else model.oob_decision_function_
    assert oob.shape == ((len(half),) if kind in REGRESSORS else (len(half), 3))


@pytest.mark.parametrize("case", **ids(FOREST_CASES))
def test_files_keep_scores_and_parameters(case, tmp_path: Path):
    X, y, row_data = case.draw(120)
    weights = (
        {"class_weight": dict(zip(np.unique(y).tolist(), (1.5, 0.5), strict=False))} if "class" in str(case) else {}
    )
    weights = weights if hasattr(case.make(), "class_weight") else {}
    model = case.make(n_estimators=40, oob_score=True, max_leaf_nodes=9, bootstrap=True, **weights)
    model.fit(X, y, **row_data)
    et.save(model, tmp_path / "model.et")
    again = et.load(tmp_path / "model.et")
    assert again.get_params() == model.get_params()
    assert again.oob_score_ == model.oob_score_
    name = "oob_decision_function_" if hasattr(model, "classes_") else "oob_prediction_"
    bit_equal(getattr(again, name), getattr(model, name))
    assert state(again) == state(model)


def test_a_function_is_no_content_of_a_file(tmp_path: Path):
    model = et.MetaForestClassifier(oob_score=balanced_accuracy_score)
    with pytest.raises(TypeError, match=r"oob_score is .* set_params\(oob_score=True\) keeps the score"):
        et.save(model, tmp_path / "model.et")


def test_the_decision_function_orders_rows_as_probabilities_do():
    X, y = load_wine(return_X_y=True)
    two = et.MetaForestClassifier(5, random_state=0).fit(X, y == 1)
    probs = two.predict_proba(X)
    np.testing.assert_allclose(two.decision_function(X), np.log(probs[:, 1] / probs[:, 0]), atol=1e-10)
    np.testing.assert_array_equal(two.decision_function(X) > 0.0, two.predict(X))
    three = et.MetaForestClassifier(5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(three.decision_function(X).argmax(axis=1), three.predict(X))
    both = et.MetaForestClassifier(5, random_state=0).fit(X, np.column_stack([y, y == 1]))
    assert not hasattr(both, "decision_function")


def test_a_model_saves_itself(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = et.MetaForestRegressor(3, random_state=0).fit(X, y)
    model.save(tmp_path / "model.et")
    bit_equal(et.load(tmp_path / "model.et").predict(X), model.predict(X))
