"""Pictures say what the posterior says, with every name in place and nothing on top of anything else."""

from __future__ import annotations

import importlib.util
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from own_family import GammaWaiting

import everytree as et
from cases import CASES, KINDS, families, random_codes, rng_for
from everytree.view.describe import SPLIT_COLOURS, describe, faded, ink_on, split_colour
from everytree.view.dot import tree_dot
from everytree.view.html import tree_html
from everytree.view.plot import plot_predictive, plot_split_probs, plot_tree
from everytree.view.plot.layout import Layout, packed
from everytree.view.text import tree_text

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")

IMAGES = Path(__file__).parents[2] / "docs" / "images" / "make_images.py"
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def fitted(case, kind="mixed", *, missing=True, max_depth=3, n_rows=200, split_prior=0.7):
    rng = rng_for("pictures", case, kind, missing, max_depth)
    tree = et.MetaTree.random([3, 4, 2, 3], max_depth, rng=rng, kind=kind, missing=missing)
    X = random_codes(rng, tree, n_rows)
    y, rows = case.draw(rng, n_rows)
    return et.Posterior(tree, case.family, split_prior).update(X, y, **rows)


def one_row(case):
    """What the family has to know of a row to predict it."""
    return {"inputs": [1.0, 0.5]} if case.name == "linear" else {}


def small(family=None):
    """Two binary features; the root asks `x0`, and the rows say that it should."""
    post = et.Posterior(et.MetaTree.complete([0, 1, 1]), family or et.Bernoulli(1, 1), 0.5)
    return post.update(np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3, dtype=np.uint8), [0, 0, 1, 1] * 3)


def one_node(family=None):
    return et.Posterior(et.MetaTree.complete([]), family or et.Bernoulli()).update(
        np.zeros((3, 0), np.uint8), [0, 1, 1]
    )


def words(ax):
    return [text.get_text() for text in ax.texts]


def drawn_numbers(ax):
    return sorted(int(word[1:]) for word in words(ax) if word.startswith("#"))


# ---- what is drawn --------------------------------------------------------------------------------------------------


@families
@EVERY_KIND
def test_description_agrees_with_the_posterior(case, kind):
    post = fitted(case, kind)
    drawing = describe(post, max_depth=9, max_nodes=10_000, row_data=one_row(case))
    assert sorted(node.number for node in drawing.nodes) == list(range(post.tree.n_nodes))
    for i, node in enumerate(drawing.nodes):
        s = node.number
        assert node.parent < i
        assert node.split_prob == post.split_prob[s]
        assert node.split_prior == post.split_prior[s]
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
    tree = et.MetaTree.random([3, 2, 4], 3, rng=rng)
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


