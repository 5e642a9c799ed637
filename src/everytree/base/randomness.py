"""Random generators from `rng` and `random_state`, the two arguments of every function that draws."""

from __future__ import annotations

import numpy as np

RandomSource = np.random.Generator | np.random.RandomState | int | None
"""A generator, which is advanced, or a seed; None takes entropy from the operating system."""


def random_generator(rng: RandomSource = None, random_state: RandomSource = None) -> np.random.Generator:
    """Return the generator for `rng`, or for `random_state`, scikit-learn's name of the same argument.

    The same whole number gives the same draws by either name. A `RandomState` supplies the seed and is advanced by
    that, so the next call with it draws other numbers.
    """
    if rng is not None and random_state is not None:
        raise ValueError(
            f"rng and random_state are two names for one source of randomness: give one of them, "
            f"not rng={rng!r} and random_state={random_state!r}"
        )
    name, source = ("rng", rng) if random_state is None else ("random_state", random_state)
    seed = source.randint(2**32, size=4, dtype=np.uint32) if isinstance(source, np.random.RandomState) else source
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must be a numpy.random.Generator, a RandomState, a whole number from 0 on or None, "
            f"but is {source!r}"
        ) from None
