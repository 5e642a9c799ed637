"""Scores of rows that the trees had not seen: those of slow recomputations, kept only as long as they are true."""

from __future__ import annotations

import copy
import functools
import pickle
import warnings
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.metrics import log_loss

import everytree as et
import everytree.boosting.chains
import everytree.fitting.held_out.predictions
import everytree.fitting.held_out.unseen
import everytree.fitting.structures.boost
import everytree.fitting.structures.ensemble
import everytree.fitting.structures.grown
import everytree.fitting.structures.tree
from cases import rng_for, take
from estimator_cases import ALL, Case, ids, of_leaf
from everytree.batches.row_sample import RowSample
from everytree.fitting.held_out.scores import ClassScores, NumberScores
from everytree.predictive.pooled import sharpened
from everytree.tables.repeats import row_groups
from naive_scores import slow_accuracy, slow_r2

close = functools.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)

FORESTS = [case for case in ALL if case.is_forest]
TREES = [case for case in ALL if not case.is_forest]
N = 40

Rows = tuple[Any, Any, dict[str, Any]]


# ---- slow twins -----------------------------------------------------------------------------------------------------


def targets_of(model: Any, y: Any) -> np.ndarray:
    return np.searchsorted(model.classes_, y) if hasattr(model, "classes_") else np.asarray(y, dtype=float)


class Slow:
    """One row's distribution: a weighted mean of those of single trees, then sharpened."""

    def __init__(self, said: list[Any], weights: Any, sharpness: float) -> None:
        self.said, self.weights, self.sharpness = said, np.asarray(weights, dtype=float), sharpness

    def of(self, method: str, *arguments: Any) -> float:
        return np.average([getattr(one, method)(*arguments)[0] for one in self.said], axis=0, weights=self.weights)

    def probs(self) -> np.ndarray:
        power = self.of("probs") ** self.sharpness
        return power / power.sum()

    def stretched(self, y: float) -> float:
        mean = self.of("mean")
        return y if self.sharpness == 1.0 else mean + (y - mean) * self.sharpness

    def powered(self) -> Any:
        """Of leaves with cells: the average of their shares, raised to a power."""
        family, shares = self.said[0]._family, [one.powered(1.0)._summary[0, :-1] for one in self.said]
        power = np.average(shares, axis=0, weights=self.weights) ** self.sharpness
        return family.components(np.append(power / power.sum(), 0.0)[None])

    @property
    def is_powered(self) -> bool:
        return bool(self.said[0]._family.is_sharpened_by_power)

    def mean(self) -> float:
        return self.powered().mean()[0] if self.is_powered else self.of("mean")

    def log_prob(self, y: float) -> float:
        if self.is_powered:
            return self.powered().log_prob(np.array([y]))[0]
        logs = [one.log_prob([self.stretched(y)])[0] for one in self.said]
        return np.log(np.average(np.exp(logs), weights=self.weights)) + np.log(self.sharpness)

    def cdf(self, y: float) -> float:
        if self.is_powered:
            return self.powered().cdf(np.array([y]))[0]
        return self.of("cdf", [self.stretched(y)])


def slow_forest(model: Any, rows: Rows, group: Any = None, weight: Any = None) -> dict[int, Slow]:
    """By the number of each row: what trees that were not grown on it say, without its group in their statistics."""
    X, y, row_data = rows
    codes, columns, targets = model.schema_.encode(X), of_leaf(model, X, row_data), targets_of(model, y)
    together = row_groups(codes, group)
    bags = np.stack([draw.times(len(y), together) > 0 for draw in model.fitted_.origin.draws])
    group = np.arange(len(y)) if group is None else group
    weight = np.ones(len(y)) if weight is None else weight
    found = {}
    for i in range(len(y)):
        trees, others = np.flatnonzero(~bags[:, i]), group != group[i]
        said = []
        for post in (model.posteriors_[tree] for tree in trees):
            without = et.Posterior(post.tree, post.family, post.split_prior)
            without.update(codes[others], targets[others], weight[others], **take(columns, others))
            said.append(without.predictive(codes[[i]], **take(columns, [i])))
        if model.weights_[trees].sum() > 0.0:
            found[i] = Slow(said, model.weights_[trees], model.choice_.sharpness)
    return found


