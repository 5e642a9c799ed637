"""Normal targets with unknown mean and variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincinv, stdtrit

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily, as_columns, hyperparameter
from everytree.families.student import StudentComponents


@dataclass(frozen=True, eq=False)
class Normal(NativeFamily):
    """y ~ N(mu, 1 / tau); mu given tau ~ N(mean, 1 / (strength tau)); tau ~ Gamma(shape, rate=scale).

    Statistics: weight, sum of y and sum of y^2, each as a pair (value, rest) of about 32 digits, so that a spread of 1
    around 1e9 is not lost, whatever the weights.

    Parameters
    ----------
    mean : float or (n_nodes,) array_like
    strength : float or (n_nodes,) array_like
        How many rows the prior mean is worth.
    shape, scale : float or (n_nodes,) array_like
        Of the inverse-gamma prior of the variance.
    """

    kernel: ClassVar[str] = "normal"
    mean: ArrayLike = 0.0
    strength: ArrayLike = 1.0
    shape: ArrayLike = 1.0
    scale: ArrayLike = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", hyperparameter("mean", self.mean, positive=False))
        for name in ("strength", "shape", "scale"):
            object.__setattr__(self, name, hyperparameter(name, getattr(self, name)))
        self._freeze()

    def _hyperparameters(self) -> FloatArray:
        names = ("mean", "strength", "shape", "scale")
        return as_columns(**{name: getattr(self, name) for name in names})

    def posterior_parameters(self, statistics: FloatArray) -> dict[str, FloatArray]:
        mean, strength, shape, scale, _ = self.summarise(statistics).T
        return {"mean": mean, "strength": strength, "shape": shape, "scale": scale}

    def parameter_quantiles(self, statistics: FloatArray, p: float) -> dict[str, FloatArray]:
        mean, strength, shape, scale, _ = self.summarise(statistics).T
        spread = np.sqrt(scale / (shape * strength))
        return {"mean": mean + spread * stdtrit(2.0 * shape, p), "precision": gammaincinv(shape, p) / scale}

    def components(self, summary: FloatArray, **row_data: Any) -> StudentComponents:
        mean, strength, shape, scale, mean_rest = summary.T
        scale_squared = scale / shape * (1.0 + 1.0 / strength)
        return StudentComponents(2.0 * shape, (mean, mean_rest), scale_squared, 1.0 / (1.0 + strength))

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """(n, 2): mu and tau."""
        mean, strength, shape, scale = np.broadcast_to(self.at(nodes)._hyper, (len(nodes), 4)).T
        tau = rng.gamma(shape, 1.0 / scale)
        return np.stack([rng.normal(mean, 1.0 / np.sqrt(strength * tau)), tau], axis=1)

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> FloatArray:
        return rng.normal(theta[:, 0], 1.0 / np.sqrt(theta[:, 1]))
