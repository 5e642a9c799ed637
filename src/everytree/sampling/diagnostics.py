"""How well chains agree: R-hat, effective sample size and the error of a mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from everytree.base.arrays import FloatArray


def rhat(draws: FloatArray) -> float:
    """Rank-normalised split R-hat of Vehtari et al. (2021) for draws of shape (n_chains, n_draws).

    1 where chains agree; also where all draws are equal. NaN with fewer than four draws.
    """
    halves = _halves(draws)
    if halves.shape[1] < 2:
        return float("nan")
    centred = np.abs(halves - np.median(halves))
    return max(_plain_rhat(_rank_normal(halves)), _plain_rhat(_rank_normal(centred)))


def ess(draws: FloatArray) -> float:
    """Effective number of draws for their mean, for draws of shape (n_chains, n_draws)."""
    halves = _halves(draws)
    n_chains, n = halves.shape
    if n < 4 or np.ptp(halves) == 0.0:
        return float(draws.size)
    autocovariance = np.array([_autocovariance(chain) for chain in halves])
    within = autocovariance[:, 0].mean() * n / (n - 1)
    total = within * (n - 1) / n + halves.mean(axis=1).var(ddof=1)
    rho = 1.0 - (within - autocovariance.mean(axis=0) * n / (n - 1)) / total
    pairs = rho[: 2 * (n // 2)].reshape(-1, 2).sum(axis=1)  # positive and decreasing for a reversible chain
    n_positive = int(np.argmax(pairs < 0.0)) if (pairs < 0.0).any() else len(pairs)
    tau = 2.0 * np.minimum.accumulate(pairs[: max(n_positive, 1)]).sum() - 1.0
    return float(min(n_chains * n / max(tau, 1.0 / np.log10(n_chains * n)), draws.size * np.log10(draws.size)))


def mean_error(draws: FloatArray) -> float:
    """Monte Carlo standard error of the mean of all draws."""
    return float(draws.std() / np.sqrt(ess(draws)))


def _halves(draws: FloatArray) -> FloatArray:
    n = draws.shape[1] // 2
    return np.concatenate([draws[:, :n], draws[:, draws.shape[1] - n :]])


def _rank_normal(values: FloatArray) -> FloatArray:
    ranks: NDArray[np.float64] = rankdata(values, axis=None).reshape(values.shape)
    return np.asarray(ndtri((ranks - 0.375) / (values.size + 0.25)))


def _plain_rhat(chains: FloatArray) -> float:
    n = chains.shape[1]
    within, between = chains.var(axis=1, ddof=1).mean(), chains.mean(axis=1).var(ddof=1)
    if within <= 0.0:
        return 1.0 if between <= 0.0 else float("inf")
    return float(np.sqrt((n - 1) / n + between / within))


def _autocovariance(chain: FloatArray) -> FloatArray:
    """Autocovariance at all lags, by the Fourier transform."""
    n = len(chain)
    spectrum = np.fft.rfft(chain - chain.mean(), 2 * n)
    return np.asarray(np.fft.irfft(spectrum * np.conj(spectrum), 2 * n)[:n] / n)