def test_many_classes_are_drawn_together():
    rng = rng_for("many classes")
    post = et.Posterior(et.MetaTree.complete([0]), et.Categorical(30, 0.1))
    post.update(rng.integers(0, 2, (300, 1)), rng.integers(0, 30, 300) // 2)
    drawing = describe(post)
    assert len(drawing.classes) == 8
    assert drawing.classes[-1] == "others"
    assert all(sum(node.outcome.probs) == pytest.approx(1.0) for node in drawing.nodes)
    assert "others" in words(plot_tree(post))


@pytest.mark.parametrize("draw", [plot_tree, tree_text, tree_dot, tree_html])
def test_wrong_names_are_named(draw):
    post = small()
    with pytest.raises(ValueError, match="feature_names has 1 entries, but the tree asks feature 1"):
        draw(post, feature_names=["a"])
    with pytest.raises(ValueError, match="code_names has 1 entries, but the tree asks feature 1"):
        draw(post, code_names=[["no", "yes"]])
    with pytest.raises(ValueError, match=r"code_names\[0\] has 1 entries, but the tree asks code 1"):
        draw(post, code_names=[["no"], None])
    with pytest.raises(ValueError, match="class_names has 3 entries, but there are 2 classes"):
        draw(post, class_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="max_depth must be a whole number from 0 on"):
        draw(post, max_depth=-1)
    with pytest.raises(ValueError, match="max_nodes must be a whole number from 1 on"):
        draw(post, max_nodes=0)
    assert not plt.get_fignums()


# ---- colours --------------------------------------------------------------------------------------------------------


def test_split_colours_darken_evenly():
    def lightness(colour):
        channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16  # L* of CIELAB

    steps = -np.diff([lightness(split_colour(p)) for p in np.linspace(0, 1, 21)])
    assert (steps > 0).all()
    assert steps.max() < 1.35 * steps.min()
    assert (split_colour(0.0), split_colour(1.0)) == (SPLIT_COLOURS[0], SPLIT_COLOURS[-1])
    assert faded("#204060", 1.0) == "#204060"
    assert faded("#204060", 0.0, 0.0) == "#ffffff"
    assert (ink_on(split_colour(1.0)), ink_on(split_colour(0.0))) == ("#ffffff", "#22252b")


# ---- the tree with matplotlib ---------------------------------------------------------------------------------------


@families
def test_plots_draw_on_the_axes_given(case):
    post, extra = fitted(case), one_row(case)
    figure, axes = plt.subplots(1, 3, figsize=(15, 5))
    assert plot_tree(post, ax=axes[0], max_depth=2, **extra) is axes[0]
    assert plot_predictive(post, 1, ax=axes[1], **extra) is axes[1]
    assert plot_split_probs(post, ax=axes[2]) is axes[2]
    figure.canvas.draw()
    assert plt.get_fignums() == [figure.number]
    assert all(ax.has_data() for ax in axes)


@families
@EVERY_KIND
def test_plots_make_their_own_figure(case, kind):
    post, extra = fitted(case, kind), one_row(case)
    tree = plot_tree(post, max_nodes=15, **extra)
    for n, ax in enumerate([tree, plot_predictive(post, 0, **extra), plot_split_probs(post)], 1):
        ax.figure.canvas.draw()
        assert ax.figure.number == n


@pytest.mark.long
@families
@EVERY_KIND
def test_no_words_lie_on_others_or_leave_the_picture(case, kind):
    ax = plot_tree(fitted(case, kind), max_nodes=25, feature_names=["age", "some long name", "size", "x" * 40])
    ax.figure.set_dpi(150)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text()]
    for one, other in combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        down = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert across <= 1.0 or down <= 2.0  # line boxes are a little higher than letters
    page = ax.figure.bbox
    assert all(page.x0 <= b.x0 and b.x1 <= page.x1 and page.y0 <= b.y0 and b.y1 <= page.y1 for b in boxes)


def test_tree_has_all_labels():
    post = small()
    names = {"feature_names": ["wind", "rain"], "code_names": [["calm", "storm"], ["dry", "wet"]]}
    ax = plot_tree(post, class_names=["stay", "leave"], **names)
    found = words(ax)
    assert drawn_numbers(ax) == list(range(7))
    assert found.count("wind") == 1
    assert found.count("rain") == 2
    assert {"= calm", "= storm", "= dry", "= wet", "12 rows", "6 rows", "3 rows", "stay", "leave"} <= set(found)
    assert {f"{p:.2f}" for p in post.split_prob[:3]} <= set(found)
    assert "leave: 0.50" in found
    assert len(ax.child_axes) == 1  # the colour bar
    shown = [patch.get_facecolor() for patch in ax.patches]
    assert any(np.allclose(matplotlib.colors.to_rgba(split_colour(post.split_prob[0])), c) for c in shown)


@pytest.mark.parametrize(("max_depth", "max_nodes"), [(1, 60), (9, 4), (2, 7)])
def test_tree_keeps_its_limits(max_depth, max_nodes):
    post = fitted(CASES[0])
    ax = plot_tree(post, max_depth=max_depth, max_nodes=max_nodes)
    hidden = [int(re.sub(r"\D", "", word)) for word in words(ax) if word.startswith("…")]
    assert hidden
    assert len(drawn_numbers(ax)) <= max_nodes
    assert len(drawn_numbers(ax)) + sum(hidden) == post.tree.n_nodes


