"""Targets of several columns: shared trees, and for each output the posterior that it would have on them by itself."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import ClassifierChain
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_sample_weight

import everytree as et
from cases import rng_for
from estimator_cases import as_pandas, mixed_columns, state
from everytree.fitting.targets.units import standardised
from everytree.report import write_report
from everytree.structure.grow_on import Classes, Numbers
from everytree.structure.growers import Growth, grow
from everytree.tables.repeats import row_groups
from refusals import unchanged

FORESTS = [et.MetaForestClassifier, et.MetaForestRegressor]
TREES = [et.MetaTreeClassifier, et.MetaTreeRegressor]
ALL = FORESTS + TREES

bit_equal = np.testing.assert_array_equal


def make(kind: type[Any], **options: Any) -> Any:
    small = {"n_estimators": 7} if kind in FORESTS else {}
    return kind(**{"random_state": 0, **small, **options})


def draw(kind: type[Any], n: int = 150, n_outputs: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and outputs that have some columns in common; classes are two, three, two, ..."""
    rng = rng_for("outputs", n, n_outputs)
    X = rng.normal(size=(n, 5))
    signal = np.stack([X[:, k] + 0.5 * X[:, k + 1] for k in range(n_outputs)], axis=1)
    Y = signal + 0.3 * rng.normal(size=signal.shape)
    if issubclass(kind, et.MetaForestClassifier | et.MetaTreeClassifier):
        Y = (Y > 0.0).astype(int) + ((Y > 1.0) & (np.arange(n_outputs) % 2 == 1))
    return X, Y


def answers(model: Any, X: Any) -> list[Any]:
    return model.predict_proba(X) if is_classifier(model) else list(model.predict(X, return_std=True))


# ---- the model ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_outputs_share_columns_and_trees_and_nothing_else(kind):
    X, Y = draw(kind)
    model = make(kind).fit(X, Y)
    first, *others = model.outputs_
    assert model.n_outputs_ == 3
    assert all(type(one) is kind for one in model.outputs_)
    for one in others:
        assert one.schema_ is first.schema_
        assert all(a is b for a, b in zip(one.forest_.trees, first.forest_.trees, strict=True))
        assert not set(one.posteriors_) & set(first.posteriors_)
    assert len({one.choice_.score for one in model.outputs_}) == 3


@pytest.mark.parametrize("kind", ALL)
def test_each_output_is_the_posterior_of_its_own_targets_on_the_trees(kind):
    X, Y = draw(kind)
    for one, y in zip(make(kind).fit(X, Y).outputs_, Y.T, strict=True):
        codes, target = one.schema_.encode(X), one.fitted_.target.numbers(y)
        for post in one.posteriors_:
            fresh = et.Posterior(post.tree, post.family, post.split_prior_argument).update(codes, target)
            np.testing.assert_allclose(post.statistics, fresh.statistics, rtol=1e-12, atol=1e-9)
            np.testing.assert_allclose(post.log_evidence, fresh.log_evidence, rtol=1e-9)


@pytest.mark.parametrize("kind", ALL)
def test_equal_columns_are_equal_models(kind):
    X, Y = draw(kind)
    first, second = make(kind).fit(X, Y[:, [0, 0]]).outputs_
    for own, other in zip(first.posteriors_, second.posteriors_, strict=True):
        bit_equal(own.statistics, other.statistics)


@pytest.mark.parametrize("kind", FORESTS)
def test_trees_of_a_forest_follow_the_outputs_in_turn(kind):
    X, Y = draw(kind)
    model = make(kind, n_estimators=14).fit(X, Y)
    first = model.outputs_[0]
    seeds = [one.seed for one in first.fitted_.origin.draws]
    codes, columns = first.schema_.encode(X), len(X.T)
    for place, y in enumerate(Y.T):
        own = seeds[place::3]
        follow = Classes(y, None) if is_classifier(model) else Numbers(standardised(y, None).values, None)
        grown = grow(
            codes, follow, Growth(), len(own),
            n_codes=first.schema_.n_codes, has_missing=np.zeros(columns, dtype=bool), seeds=own,
            group=row_groups(codes, None),
        )  # fmt: skip
        assert [one.tree for one in grown] == first.forest_.trees[place::3]


