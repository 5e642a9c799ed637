"""Ratios of gamma functions over arrays, computed by the kernels without losing digits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from everytree import _kernels
from everytree.base.arrays import FloatArray


def log_rising(x: ArrayLike, n: ArrayLike) -> FloatArray:
    """log Gamma(x + n) - log Gamma(x)."""
    return _over_entries(_kernels.log_rising, x, n)


def log_beta_ratio(a: ArrayLike, b: ArrayLike, more_a: ArrayLike, more_b: ArrayLike) -> FloatArray:
    """log B(a + more_a, b + more_b) - log B(a, b)."""
    return _over_entries(_kernels.log_beta_ratio, a, b, more_a, more_b)


def log_negative_binomial(k: ArrayLike, shape: ArrayLike, odds: ArrayLike) -> FloatArray:
    """Log probability of k events when the rate is gamma distributed; odds = exposure / rate of that gamma."""
    return _over_entries(_kernels.log_negative_binomial, k, shape, odds)


def log_beta_negative_binomial(k: ArrayLike, r: ArrayLike, a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Log probability of k under a negative binomial of size r whose probability is Beta(a, b) distributed."""
    return _over_entries(_kernels.log_beta_negative_binomial, k, r, a, b)


def beta_negative_binomial_tail(
    k: ArrayLike, r: ArrayLike, a: ArrayLike, b: ArrayLike, *, is_above: bool
) -> FloatArray:
    """P(Y > k) under that distribution where `is_above`, else P(Y <= k)."""
    return _over_entries(partial(_kernels.beta_negative_binomial_tail, is_above=is_above), k, r, a, b)


def _over_entries(kernel: Callable[..., Any], *numbers: ArrayLike) -> FloatArray:
    arrays = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in numbers))
    values: FloatArray = kernel(*(np.ascontiguousarray(each).ravel() for each in arrays))
    return values.reshape(arrays[0].shape)