def test_names_are_not_taken_for_mathematics():
    nasty = ["$x_1", r"$\frac$"]
    post = small()
    for ax in (
        plot_tree(post, feature_names=nasty, class_names=["$a", "_b$"], code_names=[nasty, nasty]),
        plot_predictive(post, 0, feature_names=nasty, class_names=["$a", "_b$"], code_names=[nasty, nasty]),
        plot_split_probs(post, feature_names=nasty),
    ):
        ax.figure.canvas.draw()


def test_tree_of_one_node():
    for family in (et.Bernoulli(), et.Normal(), et.Exponential(0.5)):
        post = one_node(family)
        ax = plot_tree(post)
        ax.figure.canvas.draw()
        assert drawn_numbers(ax) == [0]
        plot_split_probs(post).figure.canvas.draw()


def test_prior_with_infinite_moments_is_drawn():
    post = et.Posterior(et.MetaTree.complete([0, 1, 1]), et.Exponential(0.5, 1.0))
    assert "∞ ± ∞" in words(plot_tree(post))
    plot_predictive(post, 0).figure.canvas.draw()
    assert "∞" in tree_text(post)
    assert "∞" in tree_html(post)


def test_unlikely_nodes_are_pale():
    post = et.Posterior(et.MetaTree.complete([0, 1, 1]), et.Bernoulli(), [0.01, 0.5, 0.5, 0, 0, 0, 0])
    ax = plot_tree(post)
    inks = {text.get_text(): text.get_color() for text in ax.texts}
    assert int(inks["#3"][1:3], 16) > int(inks["#0"][1:3], 16)


@families
def test_layout_is_tidy(case):
    layout = Layout(describe(fitted(case), max_nodes=30))
    by_depth: dict[int, list] = {}
    for item in layout.items:
        by_depth.setdefault(item.depth, []).append(item)
    for items in by_depth.values():
        ordered = sorted(items, key=lambda item: item.y)
        for one, other in pairwise(ordered):
            assert other.y - other.height / 2 >= one.y + one.height / 2 + 9.99
    for i, item in enumerate(layout.items):
        below = [child.y for child in layout.items if child.parent == i]
        if below:
            assert item.y == pytest.approx((below[0] + below[-1]) / 2)
            assert below == sorted(below)
    assert min(item.y - item.height / 2 for item in layout.items) == pytest.approx(0.0)
    assert max(item.y + item.height / 2 for item in layout.items) == pytest.approx(layout.height)


def test_leaves_of_a_complete_tree_are_evenly_spaced():
    layout = Layout(describe(et.Posterior(et.MetaTree.complete([0, 1, 1]), et.Bernoulli())))
    leaves = sorted(item.y for item in layout.items if item.depth == 2)
    assert np.diff(leaves) == pytest.approx(np.full(3, leaves[1] - leaves[0]))


def test_siblings_are_packed_evenly():
    big, tiny = ([-5.0, -30.0], [5.0, 30.0]), ([-5.0], [5.0])
    assert packed([big, tiny, big], 2.0) == pytest.approx([0.0, 31.0, 62.0])
    assert packed([tiny], 2.0) == [0.0]


# ---- predictions along a feature ------------------------------------------------------------------------------------


def steps(ax):
    """Heights of each step line."""
    return [p.get_data().values for p in ax.patches if type(p).__name__ == "StepPatch"]


@families
def test_predictive_along_an_ordered_feature(case):
    rng = rng_for("ordered", case)
    tree = et.MetaTree.random([8, 5], 4, rng=rng, kind="threshold", missing=True)
    X = random_codes(rng, tree, 300, 8)
    y, rows = case.draw(rng, 300)
    post, extra = et.Posterior(tree, case.family).update(X, y, **rows), one_row(case)
    ax = plot_predictive(post, 0, at=[0, 3], feature_names=["size", "age"], **extra)
    ax.figure.canvas.draw()
    n_codes = int(tree.threshold[tree.feature == 0].max()) + 2
    table = np.column_stack([np.append(np.arange(n_codes), -1), np.full(n_codes + 1, 3)])
    dist = post.predictive(table, **{name: np.repeat([v], n_codes + 1, axis=0) for name, v in extra.items()})
    expected = dist.probs()[:-1].T if case.name in ("bernoulli", "categorical") else [dist.mean()[:-1]]
    np.testing.assert_allclose(np.array(steps(ax)), np.array(expected))
    assert ax.get_xlabel() == "size"
    assert "missing" in [label.get_text() for label in ax.get_xticklabels()]