def slow_class_scores(own: Any, probs: Any, places: Any, group: Any, weight: Any) -> ClassScores:
    """Scores of the rows at some places; `own` and `weight` are of all rows, as the frequencies of the others are."""
    n_classes, probs = probs.shape[1], np.asarray(probs)
    same = []
    for i in places:
        others = group != group[i]
        counts = np.bincount(own[others], weight[others], n_classes) + 0.5
        same.append(counts / counts.sum())
    of_group = np.array([weight[group == one].sum() for one in np.unique(group)])
    n_rows = of_group.sum() ** 2 / (of_group**2).sum()
    w, y, labels = weight[places], own[places], np.arange(n_classes)
    return ClassScores(
        len(places),
        log_loss(y, probs, sample_weight=w, labels=labels),
        slow_accuracy(probs, y, n_rows, w),
        log_loss(y, same, sample_weight=w, labels=labels),
        slow_accuracy(same, y, n_rows, w),
    )


def slow_scores(model: Any, rows: Rows, found: dict[int, Slow], weight: Any = None, group: Any = None) -> Any:
    """The scores of these rows, one by one."""
    y = targets_of(model, rows[1])
    every = np.ones(len(y)) if weight is None else weight
    group = np.arange(len(y)) if group is None else group
    places = np.array(sorted(found))
    w = every[places]
    if hasattr(model, "classes_"):
        return slow_class_scores(y, np.array([found[i].probs() for i in places]), places, group, every)
    same = same_for_all(model, rows, y, every, group)
    is_censored = np.asarray(rows[2].get("censored", np.zeros(len(y), bool)))
    log_scores = [np.log(1.0 - found[i].cdf(y[i])) if is_censored[i] else found[i].log_prob(y[i]) for i in places]
    r2 = coverage = None
    if not is_censored[places].any():
        r2 = slow_r2(y, [found[i].mean() for i in places], places, group, every)
        inside = [found[i].cdf(y[i]) >= 0.05 and found[i].cdf(np.nextafter(y[i], -np.inf)) <= 0.95 for i in places]
        coverage = np.average(inside, weights=w)
    return NumberScores(
        len(places), np.average(log_scores, weights=w), np.average(same[places], weights=w), r2, coverage
    )  # fmt: skip


def same_for_all(model: Any, rows: Rows, y: np.ndarray, weight: np.ndarray, group: np.ndarray) -> np.ndarray:
    """(n_rows,) log scores by one leaf of the family that has the rows of other groups: a tree that is not split."""
    with_rows = {name: values for name, values in rows[2].items() if values is not None}
    family = "normal" if model.family == "linear" else model.family
    X = np.zeros((len(y), 1), dtype=np.uint8)
    prior = {"noise": 1.0} if "normal" in family else "auto"
    one = et.ExactTreeRegressor(0, family=family, prior=prior).fit(X, y, weight, **with_rows)
    leaf, scores = one.model_.family, []
    for i in range(len(y)):
        others = group != group[i]
        post = et.Posterior(et.MetaTree.complete([], n_features=1), leaf, 0.0)
        post.update(X[others], y[others], weight[others], **take(with_rows, others))
        dist = post.predictive(X[[i]], **take(with_rows, [i]))
        is_censored = bool(with_rows.get("censored", np.zeros(len(y)))[i])
        scores.append(np.log(dist.sf(y[[i]]))[0] if is_censored else dist.log_prob(y[[i]])[0])
    return np.array(scores)


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert found.n_rows == expected.n_rows
    for name, value in vars(expected).items():
        if value is None:
            assert getattr(found, name) is None, name
        else:
            close(getattr(found, name), value, err_msg=name)


