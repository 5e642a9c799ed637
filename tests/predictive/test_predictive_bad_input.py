"""Questions that a predictive distribution refuses."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from cases import CASE
from doors import GOOD_X, GOOD_Y, doors
from refusals import refused

BAD = [0.0, 1.0, -0.1, 1.1, np.nan, "a", [0.5, 2.0], [[0.5]]]


@pytest.mark.parametrize("p", BAD, ids=str)
def test_probabilities_outside_the_open_interval_are_refused(p):
    dist = et.Posterior(et.MetaTree.complete([0]), et.Normal()).predictive([[0]])
    with pytest.raises((ValueError, TypeError), match="p must be"):
        dist.quantile(p)
    if np.ndim(p) == 0:
        with pytest.raises((ValueError, TypeError), match="coverage must be"):
            dist.interval(p)


def test_what_a_family_does_not_have_is_said():
    dist = et.Posterior(et.MetaTree.complete([0]), et.Normal()).predictive([[0]])
    with pytest.raises(TypeError, match="discrete"):
        dist.entropy()
    with pytest.raises(ValueError, match="kind"):
        dist.interval(0.9, kind="best")
    with pytest.raises(ValueError, match="size"):
        dist.sample(-1, rng=0)


@doors
def test_bad_targets_are_refused_when_predicting(door):
    dist = door.seasoned(CASE["bernoulli"])[0].predictive(GOOD_X)
    refused(lambda: dist.log_prob(GOOD_Y[:3]), "y", "3", "4")
    refused(lambda: dist.log_prob(np.zeros((4, 3))), "y", "3", "4")
    refused(lambda: dist.log_prob(["a"] * 4), "y")
    refused(lambda: dist.log_prob(None), "y")