@pytest.mark.parametrize(("theirs", "ours"), [
    (DecisionTreeClassifier, et.MetaTreeClassifier), (DecisionTreeRegressor, et.MetaTreeRegressor),
])  # fmt: skip
def test_one_tree_is_that_of_scikit_learn_for_all_outputs(theirs, ours):
    X, Y = draw(ours)
    Y = Y if is_classifier(theirs()) else Y * [1.0, 1000.0, 0.01]  # numbers are scaled before
    same = Y if is_classifier(theirs()) else (Y - Y.mean(axis=0)) / Y.std(axis=0)
    model = ours(max_depth=3, random_state=0).fit(X, Y)
    other = theirs(max_depth=3, random_state=0).fit(model.schema_.encode(X), same)
    pairs = set(zip(model.apply(X), other.apply(model.schema_.encode(X)), strict=True))
    assert len(pairs) == len({own for own, _ in pairs}) == len({theirs for _, theirs in pairs}) > 4


@pytest.mark.parametrize("signal", ["the same", "apart"])
@pytest.mark.parametrize("kind", FORESTS)
def test_outputs_are_predicted_about_as_well_as_by_forests_of_their_own(kind, signal):
    rng = rng_for("quality", signal)
    X = rng.normal(size=(700, 6))
    mean = np.stack([np.sin(2 * X[:, k]) + X[:, k + 1] * (X[:, k + 2] > 0) for k in (0, 3 * (signal == "apart"))], 1)
    Y = mean + 0.4 * rng.normal(size=mean.shape)
    Y = (Y > 0.0).astype(int) if kind is et.MetaForestClassifier else Y
    score = accuracy_score if kind is et.MetaForestClassifier else r2_score
    shared = kind(60, random_state=0).fit(X[:350], Y[:350]).predict(X[350:])
    for place, y in enumerate(Y.T):
        alone = kind(60, random_state=0).fit(X[:350], y[:350]).predict(X[350:])
        assert score(y[350:], shared[:, place]) > score(y[350:], alone) - 0.05


def test_row_data_is_that_of_all_outputs():
    rng = rng_for("row data of outputs")
    X, years = rng.normal(size=(200, 2)), rng.exponential(size=200)
    counts = rng.poisson(years[:, None] * np.exp(X))
    model = make(et.MetaForestRegressor, family="poisson").fit(X, counts, exposure=years)
    assert model.predict(X, exposure=years).shape == (200, 2)
    assert model.score(X, counts, exposure=years) > 0.2
    times, censored = rng.exponential(np.exp(X)), rng.random(200) < 0.2
    waits = make(et.MetaTreeRegressor, family="exponential").fit(X, times, censored=censored)
    assert np.isfinite(waits.score(X, times, censored=censored))
    lines = make(et.MetaForestRegressor, family="linear").fit(X, np.c_[X[:, 0], 2 * X[:, 1] - X[:, 0]])
    assert lines.score(X, np.c_[X[:, 0], 2 * X[:, 1] - X[:, 0]]) > 0.99


@pytest.mark.parametrize("kind", ALL)
def test_columns_of_every_kind(kind):
    columns, signal = mixed_columns()
    table = as_pandas(columns)
    Y = np.c_[signal, -signal + rng_for("mixed outputs").normal(size=len(signal))]
    Y = Y > 1.0 if is_classifier(kind()) else Y
    model = make(kind).fit(table, Y)
    bit_equal(model.feature_names_in_, list(columns))
    assert model.score(table, Y) > 0.4


# ---- what scikit-learn's forests say --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RandomForestClassifier, *FORESTS[:1], *TREES[:1]])
def test_answers_of_classifiers_have_the_same_form(kind):
    X, Y = draw(et.MetaForestClassifier)
    model = kind(random_state=0).fit(X, Y)
    assert [len(each) for each in model.classes_] == list(model.n_classes_) == [2, 3, 2]
    assert [each.shape for each in model.predict_proba(X)] == [(150, 2), (150, 3), (150, 2)]
    with np.errstate(divide="ignore"):  # a tree of scikit-learn's may be certain
        assert [each.shape for each in model.predict_log_proba(X)] == [(150, 2), (150, 3), (150, 2)]
    predicted = model.predict(X)
    assert predicted.shape == Y.shape
    for probs, labels, column in zip(model.predict_proba(X), model.classes_, predicted.T, strict=True):
        bit_equal(labels[probs.argmax(axis=1)], column)
    assert model.n_outputs_ == 3
    assert model.feature_importances_.shape == (5,)
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)
    two = Y[:, ::2]
    assert model.fit(X, two).score(X, two) == accuracy_score(two, model.predict(X))


@pytest.mark.parametrize("kind", [RandomForestRegressor, *FORESTS[1:], *TREES[1:]])
def test_answers_of_regressors_have_the_same_form(kind):
    X, Y = draw(et.MetaForestRegressor)
    model = kind(random_state=0).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    np.testing.assert_allclose(model.score(X, Y), r2_score(Y, model.predict(X)))
    assert model.n_outputs_ == 3


