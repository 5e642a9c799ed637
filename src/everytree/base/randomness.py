"""Random generators from the argument `rng` of every function that draws, and from `random_state` of estimators."""

from __future__ import annotations

import numpy as np

RandomSource = np.random.Generator | np.random.RandomState | int | None
"""A generator, which is advanced, or a seed; None takes entropy from the operating system."""


def random_generator(source: RandomSource, name: str = "rng") -> np.random.Generator:
    """Return the generator for an argument; a `RandomState` supplies the seed, and is advanced by that."""
    seed = source.randint(2**32, size=4, dtype=np.uint32) if isinstance(source, np.random.RandomState) else source
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must be a numpy.random.Generator, a RandomState, a whole number from 0 on or None, "
            f"but is {source!r}"
        ) from None
