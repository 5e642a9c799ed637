"""Boosting of five and more classes, whose trees have a value for each class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

import everytree as et
from cases import rng_for


def blobs(n_classes: int, n_rows: int, what: object = "") -> tuple[np.ndarray, np.ndarray]:
    """Classes around points of a plane, beside two columns of noise."""
    rng = rng_for("blobs", n_classes, n_rows, what)
    y = np.arange(n_rows) % n_classes
    angle = 2.0 * np.pi * y / n_classes
    return np.column_stack([np.cos(angle), np.sin(angle), *rng.normal(size=(2, n_rows))]) + 0.3 * rng.normal(
        size=(n_rows, 4)
    ), y


def test_from_five_classes_on_a_step_is_one_tree():
    for n_classes, n_trees in ((2, 1), (3, 3), (4, 4), (5, 1), (9, 1)):
        model = et.MetaBoostClassifier(10, n_chains=2, random_state=0).fit(*blobs(n_classes, 400))
        assert len(model.model_.trees) == n_trees * sum(model.model_.chains.n_steps)
        assert model.model_.trees.n_outputs == max(n_classes - (n_classes == 2), 1)


def test_digits_are_told_apart():
    X, y = load_digits(return_X_y=True)
    model = et.MetaBoostClassifier(150, n_chains=3, random_state=0).fit(X[::2], y[::2])
    assert log_loss(y[1::2], model.predict_proba(X[1::2])) < 0.2


@pytest.mark.parametrize("kind", [et.MetaBoostClassifier, et.MetaEnsembleClassifier])
def test_of_noise_what_is_said_of_unseen_rows_holds_for_new_ones(kind):
    rng = rng_for("noise of many classes", kind)
    X, y = rng.normal(size=(600, 4)), rng.integers(0, 7, 600)
    model = kind(random_state=0, max_iter=60).fit(X, y)
    new = rng.normal(size=(4000, 4)), rng.integers(0, 7, 4000)
    losses = -np.log(model.predict_proba(new[0])[np.arange(4000), new[1]])
    share = np.bincount(y, minlength=7) / 600
    assert losses.mean() < -np.log(share[new[1]]).mean() + 0.01
    assert abs(model.unseen_.log_loss - losses.mean()) < 0.03


def test_what_is_said_of_unseen_rows_holds_for_new_ones():
    X, y = blobs(6, 600)
    model = et.MetaBoostClassifier(60, random_state=0).fit(X, y)
    new = blobs(6, 4000, "new")
    losses = -np.log(model.predict_proba(new[0])[np.arange(4000), new[1]])
    assert abs(model.unseen_.log_loss - losses.mean()) < 3.0 * losses.std() / 600**0.5
    assert losses.mean() < 0.6 * np.log(6)


def test_classes_with_a_single_row_are_known_and_improbable_elsewhere():
    X, y = blobs(5, 300)
    y = np.where(np.arange(300) == 7, 5, y)  # no more than one chain does not miss it
    model = et.MetaBoostClassifier(40, random_state=0).fit(X, y)
    probs = model.predict_proba(blobs(5, 200, "new")[0])
    assert probs.shape == (200, 6)
    assert np.isfinite(probs).all()
    assert probs[:, 5].min() > 0.0
    assert probs[:, 5].mean() < 0.05


def test_rows_of_weight_zero_leave_no_trace():
    X, y = blobs(6, 400)
    weight = np.where(np.arange(400) % 5 == 0, 0.0, 1.0)
    model = et.MetaBoostClassifier(20, random_state=0).fit(X, y, sample_weight=weight)
    other = et.MetaBoostClassifier(20, random_state=0).fit(X[weight > 0.0], y[weight > 0.0])
    new = blobs(6, 300, "new")
    first, second = (log_loss(new[1], one.predict_proba(new[0])) for one in (model, other))
    assert first == pytest.approx(second, abs=0.1)


def test_an_interrupted_fit_leaves_the_model_as_it_was(monkeypatch):
    X, y = blobs(6, 300)
    model = et.MetaBoostClassifier(15, random_state=0, verbose=1).fit(X, y)
    before = model.predict_proba(X)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("everytree.base.progress.Progress.step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:100], y[:100])
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_hundreds_of_classes():
    X, y = blobs(300, 1500)
    model = et.MetaBoostClassifier(8, n_chains=2, random_state=0).fit(X, y)
    probs = model.predict_proba(X[:50])
    assert probs.shape == (50, 300)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    assert model.model_.trees.value.shape == (model.model_.trees.n_nodes.sum(), 300)
