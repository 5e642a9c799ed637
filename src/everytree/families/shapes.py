"""The base of families with an unknown shape: one of a few, each with a conjugate prior of its own."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily, hyperparameter
from everytree.families.link import RowData
from everytree.families.mixed import MixedComponents
from everytree.families.prior_search import SPLIT_PRIORS, STRENGTHS, Search, search_for


@dataclass(frozen=True, eq=False)
class OfShapes(NativeFamily):
    """Base class of families with a shape.

    A mixture of finitely many conjugate families is conjugate: evidence, leaving rows out and merging stay exact, as
    they would not with one shape estimated from the rows.
    """

    grid: ClassVar[tuple[float, ...]]  # the shapes that estimators try
    mean: ArrayLike = 1.0
    strength: ArrayLike = 1.0
    shapes: ArrayLike = ()
    shape_probs: ArrayLike = ()

    def __post_init__(self) -> None:
        shapes = np.atleast_1d(hyperparameter("shapes", self.shapes if np.size(self.shapes) else self.grid))
        if shapes.ndim != 1 or (np.diff(shapes) <= 0.0).any() or len(shapes) > 64:
            raise ValueError(f"shapes must be at most 64 numbers in ascending order, but is {self.shapes!r:.200}")
        if not self.grid[0] / 16.0 <= shapes[0] <= shapes[-1] <= self.grid[-1]:
            at = f"{self.grid[0] / 16.0:g} to {self.grid[-1]:g}"
            raise ValueError(f"shapes must be from {at}, but is {self.shapes!r:.200}")
        probs = np.array(hyperparameter("shape_probs", self.shape_probs)) if np.size(self.shape_probs) else None
        probs = np.full(len(shapes), 1.0 / len(shapes)) if probs is None else np.atleast_1d(probs)
        if probs.shape != shapes.shape:
            raise ValueError(f"shape_probs must have one entry for each of {len(shapes)} shapes")
        if abs(probs.sum() - 1.0) > 1e-12:  # those of a file stay as they are
            probs = probs / probs.sum()
        named = " ".join(float(shape).hex() for shape in shapes)
        for array in (shapes, probs):
            array.flags.writeable = False
        for name, value in {
            "mean": hyperparameter("mean", self.mean), "strength": hyperparameter("strength", self.strength),
            "shapes": shapes, "shape_probs": probs, "size": len(shapes), "kernel": f"{type(self).kernel} {named}",
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)
        self._freeze()
        n_statistics = self.n_statistics - self.n_rest
        object.__setattr__(self, "never_negative", tuple(range(n_statistics if self.has_powers else self.n_shared)))

    n_shared: ClassVar[int]
    n_rest: ClassVar[int] = 0
    has_powers: ClassVar[bool] = False

    def _hyperparameters(self) -> FloatArray:
        both = np.column_stack(np.broadcast_arrays(np.atleast_1d(self.mean), np.atleast_1d(self.strength)))
        same = np.concatenate([np.asarray(self.shapes), np.asarray(self.shape_probs)])
        return np.column_stack([both, np.broadcast_to(same, (len(both), len(same)))])

    @classmethod
    @abstractmethod
    def overall_mean(cls, y: FloatArray, weight: FloatArray | None, row_data: RowData) -> float:
        """Mean of all targets, on which priors are centred."""

    @classmethod
    def prior_search(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
    ) -> Search:
        """Search `likely_shape`, about which the prior of the shapes lies, and `strength`, in rows."""
        mean = max(cls.overall_mean(y, weight, row_data), 1e-50)
        steps = np.log(cls.grid)

        def make(strength: float, likely_shape: float) -> OfShapes:
            away = (steps - np.log(likely_shape)) / np.log(2.0)
            return cls(mean, strength, cls.grid, np.exp(-0.5 * away**2) + 1e-6)

        stages: list[dict[str, Sequence[float]]] = [
            {"likely_shape": cls.grid[1:-1:3], "split_prior": SPLIT_PRIORS},
            {"strength": (0.03, 0.1, 0.3, 1.0)},
            {"likely_shape": cls.grid[2:-1:3], "split_prior": SPLIT_PRIORS},
        ]
        ladders = {"likely_shape": cls.grid, "strength": STRENGTHS}
        start = {"strength": 0.1, "likely_shape": cls.grid[len(cls.grid) // 2]}
        return search_for(make, start, given, split_prior, stages, ladders)

    def additive(self, statistics: FloatArray) -> FloatArray:
        return np.ascontiguousarray(statistics)

    def posterior_parameters(self, statistics: FloatArray) -> dict[str, FloatArray]:
        """The probability of each shape, and the two parameters of the rate given each."""
        summary = self.summarise(statistics)
        return {"shape_probs": np.exp(summary[:, ::3]), "first": summary[:, 1::3], "second": summary[:, 2::3]}

    def components(self, summary: FloatArray, **row_data: Any) -> MixedComponents:
        n = len(np.asarray(self.shapes))
        shape = np.broadcast_to(np.asarray(self.shapes), (len(summary), n)).ravel()
        columns = {name: np.repeat(values, n) if np.ndim(values) else values for name, values in row_data.items()}
        parts = self.of_shape(shape, summary[:, 1::3].ravel(), summary[:, 2::3].ravel(), **columns)
        return MixedComponents(parts, np.ascontiguousarray(summary[:, ::3]))

    def warn_about(self, statistics: FloatArray) -> None:
        """Warn where the first or the last shape is more probable than all others in most of the leaves."""
        probs, shapes = self.posterior_parameters(statistics)["shape_probs"], np.asarray(self.shapes)
        amount = self.seen(statistics).amount
        if len(shapes) < 2 or not amount.sum() > 0.0:
            return
        mean = np.average(probs, axis=0, weights=amount)
        if max(mean[0], mean[-1]) > 0.5:
            warnings.warn(
                f"the leaves favour the shape {shapes[0 if mean[0] > 0.5 else -1]:g}, at the border of those that "
                f"family {self.name!r} has: targets may be of another family",
                UserWarning,
                stacklevel=2,
            )

    @abstractmethod
    def of_shape(self, shape: FloatArray, a: FloatArray, b: FloatArray, **row_data: Any) -> Any:
        """The predictive distributions of known shapes, given the two parameters of the rate."""

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """(n, 2): the shape, and the rate or probability."""
        prior = np.broadcast_to(self.at(nodes).kernel_prior, (len(nodes), 4 * self.size)).reshape(len(nodes), -1, 4)
        which = rng.choice(self.size, size=len(nodes), p=np.asarray(self.shape_probs) / np.sum(self.shape_probs))
        chosen = prior[np.arange(len(nodes)), which]
        return np.stack([np.asarray(self.shapes)[which], self.sample_rates(chosen[:, 1], chosen[:, 2], rng)], axis=1)

    def sample_rates(self, a: FloatArray, b: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw from the conjugate prior: a gamma distribution, unless a family says otherwise."""
        return np.asarray(rng.gamma(a, 1.0 / b))