# ---- forests --------------------------------------------------------------------------------------------------------


@pytest.fixture
def every_node(monkeypatch):
    """Nodes of hardly any weight are not left out."""
    monkeypatch.setattr(everytree.fitting.held_out.predictions, "SMALL_WEIGHT", 1e-300)


@pytest.mark.usefixtures("every_node")
@pytest.mark.parametrize("options", [{}, {"weights": "stacking", "bootstrap": True}, {"calibration": None}], ids=str)
@pytest.mark.parametrize("case", **ids(FORESTS))
def test_forests_are_scored_by_trees_that_have_not_seen_the_row(case, options):
    rows = case.draw(N, "unseen")
    X, y, row_data = rows
    model = case.make(**options).fit(X, y, **row_data)
    found = slow_forest(model, rows)
    assert len(found) > 0
    assert_same(model.unseen_, slow_scores(model, rows, found))


@pytest.mark.usefixtures("every_node")
@pytest.mark.parametrize("case", [FORESTS[0], FORESTS[2]], ids=str)
def test_groups_are_left_out_together_and_rows_count_by_their_weights(case):
    rng = rng_for("unseen groups")
    rows, weight = case.draw(N, "unseen groups"), rng.integers(0, 4, N).astype(float)
    _, group = np.unique(rng.integers(0, 12, N), return_inverse=True)
    X, y, row_data = rows
    model = case.make().fit(X, y, weight, groups=group, **row_data)
    used = weight > 0.0
    some = X[used], y[used], take(row_data, used)
    _, own_group = np.unique(group[used], return_inverse=True)
    found = slow_forest(model, some, own_group, weight[used])
    assert_same(model.unseen_, slow_scores(model, some, found, weight[used], own_group))


def test_nodes_of_hardly_any_weight_hardly_matter(monkeypatch):
    for case in FORESTS[2:4]:
        X, y, row_data = case.draw(200, "small weights")
        quick = case.make().fit(X, y, **row_data).unseen_
        with monkeypatch.context() as patch:
            patch.setattr(everytree.fitting.held_out.predictions, "SMALL_WEIGHT", 1e-300)
            exact = case.make().fit(X, y, **row_data).unseen_
        assert quick.log_score == pytest.approx(exact.log_score, abs=1e-5)


@pytest.mark.parametrize("target", ["poisson", "geometric"])
def test_long_tables_are_scored_by_a_sample(monkeypatch, target):
    monkeypatch.setattr(everytree.fitting.held_out.predictions, "MAX_MIXTURES", 60)
    case = next(case for case in FORESTS if case.target == target)
    rng = rng_for("sample of unseen", target)
    X, y, row_data = case.draw(300, "sample")
    for groups in (None, rng.integers(0, 90, 300)):
        model = case.make(n_estimators=20).fit(X, y, groups=groups, **row_data)
        assert model.unseen_.n_rows == 60
        monkeypatch.setattr(everytree.fitting.held_out.predictions, "MAX_MIXTURES", 1000)
        every = case.make(n_estimators=20).fit(X, y, groups=groups, **row_data).unseen_
        monkeypatch.setattr(everytree.fitting.held_out.predictions, "MAX_MIXTURES", 60)
        assert every.n_rows > 250
        assert model.unseen_.log_score == pytest.approx(every.log_score, abs=0.4)


