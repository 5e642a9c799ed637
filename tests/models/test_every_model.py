"""Models of every estimator: their answers agree with each other, and rows that they count are sums."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.base import is_classifier

from cases import rng_for
from every_estimator import as_targets, estimators, marked, small
from everytree.models.model import Model, UpdatableModel, scaled, split_columns

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KINDS = estimators()
every = pytest.mark.parametrize("kind", marked(KINDS))
counting = pytest.mark.parametrize("kind", marked([kind for kind in KINDS if kind.counts_rows]))


@cache
def fitted(kind):
    rng = rng_for("every model", kind.__name__)
    X = rng.normal(size=(80, 3))
    signal = X[:, 0] + 0.5 * rng.normal(size=80)
    y = np.where(signal > 0.0, "more", "less") if is_classifier(kind()) else as_targets("normal", signal + 3.0)
    return small(kind).fit(X, y), X, y


def coded(kind):
    """The model, its codes of the rows, and targets as it counts them."""
    estimator, X, y = fitted(kind)
    codes = estimator.schema_.encode(X)
    labels = np.searchsorted(estimator.classes_, y) if is_classifier(estimator) else np.asarray(y)
    return estimator.model_, codes, labels


@every
def test_means_are_those_of_the_distributions(kind):
    model, codes, _ = coded(kind)
    assert isinstance(model, Model)
    dist, means = model.predictive(codes), model.means(codes)
    if model.family.has_classes:
        np.testing.assert_allclose(model.probs(codes), means, atol=1e-15)
        np.testing.assert_allclose(dist.probs()[:, : means.shape[1]], means, atol=1e-12)
        with pytest.raises(TypeError, match="for families of numbers"):
            model.moments(codes)
    else:
        mean, variance = model.moments(codes)
        np.testing.assert_allclose(dist.mean(), mean, rtol=1e-9)
        np.testing.assert_allclose(dist.variance(), variance, rtol=1e-7)
        with pytest.raises(TypeError, match="for families of classes"):
            model.probs(codes)
    np.testing.assert_allclose(model.means(codes[:5]), means[:5], rtol=1e-12)
    np.testing.assert_array_equal(model.means(codes, n_jobs=2), model.means(codes, n_jobs=1))


@every
def test_importances_are_shares_of_columns_that_are_split_on(kind):
    model, codes, _ = coded(kind)
    importances = model.feature_importances()
    assert importances.shape == (codes.shape[1],)
    assert (importances >= 0.0).all()
    assert importances.sum() == pytest.approx(1.0, abs=1e-9) or importances.sum() == 0.0


@every
def test_words_are_sentences_and_facts_have_names(kind):
    model, codes, _ = coded(kind)
    assert model.n_rows == len(codes)
    assert model.sentence[0].isupper() or model.sentence[0].isdigit()
    assert model.sentence.endswith(".")
    for name, value in model.facts():
        assert name
        assert value


@counting
def test_rows_that_a_model_counts_are_sums(kind):
    model, codes, y = coded(kind)
    assert isinstance(model, UpdatableModel)
    half = np.arange(len(codes)) % 2 == 0
    whole = model.without_rows().update(codes, y)
    here, there = (model.without_rows().update(codes[some], y[some]) for some in (half, ~half))
    here.check_mergeable(there)
    np.testing.assert_allclose(here.merge(there).means(codes), whole.means(codes), rtol=1e-10)
    assert here.n_rows == whole.n_rows == len(codes)
    assert here.log_evidence == pytest.approx(whole.log_evidence, rel=1e-10)
    left = whole.take_away(model.without_rows().update(codes[half], y[half]))
    np.testing.assert_allclose(left.means(codes), there.means(codes), rtol=1e-7, atol=1e-10)
    assert model.n_rows == len(codes)


@counting
def test_a_pictured_posterior_counts_the_rows(kind):
    model, codes, _ = coded(kind)
    post = model.pictured()
    assert post.n_rows == len(codes)
    assert 0.0 <= post.split_prob.min() <= post.split_prob.max() <= 1.0
    asked = split_columns([post.tree], codes.shape[1])
    assert set(np.flatnonzero(asked)) == set(post.tree.feature[~post.tree.is_terminal])


def test_gains_are_scaled_to_shares():
    np.testing.assert_allclose(scaled(np.array([1.0, 3.0])), [0.25, 0.75])
    np.testing.assert_array_equal(scaled(np.zeros(2)), np.zeros(2))
