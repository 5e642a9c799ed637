"""The reference library, BayesML, driven on a given meta-tree.

BayesML offers its batch update for given trees only through node objects that the caller links by hand; this
module links them from a flat tree and reads the answers back in level order. It is an oracle for one
update of a fresh model and nothing more: a second update counts the first rows again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from bayesml import bernoulli, categorical, exponential, linearregression, metatree, normal, poisson
from bayesml.metatree._metatree import _Node
from numpy.typing import ArrayLike, NDArray

Hyper = Mapping[str, Any]
SplitPrior = float | ArrayLike | Callable[[int], float]


class Tree(Protocol):
    """The part of `everytree.MetaTree` that is read here; arrays per node in level order."""

    @property
    def feature(self) -> NDArray[np.integer]: ...
    @property
    def first_child(self) -> NDArray[np.integer]: ...
    @property
    def n_children(self) -> NDArray[np.integer]: ...
    @property
    def threshold(self) -> NDArray[np.integer]: ...
    @property
    def depth(self) -> NDArray[np.integer]: ...
    @property
    def n_features(self) -> int: ...


@dataclass(frozen=True)
class LeafModel:
    """How one everytree family is spelled in BayesML."""

    module: ModuleType
    y_dtype: type
    names: Mapping[str, str]  # everytree's hyperparameter -> BayesML's, without its h0_ or hn_
    size: str | None = None  # everytree's name for the length of BayesML's vectors


_GAMMA = {"shape": "alpha", "rate": "beta"}
_COEFFICIENTS = {"mean": "mu_vec", "precision": "lambda_mat", "shape": "alpha", "scale": "beta"}
LEAF_MODELS = {
    "bernoulli": LeafModel(bernoulli, np.int64, {"alpha": "alpha", "beta": "beta"}),
    "categorical": LeafModel(categorical, np.int64, {"alpha": "alpha_vec"}, size="n_classes"),
    "poisson": LeafModel(poisson, np.int64, _GAMMA),
    "exponential": LeafModel(exponential, np.float64, _GAMMA),
    "normal": LeafModel(normal, np.float64, {"mean": "m", "strength": "kappa", "shape": "alpha", "scale": "beta"}),
    "linearregression": LeafModel(linearregression, np.float64, _COEFFICIENTS, size="n_inputs"),
}


def bayesml_metatree(tree: Tree, family_name: str, hyper: Hyper, split_prior: SplitPrior = 0.5) -> Any:
    """Build a fresh BayesML model of `tree`, whose inner nodes all split a two-valued code in two.

    Parameters
    ----------
    tree : MetaTree
        Every inner node sends code 0 to its first child and code 1 to its second.
    family_name : str
        A key of `LEAF_MODELS`.
    hyper : mapping
        The hyperparameters under everytree's names, shared by all nodes.
    split_prior : float, (n_nodes,) array or callable(depth)
        Prior split probability; terminals get 0 whatever it says.
    """
    _check_two_way(tree)
    leaf_model = LEAF_MODELS[family_name]
    constants = {} if leaf_model.size is None else {"c_degree": int(hyper[leaf_model.size])}
    prior = _reference_hyper(leaf_model, hyper)
    n_inputs = int(hyper["n_inputs"]) if leaf_model.module is linearregression else 0
    # One sub-model serves all nodes here: BayesML reads its hyperparameters and makes its own copies.
    sub_model = leaf_model.module.LearnModel(**constants, **prior)
    return metatree.LearnModel(
        c_dim_continuous=n_inputs,
        c_dim_categorical=int(tree.n_features),
        c_max_depth=max(int(tree.depth.max()), 1),
        SubModel=leaf_model.module,
        sub_constants=constants,
        sub_h0_params=prior,
        h0_metatree_list=[_linked_nodes(tree, sub_model, _split_prior_array(tree, split_prior), n_inputs)],
    )


def update(model: Any, X: NDArray[Any], y: ArrayLike, inputs: ArrayLike | None = None) -> Any:
    """Update `model` by all rows at once and return it; `inputs` are the regressors of linear regression."""
    # BayesML adds 1 to counts in their own type, where a uint8 of 255 would wrap around to 0.
    y_dtype = next(each.y_dtype for each in LEAF_MODELS.values() if each.module is model.SubModel)
    regressors = None if inputs is None else np.asarray(inputs, dtype=np.float64)
    model.update_posterior(
        x_continuous=regressors, x_categorical=X, y=np.asarray(y, dtype=y_dtype), alg_type="given_MT"
    )
    return model


def log_evidence(model: Any) -> float:
    """Log evidence of all rows of the one update made, averaged over every pruned subtree."""
    prior_root, root = model.h0_metatree_list[0], model.hn_metatree_list[0]
    leaf = root.log_marginal_likelihood
    if leaf is None:
        return 0.0
    if root.leaf:
        return float(leaf)
    split = root.log_children_marginal_likelihood.sum()
    return float(np.logaddexp(np.log1p(-prior_root.h_g) + leaf, np.log(prior_root.h_g) + split))


def split_prob(model: Any, tree: Tree) -> NDArray[np.float64]:
    """Posterior split probability of each node, level order."""
    return np.array([node.h_g for node in _level_order(model, tree)], dtype=np.float64)


def leaf_log_evidence(model: Any, tree: Tree) -> NDArray[np.float64]:
    """Log evidence of the rows of each node if it were a leaf, level order; 0 where no row came by."""
    evidences = [node.log_marginal_likelihood for node in _level_order(model, tree)]
    return np.array([0.0 if each is None else each for each in evidences], dtype=np.float64)


def leaf_posterior(model: Any, tree: Tree) -> dict[str, NDArray[np.float64]]:
    """Posterior hyperparameters of each node under everytree's names, each `(n_nodes, ...)`, level order."""
    names = next(each.names for each in LEAF_MODELS.values() if each.module is model.SubModel)
    leaves = [node.sub_model.get_hn_params() for node in _level_order(model, tree)]
    return {ours: np.array([leaf[f"hn_{theirs}"] for leaf in leaves]) for ours, theirs in names.items()}


