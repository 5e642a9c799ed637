"""Numbers that trees are grown on."""

from __future__ import annotations

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.families.prior_search import variance_about


def centred_and_scaled(follow: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Return the same numbers near zero and of size one.

    Sums of numbers far from zero lose digits. The centre is one of the values and the scale a power of two, so that
    nothing is rounded and splits that were equally good still are.
    """
    mean = float(np.average(follow, weights=weight))
    centre = follow[np.argmin(np.abs(follow - mean))]
    scale = 2.0 ** -np.round(0.5 * np.log2(variance_about(mean, follow, weight)))
    return np.asarray((follow - centre) * scale)
