"""What models, predictions and choices show of themselves in notebooks."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn

import everytree as et
from cases import rng_for


class Balanced(HTMLParser):
    """Checks that every tag is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(html: str) -> str:
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    assert "<script" not in html
    return html


def table():
    rng = rng_for("notebook")
    X = pd.DataFrame({"<age>": rng.normal(50, 10, 120), "site": rng.choice(["north", "south", "east"], 120)})
    score = 0.2 * (X["<age>"] - 50) + (X["site"] == "south") * 2 + rng.normal(0, 0.5, 120)
    return X, score.to_numpy()


MODELS = {
    "tree": et.MetaTreeClassifier(random_state=0),
    "forest": et.MetaForestClassifier(5, random_state=0),
    "exact": et.ExactTreeClassifier(max_depth=2),
    "boost": et.MetaBoostClassifier(10, n_chains=2, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_fitted_model_shows_quality_importances_and_a_tree_with_names(name):
    X, score = table()
    model = MODELS[name]
    y = np.where(score > 0, "ill", "well")
    html = checked(model.fit(X, y)._repr_mimebundle_()["text/html"])
    assert model._repr_html_() == html
    assert "&lt;age&gt;" in html
    assert "Importance of columns" in html
    if name == "exact":
        assert "No rows were left out" in html
    else:
        assert "rows that the trees had not seen" in html
    assert ("<b>&lt;age&gt;?</b>" in html or "<b>site?</b>" in html) == (name != "boost")
    assert not re.search(r"<b>x\d\?</b>", html)
    assert re.search(r"[≤>] \d\d", html) or name == "boost"  # a cut point, not a code
    which = "probability that the split helps rows it was not grown on"
    assert (which in html) == (name in ("tree", "forest"))


def test_a_model_that_is_not_fitted_shows_the_diagram_of_scikit_learn():
    model = et.MetaTreeRegressor()
    assert "sk-" in model._repr_mimebundle_()["text/html"]
    X, score = table()
    with sklearn.config_context(display="text"):
        assert "text/html" not in model.fit(X, score)._repr_mimebundle_()
    noise = et.MetaTreeRegressor(random_state=0).fit(np.zeros((30, 2)), score[:30])
    assert "No column is related to the target" in checked(noise._repr_html_())
    both = et.MetaTreeRegressor(random_state=0).fit(X, np.column_stack([score, score]))
    assert "sk-" in both._repr_html_()


def test_a_choice_prints_plainly():
    X, score = table()
    model = et.MetaForestClassifier(5, random_state=0).fit(X, score > 0)
    lines = repr(model.choice_).splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        *model.choice_.parameters, "sharpness", "mean log score of unseen rows"
    ]  # fmt: skip
    assert lines[-1].endswith(f"{model.choice_.score:.4f}")