# ---- one tree -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("every_node")
@pytest.mark.parametrize("case", **ids(TREES))
def test_single_trees_are_scored_by_trees_that_were_grown_without_a_fifth(case, monkeypatch):
    """The stand-ins are caught where they are grown, and filled with the rows that they were grown on."""
    grown = []
    original = everytree.fitting.structures.tree.TreeStructure.kept_and_judged

    def caught(*arguments: Any) -> Any:
        grown.append(original(*arguments))
        return grown[-1]

    monkeypatch.setattr(everytree.fitting.structures.tree.TreeStructure, "kept_and_judged", caught)
    rows = X, y, row_data = case.draw(N, "unseen by a tree")
    model = case.make().fit(X, y, **row_data)
    codes, columns, targets = model.schema_.encode(X), of_leaf(model, X, row_data), targets_of(model, y)
    choice, found = model.choice_, {}
    for stand_in in grown[0][1]:
        seen = stand_in.in_bag
        post = et.Posterior(stand_in.tree, choice.family, choice.split_prior)
        post.update(codes[seen], targets[seen], **take(columns, seen))
        for i in np.flatnonzero(~seen):
            assert i not in found
            found[i] = Slow([post.predictive(codes[[i]], **take(columns, [i]))], [1.0], choice.sharpness)
    assert len(found) == N
    assert_same(model.unseen_, slow_scores(model, rows, found))


# ---- boosting and ensembles -----------------------------------------------------------------------------------------


def caught_call(monkeypatch: Any, module: Any, name: str) -> list[Any]:
    """What a function returns from now on."""
    found: list[Any] = []
    original = getattr(module, name)

    def call(*arguments: Any, **options: Any) -> Any:
        found.append(original(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(module, name, call)
    return found


@pytest.mark.parametrize("target", ["two classes", "three classes"])
def test_boosting_of_classes_is_scored_by_the_chain_that_left_a_row_out(target, monkeypatch):
    boosted = caught_call(monkeypatch, everytree.fitting.structures.boost, "boost")
    X, y, _ = Case(et.MetaBoostClassifier, target).draw(120, "boosted")
    weight = rng_for("weights", target).integers(1, 4, 120).astype(float)
    model = et.MetaBoostClassifier(60, random_state=0).fit(X, y, weight)
    assert boosted[0].factor > 0.0
    scores = boosted[0].base + boosted[0].departure
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(120), scores])
    probs = as_if_folds_were_drawn(softmax(scores, axis=1), targets_of(model, y), boosted[0].fold, weight)
    assert_same(model.unseen_, of_probs(model, y, probs, weight))


