"""The pictures of the documentation, made anew, light and dark: `python docs/images/make_images.py [folder]`."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

import everytree as et
from everytree.cli.demo import load
from everytree.structure.importers.sklearn_trees import metatree_from_sklearn_tree
from everytree.view.plot import plot_predictive, plot_survival, plot_tree


def tumours(max_depth: int = 4):
    """The demo's meta-tree, drawn."""
    data = load()
    cart = DecisionTreeClassifier(max_depth=8, random_state=0).fit(data.X_train, data.y_train)
    tree = metatree_from_sklearn_tree(cart.tree_, n_features=data.X_train.shape[1])
    post = et.Posterior(tree, et.Bernoulli(0.5, 0.5), split_prior=0.5).update(data.X_train, data.y_train)
    cuts = [[f"{cut:.4g}" for cut in column] for column in data.cuts.T]
    names = {"feature_names": data.feature_names, "code_names": cuts, "class_names": ["malignant", "benign"]}
    return plot_tree(post, max_depth=max_depth, **names)


def top_of_tumours():
    """Its top, in letters that can be read on the front page."""
    return tumours(max_depth=2)


def root_of_tumours():
    """The same for narrow screens: the first split and what is below it."""
    return tumours(max_depth=1)


def calls(n_rows: int = 1500):
    """Counts by hour of the day with a known rate: what a meta-tree has learnt of it, and the truth."""
    rng = np.random.default_rng(0)
    hour, is_weekend = rng.integers(0, 24, n_rows), rng.random(n_rows) < 2 / 7
    every_hour, name = np.arange(24), "hour of a working day"
    rates = np.stack([_rate(every_hour, False), _rate(every_hour, True)])
    X = pd.DataFrame({name: hour, "is weekend": is_weekend})
    y = rng.poisson(rates[is_weekend.astype(int), hour])
    model = et.MetaTreeRegressor(max_depth=8, family="poisson", random_state=0).fit(X, y)
    ax = plot_predictive(model, name, at={name: 0, "is weekend": False})
    ax.plot(every_hour, rates[0], "o", color="C1", markersize=3.5)
    ax.annotate("true rate", (18.4, rates[0][18]), (20.0, rates[0][18] + 2.0), color="C1", va="center")
    ax.set_ylabel("calls")
    ax.set_ylim(bottom=0.0)
    return ax


def _rate(hour, is_weekend):
    morning, evening = np.exp(-(((hour - 8.5) / 2.0) ** 2)), np.exp(-(((hour - 17.5) / 2.5) ** 2))
    noon = np.exp(-(((hour - 13.0) / 4.0) ** 2))
    return np.where(is_weekend, 1.0 + 9.0 * noon, 1.5 + 14.0 * morning + 18.0 * evening + 4.0 * noon)


def patients(n_rows: int = 600):
    """Times until an event, cut short for some: curves of three rows, and that of the table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4))
    risk = X[:, 0] + (X[:, 1] > 0)
    died, left = rng.weibull(1.4, n_rows) * np.exp(-risk / 1.4), rng.exponential(1.5, n_rows)
    time, event = np.minimum(died, left), died <= left
    model = et.MetaForestRegressor(family="survival", random_state=0).fit(X, time, event=event)
    return plot_survival(model.predictive(X[:3]), time=time, event=event)


def amounts(n_rows: int = 2000):
    """Zeros beside amounts with a long tail: the shares of two rows, and what rows like them spend."""
    from matplotlib import pyplot

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rows, 2))
    model = et.MetaForestRegressor(family="histogram", random_state=0).fit(X, _spent(X, rng))
    rows, ax = np.array([[0.1, 0.5], [0.9, 0.5]]), pyplot.subplots(figsize=(6.4, 3.2), layout="constrained")[1]
    at = np.concatenate([[-1e-9], np.linspace(0.0, 250.0, 500)])
    up_to = model.predictive(rows).cdf(at[:, None])
    for k, label in enumerate(("seldom buys", "often buys")):
        ax.plot(at, up_to[:, k], color=f"C{k}", label=label)
        like = np.sort(_spent(np.repeat(rows[k : k + 1], 4000, axis=0), rng))
        ax.plot(like, np.arange(1, 4001) / 4000, ":", color=f"C{k}", label="rows like it")
    ax.set(xlim=(-8.0, 250.0), ylim=(0.0, 1.0), xlabel="amount", ylabel="probability of at most this")
    ax.legend(loc="lower right")
    return ax


def _spent(X, rng):
    return np.where(rng.random(len(X)) < 0.7 - 0.5 * X[:, 0], 0.0, rng.gamma(2.0, 20.0 + 80.0 * X[:, 1]))


def laboratories():
    """Two sets of rows with one law, but for half of the small tumours: where their posteriors differ."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X[["mean radius", "mean texture", "mean smoothness"]]
    model = et.MetaTreeClassifier(max_depth=3, random_state=0).fit(X[:190], y[:190])
    is_same = (X["mean radius"][380:] > 13) | (np.random.default_rng(0).random(189) > 0.5)
    before = model.blank().partial_fit(X[190:380], y[190:380])
    return et.compare(before, model.blank().partial_fit(X[380:], y[380:].where(is_same, 0))).plot(max_depth=2)


PICTURES = {
    "front": top_of_tumours, "front_narrow": root_of_tumours, "tree": tumours, "predictive": calls,
    "survival": patients,
    "histogram": amounts, "compare": laboratories,
}  # fmt: skip


def main(folder: Path) -> None:
    from matplotlib import pyplot

    for name, draw in PICTURES.items():
        for ending, style in (("", "default"), ("_dark", "dark_background")):
            with pyplot.style.context(["default", style, {"font.size": 9.0}]):
                figure = draw().figure
                figure.savefig(folder / f"{name}{ending}.png", dpi=150, metadata={"Software": None})
                pyplot.close(figure)


if __name__ == "__main__":
    matplotlib.use("agg")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
