"""A demonstration on bundled tables: predict a patient, give an interval, read a tree, compare, check."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import everytree as et
from everytree.families import Bernoulli
from everytree.posterior.posterior import Posterior
from everytree.structure.importers.sklearn_trees import metatree_from_sklearn_tree
from everytree.trees.metatree import MetaTree

N_CODES = 16
CLASSES = ("malignant", "benign")


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


def predict_patient(data: Data, forest: et.MetaForestClassifier, which: int = 0) -> str:
    """The probability that one held-out tumour is benign, and the columns that speak most for and against it."""
    row = data.raw_test[which : which + 1]
    why = forest.explain(row)
    added = why.values[0, :, 1]
    largest = np.argsort(-np.abs(added))[:3]
    lines = [f"one held-out patient: the tumour is benign with probability {why.prediction[0, 1]:.3f}"]
    lines.append(f"  {'without any column':<26}{'':>10}{why.base[1]:>10.3f}")
    lines += [f"  {data.feature_names[k]:<26}{row[0, k]:>10.4g}{added[k]:>+10.3f}" for k in largest]
    others = added.sum() - added[largest].sum()
    lines.append(f"  {f'{len(added) - len(largest)} other columns':<26}{'':>10}{others:>+10.3f}")
    lines.append(f"what it was: {'benign' if data.y_test[which] else 'malignant'}")
    return "\n".join(lines)


def predict_interval(which: int = 0) -> str:
    """Where the illness of one patient with diabetes will be in a year, and how often such intervals are right."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    forest = et.MetaForestRegressor(random_state=0).fit(X_train, y_train)
    intervals = forest.predict_interval(X_test, coverage=0.9)
    low, high = intervals[which]
    n_inside = int(((intervals[:, 0] <= y_test) & (y_test <= intervals[:, 1])).sum())
    return (
        f"another, with diabetes: progression of the disease in a year, {y.min():.0f} to {y.max():.0f} in the data\n"
        f"  mean {forest.predict(X_test[which : which + 1])[0]:.0f}, 90% interval {low:.0f} to {high:.0f}\n"
        f"what it was: {y_test[which]:.0f}; {n_inside} of {len(y_test)} held-out patients "
        f"({n_inside / len(y_test):.0%}) are in their intervals"
    )


def read_tree(data: Data, post: Posterior) -> str:
    """The top of one meta-tree, and what its evidence says."""
    leaf = Posterior(post.tree, post.family, split_prior=0.0).update(data.X_train, data.y_train)
    names = [[f"{cut:.4g}" for cut in column] for column in data.cuts.T]
    drawn = post.to_text(feature_names=data.feature_names, code_names=names, class_names=CLASSES, max_depth=2)
    gain = (post.log_evidence - leaf.log_evidence) / np.log(10.0)
    return (
        f"one tree to read: {post.tree.n_nodes} nodes grown by CART, each split with its probability given the data\n\n"
        f"{drawn}\n\n"
        f"log evidence {post.log_evidence:.2f}: evidence is the probability that a model gives to all diagnoses before "
        f"it sees them,\nhere 10^{gain:.0f} times that of a model without splits "
        "(a little too much, as CART chose the splits on the same rows)"
    )


def compare(data: Data, cart: DecisionTreeClassifier, post: Posterior, forest: et.MetaForestClassifier) -> str:
    """Held-out quality of one tree, of the average over all its prunings, and of forests without and with that."""
    unpruned = Posterior(post.tree, post.family, split_prior=1.0).update(data.X_train, data.y_train)
    rows = [("CART, as grown", cart.predict_proba(data.X_test))]
    rows.append(("CART, leaves smoothed", unpruned.predictive(data.X_test).probs()))
    rows.append(("average of all prunings", post.predictive(data.X_test).probs()))
    plain = RandomForestClassifier(random_state=0).fit(data.raw_train, data.y_train)
    rows.append(("random forest", plain.predict_proba(data.raw_test)))
    rows.append(("forest of meta-trees", forest.predict_proba(data.raw_test)))
    lines = [f"{'held-out rows':<28}{'accuracy':>10}{'log-loss':>10}"]
    for name, probs in rows:
        accuracy = accuracy_score(data.y_test, probs.argmax(axis=1))
        lines.append(f"{name:<28}{accuracy:>10.3f}{log_loss(data.y_test, probs):>10.3f}")
    return "\n".join(lines)


def other_ways(data: Data, tree: MetaTree, post: Posterior) -> str:
    """Learn the same rows one by one and as two merged halves; say how far the results differ."""

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
    """Predict, read, compare, check."""
    data = load()
    forest = et.MetaForestClassifier(random_state=0).fit(data.raw_train, data.y_train)
    cart = DecisionTreeClassifier(max_depth=8, random_state=0).fit(data.X_train, data.y_train)
    tree = metatree_from_sklearn_tree(cart.tree_, n_features=data.X_train.shape[1])
    post = Posterior(tree, Bernoulli(0.5, 0.5), split_prior=0.5).update(data.X_train, data.y_train)

    print("everytree: predictions averaged over every pruned subtree of decision trees\n")
    print(f"{len(data.y_train)} tumours to learn from, {len(data.y_test)} held out\n")
    print(predict_patient(data, forest) + "\n")
    print(predict_interval() + "\n")
    print(read_tree(data, post) + "\n")
    print(compare(data, cart, post, forest) + "\n")
    print("the same tree, fitted in three ways: the answers are equal\n")
    print(other_ways(data, tree, post) + "\n")
    print("Next: everytree fit table.csv --target column, or change this example (src/everytree/cli/demo.py).")