@families
def test_predictive_along_a_feature_without_order(case):
    post, extra = fitted(case, "multiway", missing=False), one_row(case)
    feature = int(post.tree.feature[0])
    n_codes = int(post.tree.n_codes[feature])
    names = {feature: [f"kind {c}" for c in range(n_codes)]}
    ax = plot_predictive(post, feature, code_names=names, coverage=0.5, **extra)
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == names[feature]
    table = np.zeros((n_codes, post.tree.n_features), dtype=np.uint8)
    table[:, feature] = np.arange(n_codes)
    dist = post.predictive(table, **{name: np.repeat([v], n_codes, axis=0) for name, v in extra.items()})
    bars = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in ax.patches]
    if case.name in ("bernoulli", "categorical"):
        heights = np.array(bars).reshape(-1, n_codes, 2)
        np.testing.assert_allclose(np.diff(heights)[..., 0].T, dist.probs())
    else:
        np.testing.assert_allclose(bars, dist.interval(0.5))
        assert "50 % interval" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_predictive_takes_names_codes_and_a_row():
    tree = et.MetaTree.from_arrays([0, -1, -1], [1, -1, -1], [2, 0, 0], [2, -1, -1], n_features=2)
    post = et.Posterior(tree, et.Normal()).update([[0, 0], [4, 0]] * 20, [0.0, 5.0] * 20)
    cuts = plot_predictive(post, "size", feature_names=["size", "age"], code_names=[["1.5", "2.5", "9", "12"], None])
    ticks = {label.get_text(): place for label, place in zip(cuts.get_xticklabels(), cuts.get_xticks(), strict=True)}
    assert ticks == {"1.5": 0.5, "2.5": 1.5, "9": 2.5, "12": 3.5}
    words_ = plot_predictive(post, 0, codes=[4, 1], code_names={0: ["tiny", "small", "big", "huge", "vast"]})
    assert [label.get_text() for label in words_.get_xticklabels()] == ["vast", "small"]
    assert steps(words_)[0] == pytest.approx(post.predictive([[4, 0], [1, 0]]).mean())
    flat = plot_predictive(post, 1, at=np.array([4, 255], dtype=np.uint8))
    flat.figure.canvas.draw()
    with pytest.raises(ValueError, match="feature is 'weight', but feature_names are"):
        plot_predictive(post, "weight", feature_names=["size", "age"])
    with pytest.raises(ValueError, match="feature must be a whole number from 0 to 1"):
        plot_predictive(post, 2)
    with pytest.raises(ValueError, match="at must have one code for each of 2 features"):
        plot_predictive(post, 0, at=[1])
    wide = plot_predictive(small(), 2, at=[0, 1, 1])
    assert len(wide.patches) == 4
    with pytest.raises(ValueError, match="codes are whole numbers"):
        plot_predictive(post, 0, at=[0.5, 0.0])


def test_predictive_of_a_family_without_cdf():
    rng = rng_for("own family")
    post = et.Posterior(et.MetaTree.complete([0]), GammaWaiting(2.0, 3.0, 1.0))
    post.update(rng.integers(0, 2, (50, 1)), rng.gamma(2.0, 1.0, 50))
    dist = post.predictive([[0], [1]])
    ax = plot_predictive(post, 0)
    if hasattr(post.family.predictive(post.statistics), "cdf"):
        expected = dist.interval(0.9)
    else:
        expected = np.column_stack([dist.mean() - 1.6448536 * dist.std(), dist.mean() + 1.6448536 * dist.std()])
    np.testing.assert_allclose([(b.get_y(), b.get_y() + b.get_height()) for b in ax.patches], expected, rtol=1e-6)
    plot_tree(post).figure.canvas.draw()


