"""Trees as text and HTML: every node in place, and no name does harm."""

from __future__ import annotations

from html.parser import HTMLParser

import everytree as et
from cases import families
from everytree.view.html import tree_html
from everytree.view.text import tree_text
from picture_cases import EVERY_KIND, fitted, one_node, small

# ---- text ------------------------------------------------------------------------------------------------------------


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


# ---- HTML ------------------------------------------------------------------------------------------------------------


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