def as_if_folds_were_drawn(probs: np.ndarray, y: Any, fold: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The frequencies outside a row's fold, which is like all others, give way to those of the other rows."""
    n_classes, shifted = probs.shape[1], np.empty_like(probs)
    for row in range(len(y)):
        for k in range(n_classes):
            others = sum(weight[i] for i in range(len(y)) if y[i] == k and i != row) + 0.5
            outside = sum(weight[i] for i in range(len(y)) if y[i] == k and fold[i] != fold[row]) + 0.5
            total = weight[fold != fold[row]].sum() + 0.5 * n_classes
            shifted[row, k] = probs[row, k] * others / (outside / total)
    return shifted / shifted.sum(axis=1, keepdims=True)


def of_probs(model: Any, y: Any, probs: np.ndarray, weight: np.ndarray) -> ClassScores:
    places = np.flatnonzero(~np.isnan(probs[:, 0]))
    return slow_class_scores(targets_of(model, y), probs[places], places, np.arange(len(y)), weight)


def test_ensembles_of_classes_are_scored_by_the_models_of_the_other_folds(monkeypatch):
    """Weight and sharpness too are those that suit the other folds."""
    boosted = caught_call(monkeypatch, everytree.fitting.structures.boost, "boost")
    of_others = caught_call(monkeypatch, everytree.fitting.structures.ensemble, "by_other_trees")
    weights = caught_call(monkeypatch, everytree.fitting.structures.ensemble, "best_weight")
    sharpnesses = caught_call(monkeypatch, everytree.fitting.structures.ensemble, "best_sharpness")
    X, y, _ = Case(et.MetaEnsembleClassifier, "two classes").draw(100, "ensemble")
    model = et.MetaEnsembleClassifier(8, max_iter=40, random_state=0).fit(X, y)
    (found,), (others,), probs = boosted, of_others, np.empty((100, 2))
    chain = softmax(np.column_stack([np.zeros(100), found.base + found.departure]), axis=1)
    others = sharpened(others, model.model_.parts.averaged.sharpness)
    others = np.where(np.isfinite(others), others, chain)  # rows in the bags of all trees
    for k in range(5):
        own = found.fold == k
        power = (others[own] ** (1.0 - weights[k]) * chain[own] ** weights[k]) ** sharpnesses[k][1]
        probs[own] = power / power.sum(axis=1, keepdims=True)
    probs = as_if_folds_were_drawn(probs, targets_of(model, y), found.fold, np.ones(100))
    assert (model.model_.weight, model.model_.sharpness) == (weights[5], sharpnesses[5][1])
    assert_same(model.unseen_, of_probs(model, y, probs, np.ones(100)))


@pytest.mark.usefixtures("every_node")
@pytest.mark.parametrize("kind", [et.MetaBoostRegressor, et.MetaEnsembleRegressor])
@pytest.mark.parametrize("family", ["normal", "lognormal", "poisson", "exponential"])
def test_boosted_numbers_are_scored_about_the_centre_of_the_chain_that_left_a_row_out(family, kind, monkeypatch):
    """The forest of what is left is asked without the row, and its answer is moved to the centre."""
    asked: list[Any] = []
    original = everytree.fitting.structures.grown.learn_forest

    def learn(grown: Any, *more: Any) -> Any:
        asked.append((grown, original(grown, *more)))
        return asked[-1][1]

    monkeypatch.setattr(everytree.fitting.structures.grown, "learn_forest", learn)
    honest: list[np.ndarray] = []
    with_centre = everytree.fitting.structures.boost.with_centre

    def coded(codes: Any, centre: Any, own: Any) -> Any:
        honest.append(centre)
        return with_centre(codes, centre, own)

    monkeypatch.setattr(everytree.fitting.structures.boost, "with_centre", coded)
    rows = X, y, row_data = Case(kind, family).draw(60, "boosted numbers")
    small = {"n_estimators": 6} if kind is et.MetaEnsembleRegressor else {}
    model = kind(max_iter=30, family=family, n_residual_trees=6, random_state=0, **small).fit(X, y, **row_data)
    (grown, learnt), centre = asked[-1], honest[0]  # the last forest is that of the residuals
    forest, z = learnt.model.parts.averaged, grown.rows
    found = {}
    for i in range(len(y)):
        trees = [k for k, tree in enumerate(grown.kept) if not tree.in_bag[i]]
        others = np.arange(len(y)) != i
        said = []
        for post in (forest.posteriors[k] for k in trees):
            without = et.Posterior(post.tree, post.family, post.split_prior)
            without.update(z.codes[others], z.y[others], **take(dict(z.row_data), others))
            said.append(without.predictive(z.codes[[i]], **take(dict(z.row_data), [i])))
        if said:
            shift, scale = {
                "normal": (centre[i], 1.0), "lognormal": (0.0, np.exp(centre[i])), "poisson": (0.0, 1.0),
                "exponential": (0.0, np.exp(-centre[i])),
            }[family]  # fmt: skip
            found[i] = MovedSlow(Slow(said, forest.weights[trees], learnt.choice.sharpness), shift, scale)
    assert_same(model.unseen_, slow_scores(model, rows, found))


class MovedSlow:
    """The distribution of shift + scale * z."""

    def __init__(self, of_z: Slow, shift: float, scale: float) -> None:
        self.of_z, self.shift, self.scale = of_z, shift, scale

    def mean(self) -> float:
        return self.shift + self.scale * self.of_z.mean()

    def log_prob(self, y: float) -> float:
        return self.of_z.log_prob((y - self.shift) / self.scale) - np.log(self.scale)

    def cdf(self, y: float) -> float:
        return self.of_z.cdf((y - self.shift) / self.scale)


# ---- what they say --------------------------------------------------------------------------------------------------


EVERY = [
    et.MetaForestClassifier, et.MetaTreeClassifier, et.MetaBoostClassifier, et.MetaEnsembleClassifier,
    et.MetaForestRegressor, et.MetaTreeRegressor, et.MetaBoostRegressor, et.MetaEnsembleRegressor,
]  # fmt: skip


@pytest.mark.parametrize("kind", EVERY)
def test_they_agree_with_fresh_rows(kind):
    target = "two classes" if "Classifier" in kind.__name__ else "normal"
    case = Case(kind, target)
    X, y, _ = case.draw(400, "honest")
    fresh, fresh_y, _ = case.draw(1500, "fresh")
    model = kind(random_state=0).fit(X, y)
    scores = model.unseen_
    if target == "normal":
        assert scores.log_score == pytest.approx(model.log_scores(fresh, fresh_y).mean(), abs=0.12)
        assert scores.r2 == pytest.approx(model.score(fresh, fresh_y), abs=0.06)
        assert scores.coverage == pytest.approx(0.9, abs=0.05)
        same = norm.logpdf(fresh_y, y.mean(), y.std()).mean()
        assert scores.baseline_log_score == pytest.approx(same, abs=0.1)
    else:
        assert scores.log_loss == pytest.approx(-model.log_scores(fresh, fresh_y).mean(), abs=0.08)
        assert scores.accuracy == pytest.approx(model.score(fresh, fresh_y), abs=0.06)
        assert scores.baseline_log_loss == pytest.approx(np.log(2.0), abs=0.03)
    assert scores == kind(random_state=0, n_jobs=2).fit(X, y).unseen_


def test_words_and_tables_of_classes():
    scores = ClassScores(426, 0.1186, 0.9577, 0.6607, 0.6268)
    assert repr(scores) == (
        "426 rows that the trees had not seen\n"
        "                            model  same for every row\n"
        "log-loss (less is better)  0.1186              0.6607\n"
        "accuracy                   0.9577              0.6268"
    )
    assert scores.sentence() == (
        "right for 96% of rows that the trees had not seen (always naming the largest class: 63%); log-loss 0.12 "
        "(guessing by class frequencies: 0.66)"
    )
    assert "<td>0.9577</td><td>0.6268</td>" in scores._repr_html_()
    assert ClassScores(9, 0.1, 0.999, 0.7, 0.5).sentence().startswith("right for more than 99% of rows")
    assert ClassScores(9, 0.1, 1.0, 0.7, 0.5).sentence().startswith("right for 100% of rows")


def test_words_and_tables_of_numbers():
    scores = NumberScores(1000, -2.225, -3.052, 0.822, 0.9016)
    assert repr(scores) == (
        "1,000 rows that the trees had not seen\n"
        "                      model  same for every row\n"
        "R2 of the mean        0.822                   0\n"
        "mean log score       -2.225              -3.052\n"
        "in intervals of 90%  0.9016"
    )
    assert scores.sentence() == (
        "R2 0.82 on rows that the trees had not seen; mean log score -2.23 (one distribution for all rows: -3.05); "
        "intervals of 90% hold 90% of them"
    )
    censored = NumberScores(1000, -2.2, -3.0, None, None)
    assert "R2" not in repr(censored) + censored.sentence()
    assert "intervals" not in repr(censored) + censored.sentence()
    assert censored.sentence().startswith("mean log score -2.20 on rows that the trees had not seen (one")
    with pytest.raises(AttributeError):
        scores.r2 = 1.0


def test_equal_targets_are_not_scored():
    X, _, _ = FORESTS[0].draw(60, "equal")
    for kind in EVERY[:4]:
        with pytest.raises(AttributeError, match="all targets are the same"):
            _ = kind(random_state=0).fit(X, np.zeros(60, int)).unseen_
    with pytest.raises(AttributeError, match="all targets are the same"):
        _ = et.MetaForestRegressor(10, random_state=0).fit(X, np.full(60, 5.5)).unseen_


def test_several_outputs_have_theirs_each():
    X, y, _ = FORESTS[2].draw(80, "outputs")
    model = et.MetaForestRegressor(10, random_state=0).fit(X, np.column_stack([y, -2.0 * y]))
    with pytest.raises(AttributeError, match=r"use model\.outputs_"):
        _ = model.unseen_
    first, second = (one.unseen_ for one in model.outputs_)
    assert first.r2 > 0.3
    assert second.log_score < first.log_score


# ---- kept as long as they are true ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EVERY)
def test_pickles_copies_and_files_keep_them_and_clones_do_not(kind, tmp_path):
    target = "two classes" if "Classifier" in kind.__name__ else "normal"
    X, y, _ = Case(kind, target).draw(60, "kept")
    model = kind(random_state=0).fit(X, y)
    et.save(model, tmp_path / "model.et")
    for same in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), et.load(tmp_path / "model.et")):
        assert same.unseen_ == model.unseen_
    assert not hasattr(clone(model), "unseen_")


