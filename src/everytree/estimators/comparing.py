"""Whether two models with the same trees have seen rows of one law."""

from __future__ import annotations

from typing import Any

from everytree.base.errors import ArgumentError, OverlapError
from everytree.estimators.base import MetaEstimator
from everytree.posterior.checks import check_is_other
from everytree.posterior.comparison import Comparison, compare_posteriors
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior


def compare(a: Any, b: Any, *, change_prior: float = 0.5) -> Comparison:
    """Compare the rows of two models with the same trees: has the law of the target changed, and where?

    Exact for a tree: the sum over every pruning and every set of leaves that may have changed, of the evidence with one
    parameter for both in unchanged leaves and one for each in changed ones. From the root down, a node is unchanged as
    a whole with probability `1 - change_prior`; otherwise each of its children decides in turn, and a leaf has changed.
    So the prior probability that nothing has changed hardly depends on the size of the tree. Of a forest, the weighted
    mean over its trees.

    Trees must not have been grown on the rows that are compared: splits that were chosen on rows of `a` fit these
    better than rows of `b`, which looks like a change. Let both start from `blank()`.

    Parameters
    ----------
    a, b : Posterior, Forest or fitted estimators
        With the same tree or trees, priors and columns, and different rows: two copies of `blank()`, each with its own
        rows by `partial_fit`.
    change_prior : float
        Prior probability, between 0 and 1, that a node is not unchanged as a whole.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np, everytree as et
    >>> tree = et.MetaTree.complete([0, 1, 1], n_children=2)
    >>> X = np.random.default_rng(0).integers(0, 2, size=(2000, 2)).astype(np.uint8)
    >>> p = np.array([[0.2, 0.5], [0.7, 0.7]])[X[:, 0], X[:, 1]]
    >>> y = np.random.default_rng(1).random(2000) < p
    >>> X2 = np.random.default_rng(2).integers(0, 2, size=(2000, 2)).astype(np.uint8)
    >>> p2 = np.array([[0.2, 0.9], [0.7, 0.7]])[X2[:, 0], X2[:, 1]]  # the law has changed where x0 = 0 and x1 = 1
    >>> y2 = np.random.default_rng(3).random(2000) < p2
    >>> before, after = (et.Posterior(tree, et.Bernoulli()).update(*rows) for rows in ((X, y), (X2, y2)))
    >>> print(et.compare(before, after).to_text())
    P(nothing changed) = 2.48e-36, a priori 0.579
                     changed  a: rows  a: P(y = 1)  b: rows  b: P(y = 1)
    x0?                1.000    2,000        0.537    2,000        0.612
    ├─ = 0  x1?        1.000      964        0.354    1,024        0.529
    │  ├─ = 0  leaf    0.055      469        0.171      528        0.184
    │  └─ = 1  leaf    1.000      495        0.527      496        0.896
    └─ = 1  x1?        0.037    1,036        0.708      976        0.700
       ├─ = 0  leaf    0.036      538        0.717      470        0.695
       └─ = 1  leaf    0.036      498        0.698      506        0.703
    """
    _check_change_prior(change_prior)
    if isinstance(a, Posterior):
        a.check_mergeable(b)
        check_is_other(a, b)
        return compare_posteriors([(a, b)], change_prior, None, lambda X: a.tree.route(X)[:, None], {})
    if isinstance(a, Forest):
        a.check_mergeable(b)
        return _of_forests(a, b, change_prior, a.ends, {})
    if not isinstance(a, MetaEstimator):
        raise TypeError(f"a must be a Posterior, a Forest or a fitted estimator, not {type(a).__name__}")
    mine, theirs = _forest_of(a), _forest_of(b)
    a._check_mergeable(b)
    if not set(a.fitted_.batches).isdisjoint(b.fitted_.batches):
        raise OverlapError("a and b have counted a batch of the same rows; compare is for different rows")
    words = a.drawing_options({"helps": None})
    return _of_forests(mine, theirs, change_prior, lambda X: mine.ends(a._encode(X), n_jobs=a.n_jobs), words)


def _forest_of(model: Any) -> Forest:
    """The trees that count the rows of an estimator."""
    if not getattr(model, "counts_rows", False) or model.model_.parts.forest is None:
        raise TypeError(f"compare is for models with fixed trees that count rows, not for {type(model).__name__}")
    forest: Forest = model.forest_
    return forest


def _of_forests(a: Forest, b: Forest, change_prior: float, ends: Any, words: dict[str, Any]) -> Comparison:
    check_is_other(a, b)
    weights = None if a.weighs_by_evidence else a.weights
    return compare_posteriors(list(zip(a.posteriors, b.posteriors, strict=True)), change_prior, weights, ends, words)


def _check_change_prior(change_prior: Any) -> None:
    if isinstance(change_prior, bool) or not isinstance(change_prior, float | int) or not 0.0 < change_prior < 1.0:
        raise ArgumentError("change_prior", f"must be a probability between 0 and 1, but is {change_prior!r}")