def _check_two_way(tree: Tree) -> None:
    """Refuse a tree that BayesML cannot express."""
    inner = tree.first_child >= 0
    for node in np.flatnonzero(inner & ((tree.n_children != 2) | (tree.threshold > 0))):
        raise ValueError(
            f"tree, node {node}: {tree.n_children[node]} children and threshold {tree.threshold[node]}, but "
            "BayesML updates only two-way splits of a two-valued code (threshold -1 or 0)"
        )


def _reference_hyper(leaf_model: LeafModel, hyper: Hyper) -> dict[str, Any]:
    """Rename everytree's hyperparameters and give vectors and matrices their full shape."""
    values = {"mean": 0.0, **hyper}
    prior: dict[str, Any] = {}
    for ours, theirs in leaf_model.names.items():
        value = np.asarray(values[ours], dtype=np.float64)
        if theirs.endswith("_vec"):
            prior[f"h0_{theirs}"] = np.broadcast_to(value, hyper[leaf_model.size or ""]).copy()
        elif theirs.endswith("_mat"):
            prior[f"h0_{theirs}"] = value if value.ndim == 2 else value * np.eye(hyper[leaf_model.size or ""])
        else:
            prior[f"h0_{theirs}"] = float(value)
    return prior


def _split_prior_array(tree: Tree, split_prior: SplitPrior) -> NDArray[np.float64]:
    """Prior split probability of each node, 0 at terminals."""
    by_node = [split_prior(int(depth)) for depth in tree.depth] if callable(split_prior) else split_prior
    return np.where(tree.first_child >= 0, np.broadcast_to(by_node, tree.feature.shape), 0.0)


def _linked_nodes(tree: Tree, sub_model: Any, prior: NDArray[np.float64], n_inputs: int) -> _Node:
    """Link BayesML's nodes like `tree` and return the root; its features follow the `n_inputs` regressors."""
    nodes = [
        _Node(int(depth), h_g=float(g), sub_model=sub_model, leaf=True)
        for depth, g in zip(tree.depth, prior, strict=True)
    ]
    for parent in np.flatnonzero(tree.first_child >= 0):
        first = tree.first_child[parent]
        nodes[parent].leaf = False
        nodes[parent].k = n_inputs + int(tree.feature[parent])
        nodes[parent].children = nodes[first : first + 2]
    return nodes[0]


def _level_order(model: Any, tree: Tree) -> list[_Node]:
    """List the posterior's nodes in the order of the flat tree."""
    nodes: list[Any] = [None] * len(tree.feature)
    nodes[0] = model.hn_metatree_list[0]
    for parent in np.flatnonzero(tree.first_child >= 0):
        first = tree.first_child[parent]
        nodes[first : first + 2] = nodes[parent].children
    return nodes
