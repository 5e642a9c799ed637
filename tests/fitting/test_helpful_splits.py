"""Which splits help rows on which they were not chosen."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from everytree.fitting.helpful_splits import cross_fitted_splits, held_out_splits, same_places
from everytree.posterior.rows import Rows
from everytree.structure.grown import Grown


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
    tree = et.MetaTree.random([4, 4, 4], 3, rng=rng, kind="threshold")
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


def test_stand_ins_with_the_same_columns_add_their_log_odds():
    X, y, tree, _ = example()
    folds = [np.arange(80) % 2 != k for k in range(2)]
    found = cross_fitted_splits(
        Grown(tree, np.ones(80, dtype=bool)), [Grown(tree, fold) for fold in folds], Rows(X, y), et.Bernoulli(),
        np.full(3, 4), 1,
    )  # fmt: skip
    inner = ~tree.is_terminal
    each = [held_out_splits(0, Grown(tree, fold), Rows(X, y), et.Bernoulli(), np.full(3, 4), 1).prob for fold in folds]
    log_odds = sum(np.log(prob[inner] / (1.0 - prob[inner])) for prob in each)
    np.testing.assert_allclose(found.prob[inner], 1.0 / (1.0 + np.exp(-log_odds)), rtol=1e-9)
    assert found.n_rows == 80
    np.testing.assert_array_equal(same_places(tree, tree), np.arange(tree.n_nodes))
    other = et.MetaTree.complete([(int(tree.feature[0]) + 1) % 3], n_children=2, n_features=3)
    assert (same_places(tree, other)[1:] == -1).all()


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
        assert np.mean(helps[inner] > 0.9) < 0.1
        model.fit(X, signal)
        assert model.helpful_splits_[0] > 0.99


def test_pictures_say_which_probability_they_show(tmp_path):
    rng = rng_for("pictures of help")
    X = rng.normal(size=(200, 3))
    model = et.MetaTreeClassifier(max_depth=2, random_state=0).fit(X, X[:, 1] > 0)
    text, helps = model.to_text(), model.helpful_splits_
    assert text.splitlines()[0].split()[:2] == ["helps", "split"]
    assert text.splitlines()[1].split()[1] == f"{helps[0]:.3f}"
    assert f"helps {helps[0]:.3f}" in model.to_dot()
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