@pytest.mark.parametrize("kind", ALL)
def test_answers_are_those_of_the_outputs(kind):
    X, Y = draw(kind)
    model = make(kind).fit(X, Y)
    for place, one in enumerate(model.outputs_):
        bit_equal(model.predict(X)[:, place], one.predict(X))
        bit_equal(model.apply(X), one.apply(X))
        if is_classifier(model):
            bit_equal(model.predict_proba(X)[place], one.predict_proba(X))
        else:
            bit_equal(model.predict(X, return_std=True)[1][:, place], one.predict(X, return_std=True)[1])
            assert one.predict_interval(X).shape == (150, 2)
    expected = (model.predict(X) == Y).all(axis=1).mean() if is_classifier(model) else r2_score(Y, model.predict(X))
    assert model.score(X, Y) == pytest.approx(expected)


def test_a_score_counts_rows_by_their_weights():
    X, Y = draw(et.MetaForestClassifier)
    weight = rng_for("score").integers(0, 3, len(X))
    model = make(et.MetaForestClassifier).fit(X[:40], Y[:40])
    assert model.score(X, Y, weight) == model.score(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))


def test_columns_of_any_library_and_kind():
    X, Y = draw(et.MetaForestClassifier, n_outputs=2)
    columns = {"colour": np.array(["red", "blue"])[Y[:, 0]].tolist(), "size": Y[:, 1].tolist()}
    for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        model = make(et.MetaForestClassifier).fit(X, table)
        bit_equal(model.classes_[0], ["blue", "red"])
        bit_equal(model.classes_[1], [0, 1, 2])
        assert {type(label) for label in model.predict(X)[:, 1].tolist()} == {int}
        assert model.score(X, table) > 0.9
    lists = make(et.MetaForestClassifier).fit(X.tolist(), Y.tolist())
    bit_equal(lists.predict(X), make(et.MetaForestClassifier).fit(X, Y).predict(X))


def test_one_column_is_one_output():
    X, Y = draw(et.MetaForestRegressor)
    alone = make(et.MetaForestRegressor).fit(X, Y[:, 0])
    assert alone.n_outputs_ == 1
    assert not hasattr(alone, "outputs_")
    assert state(make(et.MetaForestRegressor).fit(X, pd.Series(Y[:, 0]))) == state(alone)
    with pytest.warns(UserWarning, match="column-vector"):
        assert state(make(et.MetaForestRegressor).fit(X, Y[:, :1])) == state(alone)


@pytest.mark.parametrize("kind", FORESTS)
def test_tools_of_scikit_learn(kind):
    X, Y = draw(kind)
    assert np.isfinite(cross_val_score(make(kind), X, Y, cv=3)).all()
    GridSearchCV(make(kind), {"max_depth": [1, 3]}, cv=2).fit(X, Y)
    if is_classifier(kind()):
        ClassifierChain(make(kind), random_state=0).fit(X, Y[:, ::2])


def test_tags_say_who_takes_several_outputs():
    assert all(get_tags(kind()).target_tags.multi_output for kind in ALL)
    assert get_tags(et.MetaForestClassifier()).classifier_tags.multi_label
    assert not get_tags(et.ExactTreeClassifier()).target_tags.multi_output


@pytest.mark.parametrize("class_weight", ["balanced", [{0: 2.0}, {1: 0.5, 2: 3.0}, {}]], ids=str)
def test_weights_of_classes_are_multiplied(class_weight):
    X, Y = draw(et.MetaForestClassifier)
    named: Any = class_weight
    if isinstance(class_weight, list):  # scikit-learn wants all classes to be named
        named = [dict.fromkeys(np.unique(y), 1.0) | given for y, given in zip(Y.T, class_weight, strict=True)]
    expected = make(et.MetaForestClassifier).fit(X, Y, compute_sample_weight(named, Y))
    model = make(et.MetaForestClassifier, class_weight=class_weight).fit(X, Y)
    for own, other in zip(model.outputs_, expected.outputs_, strict=True):
        assert state(own) == state(other)
    twice = make(et.MetaForestClassifier, class_weight=class_weight).fit(X, Y, np.full(len(X), 2.0))
    assert twice.outputs_[0].posteriors_[0].statistics[0].sum() == pytest.approx(
        2.0 * model.outputs_[0].posteriors_[0].statistics[0].sum()
    )


