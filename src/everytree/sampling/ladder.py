"""Powers of the evidence at which structures are sampled, from 0, the prior, to that of the target.

Neighbours exchange structures. Their rejections add up to a length of the way from the prior to the posterior; the
powers are placed so that each step has the same part of it, which is best for the exchange.
"""

from __future__ import annotations

import numpy as np

from everytree.base.arrays import FloatArray


def first_powers(n: int, temperature: float) -> FloatArray:
    """n powers to begin with, from 0 to `temperature`; the target alone if n is 1."""
    if n == 1:
        return np.array([temperature])
    return (
        np.concatenate([[0.0], temperature * np.geomspace(0.01, 1.0, n - 1)]) if n > 2 else np.array([0, temperature])
    )


def adapted_powers(powers: FloatArray, exchange_rate: FloatArray) -> FloatArray:
    """Powers with the same ends whose neighbours should be rejected equally often.

    `powers`: (n,). `exchange_rate`, (n - 1,): mean acceptance probability of an exchange of each power with the next.
    """
    n = len(powers)
    if n < 3:
        return powers
    rejected = np.clip(1.0 - exchange_rate, 1e-3, 1.0)
    length = np.concatenate([[0.0], np.cumsum(rejected)])
    adapted = np.interp(np.linspace(0.0, length[-1], n), length, powers)
    adapted[0], adapted[-1] = powers[0], powers[-1]
    return adapted
