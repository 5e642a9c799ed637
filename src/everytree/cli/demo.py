"""The main job on bundled data: fit a meta-tree in one pass, read it, and see that all ways of fitting agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from everytree.estimators import MetaForestClassifier
from everytree.families import Bernoulli
from everytree.posterior.posterior import Posterior
from everytree.structure.importers.sklearn_trees import metatree_from_sklearn_tree
from everytree.trees.metatree import MetaTree

N_CODES = 16


@dataclass(frozen=True)
class Data:
    """Tumours as codes, and what each code stands for."""

    X_train: NDArray[np.uint8]
    X_test: NDArray[np.uint8]
    y_train: NDArray[np.int64]
    y_test: NDArray[np.int64]
    feature_names: list[str]
    cuts: NDArray[np.float64]
    raw_train: NDArray[np.float64]
    raw_test: NDArray[np.float64]


def load() -> Data:
    """scikit-learn's breast cancer table, half of it held out, each column cut at its quantiles."""
    table = load_breast_cancer()
    X_train, X_test, y_train, y_test = train_test_split(
        table.data, table.target, test_size=0.5, random_state=0, stratify=table.target
    )
    cuts = np.quantile(X_train, np.arange(1, N_CODES) / N_CODES, axis=0)

    def codes(X: NDArray[np.float64]) -> NDArray[np.uint8]:
        return np.asarray((X[:, None, :] > cuts).sum(axis=1), dtype=np.uint8)

    return Data(codes(X_train), codes(X_test), y_train, y_test, list(table.feature_names), cuts, X_train, X_test)


def compare(data: Data, cart: DecisionTreeClassifier, post: Posterior) -> str:
    """Held-out quality of one tree, of the average over all its prunings, and of forests without and with that."""
    unpruned = Posterior(post.tree, post.family, split_prior=1.0).update(data.X_train, data.y_train)
    rows = [("CART, as grown", cart.predict_proba(data.X_test))]
    rows.append(("the same, leaves smoothed", unpruned.predictive(data.X_test).probs()))
    rows.append(("average of all prunings", post.predictive(data.X_test).probs()))
    plain = RandomForestClassifier(random_state=0).fit(data.raw_train, data.y_train)
    rows.append(("random forest", plain.predict_proba(data.raw_test)))
    meta = MetaForestClassifier(random_state=0).fit(data.raw_train, data.y_train)
    rows.append(("forest of meta-trees", meta.predict_proba(data.raw_test)))
    lines = [f"{'held-out rows':<28}{'accuracy':>10}{'log-loss':>10}"]
    for name, probs in rows:
        accuracy = accuracy_score(data.y_test, probs.argmax(axis=1))
        lines.append(f"{name:<28}{accuracy:>10.3f}{log_loss(data.y_test, probs):>10.3f}")
    return "\n".join(lines)


def other_ways(data: Data, tree: MetaTree, post: Posterior) -> str:
    """The same rows again, one by one and as two merged halves, and how far the answers are apart."""

    def empty() -> Posterior:
        return Posterior(tree, post.family, split_prior=0.5)

    one_by_one = empty()
    for i in range(len(data.y_train)):
        one_by_one.update(data.X_train[i : i + 1], data.y_train[i : i + 1])
    half = len(data.y_train) // 2
    first = empty().update(data.X_train[:half], data.y_train[:half])
    second = empty().update(data.X_train[half:], data.y_train[half:])
    lines = [f"{'fitted':<28}{'log evidence':>16}{'largest difference in split_prob':>36}"]
    for name, other in (
        ("in one batch", post),
        ("row by row", one_by_one),
        ("two halves, merged", first.merge(second)),
    ):
        apart = np.abs(other.split_prob - post.split_prob).max()
        lines.append(f"{name:<28}{other.log_evidence:>16.10f}{apart:>36.1e}")
    return "\n".join(lines)


def run() -> None:
    """Fit, show, compare."""
    data = load()
    cart = DecisionTreeClassifier(max_depth=8, random_state=0).fit(data.X_train, data.y_train)
    tree = metatree_from_sklearn_tree(cart.tree_, n_features=data.X_train.shape[1])
    post = Posterior(tree, Bernoulli(0.5, 0.5), split_prior=0.5).update(data.X_train, data.y_train)

    print("everytree: the posterior over every pruned subtree of a decision tree\n")
    print(f"data      {len(data.y_train)} tumours to learn from, {len(data.y_test)} held out, 1 = benign")
    print(f"shape     {tree}, grown by CART")
    print(f"evidence  log p(y | X) = {post.log_evidence:.4f}, averaged over all its prunings\n")
    names = [[f"{cut:.4g}" for cut in column] for column in data.cuts.T]
    print(post.to_text(feature_names=data.feature_names, code_names=names, max_depth=2))
    print("\n" + compare(data, cart, post))
    print("\n" + other_ways(data, tree, post))
    print("\nNext: change this example (src/everytree/cli/demo.py), or start from the README.")
