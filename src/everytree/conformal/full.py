"""Full conformal prediction in closed form: by posteriors that treat all rows alike, the new one included."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray, as_codes, as_column, check_lengths
from everytree.base.errors import ArgumentError
from everytree.exact.posterior import ExactPosterior
from everytree.families.base import Family
from everytree.posterior.growing import GrowingPosterior
from everytree.posterior.posterior import Posterior

SAME = 1e-10
"""Difference of log probabilities below which two rows are equally unusual."""


def full_conformal(
    posterior: Posterior | GrowingPosterior | ExactPosterior,
    X: ArrayLike,
    y: ArrayLike,
    X_new: ArrayLike,
    candidates: ArrayLike | None = None,
) -> FloatArray:
    """(n_new, n_candidates) p-values of possible targets of new rows, with no row set aside.

    A new row and a possible target of it are counted like any other row; the p-value is the share of all these rows
    that are as unusual or more, each by its log probability given all others, in closed form. What is in the posterior
    is the same for every order of the rows. Hence the targets with p-values above 1 - coverage hold the true one with
    this probability at least, whatever the leaf model and the priors, if these and the cut points behind the codes do
    not depend on the rows, and the new row is exchangeable with them.

    Of a meta-tree and classes, a candidate takes time in proportion to the number of nodes, and of pairs of a terminal
    and a class; an `ExactPosterior` is summed once for each candidate.

    Parameters
    ----------
    posterior : Posterior, GrowingPosterior or ExactPosterior
        Fitted to the rows of X and y, each of weight 1, and to no others. It is not changed.
    X, y
        These rows, as they were given to it.
    X_new : (n_new, n_features) array_like of codes
    candidates : (n_candidates,) array_like, optional
        Possible targets; by default all classes. For numbers, a grid: p-values are exact at its points, and nothing is
        said of what is between them.

    Returns
    -------
    (n_new, n_candidates) array

    Examples
    --------
    >>> import numpy as np, everytree as et
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (60, 2)).astype(np.uint8)
    >>> y = np.where(rng.random(60) < 0.9, X[:, 0], 1 - X[:, 0])
    >>> post = et.Posterior(et.MetaTree.complete([0, 1, 1], 2), et.Bernoulli()).update(X, y)
    >>> p = et.full_conformal(post, X, y, [[0, 0], [1, 0]])
    >>> (p > 0.1).tolist()  # sets of coverage 0.9
    [[True, False], [True, True]]
    """
    known, target, new = as_codes(X), as_column("y", y), as_codes(X_new)
    check_lengths(len(known), {"y": target})
    if posterior.n_rows != len(known):
        raise ArgumentError("X", f"must be the {posterior.n_rows} rows of the posterior, but has {len(known)} rows")
    possible = _classes(posterior.family) if candidates is None else as_column("candidates", candidates)
    every = np.concatenate([known, new])
    places = _places(posterior, every)
    rows = _distinct(every, target, places)
    p_values: dict[Any, list[float]] = {}
    for row, place in enumerate(places[len(known) :], start=len(known)):
        if place not in p_values:
            p_values[place] = [_p_value(posterior, rows, every[row], one) for one in possible]
    return np.array([p_values[place] for place in places[len(known) :]])


class _Rows(NamedTuple):
    """All rows, and for each pair of a place and a target, one of the rows that have it and their number."""

    X: NDArray[Any]
    y: NDArray[Any]
    first: NDArray[np.int64]
    n_equal: NDArray[np.int64]


def _distinct(every: NDArray[Any], y: NDArray[Any], places: list[Any]) -> _Rows:
    number: dict[Any, int] = {}
    pairs = zip(places, y.tolist(), strict=False)
    of_row = np.array([number.setdefault(pair, len(number)) for pair in pairs], dtype=np.int64)
    _, first, count = np.unique(of_row, return_index=True, return_counts=True)
    return _Rows(every[: len(y)], y, first, count)


def _classes(family: Family) -> NDArray[Any]:
    if not family.has_classes:
        raise ArgumentError("candidates", f"must be given: {type(family).__name__} is a family of numbers")
    return np.arange(family.n_statistics)


def _p_value(posterior: Any, rows: _Rows, new: NDArray[Any], candidate: Any) -> float:
    """Share of rows at least as unusual as the new one, among all with it."""
    if isinstance(posterior, ExactPosterior):
        with_new: Any = posterior.without_rows().fit(np.vstack([rows.X, new]), np.append(rows.y, candidate))
    else:
        with_new = posterior.copy().update(new[None], np.append(rows.y[:0], candidate))
    asked, targets = np.vstack([rows.X[rows.first], new]), np.append(rows.y[rows.first], candidate)
    scores = with_new.loo_log_prob(asked, targets)
    as_unusual = scores[:-1] <= scores[-1] + SAME
    return float((rows.n_equal[as_unusual].sum() + 1) / (len(rows.y) + 1))


def _places(posterior: Any, X: NDArray[Any]) -> list[Any]:
    """What tells rows apart: terminals of a meta-tree, else codes."""
    if isinstance(posterior, Posterior):
        return list(posterior.tree.route(X).tolist())
    return [row.tobytes() for row in X]
