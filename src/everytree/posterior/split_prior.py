"""Split priors: the prior probability g_s that a node is split, given that it is in the tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from everytree.base.arrays import FloatArray
from everytree.trees.metatree import MetaTree

SplitPriorLike = float | ArrayLike | Callable[[int], float]


@dataclass(frozen=True)
class DepthPrior:
    """Split prior alpha (1 + depth)^-beta, the choice of Chipman, George and McCulloch for Bayesian CART."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        if not (_is_number(self.alpha) and 0.0 <= self.alpha <= 1.0):
            raise ValueError(f"alpha must be from 0 to 1, but is {self.alpha!r}")
        if not (_is_number(self.beta) and 0.0 <= self.beta < np.inf):
            raise ValueError(f"beta must be 0 or more, but is {self.beta!r}")

    def __call__(self, depth: int) -> float:
        return float(self.alpha * (1.0 + depth) ** -self.beta)


def depth_prior(alpha: float = 0.95, beta: float = 2.0) -> DepthPrior:
    """A split prior that falls with depth: `alpha * (1 + depth) ** -beta`.

    Examples
    --------
    >>> import everytree as et
    >>> prior = et.depth_prior(0.95, 1.0)
    >>> prior(0), prior(1)
    (0.95, 0.475)
    """
    return DepthPrior(alpha, beta)


def resolve_split_prior(split_prior: SplitPriorLike, tree: MetaTree) -> FloatArray:
    """Return one number for all inner nodes, shape (1,), or one for every node, shape (n_nodes,), checked."""
    if callable(split_prior):
        inner = ~tree.is_terminal
        per_depth = split_prior_of_depths(split_prior, int(tree.depth[inner].max(initial=-1)) + 1)
        values = np.zeros(tree.n_nodes)
        values[inner] = per_depth[tree.depth[inner]]
    else:
        values = _numbers(split_prior)
    if values.ndim == 0:
        if not 0.0 <= values <= 1.0:
            raise ValueError(f"split_prior must be from 0 to 1, but is {values}")
        return values.reshape(1)
    if values.shape != (tree.n_nodes,):
        raise ValueError(f"split_prior has shape {values.shape}, but the tree has {tree.n_nodes} nodes")
    _check_range(values, "split_prior")
    at_terminal = tree.is_terminal & (values != 0.0)
    if at_terminal.any():
        s = int(np.argmax(at_terminal))
        raise ValueError(f"split_prior[{s}] is {values[s]}, but node {s} is a terminal: it must be 0")
    return values.copy()


def split_prior_of_depths(split_prior: SplitPriorLike, n_depths: int) -> FloatArray:
    """Return the prior of each depth, for a scalar or a function of depth."""
    if callable(split_prior):
        values = np.array([_number_at_depth(split_prior, depth) for depth in range(n_depths)])
    else:
        number = _numbers(split_prior)
        if number.ndim != 0:
            raise ValueError(
                "split_prior: nodes that do not exist yet have no numbers; give one number or a function of depth"
            )
        values = np.full(n_depths, float(number))
        if not 0.0 <= number <= 1.0:
            raise ValueError(f"split_prior must be from 0 to 1, but is {number}")
    _check_range(values, "split_prior at depth")
    return values


def log_split_stop(split_prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log g and log(1 - g) of split priors g; minus infinity where one of them is 0."""
    with np.errstate(divide="ignore"):
        return np.log(split_prior), np.log1p(-split_prior)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _number_at_depth(split_prior: Callable[[int], float], depth: int) -> float:
    value = split_prior(depth)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"split_prior at depth {depth} must be a number, but is {value!r}") from None


def _numbers(split_prior: ArrayLike) -> FloatArray:
    try:
        return np.asarray(split_prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"split_prior must be a number, one for each node, or a function of depth, not {split_prior!r}"
        ) from None


def _check_range(values: FloatArray, name: str) -> None:
    wrong = ~((values >= 0.0) & (values <= 1.0))
    if wrong.any():
        index = int(np.argmax(wrong))
        raise ValueError(f"{name}[{index}] is {values[index]}, but must be from 0 to 1")
