"""Losses and their derivatives: of the kernel, of Python, and of the naive twin, beside finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import expon, lognorm, norm, poisson

from cases import rng_for
from everytree import _kernels
from everytree.boosting.chains import Likelihood, class_scores
from everytree.families.registry import NUMBER_FAMILIES
from everytree.fitting.structures.boost import likelihood_of
from everytree.posterior.rows import Rows
from naive_boosting import derivatives, loss_of

LOSSES = ["logit", "softmax", "shared softmax", "squared", "rate"]
N_CLASSES = {"logit": 2, "softmax": 3, "shared softmax": 5}


def likelihood(loss: str, n_rows: int = 12) -> Likelihood:
    rng = rng_for("losses", loss)
    y = {
        "squared": rng.normal(3.0, 2.0, n_rows), "rate": rng.poisson(2.0, n_rows),
    }.get(loss, np.arange(n_rows) % N_CLASSES.get(loss, 1)).astype(float)  # fmt: skip
    exposure = rng.uniform(0.5, 2.0, n_rows) if loss == "rate" else None
    return Likelihood(loss, y, exposure, N_CLASSES.get(loss, 0))


def n_scores(loss: str) -> int:
    return N_CLASSES[loss] if "softmax" in loss else 1


def constant_chain(given: Likelihood, weight: np.ndarray, tau: float, n_steps: int = 4) -> dict[str, Any]:
    """A chain that may split on no column: each tree is one leaf, a Newton step of all rows."""
    n = len(given.y)
    return _kernels.booster(
        codes=np.zeros((n, 1), dtype=np.uint8), n_codes=np.ones(1, dtype=np.int32), has_missing=np.zeros(1, dtype=bool),
        y=given.y, weight=weight, exposure=given.exposure, n_classes=given.n_classes, loss=given.loss,
    ).run(
        role=np.zeros(n, dtype=np.uint8), columns=np.zeros(1, dtype=np.int32), seed=1, learning_rate=1.0, tau=tau,
        split_prior=0.5, max_steps=n_steps, patience=n_steps, max_leaf_nodes=4, max_depth=2, min_samples_leaf=1,
        subsample=1.0, max_features=1.0, max_rows=10**6,
    )  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_of_the_kernel_are_made_of_the_derivatives_of_the_loss(loss):
    """Newton steps with two priors tell both sums of derivatives; the score after each step is known."""
    given, h = likelihood(loss), 1e-4
    weight = rng_for("weights of losses", loss).uniform(0.5, 2.0, len(given.y))
    runs = {tau: constant_chain(given, weight, tau) for tau in (1.0, 3.0)}
    base, n_compared = runs[1.0]["base"], 0
    for k in range(len(base)):

        def total(move: float, k: int = k) -> float:
            scores = np.tile(base, (len(weight), 1))
            scores[:, k] += move
            return float(weight @ given.losses(scores))

        steps = {tau: float(run["value"].ravel()[k]) for tau, run in runs.items()}
        # value = -G / (tau + H), for tau = 1 and 3
        second = (3.0 * steps[3.0] - steps[1.0]) / (steps[1.0] - steps[3.0])
        first = -steps[1.0] * (1.0 + second)
        if abs(first) < 1e-6:
            continue  # a mean, from which there is nowhere to go
        n_compared += 1
        assert first == pytest.approx((total(h) - total(-h)) / (2.0 * h), rel=1e-4, abs=1e-6)
        assert second == pytest.approx((total(h) - 2.0 * total(0.0) + total(-h)) / h**2, rel=1e-3)
    assert n_compared == (0 if loss == "squared" else len(base))


@pytest.mark.parametrize("loss", LOSSES)
def test_constant_steps_lead_to_the_best_constant(loss):
    """With a weak prior, Newton steps of all rows end where the loss is least; the squared loss begins there."""
    given = likelihood(loss)
    run = constant_chain(given, np.ones(len(given.y)), 1e-6, 40)
    n_outputs = len(run["base"])
    scores = run["base"] + run["value"].reshape(-1, n_outputs).sum(axis=0)
    if loss in N_CLASSES:
        shares = np.bincount(given.y.astype(int)) / len(given.y)
        wide = class_scores(scores[None])[0]
        np.testing.assert_allclose(np.exp(wide) / np.exp(wide).sum(), shares, rtol=1e-5)
    elif loss == "squared":
        assert scores[0] == pytest.approx(given.y.mean(), rel=1e-9)
    else:
        assert np.exp(scores[0]) == pytest.approx(given.y.sum() / given.exposure.sum(), rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_derivatives_of_the_twin_are_those_of_its_loss(loss):
    given, h = likelihood(loss), 1e-4
    rng = rng_for("twin", loss)
    for y, exposure in zip(given.y, np.ones(12) if given.exposure is None else given.exposure, strict=True):
        score = rng.normal(size=n_scores(loss))
        for k, (first, second) in enumerate(derivatives(loss, score, y, exposure)):
            move = h * np.eye(len(score))[k]
            below, here, above = (loss_of(loss, score + i * move, y, exposure) for i in (-1, 0, 1))
            assert first == pytest.approx((above - below) / (2.0 * h), rel=1e-5, abs=1e-7)
            assert second == pytest.approx((above - 2.0 * here + below) / h**2, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_in_python_are_those_of_the_twin(loss):
    given = likelihood(loss)
    scores = rng_for("python", loss).normal(size=(12, n_scores(loss)))
    exposure = np.ones(12) if given.exposure is None else given.exposure
    literal = [loss_of(loss, *row) for row in zip(scores, given.y, exposure, strict=True)]
    np.testing.assert_allclose(given.losses(scores), literal, rtol=1e-12)
    some = np.array([7, 2, 2])
    np.testing.assert_allclose(given.at(some).losses(scores[some]), np.array(literal)[some], rtol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "rate"])
def test_no_score_has_less_than_the_least_loss(loss):
    given = likelihood(loss)
    least = given.least_losses()
    for i in range(12):
        one = given.at(np.array([i]))
        best = minimize_scalar(lambda score, one=one: float(one.losses(np.array([[score]]))[0]), bounds=(-30, 30)).fun
        assert least[i] == pytest.approx(best, abs=1e-6)


def test_classes_that_are_certain_have_no_loss_left():
    for loss, n_classes in N_CLASSES.items():
        given = likelihood(loss)
        of_classes = 40.0 * np.eye(n_classes)[given.y.astype(int)]
        scores = 40.0 * (2.0 * given.y[:, None] - 1.0) if loss == "logit" else of_classes
        np.testing.assert_allclose(given.losses(scores), given.least_losses(), atol=1e-12)


def test_losses_of_far_scores_stay_finite():
    for loss in ("logit", "softmax", "shared softmax", "squared"):
        given = likelihood(loss)
        far = np.full((12, n_scores(loss)), 800.0)
        far[:, 0] *= -1.0
        assert np.isfinite(given.losses(far)).all()


# ---- families of numbers by their links -----------------------------------------------------------------------------

DENSITIES = {
    "normal": lambda y, centre, data: norm.logpdf(y, centre, 1.0),
    "lognormal": lambda y, centre, data: lognorm.logpdf(y, 1.0, scale=np.exp(centre)),
    "poisson": lambda y, centre, data: poisson.logpmf(y, data["exposure"] * np.exp(centre)),
    "exponential": lambda y, centre, data: np.where(
        data["censored"] > 0.0, expon.logsf(y, scale=np.exp(-centre)), expon.logpdf(y, scale=np.exp(-centre))
    ),
}


DENSITIES |= {
    "histogram": DENSITIES["normal"],
    "negative_binomial": DENSITIES["poisson"],
}  # of the centre, not of leaves

HAVE_LINKS = [name for name, family in NUMBER_FAMILIES.items() if family.link is not None]
LINKED = list({type(NUMBER_FAMILIES[name].link): name for name in reversed(HAVE_LINKS)}.values())[::-1]
"""The first family of each link."""


def rows_of(family: str) -> Rows:
    rng = rng_for("links", family)
    y = {
        "normal": rng.normal(size=20), "lognormal": rng.lognormal(size=20), "poisson": rng.poisson(2.0, 20) * 1.0,
        "exponential": rng.exponential(size=20), "histogram": rng.normal(size=20),
        "negative_binomial": rng.poisson(2.0, 20) * 1.0,
    }[family]  # fmt: skip
    exposure = {"exposure": rng.uniform(0.5, 2.0, 20)}
    data = {
        "poisson": exposure, "negative_binomial": exposure, "exponential": {"censored": np.arange(20) % 3 == 0},
    }  # fmt: skip
    row_data = {name: np.asarray(values, dtype=float) for name, values in data.get(family, {}).items()}
    return Rows(np.zeros((20, 1), dtype=np.uint8), y, None, row_data)


@pytest.mark.parametrize("family", LINKED)
def test_a_loss_is_minus_the_log_likelihood_of_its_family(family):
    """Up to what does not depend on the centre: differences between two centres are the same."""
    rows, density = rows_of(family), DENSITIES[family]
    first, second = rng_for("centres", family).normal(size=(2, 20))
    given = likelihood_of(NUMBER_FAMILIES[family].link, rows)
    found = given.losses(first[:, None]) - given.losses(second[:, None])
    literal = density(rows.y, second, rows.row_data) - density(rows.y, first, rows.row_data)
    np.testing.assert_allclose(found, literal, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", LINKED)
def test_targets_about_centres_lead_back_to_targets(family):
    rows, link = rows_of(family), NUMBER_FAMILIES[family].link
    centre = rng_for("back", family).normal(size=20)
    seen, data = link.to_leaf(rows.y, centre), link.row_data_of_leaf(rows.row_data, centre)
    if not link.is_moved and not link.in_exposure:
        np.testing.assert_array_equal(seen, rows.y)
        return
    if link.in_exposure:
        np.testing.assert_allclose(data["exposure"], rows.row_data["exposure"] * np.exp(centre), rtol=1e-14)
        np.testing.assert_array_equal(seen, rows.y)
        np.testing.assert_allclose(link.row_data_of_leaf({}, centre)["exposure"], np.exp(centre), rtol=1e-14)
        return
    assert data.keys() == rows.row_data.keys()
    shift, scale = link.shift_and_scale(centre)
    np.testing.assert_allclose(shift + scale * seen, rows.y, rtol=1e-12)


@pytest.mark.parametrize(
    ("family", "mean_of"),
    [
        ("normal", lambda centre: centre), ("lognormal", lambda centre: centre), ("poisson", np.exp),
        ("exponential", lambda centre: np.exp(-centre)),
    ],
)  # fmt: skip
def test_the_centre_of_a_mean_is_the_centre(family, mean_of):
    centre = np.linspace(-2.0, 2.0, 9)
    np.testing.assert_allclose(NUMBER_FAMILIES[family].link.centre_of(mean_of(centre)), centre, atol=1e-12)