@pytest.mark.parametrize("kind", FORESTS)
def test_a_warm_start_is_one_fit(kind):
    X, Y = draw(kind)
    cold = make(kind, n_estimators=23, oob_score=True, bootstrap=True).fit(X, Y)
    warm = make(kind, n_estimators=20, oob_score=True, bootstrap=True, warm_start=True).fit(X, Y)
    warm.set_params(n_estimators=23).fit(X, Y)
    for own, other in zip(warm.outputs_, cold.outputs_, strict=True):
        assert state(own) == state(other)
    assert [one.oob_score_ for one in warm.outputs_] == [one.oob_score_ for one in cold.outputs_]
    other = Y.copy()
    other[0, 2] = other[1, 2] + 1 if other[0, 2] == other[1, 2] else other[1, 2]
    warm.set_params(n_estimators=24)
    for changed in (other, Y[:, :2], Y[:, 0]):
        with pytest.raises(ValueError, match="warm_start=True keeps the trees"):
            warm.fit(X, changed)
    assert len(warm) == 23


@pytest.mark.parametrize("kind", FORESTS)
def test_out_of_bag(kind):
    X, Y = draw(kind)
    model = make(kind, n_estimators=40, bootstrap=True, oob_score=True).fit(X, Y)
    for one, y in zip(model.outputs_, Y.T, strict=True):
        if is_classifier(model):
            right = one.oob_decision_function_.argmax(axis=1) == y
            assert one.oob_score_ == pytest.approx(right.mean(), abs=0.05)  # but for ties
        else:
            assert one.oob_prediction_.shape == (150,)
    by_function = make(kind, n_estimators=40, bootstrap=True, oob_score=lambda y, predicted: float(y.ndim))
    assert [one.oob_score_ for one in by_function.fit(X, Y).outputs_] == [1.0] * 3
    with pytest.raises(AttributeError, match=r"use model.outputs_\[0\]"):
        model.oob_score_  # noqa: B018


