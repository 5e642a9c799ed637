"""Linear regression in every leaf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.families.base import NativeFamily, as_columns, hyperparameter
from everytree.families.link import RowData
from everytree.families.prior_search import SPLIT_PRIORS, STRENGTHS, Search, search_for, variance_about
from everytree.families.student import StudentComponents

SHAPES = (1.25, 2.0, 4.0, 8.0, 16.0, 50.0, 200.0, 1e3, 1e4)
"""Values to try for `shape`; above 1, so that the variance of a new row is finite."""


@dataclass(frozen=True, eq=False)
class LinearRegression(NativeFamily):
    """y ~ N(inputs . w, 1 / tau); w given tau ~ N(mean, (tau precision)^-1); tau ~ Gamma(shape, rate=scale).

    There is no intercept but the one you give: a column of ones in `inputs`. Statistics: weight, then y y, inputs y
    and the lower triangle of inputs inputs', each as a pair (value, rest) of about 32 digits.

    Parameters
    ----------
    n_inputs : int
    precision : float, (n_nodes,), (n_inputs, n_inputs) or (n_nodes, n_inputs, n_inputs) array_like
        Prior precision of the coefficients in units of the noise precision; a number stands for a multiple of the
        identity.
    shape, scale : float or (n_nodes,) array_like
    mean : float, (n_inputs,) or (n_nodes, n_inputs) array_like
        Prior mean of the coefficients.

    Notes
    -----
    Row data: `inputs`, (n_rows, n_inputs).
    """

    kernel: ClassVar[str] = "linear"
    size_parameter: ClassVar[tuple[str, int, int] | None] = ("n_inputs", 1, 1000)
    never_negative: ClassVar[tuple[int, ...] | None] = (0,)
    mass: ClassVar[slice | None] = None
    row_data: ClassVar[tuple[str, ...]] = ("inputs",)
    grows_standardised: ClassVar[bool] = True
    n_inputs: int
    precision: ArrayLike = 1.0
    shape: ArrayLike = 1.0
    scale: ArrayLike = 1.0
    mean: ArrayLike = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_inputs", whole_number("n_inputs", self.n_inputs, 1, 1000))
        object.__setattr__(self, "size", self.n_inputs)
        for name, positive in (("precision", False), ("shape", True), ("scale", True), ("mean", False)):
            object.__setattr__(self, name, hyperparameter(name, getattr(self, name), positive=positive))
        self._freeze()

    def _hyperparameters(self) -> FloatArray:
        p = self.size
        precision = self._precision_matrices()
        mean = np.atleast_2d(np.asarray(self.mean))
        if mean.ndim > 2 or mean.shape[1] not in (1, p):
            raise ValueError(f"mean must have one entry for each of {p} inputs, but has shape {np.shape(self.mean)}")
        parts = {"mean": mean, "precision": precision[:, *np.tril_indices(p)]}
        parts["shape and scale"] = as_columns(shape=self.shape, scale=self.scale)  # type: ignore[arg-type]
        n = max(len(part) for part in parts.values())
        for name, part in parts.items():
            if len(part) not in (1, n):
                raise ValueError(f"{name} is given for {len(part)} nodes, but another hyperparameter for {n}")
        widths = {"mean": p}
        columns = [np.broadcast_to(part, (n, widths.get(name, part.shape[1]))) for name, part in parts.items()]
        return np.concatenate(columns, axis=1)

    def _precision_matrices(self) -> FloatArray:
        """(1 or n_nodes, n_inputs, n_inputs), symmetric and positive definite."""
        p, given = self.size, np.asarray(self.precision)
        if given.ndim < 2:
            matrices = np.reshape(given, (-1, 1, 1)) * np.eye(p)
        elif given.shape[-2:] == (p, p) and given.ndim < 4:
            matrices = np.reshape(given, (-1, p, p))
        else:
            raise ValueError(f"precision must be a number or a {p} x {p} matrix, but has shape {given.shape}")
        if not np.allclose(matrices, matrices.transpose(0, 2, 1), rtol=1e-12, atol=0.0):
            raise ValueError("precision must be symmetric")
        try:
            np.linalg.cholesky(matrices)
        except np.linalg.LinAlgError:
            raise ValueError("precision must be positive definite") from None
        return matrices

    def pack(self, row_data: Mapping[str, Any]) -> FloatArray:
        self.check_row_data(row_data)
        if row_data.get("inputs") is None:
            raise TypeError(f"LinearRegression needs inputs=, a table of {self.size} columns")
        inputs = np.asarray(row_data["inputs"])
        if inputs.ndim != 2 or inputs.shape[1] != self.size:
            raise ValueError(f"inputs must have shape (n_rows, {self.size}), but has {inputs.shape}")
        if inputs.dtype.kind not in "biuf":
            raise TypeError(f"inputs must be numbers, but has dtype {inputs.dtype}")
        return inputs.astype(np.float64, copy=False)

    def posterior_parameters(self, statistics: FloatArray) -> dict[str, FloatArray]:
        inverse_root, z, shape, scale = self._unpack(self.summarise(statistics))
        root = np.linalg.inv(inverse_root)
        mean = np.einsum("nji,nj->ni", inverse_root, z)
        return {"mean": mean, "precision": root @ root.transpose(0, 2, 1), "shape": shape, "scale": scale}

    def _unpack(self, summary: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Inverse Cholesky factor of the posterior precision, z, shape and scale, as linear.hpp packs them."""
        p, n_triangle = self.size, self.size * (self.size + 1) // 2
        values = summary[:, :-2:2]  # of pairs (value, rest)
        inverse_root = np.zeros((len(summary), p, p))
        inverse_root[:, *np.tril_indices(p)] = values[:, :n_triangle]
        return inverse_root, values[:, n_triangle:], summary[:, -2], summary[:, -1]

    @classmethod
    def prior_search(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
    ) -> Search:
        """Search priors around the coefficients of one ridge regression; inputs are scaled, the last is 1."""
        inputs = np.asarray(row_data["inputs"], dtype=np.float64)
        centre = ridge_coefficients(inputs, y, weight)
        residuals = y - inputs @ centre
        variance = variance_about(0.0, residuals, weight)

        def make(precision: float, shape: float, noise: float) -> LinearRegression:
            scale = max(shape - 1.0, 0.5) * noise * variance
            return cls(inputs.shape[1], precision=precision, shape=shape, scale=scale, mean=centre)

        stages = [
            {"precision": (0.1, 1.0, 10.0, 100.0), "noise": (0.1, 0.5, 1.0), "split_prior": SPLIT_PRIORS},
            {"shape": (1.25, 2.0, 4.0), "noise": (0.03, 0.1, 0.3, 0.6, 1.0)},
        ]
        ladders = {
            "precision": STRENGTHS,
            "shape": SHAPES,
            "noise": (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 0.6, 1.0, 1.5, 3.0),
        }
        return search_for(make, {"precision": 10.0, "shape": 2.0, "noise": 0.5}, given, split_prior, stages, ladders)

    @classmethod
    def to_grow_on(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData
    ) -> tuple[FloatArray, FloatArray | None]:
        """Residuals of one ridge regression over all rows."""
        return y - row_data["inputs"] @ ridge_coefficients(row_data["inputs"], y, weight), weight

    def components(self, summary: FloatArray, **row_data: Any) -> StudentComponents:
        inputs = np.ascontiguousarray(self.pack(row_data))
        location, location_rest, spread = _kernels.linear_predictions(self.size, summary, inputs).T
        shape, scale = summary[:, -2:].T
        return StudentComponents(
            2.0 * shape, (location, location_rest), scale / shape * (1.0 + spread), spread / (1.0 + spread)
        )

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """(n, n_inputs + 1): coefficients, then tau."""
        nothing = np.zeros((len(nodes), self.n_statistics))
        inverse_root, z, shape, scale = self._unpack(self.at(nodes).summarise(nothing))
        tau = rng.gamma(shape, 1.0 / scale)
        noise = rng.standard_normal(z.shape) / np.sqrt(tau)[:, None]
        return np.concatenate([np.einsum("nji,nj->ni", inverse_root, z + noise), tau[:, None]], axis=1)

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> FloatArray:
        location = (self.pack(row_data) * theta[:, :-1]).sum(axis=1)
        return rng.normal(location, 1.0 / np.sqrt(theta[:, -1]))


def ridge_coefficients(inputs: FloatArray, y: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Coefficients of one ridge regression over all rows; the last input is the constant, which is not shrunk."""
    scaled = inputs if weight is None else inputs * weight[:, None]
    ridge = np.eye(inputs.shape[1])
    ridge[-1, -1] = 0.0
    mean = float(np.average(y, weights=weight))  # goes into the constant alone: targets far from zero lose no digits
    coefficients = np.linalg.solve(scaled.T @ inputs + ridge, scaled.T @ (y - mean))
    coefficients[-1] += mean
    return np.asarray(coefficients)