# ---- split probabilities --------------------------------------------------------------------------------------------


@families
def test_split_probs(case):
    post = fitted(case)
    ax = plot_split_probs(post, top=5, feature_names=["age", "size", "$", "sex"])
    inner = np.flatnonzero(~post.tree.is_terminal)
    shown = [int(label.get_text().split("#")[1]) for label in ax.get_yticklabels()]
    assert len(shown) == min(5, len(inner))
    assert [bar.get_width() for bar in ax.patches] == post.split_prob[shown].tolist()
    assert min(post.node_prob[shown]) >= max((post.node_prob[s] for s in inner if s not in shown), default=0.0)
    marks = next(c for c in ax.collections if len(c.get_segments()) == len(shown))
    assert [segment[0][0] for segment in marks.get_segments()] == post.split_prior[shown].tolist()
    assert ax.get_yticklabels()[0].get_text().startswith(["age", "size", "$", "sex"][post.tree.feature[0]])
    with pytest.raises(ValueError, match="top must be a whole number from 1 on"):
        plot_split_probs(post, top=0)


# ---- the library ----------------------------------------------------------------------------------------------------


def test_matplotlib_is_imported_late(monkeypatch):
    code = "import sys, everytree.view, everytree.view.html, everytree.view.text; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.setitem(sys.modules, name, None)
    for draw in (plot_tree, plot_split_probs, lambda post: plot_predictive(post, 0)):
        with pytest.raises(ImportError, match=r"pip install everytree\[plot\]"):
            draw(small())


# ---- text -----------------------------------------------------------------------------------------------------------


def test_text_of_a_small_tree():
    assert tree_text(small(), max_depth=1).splitlines() == [
        "                 split  in tree  rows  P(y = 1)",
        "x0?              0.992    1.000    12     0.500",
        "├─ = 0  x1?      0.304    0.992     6     0.125",
        "│  └─ … 2 nodes",
        "└─ = 1  x1?      0.304    0.992     6     0.875",
        "   └─ … 2 nodes",
    ]
    assert tree_text(one_node()).splitlines() == [
        "      split  in tree  rows  P(y = 1)",
        "leaf           1.000     3     0.625",
    ]


@families
@EVERY_KIND
def test_text_has_a_line_a_node(case, kind):
    post = fitted(case, kind)
    names = ["first", "second", "third", "fourth"]
    lines = tree_text(post, feature_names=names, max_depth=9, max_nodes=9999).splitlines()
    assert len(lines) == 1 + post.tree.n_nodes
    assert sum("leaf" in line for line in lines) == post.tree.n_terminals
    assert sum("missing  " in line for line in lines) > 0
    for k, name in enumerate(names):
        assert sum(f"{name}?" in line for line in lines) == (post.tree.feature == k).sum()
    assert len({len(line) for line in lines}) <= 2


def test_text_of_classes_and_coefficients():
    many = et.Posterior(et.MetaTree.complete([0]), et.Categorical(6)).update([[0], [1]], [4, 5])
    assert "likeliest" in tree_text(many)
    assert "P(y = 2)" in tree_text(et.Posterior(et.MetaTree.complete([0]), et.Categorical(3)))
    line = et.Posterior(et.MetaTree.complete([]), et.LinearRegression(2))
    assert "coefficients" in tree_text(line)
    assert "mean" in tree_text(line, inputs=[1.0, 2.0])


# ---- Graphviz -------------------------------------------------------------------------------------------------------

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_ID = rf"(?:\d+\.\d+|\w+|{_QUOTED})"
_STATEMENT = re.compile(rf"({_ID})(?:\s*->\s*({_ID}))?\s*\[\s*(?:{_ID}\s*=\s*{_ID}\s*,?\s*)*\]\s*;\s*")