def reason(model: Any) -> str:
    with pytest.raises(AttributeError) as caught:
        _ = model.unseen_
    return str(caught.value)


@pytest.mark.parametrize("case", [FORESTS[0], FORESTS[2], TREES[0], TREES[2]], ids=str)
def test_rows_that_are_added_end_them(case, tmp_path):
    X, y, _ = case.draw(100, "added")
    model = case.make().fit(X, y)
    assert model.unseen_.n_rows > 50
    blank = model.blank()
    assert "has seen no rows" in reason(blank)
    assert model.unseen_.n_rows > 50, "a blank copy changes nothing"
    merged = copy.deepcopy(model).merge(blank.partial_fit(X[:20] + 1.0, y[:20]))
    assert "rows were added" in reason(merged)
    more = copy.deepcopy(model).partial_fit(X[:5], y[:5])
    assert "rows were added" in reason(more)
    et.save(more, tmp_path / "more.et")
    assert reason(et.load(tmp_path / "more.et")) == reason(more)
    assert "rows were added" in reason(case.make().partial_fit(X, y))
    assert more.fit(X, y).unseen_ == model.unseen_
    assert case.make().fit_batches([(X, y)]).unseen_ == model.unseen_, "the sample has all rows"


# ---- rows of a sample -----------------------------------------------------------------------------------------------


