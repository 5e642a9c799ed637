"""The priors that each family tries, for targets of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from everytree.families.registry import NUMBER_FAMILIES

TARGETS = {
    "measured": np.random.default_rng(0).gamma(2.0, 3.0, 200) + 0.01,
    "whole": np.random.default_rng(1).poisson(3.0, 200) + 1.0,
    "two values": np.random.default_rng(2).integers(1, 3, 200).astype(float),
    "one value": np.full(50, 3.0),
}


@pytest.mark.parametrize("family", NUMBER_FAMILIES)
@pytest.mark.parametrize("targets", TARGETS)
def test_every_noise_that_a_search_tries_is_on_its_ladder(family, targets):
    """A search goes from a value to its neighbours on a ladder; without columns also from the value it starts with."""
    y = TARGETS[targets]
    search = NUMBER_FAMILIES[family].prior_search(y, None, {"inputs": np.ones((len(y), 1))}, {}, "auto")
    for name, ladder in search.ladders.items():
        tried = [value for stage in search.stages for value in stage.get(name, ())]
        start = [search.start["noise"]] if name == "noise" else []
        assert {*start, *tried} <= set(ladder)