# ---- copies, files, more rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_copies_and_files_are_the_same_model(kind, tmp_path: Path):
    X, Y = draw(kind)
    oob = {"n_estimators": 40, "oob_score": True} if kind in FORESTS else {}
    weights = {"class_weight": [{0: 2.0}, {}, {}]} if is_classifier(kind()) else {}
    model = make(kind, **oob, **weights).fit(pd.DataFrame(X, columns=list("abcde")), Y)
    et.save(model, tmp_path / "model.et")
    for other in (et.load(tmp_path / "model.et"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.get_params() == model.get_params()
        assert list(other.feature_names_in_) == list("abcde")
        for own, its in zip(model.outputs_, other.outputs_, strict=True):
            assert state(own) == state(its)
            assert own.get_params() == its.get_params()
        for own, its in zip(answers(model, X), answers(other, X), strict=True):
            bit_equal(own, its)
        if oob:
            assert [one.oob_score_ for one in other.outputs_] == [one.oob_score_ for one in model.outputs_]


def test_a_file_of_outputs_with_different_trees_is_refused(tmp_path: Path):
    X, Y = draw(et.MetaForestRegressor)
    model = make(et.MetaForestRegressor).fit(X, Y)
    model.outputs_[1] = make(et.MetaForestRegressor, random_state=1).fit(X, Y[:, 1])
    et.save(model, tmp_path / "model.et")
    with pytest.raises(et.ModelFileError, match="output_1: has other columns or trees than the first output"):
        et.load(tmp_path / "model.et")


@pytest.mark.parametrize("kind", ALL)
def test_more_rows_are_counted_output_by_output(kind):
    X, Y = draw(kind)
    model = make(kind).fit(X[:100], Y[:100])
    for one, y in zip(model.outputs_, Y.T, strict=True):
        one.partial_fit(X[100:], y[100:])
    for one, y in zip(model.outputs_, Y.T, strict=True):
        codes, target = one.schema_.encode(X), one.fitted_.target.numbers(y)
        for post in one.posteriors_:
            fresh = et.Posterior(post.tree, post.family, post.split_prior_argument).update(codes, target)
            np.testing.assert_allclose(post.statistics, fresh.statistics, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("kind", ALL)
def test_the_last_fit_decides_how_many_outputs_there_are(kind):
    X, Y = draw(kind)
    model = make(kind).fit(X, Y)
    alone = make(kind).fit(X, Y[:, 0])
    assert state(model.fit(X, Y[:, 0])) == state(alone)
    assert not hasattr(model, "outputs_")
    assert model.fit(X, Y[:, :2]).n_outputs_ == 2
    assert not hasattr(model, "fitted_")
    assert model.fit_batches([(X, Y[:, 0])]).n_outputs_ == 1


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_questions_to_one_output_name_the_outputs(kind, tmp_path: Path):
    X, Y = draw(kind)
    model = make(kind).fit(X, Y)
    questions = [
        lambda: model.predictive(X), lambda: model.forest_, lambda: model.posteriors_, lambda: model.weights_,
        lambda: model.choice_, lambda: model.log_evidence_, lambda: model.partial_fit(X, Y), lambda: model.to_text(),
        lambda: model.partial_fit(X, Y[:, 0]), lambda: model.merge(model), lambda: model.blank(),
        lambda: model.log_scores(X, Y), lambda: et.to_onnx(model),
        lambda: write_report(model, X, tmp_path / "page.html"),
    ]  # fmt: skip
    for question in questions:
        with pytest.raises(ValueError, match=r"has 3 outputs.* use model.outputs_\[0\] \.\. model.outputs_\[2\]"):
            question()
    assert not hasattr(model, "forest_")
    assert "outputs_" in model._repr_html_()


@pytest.mark.parametrize("kind", ALL)
def test_bad_targets_are_named_and_change_nothing(kind):
    X, Y = draw(kind)
    model = make(kind).fit(X, Y)
    before = [state(one) for one in model.outputs_]
    holes = Y.astype(float)
    holes[4, 1] = np.nan
    wrong = {
        r"NaN": holes,
        r"sparse matrix; pass y.toarray\(\)": scipy.sparse.csr_array(Y),
        r"y has 149 entries, but X has 150 rows": Y[1:],
    }  # fmt: skip
    for words, given in wrong.items():
        with pytest.raises(ValueError, match=words):
            model.fit(X, given)
    with pytest.raises(ValueError, match="has 2 columns, but the model has 3 outputs"):
        model.score(X, Y[:, :2])
    with pytest.raises(ValueError, match=r"149 entries|inconsistent"):
        model.score(X, Y[1:])
    with pytest.raises(ValueError, match="their first rows are learnt by fit"):
        make(kind).partial_fit(X, Y)
    assert [state(one) for one in model.outputs_] == before
    alone = make(kind).fit(X, Y[:, 0])
    with unchanged(state, alone), pytest.raises(ValueError, match="y should be a 1d array"):
        alone.partial_fit(X, Y)


def test_errors_name_the_column_of_y():
    X, _ = draw(et.MetaForestRegressor)
    Y = np.ones((len(X), 2))
    Y[7, 1] = -1.0
    with pytest.raises(ValueError, match="y: column 1, row 7: -1, but must be counts from 0 on for poisson"):
        make(et.MetaForestRegressor, family="poisson").fit(X, Y)
    with pytest.raises(ValueError, match="y: column 0 is 0 for every row: times of family 'exponential'"):
        make(et.MetaTreeRegressor, family="exponential").fit(X, Y * 0.0)


def test_weights_of_classes_that_do_not_fit_the_outputs():
    X, Y = draw(et.MetaForestClassifier)
    for wrong in ({0: 1.0}, [{0: 1.0}]):
        with pytest.raises(ValueError, match="class_weight must be a list of 3 dicts, one for each output"):
            make(et.MetaForestClassifier, class_weight=wrong).fit(X, Y)
    with pytest.raises(ValueError, match="class_weight is a list, which is for several outputs"):
        make(et.MetaForestClassifier, class_weight=[{0: 1.0}]).fit(X, Y[:, 0])


def test_forests_grow_by_evidence_and_one_tree_does_not():
    for kind in FORESTS:
        X, Y = draw(kind)
        assert make(kind, criterion="evidence").fit(X, Y).score(X, Y) > 0.7
    for kind in TREES:
        X, Y = draw(kind)
        with pytest.raises(ValueError, match="criterion is 'evidence', by which one tree cannot be grown for several"):
            make(kind, criterion="evidence").fit(X, Y)


def test_imported_structures_are_for_one_output():
    X, Y = draw(et.MetaForestRegressor)
    model = et.from_sklearn(RandomForestRegressor(3, random_state=0).fit(X, Y[:, 0]), X, Y[:, 0])
    with pytest.raises(ValueError, match="y has 3 columns, but the structures were imported for one output"):
        model.fit(X, Y)


@pytest.mark.parametrize("kind", FORESTS)
def test_a_forest_of_the_users_grows_for_all_outputs_at_once(kind):
    X, Y = draw(kind)
    theirs = RandomForestClassifier if is_classifier(kind()) else RandomForestRegressor
    model = make(kind, grower=theirs(9, random_state=0)).fit(X, Y)
    assert len(model) == 9
    assert model.score(X, Y) > 0.8