def sampled(n_rows: int, size: int) -> np.ndarray:
    """Numbers of the rows in the sample of `fit_batches`."""
    sample = RowSample(size).update(n_rows, lambda places: {"row": places}, 0)
    return sample.columns()["row"]


@pytest.mark.usefixtures("every_node")
@pytest.mark.parametrize("case", [FORESTS[0], FORESTS[1], FORESTS[2]], ids=str)
def test_rows_of_a_sample_are_scored_in_the_trees_of_all_rows_without_themselves(case):
    X, y, _ = case.draw(120, "sample of batches")
    batches = [(X[:50], y[:50]), (X[50:], y[50:])]
    model = case.make().fit_batches(batches, sample_rows=60)
    some = sampled(120, 60)
    codes, targets = model.schema_.encode(X), targets_of(model, y)
    bags = np.stack([draw.times(60, row_groups(codes[some], None)) > 0 for draw in model.fitted_.origin.draws])
    found = {}
    for place, i in enumerate(some):
        trees, others, said = np.flatnonzero(~bags[:, place]), np.arange(120) != i, []
        for post in (model.posteriors_[tree] for tree in trees):
            assert post.n_rows == 120
            without = et.Posterior(post.tree, post.family, post.split_prior).update(codes[others], targets[others])
            said.append(without.predictive(codes[[i]]))
        if model.weights_[trees].sum() > 0.0:
            found[place] = Slow(said, model.weights_[trees], model.choice_.sharpness)
    assert_same(model.unseen_, slow_scores(model, (X[some], y[some], {}), found))


