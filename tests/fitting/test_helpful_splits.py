"""Which splits help rows on which they were not chosen."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from everytree.fitting.held_out.helpful_splits import cross_fitted_splits, held_out_splits
from everytree.posterior.rows import Rows
from everytree.structure.grow_on import Classes
from everytree.structure.grown import Grown
from everytree.view.describe import describe
from random_shapes import random_shape


def log_evidence(y, alpha=0.5):
    """Of a sequence of zeros and ones, one after the other."""
    total, counts = 0.0, [alpha, alpha]
    for each in y:
        total += np.log(counts[each] / sum(counts))
        counts[each] += 1.0
    return total


def slow_prob(tree, X, y, in_bag, node):
    """By the definition: rows of each node, predicted after those that the tree was grown on."""

    def reaches(row, s):
        path = [s]
        while tree.parent[path[-1]] >= 0:
            path.append(int(tree.parent[path[-1]]))
        here = 0
        for below in reversed(path[:-1]):
            here = int(tree.first_child[here]) + int(row[tree.feature[here]] > tree.threshold[here])
            if here != below:
                return False
        return True

    def evidences(s):
        inside = np.array([reaches(row, s) for row in X])
        before, after = y[inside & in_bag], y[inside & ~in_bag]
        leaf = log_evidence([*before, *after]) - log_evidence(before)
        if tree.is_terminal[s]:
            return leaf, leaf, np.nan
        children = sum(evidences(int(tree.first_child[s]) + c)[1] for c in range(2))
        return leaf, np.logaddexp(leaf, children) - np.log(2.0), 1.0 / (1.0 + np.exp(leaf - children))

    return evidences(node)[2]


def example():
    rng = rng_for("helpful")
    X = rng.integers(0, 4, (80, 3)).astype(np.uint8)
    y = (X[:, 0] + rng.normal(0, 1.0, 80) > 1.5).astype(np.int64)
    tree = random_shape([4, 4, 4], 3, rng=rng, kind="threshold")
    return X, y, tree, rng.random(80) < 0.7


def test_probabilities_are_those_of_the_definition():
    X, y, tree, in_bag = example()
    found = held_out_splits(4, Grown(tree, in_bag), Rows(X, y), et.Bernoulli(), np.full(3, 4), 1)
    assert (found.tree, found.n_rows) == (4, int((~in_bag).sum()))
    for node in range(tree.n_nodes):
        np.testing.assert_allclose(found.prob[node], slow_prob(tree, X, y, in_bag, node), rtol=1e-9)


def test_rows_of_a_group_are_seen_together():
    X, y, tree, in_bag = example()
    group = np.arange(80) // 2
    seen = np.isin(group, group[in_bag])
    grouped = held_out_splits(0, Grown(tree, in_bag), Rows(X, y, group=group), et.Bernoulli(), np.full(3, 4), 1)
    plain = held_out_splits(0, Grown(tree, seen), Rows(X, y), et.Bernoulli(), np.full(3, 4), 1)
    np.testing.assert_array_equal(grouped.prob, plain.prob)
    everything = Grown(tree, np.ones(80, dtype=bool))
    assert held_out_splits(0, everything, Rows(X, y), et.Bernoulli(), np.full(3, 4), 1) is None


def slow_gain(X, y, part, inside):
    """Every split of every column, chosen without a part by its Gini impurity and judged by that part."""
    total = 0.0
    for number in range(3):
        train = inside & (part != number)
        best, chosen = -np.inf, None
        for k in range(X.shape[1]):
            for cut in range(3):
                left, right = y[train & (X[:, k] <= cut)], y[train & (X[:, k] > cut)]
                if len(left) and len(right):
                    score = sum((np.bincount(side, minlength=2) ** 2).sum() / len(side) for side in (left, right))
                    if score > best + 1e-12:
                        best, chosen = score, (k, cut)
        if chosen is None:
            continue
        for sign, group in ((1, X[:, chosen[0]] <= chosen[1]), (1, X[:, chosen[0]] > chosen[1]), (-1, inside)):
            before, after = y[train & group], y[inside & group & (part == number)]
            total += sign * (log_evidence([*before, *after]) - log_evidence(before))
    return total


def test_splits_are_chosen_again_without_the_rows_that_judge_them():
    X, y, tree, _ = example()
    part = rng_for("parts").integers(0, 3, 80)
    rows, in_bags = Rows(X, y), [part != number for number in range(3)]
    found = cross_fitted_splits(tree, in_bags, rows, Classes(y, None), et.Bernoulli(), np.full(3, 4))
    assert found.n_rows == 80
    ends, gain = tree.route(X), np.zeros(tree.n_nodes)
    members = {}
    for node in range(tree.n_nodes - 1, -1, -1):
        below = [members[int(tree.first_child[node]) + c] for c in range(int(tree.n_children[node]))]
        members[node] = np.any(below, axis=0) if below else ends == node
        if below and members[node].sum() >= 6:
            gain[node] = slow_gain(X, y, part, members[node])
    total = gain.copy()
    for node in range(tree.n_nodes - 1, -1, -1):
        children = range(int(tree.first_child[node]), int(tree.first_child[node] + tree.n_children[node]))
        total[node] += sum(
            np.log(0.5 + 0.5 * np.exp(total[child])) for child in children if not tree.is_terminal[child]
        )
    inner = ~tree.is_terminal
    np.testing.assert_allclose(found.prob[inner], 1.0 / (1.0 + np.exp(-total[inner])), rtol=1e-8)
    assert np.isnan(found.prob[~inner]).all()


def test_noise_does_not_help_and_signal_does():
    """Of splits on noise no more than a few look helpful; their posterior probabilities do."""
    rng = rng_for("noise")
    X = rng.normal(size=(400, 5))
    noise = rng.integers(0, 2, 400)
    signal = (X[:, 2] > 0.3).astype(int)
    for model in (et.MetaForestClassifier(10, split_prior=0.9, alpha=0.5, random_state=0),
                  et.MetaTreeClassifier(split_prior=0.9, alpha=0.5, max_depth=4, random_state=0)):  # fmt: skip
        model.fit(X, noise)
        helps, post = model.helpful_splits_, model.pictured()
        inner = ~post.tree.is_terminal
        assert np.isnan(helps[~inner]).all()
        assert helps[0] < 0.5
        assert (helps[inner] > 0.9).sum() <= max(1, 0.1 * inner.sum())
        model.fit(X, signal)
        assert model.helpful_splits_[0] > 0.99


def test_pictures_say_which_probability_they_show(tmp_path):
    rng = rng_for("pictures of help")
    X = rng.normal(size=(200, 3))
    model = et.MetaTreeClassifier(max_depth=2, random_state=0).fit(X, X[:, 1] > 0)
    text, helps = model.to_text(), model.helpful_splits_
    assert text.splitlines()[0].split()[:2] == ["helps", "split"]
    assert text.splitlines()[1].split()[1] == f"{helps[0]:.3f}"
    words = [text.get_text() for text in model.plot().texts]
    assert "probability that the split helps rows it was not grown on" in words
    assert "probability of a split" in [text.get_text() for text in et.plot_tree(model.posterior_).texts]
    et.save(model, tmp_path / "tree.everytree")
    for copy in (et.load(tmp_path / "tree.everytree"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.helpful_splits_, helps)
    exact = et.ExactTreeClassifier(max_depth=1).fit(X, X[:, 1] > 0)
    assert not hasattr(exact, "helpful_splits_")
    assert "helps" not in exact.to_text()


def test_help_is_that_of_the_pictured_tree():
    rng = rng_for("pictured")
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 2, 100)
    model = et.MetaForestClassifier(4, random_state=0).fit(X, y)
    assert len(model.helpful_splits_) == model.pictured().tree.n_nodes
    with pytest.raises(AttributeError, match="no rows were left out"):
        _ = et.MetaForestClassifier(4, subsample=1.0, random_state=0).fit(X, y).helpful_splits_


def with_a_few_noisy_splits():
    rng = rng_for("left out of pictures")
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0) ^ (rng.random(300) < 0.15)
    return X, y, et.MetaTreeClassifier(max_depth=4, split_prior=0.9, alpha=0.5, random_state=0).fit(X, y)


def splits_that_hold(tree, helps, least):
    """Nodes whose split, and every split above, helps with this probability or more."""

    def holds(s):
        return helps[s] >= least and (s == 0 or holds(int(tree.parent[s])))

    return {s for s in range(tree.n_nodes) if not tree.is_terminal[s] and holds(s)}


@pytest.mark.parametrize("least", [0.0, 0.5, 0.99, 1.0])
def test_pictures_leave_out_the_splits_that_do_not_help(least):
    *_, model = with_a_few_noisy_splits()
    post, helps = model.posterior_, model.helpful_splits_
    shown = splits_that_hold(post.tree, helps, least)
    n_splits = int((~post.tree.is_terminal).sum())
    for limits in (
        {"max_depth": 9, "max_nodes": 999},
        {"max_depth": 1, "max_nodes": 999},
        {"max_depth": 9, "max_nodes": 4},
    ):
        drawing = describe(post, helps=helps, min_helps=least, **limits)
        assert {node.number for node in drawing.nodes if not node.is_terminal} <= shown
        assert drawing.n_left_out == n_splits - len(shown)
        hidden = sum(node.n_hidden for node in drawing.nodes)
        assert len(drawing.nodes) + hidden == 1 + sum(int(post.tree.n_children[s]) for s in shown)
    every = describe(post, helps=helps, min_helps=least, max_depth=9, max_nodes=999)
    assert {node.number for node in every.nodes if not node.is_terminal} == shown


def test_every_picture_counts_what_it_leaves_out_and_shows_it_when_asked():
    X, _, model = with_a_few_noisy_splits()
    helps, before = model.helpful_splits_, model.predict_proba(X)
    inner = ~model.posterior_.tree.is_terminal
    left_out = int(inner.sum()) - len(splits_that_hold(model.posterior_.tree, helps, 0.5))
    assert left_out > 1
    said = f"{left_out} splits that do not help other rows are left out; min_helps=0 shows them"
    assert model.to_text().splitlines()[-1] == said
    assert said in model._repr_mimebundle_()["text/html"]
    assert said in [text.get_text() for text in model.plot().texts]
    whole = model.to_text(min_helps=0, max_depth=9)
    assert "left out" not in whole
    assert sum("?  " in line for line in whole.splitlines()) == inner.sum()
    assert "left out" not in model.posterior_.to_text()
    np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(ValueError, match=r"min_helps must be a probability from 0 to 1, but is 2"):
        model.to_text(min_helps=2)


def test_a_single_tree_has_no_leaf_of_one_row_and_every_split_is_judged():
    X, y, _ = with_a_few_noisy_splits()
    for model in (
        et.MetaTreeClassifier(random_state=0).fit(X, y),
        et.MetaTreeRegressor(random_state=0).fit(X, X[:, 0]),
    ):
        tree = model.posterior_.tree
        rows = np.bincount(tree.route(model.schema_.encode(X)), minlength=tree.n_nodes)
        assert rows[tree.is_terminal].min() >= 3
        assert (model.helpful_splits_[~tree.is_terminal] != 0.5).all()
