"""What a picture is to say, before it is drawn: nodes, answers, weights, limits and colours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from own_family import GammaWaiting

import everytree as et
from cases import CASES, families, random_codes, rng_for
from everytree.view.colours import DARK, LIGHT, ink_on
from everytree.view.describe import describe
from everytree.view.text import tree_text
from picture_cases import EVERY_KIND, fitted, one_row
from random_shapes import random_shape


@families
@EVERY_KIND
def test_description_agrees_with_the_posterior(case, kind):
    post = fitted(case, kind)
    drawing = describe(post, max_depth=9, max_nodes=10_000, **one_row(case))
    assert sorted(node.number for node in drawing.nodes) == list(range(post.tree.n_nodes))
    for i, node in enumerate(drawing.nodes):
        s = node.number
        assert node.parent < i
        assert node.split_prob == post.split_prob[s]
        assert node.node_prob == pytest.approx(post.node_prob[s], abs=1e-12)
        assert node.is_terminal == post.tree.is_terminal[s]
        assert node.n_hidden == 0
        first = post.tree.first_child[s]
        assert [drawing.nodes[c].number for c in node.children] == list(range(first, first + post.tree.n_children[s]))
        if node.outcome.probs:
            assert sum(node.outcome.probs) == pytest.approx(1.0)
        else:
            assert math.isfinite(node.outcome.mean)


@families
@pytest.mark.parametrize(("max_depth", "max_nodes"), [(0, 60), (1, 60), (2, 5), (9, 1), (9, 7)])
def test_limits_are_kept_and_the_rest_is_counted(case, max_depth, max_nodes):
    post = fitted(case)
    drawing = describe(post, max_depth=max_depth, max_nodes=max_nodes)
    chosen = [node.number for node in drawing.nodes]
    assert len(chosen) <= max_nodes
    assert max(node.depth for node in drawing.nodes) <= max_depth
    assert len(chosen) + sum(node.n_hidden for node in drawing.nodes) == post.tree.n_nodes
    left_out = [s for s in range(post.tree.n_nodes) if s not in chosen and post.tree.depth[s] <= max_depth]
    worst = min(post.node_prob[chosen])
    assert all(post.node_prob[s] <= worst + 1e-12 for s in left_out)


@pytest.mark.parametrize("name", ["bernoulli", "categorical", "geometric", "normal", "linear"])
def test_weight_counts_rows(name):
    case = next(case for case in CASES if case.name == name)
    rng = rng_for("weights", name)
    tree = random_shape([3, 2, 4], 3, rng=rng)
    X = random_codes(rng, tree, 100)
    y, rows = case.draw(rng, 100)
    drawing = describe(et.Posterior(tree, case.family).update(X, y, **rows), max_nodes=1000)
    counts = np.bincount(tree.route(X), minlength=tree.n_nodes)
    for s in range(tree.n_nodes - 1, 0, -1):
        counts[tree.parent[s]] += counts[s]
    assert drawing.unit == "rows"
    assert {node.number: node.weight for node in drawing.nodes} == pytest.approx(dict(enumerate(counts.tolist())))


def test_families_that_keep_no_rows_say_what_they_keep():
    X = np.zeros((3, 0), dtype=np.uint8)
    poisson = et.Posterior(et.MetaTree.complete([]), et.Poisson()).update(X, [1, 2, 3], exposure=[1.0, 2.0, 0.5])
    waiting = et.Posterior(et.MetaTree.complete([]), et.Exponential(3.0)).update(X, [1, 2, 3], censored=[0, 1, 0])
    own = et.Posterior(et.MetaTree.complete([]), GammaWaiting(2.0, 3.0, 1.0)).update(X, [1.0, 2.0, 3.0])
    assert (describe(poisson).unit, describe(poisson).nodes[0].weight) == ("exposure", 3.5)
    assert (describe(waiting).unit, describe(waiting).nodes[0].weight) == ("events", 2.0)
    assert describe(own).nodes[0].weight is None
    assert "rows" not in tree_text(own)


def test_answers():
    tree = et.MetaTree.from_arrays(
        feature=[0, 1, 2, 3, -1, -1, -1, -1, -1, -1, -1, -1],
        first_child=[1, 4, 7, 10, -1, -1, -1, -1, -1, -1, -1, -1],
        n_children=[3, 3, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0],
        threshold=[-1, 2, -1, 0, -1, -1, -1, -1, -1, -1, -1, -1],
        missing_child=[-1, 2, 2, 0, -1, -1, -1, -1, -1, -1, -1, -1],
    )
    post = et.Posterior(tree, et.Bernoulli())
    answers = {node.number: node.answer for node in describe(post, code_names={2: ["a", "b"]}).nodes}
    assert [answers[s] for s in range(12)] == [
        "", "= 0", "= 1", "= 2", "≤ 2", "> 2", "missing", "= a", "= b", "missing", "≤ 0 or missing", "> 0",
    ]  # fmt: skip


def test_a_split_that_only_asks_whether_there_is_a_value_says_so():
    """Growers ask for missing values with the largest threshold there is, whatever the names of the codes."""
    tree = et.MetaTree.from_arrays(
        [0, -1, -1], [1, -1, -1], [2, 0, 0], [65534, -1, -1], missing_child=[1, -1, -1], n_features=1
    )
    text = et.Posterior(tree, et.Bernoulli()).to_text(code_names=[["a", "b"]])
    assert "known" in text
    assert "missing" in text


@pytest.mark.parametrize(("colours", "sign"), [(LIGHT, -1), (DARK, 1)], ids=["light", "dark"])
def test_split_colours_leave_the_paper_in_even_steps(colours, sign):
    def lightness(colour):
        channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16  # L* of CIELAB

    steps = sign * np.diff([lightness(colours.split(p)) for p in np.linspace(0, 1, 21)])
    assert (steps > 0).all()
    assert steps.max() < 1.35 * steps.min()
    assert (colours.split(0.0), colours.split(1.0)) == (colours.splits[0], colours.splits[-1])
    assert colours.faded("#204060", 1.0) == "#204060"
    assert colours.faded("#204060", 0.0, 0.0) == colours.paper
    assert {ink_on(colours.split(1.0)), ink_on(colours.split(0.0))} == {"#ffffff", "#22252b"}


def test_a_pruned_tree_is_written_with_and_without_predictions():
    post = et.Posterior(et.MetaTree.complete([0, 1, 1]), et.Bernoulli(1, 1))
    post.update([[0, 0], [0, 1], [1, 0], [1, 1]] * 3, [0, 0, 1, 1] * 3)
    tree = post.map_tree()
    assert tree.leaves.tolist() == [1, 2]
    assert tree.to_text(feature_names=["a", "b"]) == "a?\n├─ = 0  leaf\n└─ = 1  leaf"
    assert tree.to_text(post).splitlines()[2] == "└─ = 1  leaf: P(y = 1) = 0.875  (6 rows)"
    with pytest.raises(ValueError, match="post is of another meta-tree"):
        tree.to_text(et.Posterior(et.MetaTree.complete([0]), et.Bernoulli()))