@pytest.mark.parametrize("case", [FORESTS[0], FORESTS[2], TREES[0], TREES[2]], ids=str)
def test_scores_of_a_sample_agree_with_fresh_rows(case):
    (X, y, _), (fresh, fresh_y, _) = case.draw(3000, "many"), case.draw(1500, "fresh of many")
    more = {"n_estimators": 30} if case.is_forest else {}
    batches = [(X[a : a + 500], y[a : a + 500]) for a in range(0, 3000, 500)]
    model = case.make(**more).fit_batches(batches, sample_rows=800)
    own = getattr(model.unseen_, "log_score", None) or -model.unseen_.log_loss
    assert own == pytest.approx(model.log_scores(fresh, fresh_y).mean(), abs=0.12)


def test_copies_beyond_the_sample_do_not_judge():
    """Each person has four rows, one of them in the sample, and a target that depends on nothing but the person."""
    rng = rng_for("copies beyond")
    person = rng.permutation(np.repeat(np.arange(500), 4))
    table, target = rng.normal(size=(500, 5)), rng.integers(0, 2, 500)
    X, y = table[person], target[person]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for groups in ({}, {"groups": "person"}):
            frame = pd.DataFrame(X, columns=list("abcde")).assign(y=y, person=person)
            frame = frame if groups else frame.drop(columns="person")
            batches = [frame[:1000], frame[1000:]]
            model = et.MetaForestClassifier(20, split_prior=0.9, alpha=0.1, random_state=0)
            assert model.fit_batches(batches, "y", sample_rows=400, **groups).unseen_.accuracy < 0.6
            assert model.score(X, y) > 0.9 if not groups else True


def test_more_trees_are_scored_again():
    case = FORESTS[0]
    X, y, _ = case.draw(100, "warm")
    model = case.make(warm_start=True).fit(X, y)
    before = model.unseen_
    model.set_params(n_estimators=12).fit(X, y)
    assert model.unseen_ != before
    assert model.unseen_ == case.make(n_estimators=12).fit(X, y).unseen_


def test_where_no_rows_are_left_out_there_are_none():
    X, y, _ = FORESTS[0].draw(60, "none")
    assert "not fitted" in reason(et.MetaForestClassifier())
    assert "ExactTreeClassifier has no unseen_: its priors are given" in reason(et.ExactTreeClassifier(1).fit(X, y))
    assert "grown on all rows" in reason(FORESTS[0].make(subsample=1.0).fit(X, y))
    assert "grown on all rows" in reason(et.MetaTreeClassifier().fit(X[:8], y[:8]))
    assert FORESTS[0].make(subsample=1.0, bootstrap=True).fit(X, y).unseen_.n_rows > 0


def test_files_of_earlier_versions_say_that_they_have_none():
    folder = Path(__file__).parents[1] / "fixtures"
    for path in sorted(folder.glob("version[123]/forest_classifier.safetensors")):
        assert "was written by a version of everytree" in reason(et.load(path))


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [("n_rows", 0, "must be positive"), ("log_loss", "small", "must be a number"), ("why", 3, "must be str")],
)
def test_scores_of_a_file_are_checked(name, value, complaint, tmp_path):
    X, y, _ = FORESTS[0].draw(60, "file")
    model = FORESTS[0].make().fit(X, y)
    given = {"why": value} if name == "why" else {**vars(model.unseen_), name: value}
    wrong = make_dataclass("Wrong", list(given))(**given)
    model.fitted_ = replace(model.fitted_, unseen=wrong)
    et.save(model, tmp_path / "model.et")
    with pytest.raises(et.ModelFileError, match=rf"unseen\.{name}: {complaint}"):
        et.load(tmp_path / "model.et")
