"""Intervals hold what they say."""

from __future__ import annotations

from cases import families
from distribution_cases import DISCRETE, predictive


@families
def test_intervals_hold_what_they_say(case):
    dist, _, _ = predictive(case, 21)
    interval = dist.interval(0.9)
    assert interval.shape == (6, 2)
    low = dist.cdf(interval[:, 0] - 1.0) if case in DISCRETE else dist.cdf(interval[:, 0])
    assert (dist.cdf(interval[:, 1]) - low >= 0.9 - 1e-9).all()
