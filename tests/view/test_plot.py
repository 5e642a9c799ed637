"""Pictures say what the posterior says, with every name in place and nothing on top of anything else."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import CASES, families, rng_for
from everytree.families.registry import NUMBER_FAMILIES
from everytree.view.colours import LIGHT
from everytree.view.describe import describe
from everytree.view.html import tree_html
from everytree.view.plot import plot_predictive, plot_tree
from everytree.view.plot.layout import Layout, packed
from everytree.view.text import tree_text
from picture_cases import EVERY_KIND, fitted, one_node, one_row, small

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")
IMAGES = Path(__file__).parents[2] / "docs" / "images" / "make_images.py"


CONSTANTS = set(NUMBER_FAMILIES) - {"linear", "survival"}


def words(ax):
    return [text.get_text() for text in ax.texts]


def drawn_numbers(ax):
    return sorted(int(word[1:]) for word in words(ax) if word.startswith("#"))


# ---- the tree --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [plot_tree, tree_text, tree_html])
def test_wrong_names_are_named(draw):
    post = small()
    with pytest.raises(ValueError, match="feature_names has 1 entries, but the tree splits on feature 1"):
        draw(post, feature_names=["a"])
    with pytest.raises(ValueError, match="code_names has 1 entries, but the tree splits on feature 1"):
        draw(post, code_names=[["no", "yes"]])
    with pytest.raises(ValueError, match=r"code_names\[0\] has 1 entries, but the tree has code 1"):
        draw(post, code_names=[["no"], None])
    with pytest.raises(ValueError, match="class_names has 3 entries, but there are 2 classes"):
        draw(post, class_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="max_depth must be a whole number from 0 on"):
        draw(post, max_depth=-1)
    with pytest.raises(ValueError, match="max_nodes must be a whole number from 1 on"):
        draw(post, max_nodes=0)
    assert not plt.get_fignums()


def test_many_classes_are_drawn_together():
    rng = rng_for("many classes")
    post = et.Posterior(et.MetaTree.complete([0]), et.Categorical(30, 0.1))
    post.update(rng.integers(0, 2, (300, 1)), rng.integers(0, 30, 300) // 2)
    drawing = describe(post)
    assert len(drawing.classes) == 8
    assert drawing.classes[-1] == "others"
    assert all(sum(node.outcome.probs) == pytest.approx(1.0) for node in drawing.nodes)
    assert "others" in words(plot_tree(post))


@families
def test_plots_draw_on_the_axes_given(case):
    post, extra = fitted(case), one_row(case)
    model = et.MetaTreeRegressor(random_state=0).fit(np.arange(30.0)[:, None], np.arange(30.0))
    figure, axes = plt.subplots(1, 3, figsize=(15, 5))
    assert plot_tree(post, ax=axes[0], max_depth=2, **extra) is axes[0]
    assert plot_predictive(model, 0, ax=axes[1]) is axes[1]
    assert model.plot(ax=axes[2]) is axes[2]
    figure.canvas.draw()
    assert plt.get_fignums() == [figure.number]
    assert all(ax.has_data() for ax in axes)


@families
def test_plots_make_their_own_figure(case):
    post, extra = fitted(case), one_row(case)
    model = et.MetaTreeRegressor(random_state=0).fit(np.arange(30.0)[:, None], np.arange(30.0))
    for n, ax in enumerate([plot_tree(post, max_nodes=15, **extra), plot_predictive(model, 0)], 1):
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
    assert any(np.allclose(matplotlib.colors.to_rgba(LIGHT.split(post.split_prob[0])), c) for c in shown)


def contrast(one, other):
    """The ratio of luminances as the W3C has it: 1 for equal colours, 21 for black on white."""
    channels = np.array([matplotlib.colors.to_rgb(one), matplotlib.colors.to_rgb(other)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    dark, light = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return (light + 0.05) / (dark + 0.05)


def behind(ax, text):
    """The colour of the topmost box below a text, or of the page."""
    place = ax.transData.transform(text.get_position())
    boxes = [box for box in ax.patches if box.get_facecolor()[3] and box.get_window_extent().contains(*place)]
    return boxes[-1].get_facecolor() if boxes else ax.figure.get_facecolor()


STYLES = {
    "default": {}, "dark_background": "dark_background", "seaborn": "seaborn-v0_8",
    "black, no axes": {"figure.facecolor": "black", "axes.facecolor": "none"},
    "transparent": {"figure.facecolor": "none", "axes.facecolor": "none", "text.color": "#e8e6e0"},
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_pictures_can_be_read_on_any_page(style):
    with plt.style.context(["default", STYLES[style]]):
        ax = plot_tree(small())
        model = et.MetaTreeRegressor(random_state=0).fit(np.arange(30.0)[:, None], np.arange(30.0))
        curve = plot_predictive(model, 0)
        is_dark = style not in ("default", "seaborn")
    page = ("#1c1f26" if is_dark else "white") if style == "transparent" else None
    for text in ax.texts:
        below = page if page and behind(ax, text)[3] == 0.0 else behind(ax, text)
        assert contrast(text.get_color(), below) > (1.8 if text.get_text().startswith("#") else 2.8), text
    assert all(contrast(line.get_color(), page or ax.figure.get_facecolor()) > 1.1 for line in curve.get_lines())
    plt.close("all")


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
    X = pd.DataFrame({"$x_1": [0, 1] * 20, r"$\frac$": ["$a", "_b$"] * 20})
    model = et.MetaTreeClassifier(random_state=0).fit(X, np.where(X["$x_1"], "$a", "_b$"))
    for ax in (
        plot_tree(post, feature_names=nasty, class_names=["$a", "_b$"], code_names=[nasty, nasty]),
        plot_predictive(model, "$x_1"),
        plot_predictive(model, r"$\frac$"),
    ):
        ax.figure.canvas.draw()


def test_tree_of_one_node():
    for family in (et.Bernoulli(), et.Normal(), et.Exponential(0.5)):
        post = one_node(family)
        ax = plot_tree(post)
        ax.figure.canvas.draw()
        assert drawn_numbers(ax) == [0]


def test_prior_with_infinite_moments_is_drawn():
    post = et.Posterior(et.MetaTree.complete([0, 1, 1]), et.Exponential(0.5, 1.0))
    assert "∞ ± ∞" in words(plot_tree(post))
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


# ---- the library, and pictures of the documentation ------------------------------------------------------------------


def test_matplotlib_is_imported_late(monkeypatch):
    code = "import sys, everytree.view, everytree.view.html, everytree.view.text; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.setitem(sys.modules, name, None)
    model = et.MetaTreeRegressor(random_state=0).fit(np.arange(30.0)[:, None], np.arange(30.0))
    for draw in (lambda: plot_tree(small()), lambda: plot_predictive(model, 0)):
        with pytest.raises(ImportError, match=r"pip install everytree\[plot\]"):
            draw()


def test_images_are_made(tmp_path):
    spec = importlib.util.spec_from_file_location("make_images", IMAGES)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    again = tmp_path / "again"
    again.mkdir()
    for folder in (tmp_path, again):
        script.main(folder)
    assert not plt.get_fignums()
    for name in (name + ending for name in script.PICTURES for ending in ("", "_dark")):
        picture = (tmp_path / f"{name}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 200_000
        assert picture == (again / f"{name}.png").read_bytes()
        assert (IMAGES.parent / f"{name}.png").exists()


def test_a_column_of_one_value_is_drawn_at_the_value_of_the_row():
    X = pd.DataFrame({"const": 7.0, "empty": np.nan, "x": np.arange(50.0)})
    model = et.MetaTreeRegressor(max_depth=2, random_state=0).fit(X, X["x"])
    at = plot_predictive(model, "const", at=X.iloc[3])
    assert {float(x) for line in at.get_lines() for x in line.get_xdata()} == {7.0}
    for column, labels in {"const": ["any value"], "empty": ["any value", "missing"]}.items():
        ax = plot_predictive(model, column)
        assert [label.get_text() for label in ax.get_xticklabels()] == labels


@pytest.mark.parametrize("case", [one for one in CASES if one.name in CONSTANTS], ids=str)
def test_the_band_is_the_interval_of_the_predictions(case):
    """Of each family of numbers that are constants in a leaf."""
    rng = rng_for("band", case)
    X = rng.integers(0, 4, (120, 1)).astype(float)
    y, rows = case.draw(rng, 120)
    model = et.MetaTreeRegressor(family=case.name, random_state=0).fit(X, y, **rows)
    one = {"exposure": 1.0} if "exposure" in rows else {}
    ax = plot_predictive(model, 0, coverage=0.8, **one)
    places, means = ax.get_lines()[0].get_data()
    again = {name: np.full(len(places), value) for name, value in one.items()}
    dist = model.predictive(np.asarray(places)[:, None], **again)
    np.testing.assert_allclose(means, dist.mean())
    ends = dist.interval(0.8)
    band = next(mark for mark in ax.collections if "PolyCollection" in type(mark).__name__)
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((ends.min(), ends.max()))


def test_a_posterior_has_no_columns_to_draw_along():
    with pytest.raises(TypeError, match=r"is for estimators; post.predictive\(rows\)"):
        plot_predictive(small(), 0)
