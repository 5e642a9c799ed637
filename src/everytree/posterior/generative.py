"""The generative model behind the posterior: draw a tree, the parameters of its leaves, and targets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.base.randomness import RandomSource, random_generator
from everytree.families.base import Family, NativeFamily
from everytree.posterior.checks import check_model
from everytree.posterior.split_prior import SplitPriorLike, log_split_stop, resolve_split_prior
from everytree.trees.metatree import MetaTree
from everytree.trees.pruned import PrunedTree
from everytree.trees.questions import TreeDistribution


class Draw(NamedTuple):
    """One draw from a `GenerativeModel`."""

    tree: PrunedTree
    theta: FloatArray  # parameters of the leaves, in the order of `tree.leaves`
    y: NDArray[Any]  # (n_rows,) array


class GenerativeModel:
    """p(T) p(theta | T) p(y | X, T, theta).

    Parameters
    ----------
    tree : MetaTree
    family : Family
        A built-in family, or one of your own that also has `sample_parameters(nodes, rng)` and
        `sample_targets(theta, rng, **row_data)`.
    split_prior : float, (n_nodes,) array_like or callable
        As in `Posterior`.

    Examples
    --------
    >>> import numpy as np, everytree as et
    >>> model = et.GenerativeModel(et.MetaTree.complete([0, 1, 1]), et.Bernoulli(), split_prior=0.5)
    >>> X = np.array([[0, 0], [1, 0], [1, 1]], dtype=np.uint8)
    >>> tree, theta, y = model.sample(X, rng=0)
    >>> len(theta) == tree.n_leaves, y.shape
    (True, (3,))
    """

    def __init__(self, tree: MetaTree, family: Family, split_prior: SplitPriorLike = 0.5) -> None:
        check_model(tree, family)
        for method in ("sample_parameters", "sample_targets"):
            if not hasattr(family, method):
                raise TypeError(f"{type(family).__name__} cannot be drawn from: it has no method {method}")
        self.tree = tree
        self.family: NativeFamily = family  # type: ignore[assignment]
        self.split_prior = np.where(tree.is_terminal, 0.0, resolve_split_prior(split_prior, tree))

    def sample_tree(self, rng: RandomSource = None) -> PrunedTree:
        """Draw T from the prior: each node that is reached is split with its prior probability."""
        over = TreeDistribution(self.tree, *log_split_stop(self.split_prior))
        return over.sample_trees(1, rng=rng)[0]

    def sample(self, X: ArrayLike, *, rng: RandomSource = None, **row_data: Any) -> Draw:
        """Draw T, theta and then one y for each row of X.

        Parameters
        ----------
        X : (n_rows, n_features) array_like of codes
        rng : numpy.random.Generator, numpy.random.RandomState or int, optional
            Source of randomness, or its seed; by default one that differs from call to call.
        **row_data
            Row data of the family, such as `exposure`.
        """
        generator = random_generator(rng)
        tree = self.sample_tree(generator)
        leaf_of_row = tree.apply(X)
        columns = self.family.row_columns(row_data, len(leaf_of_row))
        theta = self.family.sample_parameters(tree.leaves, generator)
        return Draw(tree, theta, self.family.sample_targets(theta[leaf_of_row], generator, **columns))