def parsed_dot(source):
    """Nodes and edges of the little of the language that we write; fails on anything else."""
    body = re.fullmatch(r"digraph \w+ \{\s*(.*)\}", source, flags=re.DOTALL)[1]
    nodes, edges, at = [], [], 0
    while at < len(body):
        match = _STATEMENT.match(body, at)
        assert match, body[at : at + 80]
        if match[2]:
            edges.append((match[1], match[2]))
        elif match[1] not in ("graph", "node", "edge"):
            nodes.append(match[1])
        at = match.end()
    return nodes, edges


@families
@EVERY_KIND
@pytest.mark.parametrize("max_nodes", [1, 6, 1000])
def test_dot_is_a_tree(case, kind, max_nodes):
    post = fitted(case, kind)
    nodes, edges = parsed_dot(tree_dot(post, max_nodes=max_nodes, max_depth=9))
    assert len(nodes) == len(set(nodes)) == len(edges) + 1
    assert {node for edge in edges for node in edge} | {"node0"} == set(nodes)
    if max_nodes > post.tree.n_nodes:
        assert len(nodes) == post.tree.n_nodes


def test_dot_escapes():
    nasty = ['say "hi" \\N', "a & b\nc {};"]
    source = tree_dot(small(), feature_names=nasty, code_names=[nasty, nasty], class_names=nasty)
    nodes, _ = parsed_dot(source)
    assert len(nodes) == 7
    assert r"say \"hi\" \\N?" in source
    assert "a &amp; b c {};" in source
    assert parsed_dot(tree_dot(one_node())) == (["node0"], [])
    assert split_colour(small().split_prob[0]) in source


# ---- HTML -----------------------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Text and tags of a fragment; fails where tags do not match."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"style"}
        assert all('"' not in value and "url" not in value for _, value in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@families
@EVERY_KIND
def test_html_is_whole_and_harmless(case, kind):
    post = fitted(case, kind)
    page = Reader(tree_html(post, max_depth=9, max_nodes=1000))
    assert set(page.tags) <= {"div", "table", "caption", "tr", "th", "td", "ul", "li", "span", "b"}
    assert page.tags.count("li") == post.tree.n_nodes
    assert type(case.family).__name__ in page.text
    assert f"{post.n_rows:,}" in page.text
    assert f"{post.log_evidence:.6g}" in page.text
    short = Reader(tree_html(post, max_nodes=3))
    assert short.tags.count("li") > 3
    assert "…" in short.text


def test_html_escapes():
    nasty = ['<script>alert("1")</script>', "a & b < c > 'd'"]
    source = tree_html(small(), feature_names=nasty, code_names=[nasty, nasty], class_names=nasty)
    page = Reader(source)
    assert "<script" not in source
    assert "script" not in page.tags
    assert nasty[0] + "?" in page.text
    assert f"= {nasty[1]}" in page.text
    assert Reader(tree_html(one_node())).tags.count("li") == 1
    assert len(tree_html(small())) < 6000


# ---- pictures of the documentation ----------------------------------------------------------------------------------


def test_images_are_made(tmp_path):
    spec = importlib.util.spec_from_file_location("make_images", IMAGES)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    again = tmp_path / "again"
    again.mkdir()
    for folder in (tmp_path, again):
        script.main(folder)
    assert not plt.get_fignums()
    for name in ("tree", "predictive", "split_probs"):
        picture = (tmp_path / f"{name}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 200_000
        assert picture == (again / f"{name}.png").read_bytes()
        assert (IMAGES.parent / f"{name}.png").exists()


def test_a_split_that_only_asks_whether_there_is_a_value_says_so():
    """Growers ask for missing values with the largest threshold there is, whatever the names of the codes."""
    tree = et.MetaTree.from_arrays(
        [0, -1, -1], [1, -1, -1], [2, 0, 0], [65534, -1, -1], missing_child=[1, -1, -1], n_features=1
    )
    text = et.Posterior(tree, et.Bernoulli()).to_text(code_names=[["a", "b"]])
    assert "known" in text
    assert "missing" in text
