"""Times of which some were cut short: what people read says nothing of times beyond the longest that was seen."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import rng_for
from everytree.predictive.restricted import restricted_mean, time_text


def study(n=300, name="study"):
    """Half of the rows end soon, of the others few; nobody is followed for longer than 5."""
    rng = rng_for("times cut short", name)
    table = pd.DataFrame({"load": rng.uniform(0.0, 1.0, n), "noise": rng.normal(size=n)})
    lifetime = rng.exponential(np.where(table["load"] > 0.5, 1.0, 40.0))
    return table, np.minimum(lifetime, 5.0), lifetime <= 5.0


def tree_of_study():
    table, time, event = study()
    return et.MetaTreeRegressor(family="exponential", random_state=0).fit(table, time, event=event), table


@pytest.mark.parametrize(("shape", "rate"), [(3.0, 2.0), (1.5, 0.01), (40.0, 900.0)])
def test_a_restricted_mean_is_that_of_the_smaller_of_time_and_limit(shape, rate):
    dist = et.Posterior(et.MetaTree.complete([]), et.Exponential(shape, rate)).predictive(np.zeros((2, 0), np.uint8))
    for until in (0.1, 5.0, 300.0):
        expected = rate / (shape - 1.0) * (1.0 - (1.0 + until / rate) ** (1.0 - shape))
        np.testing.assert_allclose(restricted_mean(dist.sf, until), expected, rtol=1e-6)


def test_the_longest_time_is_known_where_some_were_cut_short(tmp_path):
    table, time, event = study()
    model = et.MetaTreeRegressor(family="exponential", random_state=0)
    assert model.fit(table, time).fitted_.last_time is None
    assert model.fit(table, time, event=np.ones(len(time))).fitted_.last_time is None
    assert model.fit(table, time, event=event).fitted_.last_time == 5.0
    et.save(model, tmp_path / "model.everytree")
    for copy in (et.load(tmp_path / "model.everytree"), pickle.loads(pickle.dumps(model))):
        assert copy.predictive(table[:2]).last_time == 5.0
    other = model.blank()
    assert other.fitted_.last_time is None
    other.partial_fit(table, time + 1.0, event=event)
    assert other.fitted_.last_time == 6.0
    assert model.merge(other, allow_overlap=True).fitted_.last_time == 6.0
    assert et.MetaTreeRegressor(random_state=0).fit(table, time).fitted_.last_time is None


def test_predictions_are_means_as_before():
    model, table = tree_of_study()
    np.testing.assert_allclose(model.predict(table), model.predictive(table).mean(), rtol=1e-12)
    assert model.predict(table).max() > 5.0


def test_a_tree_says_medians_and_means_up_to_the_longest_time():
    model, table = tree_of_study()
    first, *lines = model.to_text(min_helps=0, max_depth=9).splitlines()
    assert first.endswith("median  mean up to 5")
    assert any("beyond 5" in line for line in lines)
    assert any("beyond" not in line for line in lines)
    assert all(float(line.split()[-1]) <= 5.0 for line in lines if "nodes" not in line)
    picture = model._repr_mimebundle_()["text/html"]
    assert "beyond 5" in picture
    assert "±" not in picture
    texts = [text.get_text() for text in model.plot().texts]
    assert any(text == "median beyond 5" for text in texts)
    assert not any("±" in text for text in texts)
    whole = et.MetaTreeRegressor(family="exponential", random_state=0).fit(table, np.arange(1.0, 301.0))
    assert "±" in whole._repr_html_()
    assert "beyond" not in whole.to_text()


def test_distributions_say_no_time_beyond_the_longest():
    model, _ = tree_of_study()
    dist = model.predictive(pd.DataFrame({"load": [0.9, 0.1], "noise": [0.0, 0.0]}))
    short, long = dist.quantile(0.5)
    assert short < 5.0 < long
    assert repr(dist).endswith(f"median: {time_text(short, 5.0)}, beyond 5)")


def test_an_explanation_says_that_its_mean_goes_on_beyond():
    model, table = tree_of_study()
    assert repr(model.explain(table[:1])).splitlines()[-1].startswith("mean if rates go on beyond 5")
